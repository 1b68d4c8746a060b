"""R-InArt's randomised rounding (Algorithm 2): from LP-InArt's fractions to one aggregation point and one path each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.once import Task, Way, entrance
from planner.relaxation import Relaxed
from planner.routes import Inp
from planner.unfold import DirectedLink, Path
from topo.fabric import Fabric


@dataclass(frozen=True)
class Routing:
    """What is decided, by tree: `ways[tree]` has one for each worker, `onward[tree]` each INP's path to the PS."""

    ways: tuple[tuple[Way, ...], ...]
    onward: tuple[dict[Inp, Path], ...]


def round_off(fabric: Fabric, tasks: Sequence[Task], relaxed: Relaxed, draw: random.Random) -> Routing:
    """One drawing: for each flow where it is summed, as likely as y says, and then its path, as q says."""
    ways, onward = [], []
    trees = ((task, part) for task, part in zip(tasks, relaxed.tasks, strict=True) for _ in range(task.trees))
    for task, part in trees:
        chosen = [draw_way(part.y[group], group, part.to, task.server, draw) for group in entrances(fabric, task)]
        summing = dict.fromkeys(way.inp for way in chosen if way.inp)
        ways.append(tuple(chosen))
        onward.append({inp: walk(part.to[None], inp[0], task.server, draw) for inp in summing})
    return Routing(tuple(ways), tuple(onward))


def entrances(fabric: Fabric, task: Task) -> list[Inp]:
    return [entrance(fabric, worker) for worker in task.job.workers]


def draw_way(
    y: Mapping[Inp | None, float],
    group: Inp,
    to: Mapping[Inp | None, Mapping[DirectedLink, float]],
    server: str,
    draw: random.Random,
) -> Way:
    (inp,) = draw.choices(list(y), list(y.values()))
    if inp == group:
        return Way(inp, (group[0],))
    return Way(inp, walk(to[inp], group[0], inp[0] if inp else server, draw))


def walk(flow: Mapping[DirectedLink, float], start: str, end: str, draw: random.Random) -> Path:
    """A path along the links of a flow, each taken as likely as the part of the flow at its node that it carries."""
    path: Path = (start,)
    while path[-1] != end:
        links = {v: amount for (u, v), amount in flow.items() if u == path[-1]}
        amounts = list(links.values()) if sum(links.values()) > 0 else [1.0] * len(links)
        path += tuple(draw.choices(list(links), amounts))
    return path
