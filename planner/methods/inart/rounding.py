"""R-InArt's randomised rounding (Algorithm 2): one aggregation point and one path for each flow, by fractions."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from inakit.planner.core.slots import Inp
from inakit.planner.methods.inart.relaxation import Entrance, Relaxed, TaskFractions, entrances
from inakit.planner.trees.summed_once import SplitTask, Way
from inakit.topo.fabric.fabric import Fabric, Path

TaskWays = tuple[Way, ...]
"""One way for each worker of a task."""

OnwardPaths = dict[Inp, Path]
"""The path to the PS from each INP that sums."""

TaskRouting = tuple[TaskWays, OnwardPaths]
"""R-InArt's decisions for one task."""

Rounding = Callable[[Fabric, SplitTask, TaskFractions, random.Random], TaskRouting]


@dataclass(frozen=True)
class InartRouting:
    """R-InArt's decisions: by task, the ways of its flows, and the paths of the sums."""

    ways: tuple[TaskWays, ...]
    onward: tuple[OnwardPaths, ...]


def round_off(
    fabric: Fabric, tasks: Sequence[SplitTask], relaxed: Relaxed, draw: random.Random, rounding: Rounding
) -> InartRouting:
    parts = zip(tasks, relaxed.tasks, strict=True)
    ways, onward = zip(*(rounding(fabric, task, part, draw) for task, part in parts), strict=True)
    return InartRouting(ways, onward)


def round_apart(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> TaskRouting:
    """For each flow of a task, draw the place of its sum by the probabilities y, then its path by q (Algorithm 2)."""
    odds = [part.y[group] for group in entrances(fabric, task)]
    return routed(fabric, task, part, [draw.choices(list(y), list(y.values()))[0] for y in odds], draw)


def round_together(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> TaskRouting:
    """The same with one draw for all flows of a task, so that flows with the same fractions go to the same place.

    Then the number of INPs with a sum is about the sum of z; with a draw for each flow nearly all INPs have one. The
    draw selects a place when a flow's fractions are laid side by side, in an order that all flows share.
    """
    order = list(dict.fromkeys(place for y in part.y.values() for place in y))
    draw.shuffle(order)
    lot = draw.random()
    places = []
    for y in (part.y[group] for group in entrances(fabric, task)):
        left, chosen = lot * sum(y.values()), None
        for place in order:
            if y.get(place, 0.0) > 0:
                chosen = place
                left -= y[place]
                if left < 0:
                    break
        places.append(chosen)
    return routed(fabric, task, part, places, draw)


def routed(
    fabric: Fabric, task: SplitTask, part: TaskFractions, places: Sequence[Inp | None], draw: random.Random
) -> TaskRouting:
    """Drawn paths for the workers' flows to the places that sum them, and from there to the PS."""

    def way_to(place: Inp | None, group: Entrance) -> Way:
        if place == group:
            return Way(place, (group[0],))
        return Way(place, walk(part.leaving[place], group[0], place[0] if place else task.server, draw))

    ways = tuple(way_to(place, group) for place, group in zip(places, entrances(fabric, task), strict=True))
    summing = dict.fromkeys(filter(None, places))
    return ways, {inp: walk(part.leaving[None], inp[0], task.server, draw) for inp in summing}


def walk(leaving: Mapping[str, Mapping[str, float]], start: str, end: str, draw: random.Random) -> Path:
    """A path from `start` to `end`. Each link is drawn with the fraction of its node's flow on it."""
    path: Path = (start,)
    while path[-1] != end:
        links = leaving[path[-1]]
        amounts = list(links.values()) if sum(links.values()) > 0 else None
        path += tuple(draw.choices(list(links), amounts))
    return path
