"""What makes the printed model smaller at a small loss: aggregator pre-pruning (APP), staged optimisation (SRO).

Both leave switches out of a task's graph. They work on groups of alternative aggregators (AAs): the INA switches of one
location, of which a flow could take any. A switch without which a worker would miss its PS always stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from math import floor

from inakit.planner.methods.aro.decoupling import TaskGraph, reached
from inakit.planner.methods.aro.published.model import Literal
from inakit.topo.fabric.fabric import Fabric

ROUNDING = 1e-9


def locations(fabric: Fabric) -> list[tuple[str, ...]]:
    """The switches above the ToRs by location: those of one tier that are joined by switches that are not above it.

    In a leaf-spine these are all spines; in a fat-tree the aggregation switches of each pod, and all cores.
    """
    found: dict[tuple[int, str], list[str]] = {}
    for tier in sorted({switch.tier for switch in fabric.switches if switch.tier > 1}):
        inside = {switch.name for switch in fabric.switches if switch.tier <= tier}
        links = [(u, v) for u, v in fabric.capacities_bps if u in inside and v in inside]
        members = [switch.name for switch in fabric.switches if switch.tier == tier]
        for name in members:
            found.setdefault((tier, min(reached(name, links))), []).append(name)
    return [tuple(names) for names in found.values()]


def pre_pruned(graphs: Sequence[TaskGraph], alpha: float) -> list[TaskGraph]:
    """APP: of each group of n AAs a task may use floor(alpha n), at least one.

    A task takes those whose INPs' scores differ least. Tasks take turns: what one task has taken is offered to the next
    again only when the list of all AAs is used up.
    """
    groups = [tuple(aggregators(graphs[0].fabric, names)) for names in locations(graphs[0].fabric)]
    offered = {group: list(group) for group in groups}
    pruned = []
    for graph in graphs:
        kept = graph
        for group in groups:
            candidates = [name for name in group if name in graph.into]
            count = max(1, floor(alpha * len(candidates) + ROUNDING))
            chosen = take(offered[group], group, candidates, count, partial(unevenness, graph))
            kept = excluding(kept, [name for name in candidates if name not in chosen])
        pruned.append(kept)
    return pruned


def aggregators(fabric: Fabric, names: Iterable[str]) -> list[str]:
    """The INA switches among these."""
    return [name for name in names if fabric.switch_by_name[name].ina]


def take(
    offered: list[str], group: Sequence[str], candidates: Collection[str], count: int, score: Callable[[str], float]
) -> list[str]:
    """`count` of the candidates, those in `offered` with the lowest scores first; what is taken leaves `offered`."""
    chosen: list[str] = []
    while len(chosen) < min(count, len(candidates)):
        usable = [name for name in offered if name in candidates and name not in chosen]
        if not usable:
            offered[:] = group
            continue
        best = min(usable, key=score)
        offered.remove(best)
        chosen.append(best)
    return chosen


def unevenness(graph: TaskGraph, switch: str) -> float:
    """How much the scores of a switch's INPs differ: the sum of squares that Figure 6 of the paper calls variance.

    An INP's score is the most flows that can enter it.
    """
    scores = [
        sum(graph.most_flows[u] for u, _ in entering) for (name, _), entering in graph.inps.items() if name == switch
    ]
    mean = sum(scores) / len(scores)
    return sum((score - mean) ** 2 for score in scores)


def excluding(graph: TaskGraph, switches: Iterable[str]) -> TaskGraph:
    """The graph without these switches, one after another, except those that it cannot do without."""
    for switch in switches:
        graph = graph.without([switch]) or graph
    return graph


def first_stage(graph: TaskGraph) -> TaskGraph:
    """SRO's first stage: the graph without the common switches of every location that has AAs."""
    for names in locations(graph.fabric):
        present = [name for name in names if name in graph.into]
        common = [name for name in present if not graph.fabric.switch_by_name[name].ina]
        if len(common) < len(present):
            graph = graph.without(common) or graph
    return graph


def second_stage(graphs: Sequence[TaskGraph], solved: Literal) -> list[TaskGraph]:
    """SRO's second stage: every task's graph without the AAs that it has not passed in the first."""
    return [excluding(graph, unused(graph, used_switches(solved, i))) for i, graph in enumerate(graphs)]


def used_switches(solved: Literal, i: int) -> set[str]:
    """The switches with an INP that task i passes, x = 1."""
    return {switch for (switch, _), x in solved.flows[i].x.items() if round(x.varValue)}


def unused(graph: TaskGraph, used: Collection[str]) -> list[str]:
    """The INA switches above the ToRs that the task has and that are not in `used`."""
    above = [name for names in locations(graph.fabric) for name in names if name in graph.into]
    return [name for name in aggregators(graph.fabric, above) if name not in used]
