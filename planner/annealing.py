"""Repair of a rounding: simulated annealing until no link and no switch gets more than a target rate allows.

A rounding keeps the constraints of LP-InArt only on average. The search moves one flow at a time to another
way, or the sum of one INP to another path, and accepts what lessens the excess over all capacities, or adds
to it by chance, less and less often. It stops when nothing is in excess: then every worker can send at the target.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, inf

from planner.once import Task, Way, entrance, ways
from planner.rounding import Routing
from planner.routes import MAX_CHILDREN, Inp
from planner.unfold import Path
from topo.fabric import Fabric

HOT, COLD = 0.5, 0.1
"""Temperatures, in flows of a mean task: excess that is accepted with probability 1/e."""
TURNS = 0.1
"""Part of the moves that turn the sum of an INP to another path."""
TOLERANCE = 1e-9

Loaded = tuple[int, ...]
"""The links that a path loads, by number."""


@dataclass(frozen=True)
class Option:
    """A way for a flow; `site` is the number of the INP that sums it, None if none does."""

    way: Way
    site: int | None
    loaded: Loaded


@dataclass(frozen=True)
class Onward:
    """A path from an INP's switch to the PS."""

    nodes: Path
    loaded: Loaded


@dataclass(frozen=True)
class Site:
    """An INP that may sum flows of a task, and the paths from there to the PS."""

    task: int
    inp: Inp
    switch: int
    onward: tuple[Onward, ...]


class Layout:
    """Everything that can be chosen, by number. `flows` has each flow's task and options, worker by worker."""

    def __init__(self, fabric: Fabric, tasks: Sequence[Task]) -> None:
        self.fabric = fabric
        self.mean = sum(task.share for task in tasks) / len(tasks)
        names: list[tuple[str, str] | str] = [*fabric.capacities_bps, *fabric.switch_by_name]
        self.number = {name: number for number, name in enumerate(names)}
        rates = (switch.aggregation_rate_bps or inf for switch in fabric.switches)
        self.capacities_bps = [*fabric.capacities_bps.values(), *rates]
        self.sites: list[Site] = []
        self.flows: list[tuple[int, tuple[Option, ...]]] = []
        self.weights = [task.share / self.mean for task in tasks]
        for number, task in enumerate(tasks):
            self.add_task(number, task)

    def add_task(self, number: int, task: Task) -> None:
        sites: dict[Inp, int] = {}
        options: dict[Inp, tuple[Option, ...]] = {}
        for worker in task.job.workers:
            group = entrance(self.fabric, worker)
            if group not in options:
                options[group] = tuple(self.option(number, task, way, sites) for way in ways(self.fabric, task, worker))
            self.flows.append((number, options[group]))

    def option(self, number: int, task: Task, way: Way, sites: dict[Inp, int]) -> Option:
        if way.inp is not None and way.inp not in sites:
            sites[way.inp] = len(self.sites)
            switch = way.inp[0]
            onward = tuple(Onward(path, self.loaded(path)) for path in task.unfolded.paths(switch))
            self.sites.append(Site(number, way.inp, self.number[switch], onward))
        return Option(way, None if way.inp is None else sites[way.inp], self.loaded(way.path))

    def loaded(self, path: Path) -> Loaded:
        return tuple(self.number[link] for link in pairwise(path))

    @cached_property
    def turning(self) -> list[int]:
        """The sites with a choice of paths to the PS."""
        return [number for number, site in enumerate(self.sites) if len(site.onward) > 1]

    def chosen(self, routing: Routing) -> list[Option]:
        """The options that a routing takes, by flow."""
        taken = (way for ways in routing.ways for way in ways)
        return [
            next(option for option in options if option.way == way)
            for way, (_, options) in zip(taken, self.flows, strict=True)
        ]

    def onward(self, site: Site, routing: Routing) -> Onward:
        """The path that a routing takes from a site; the first one if it does not use the site."""
        nodes = routing.onward[site.task].get(site.inp)
        return next((path for path in site.onward if path.nodes == nodes), site.onward[0])


