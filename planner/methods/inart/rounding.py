"""R-InArt's randomised rounding (Algorithm 2): from LP-InArt's fractions to one aggregation point and one path each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from inakit.planner.core.limits.switch_limits import Inp
from inakit.planner.methods.inart.relaxation import Group, Relaxed, TaskFractions
from inakit.planner.trees.summed_once import SplitTask, Way, entrance
from inakit.planner.trees.unfolding import Path
from inakit.topo.fabric.fabric import Fabric

Ways = tuple[Way, ...]
"""One way for each worker of a task."""

Onward = dict[Inp, Path]
"""The path to the PS from each INP that sums."""


Rounding = Callable[[Fabric, SplitTask, TaskFractions, random.Random], tuple[Ways, Onward]]


@dataclass(frozen=True)
class Routing:
    """What R-InArt decides: by task, the ways of its flows, and the paths of the sums."""

    ways: tuple[Ways, ...]
    onward: tuple[Onward, ...]


def round_off(
    fabric: Fabric, tasks: Sequence[SplitTask], relaxed: Relaxed, draw: random.Random, rounding: Rounding
) -> Routing:
    """One drawing for all tasks."""
    parts = zip(tasks, relaxed.tasks, strict=True)
    ways, onward = zip(*(rounding(fabric, task, part, draw) for task, part in parts), strict=True)
    return Routing(ways, onward)


def round_apart(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> tuple[Ways, Onward]:
    """For each flow of a task where it is summed, with the probabilities y, and then its path, with q (Algorithm 2)."""
    groups = entrances(fabric, task)
    places = [draw.choices(list(part.y[group]), list(part.y[group].values()))[0] for group in groups]
    return routed(task, part, groups, places, draw)


def round_together(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> tuple[Ways, Onward]:
    """The same with one lot for all flows of a task, so that flows with the same fractions go to the same place.

    Then about as many INPs have a sum as z says; with a lot for each flow nearly all INPs have one.
    """
    order = list(dict.fromkeys(place for y in part.y.values() for place in y))
    draw.shuffle(order)
    lot = draw.random()
    groups = entrances(fabric, task)
    return routed(task, part, groups, [place_at(lot, order, part.y[group]) for group in groups], draw)


def place_at(lot: float, order: Sequence[Inp | None], y: Mapping[Inp | None, float]) -> Inp | None:
    """The place on which the lot falls when the fractions are laid side by side in this order."""
    left = lot * sum(y.values())
    chosen = None
    for place in order:
        if y.get(place, 0.0) > 0:
            chosen = place
            left -= y[place]
            if left < 0:
                break
    return chosen


def routed(
    task: SplitTask, part: TaskFractions, groups: Sequence[Group], places: Sequence[Inp | None], draw: random.Random
) -> tuple[Ways, Onward]:
    """Paths for flows from their groups to the places that sum them, and from there to the PS."""
    ways = tuple(way_to(place, group, task, part, draw) for place, group in zip(places, groups, strict=True))
    summing = dict.fromkeys(filter(None, places))
    return ways, {inp: walk(part.leaving[None], inp[0], task.server, draw) for inp in summing}


def entrances(fabric: Fabric, task: SplitTask) -> list[Group]:
    """The group of each worker of the task."""
    return [entrance(fabric, worker) for worker in task.job.workers]


def way_to(place: Inp | None, group: Group, task: SplitTask, part: TaskFractions, draw: random.Random) -> Way:
    """A drawn way from a group's ToR to a place that sums, or to the PS."""
    if place == group:
        return Way(place, (group[0],))
    return Way(place, walk(part.leaving[place], group[0], place[0] if place else task.server, draw))


def walk(leaving: Mapping[str, Mapping[str, float]], start: str, end: str, draw: random.Random) -> Path:
    """A path from `start` to `end`. Each link is drawn with the part of the flow at its node that it carries."""
    path: Path = (start,)
    while path[-1] != end:
        links = leaving[path[-1]]
        amounts = list(links.values()) if sum(links.values()) > 0 else None
        path += tuple(draw.choices(list(links), amounts))
    return path
