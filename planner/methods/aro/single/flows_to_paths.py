"""The paper's Algorithm 1: from the flows on the links of a task's graph to a path for every worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inakit.planner.core.limits.switch_limits import Inp, most_children
from inakit.planner.methods.aro.decoupling import TaskGraph
from inakit.planner.trees.from_paths import Summing
from inakit.planner.trees.unfolding import DirectedLink, Path


def generate_routes(graph: TaskGraph, flows: Mapping[DirectedLink, int]) -> list[Path]:
    """A path for every worker of the task, from y: `flows[u, v]` counts the flows on a link, and each is taken once.

    Two lines of the printed algorithm are corrected: line 11 takes one flow from y[i], the task's (not y[k]), and line
    18 records an INP's path to the PS while it has none, R = nil (not R != nil). An INP that more flows enter than it
    can sum has a path for each of its sums.
    """
    y = dict(flows)
    rest: dict[Summing, Path] = {}  # R
    arrived: Counter[Inp] = Counter()
    found = []
    for worker in graph.workers:
        path: Path = (worker,)
        begun: dict[Summing, int] = {}  # the sums that the path begins, and the position of their switch
        while path[-1] != graph.server:
            link = next(link for link in graph.out_of[path[-1]] if y[link] > 0)
            y[link] -= 1
            path = (*path, link[1])
            inp = graph.inp(link)
            if inp is None:
                continue
            summing = Summing(*inp, arrived[inp] // most_children(graph.fabric, inp[0]))
            arrived[inp] += 1
            if summing in rest:
                path = path[:-1] + rest[summing]
            else:
                begun[summing] = len(path) - 1
        rest |= {summing: path[position:] for summing, position in begun.items()}
        found.append(path)
    return found
