"""The paper's Algorithm 1: from the flows on the links of a task's graph to a path for every worker."""

from __future__ import annotations

from collections.abc import Mapping

from planner.decouple import TaskGraph
from planner.routes import Inp
from planner.unfold import DirectedLink, Path


def generate_routes(graph: TaskGraph, flows: Mapping[DirectedLink, int]) -> list[Path]:
    """A path for every worker of the task; `flows[u, v]` is y, which they use up.

    Two lines of the printed algorithm are corrected: line 11 takes one flow from y[i], the task's (not
    y[k]), and line 18 records an INP's path to the PS while it has none, R = nil (not R != nil).
    """
    y = dict(flows)
    rest: dict[Inp, Path] = {}  # R
    found = []
    for worker in graph.workers:
        path: Path = (worker,)
        inps: dict[Inp, int] = {}  # the INPs on the path, and the position of their switch
        while path[-1] != graph.server:
            link = next(link for link in graph.out_of[path[-1]] if y[link] > 0)
            y[link] -= 1
            path = (*path, link[1])
            inp = graph.inp(link)
            if inp in rest:
                path = path[:-1] + rest[inp]
            elif inp is not None:
                inps[inp] = path.index(link[1])
        rest |= {inp: path[position:] for inp, position in inps.items()}
        found.append(path)
    return found
