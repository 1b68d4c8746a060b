"""Re-routing, beyond the paper: one rack's flow of one task takes another path as long as all together gain.

All flows that the path meets follow it, so routes stay trees. A path is better if the total of the fair rates rises, or
stays and loads are more even. The search begins again some times with one task's routes drawn at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inakit.planner.methods.inarouting.bound import total_bound_bps
from inakit.planner.methods.inarouting.routes import (
    Network,
    NextHops,
    Resource,
    fair_rates,
    max_min_rates,
    path_from,
    usage,
)
from inakit.planner.trees.summed_once import SplitTask

Worth = tuple[float, float]
"""The total rate of all tasks, and minus the squares of loads: the higher, the better."""

RESTARTS = 3
"""How often the search begins again, unless its total is the bound, as on INARouting's published leaf-spine."""
PRECISION = 9
"""Digits of a total rate, in units of the largest capacity, that count."""


@dataclass(frozen=True)
class Judge:
    """Says what routes are worth. Usages are rows of numbers, one for each resource that has a finite capacity."""

    network: Network

    @cached_property
    def places(self) -> dict[Resource, int]:
        """The place of each resource in a row."""
        capacities = self.network.capacities_bps
        return {r: place for place, r in enumerate(r for r in capacities if np.isfinite(capacities[r]))}

    @cached_property
    def capacities(self) -> NDArray[np.float64]:
        """Their capacities in units of the largest link's."""
        found = np.array([self.network.capacities_bps[r] for r in self.places])
        return found / max(self.network.fabric.capacities_bps.values())

    @cached_property
    def bound(self) -> float:
        """What no total rate exceeds, in units of the largest link's capacity."""
        return round(total_bound_bps(self.network) / max(self.network.fabric.capacities_bps.values()), PRECISION)

    def row(self, task: SplitTask, hops: NextHops) -> NDArray[np.float64]:
        """What a task uses of every resource, of the shape (resources,)."""
        found = np.zeros(len(self.places))
        for resource, count in usage(self.network, task, hops).items():
            if resource in self.places:
                found[self.places[resource]] = count
        return found

    def rows(self, hops: Sequence[NextHops]) -> NDArray[np.float64]:
        """What all tasks use, of the shape (tasks, resources)."""
        return np.array([self.row(task, own) for task, own in zip(self.network.tasks, hops, strict=True)])

    def worth(self, rows: NDArray[np.float64]) -> Worth:
        """What the usages of all tasks are worth, of the shape (tasks, resources)."""
        total = rows.sum(axis=0)
        shares = self.capacities / np.maximum(total, 1)
        rates = np.where(rows > 0, shares, np.inf).min(axis=1)
        return round(float(rates.sum()), PRECISION), -round(float((total**2 / self.capacities).sum()), PRECISION)


def rerouted(network: Network, hops: Sequence[NextHops], seed: int, restarts: int = RESTARTS) -> list[NextHops]:
    """The routes after re-routing, the best of all restarts: by the total fair rate, then by the max-min one."""
    draw, judge = random.Random(seed), Judge(network)
    best = climb(judge, list(hops))
    for _ in range(restarts):
        if judge.worth(judge.rows(best))[0] >= judge.bound:
            break
        start = list(best)
        place = draw.randrange(len(start))
        next_hops = network.tasks[place].unfolded.next_hops
        start[place] = {node: draw.choice(next_hops[node]) for node in start[place]}
        best = max(best, climb(judge, start), key=lambda found: total_rates(network, found))
    return best


def total_rates(network: Network, hops: Sequence[NextHops]) -> tuple[float, float]:
    """The total of the fair rates and that of the max-min rates, in whole bit/s."""
    usages = [usage(network, task, own) for task, own in zip(network.tasks, hops, strict=True)]
    capacities = network.capacities_bps
    return round(sum(fair_rates(usages, capacities))), round(sum(max_min_rates(usages, capacities)))


def climb(judge: Judge, hops: list[NextHops]) -> list[NextHops]:
    """The routes when no rack's other path is better. A better path is taken at once."""
    tasks = judge.network.tasks
    rows = judge.rows(hops)
    now, moved = judge.worth(rows), True
    while moved and now[0] < judge.bound:
        moved = False
        for place, task in enumerate(tasks):
            for other in neighbours(judge.network, task, hops[place]):
                kept, rows[place] = rows[place].copy(), judge.row(task, other)
                if (value := judge.worth(rows)) > now:
                    hops[place], now, moved = other, value, True
                else:
                    rows[place] = kept
    return hops


def neighbours(network: Network, task: SplitTask, hops: NextHops) -> Iterator[NextHops]:
    """The routes in which one rack takes another path."""
    for tor in network.entering(task):
        known = path_from(task, hops, tor)
        for path in task.unfolded.paths(tor):
            if path != known:
                yield hops | dict(pairwise(path))