class Search:
    """A routing, its loads in flows of a mean task, and its excess over what the target rate leaves room for."""

    def __init__(self, layout: Layout, routing: Routing, target_bps: float) -> None:
        self.layout = layout
        self.limits = [capacity / (target_bps * layout.mean) + TOLERANCE for capacity in layout.capacities_bps]
        self.loads = [0.0] * len(self.limits)
        self.counts = [0] * len(layout.sites)
        self.onward = [layout.onward(site, routing) for site in layout.sites]
        self.chosen = layout.chosen(routing)
        self.excess = sum(
            self.place(option, layout.weights[task], 1)
            for option, (task, _) in zip(self.chosen, layout.flows, strict=True)
        )

    def place(self, option: Option, weight: float, step: int) -> float:
        """Put a flow on its way (step 1), or take it off (step -1); the excess that this adds."""
        added = self.load(option.loaded, step * weight)
        if option.site is None:
            return added
        before = self.counts[option.site]
        after = self.counts[option.site] = before + step
        summed = (after if after > 1 else 0) - (before if before > 1 else 0)
        added += self.load((self.layout.sites[option.site].switch,), weight * summed)
        if before == 0 or after == 0:
            added += self.load(self.onward[option.site].loaded, step * weight)
        return added + max(after - MAX_CHILDREN, 0) - max(before - MAX_CHILDREN, 0)

    def load(self, resources: Loaded, weight: float) -> float:
        """Add the weight to each; the excess that this adds."""
        added = 0.0
        for resource in resources:
            before = self.loads[resource]
            after = self.loads[resource] = before + weight
            limit = self.limits[resource]
            if after > limit:
                added += after - (before if before > limit else limit)
            elif before > limit:
                added += limit - before
        return added

    def anneal(self, draw: random.Random, moves: int) -> None:
        """Move until nothing is in excess, or `moves` times."""
        flows, sites = len(self.layout.flows), self.layout.turning
        temperature, cooling = HOT, (COLD / HOT) ** (1 / moves)
        for _ in range(moves):
            if self.excess < TOLERANCE * flows:
                return
            temperature *= cooling
            if sites and draw.random() < TURNS:
                self.turn(sites[int(draw.random() * len(sites))], temperature, draw)
            else:
                self.move(int(draw.random() * flows), temperature, draw)

    def move(self, flow: int, temperature: float, draw: random.Random) -> None:
        """Try another way for a flow."""
        task, options = self.layout.flows[flow]
        weight = self.layout.weights[task]
        old, new = self.chosen[flow], options[int(draw.random() * len(options))]
        added = self.place(old, weight, -1) + self.place(new, weight, 1)
        if accepted(added, temperature, draw):
            self.chosen[flow] = new
            self.excess += added
        else:
            self.place(new, weight, -1)
            self.place(old, weight, 1)

    def turn(self, number: int, temperature: float, draw: random.Random) -> None:
        """Try another path for the sum of a site."""
        site = self.layout.sites[number]
        weight = self.layout.weights[site.task] if self.counts[number] else 0.0
        old, new = self.onward[number], site.onward[int(draw.random() * len(site.onward))]
        added = self.load(old.loaded, -weight) + self.load(new.loaded, weight)
        if accepted(added, temperature, draw):
            self.onward[number] = new
            self.excess += added
        else:
            self.load(new.loaded, -weight)
            self.load(old.loaded, weight)

    @property
    def rate_bps(self) -> float:
        """The sending rate that the loads allow."""
        loaded = zip(self.layout.capacities_bps, self.loads, strict=True)
        return min(capacity / load for capacity, load in loaded if load > TOLERANCE) / self.layout.mean

    def routing(self) -> Routing:
        ways: list[list[Way]] = [[] for _ in self.layout.weights]
        onward: list[dict[Inp, Path]] = [{} for _ in self.layout.weights]
        for option, (task, _) in zip(self.chosen, self.layout.flows, strict=True):
            ways[task].append(option.way)
        for site, count, path in zip(self.layout.sites, self.counts, self.onward, strict=True):
            if count:
                onward[site.task][site.inp] = path.nodes
        return Routing(tuple(map(tuple, ways)), tuple(onward))


def accepted(added: float, temperature: float, draw: random.Random) -> bool:
    return added <= 0 or draw.random() < exp(-added / temperature)
