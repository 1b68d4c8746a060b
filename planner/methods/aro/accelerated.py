"""SRO and APP before the fast search: what ARO-ACC, ARO-SRO and ARO-APP lose, without the printed model's minutes.

Rates are continuous, so that the two prunings alone lose anything. One task on a leaf-spine is solved in closed form
and, like in the paper, with any number of flows at an aggregator. SRO's first stage may have several optima, and the
solver decides which of them is found, and so which aggregators stay unused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic

from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import SolverOptions
from inakit.planner.methods.aro.published.model import task_graphs
from inakit.planner.methods.aro.published.pruning import aggregators, locations, pre_pruned
from inakit.planner.methods.aro.several.rates import Rates
from inakit.planner.methods.aro.several.several_tasks import searched
from inakit.planner.methods.aro.single.one_task import best_choice
from inakit.planner.methods.aro.single.recognise import leaf_spine
from inakit.planner.methods.aro.task import tasks_of
from inakit.planner.trees.unfolding import Path
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric

FIRST_STAGE_S = 3.0
"""The most seconds for SRO's first stage, which only estimates: what it has found by then decides."""

Excluded = list[set[str]]
"""By task, the switches that it leaves out."""


@dataclass(frozen=True)
class BestRates:
    """The best rates of all tasks in bit/s, their worth, a bound of the worth, and by task the nodes that its flows
    pass.

    The worth equals its bound where it is proven to be the best. A single task that has a closed form has `paths`.
    """

    rates: Rates
    value: float
    bound: float
    used: tuple[set[str], ...]
    paths: tuple[Path, ...] = ()


def accelerated(problem: Problem, options: SolverOptions, *, sro: bool, alpha: float = 1.0) -> BestRates:
    """The optimum with APP at `alpha`, where 1 switches APP off, and with SRO or without."""
    started = monotonic()
    excluded = pre_pruning(problem, alpha)
    if sro:
        limit = replace(options, time_limit_s=min(FIRST_STAGE_S, options.time_limit_s / 2))
        excluded = staged(problem, excluded, limit)
    left = max(1.0, options.time_limit_s - (monotonic() - started))
    return best(problem, excluded, replace(options, time_limit_s=left))


def pre_pruning(problem: Problem, alpha: float) -> Excluded:
    """By task, the switches that APP leaves out."""
    graphs = task_graphs(problem)
    pruned = pre_pruned(graphs, alpha) if alpha < 1 else graphs
    return [{*graph.into} - {*kept.into} for graph, kept in zip(graphs, pruned, strict=True)]


def staged(problem: Problem, excluded: Excluded, options: SolverOptions) -> Excluded:
    """By task, what APP and SRO leave out. A first stage without a solution leaves out nothing more."""
    try:
        first = best(problem, with_first_stage(problem, excluded), options)
    except SolverError:
        return excluded
    return with_second_stage(problem, excluded, first)


def with_first_stage(problem: Problem, excluded: Sequence[Collection[str]]) -> Excluded:
    """By task, what SRO's first stage leaves out: also the common switches of every location with aggregators."""
    found = []
    for graph, names in zip(task_graphs(problem), excluded, strict=True):
        more = graph.without(names) or graph
        for location in locations(problem.fabric):
            present = [name for name in location if name in more.into]
            common = [name for name in present if not problem.fabric.switch_by_name[name].ina]
            if len(common) < len(present):
                more = more.without(common) or more
        found.append({*graph.into} - {*more.into})
    return found


def with_second_stage(problem: Problem, excluded: Sequence[set[str]], first: BestRates) -> Excluded:
    """By task, what is left out in SRO's second stage: also aggregators above the ToRs that the first stage does not
    use.
    """
    above = {name for names in locations(problem.fabric) for name in aggregators(problem.fabric, names)}
    return [names | (above - used) for names, used in zip(excluded, first.used, strict=True)]


def best(problem: Problem, excluded: Excluded, options: SolverOptions) -> BestRates:
    """The optimum without what each task excludes. One task on a leaf-spine has a closed form."""
    task, *others = tasks_of(problem)
    closed = None if others else leaf_spine(reduced_fabric(problem.fabric, excluded[0]), task)
    if closed is None:
        return searched_best(problem, excluded, options)
    closed = replace(closed, most_children=closed.workers)
    choice = best_choice(closed, options)
    assert choice is not None
    paths = tuple(closed.paths(choice.solution))
    return BestRates((1 / choice.t,), 1 / choice.t, 1 / choice.bound, ({*chain.from_iterable(paths)},), paths)


def reduced_fabric(fabric: Fabric, names: Collection[str]) -> Fabric:
    """The fabric without some switches and their links."""
    return replace(
        fabric,
        switches=tuple(switch for switch in fabric.switches if switch.name not in names),
        links=tuple(link for link in fabric.links if not {link.a, link.b} & {*names}),
    )


def searched_best(problem: Problem, excluded: Excluded, options: SolverOptions) -> BestRates:
    """The optimum of several tasks, or of one task without a closed form."""
    pruned = zip(tasks_of(problem), excluded, strict=True)
    tasks = tuple(replace(task, without=frozenset(names)) for task, names in pruned)
    search = searched(problem.fabric, tasks, options, monotonic())
    found = search.incumbent
    used = tuple(
        {node for paths in pieces.values() for path in paths for node in path} for pieces in found.routing.pieces
    )
    return BestRates(found.rates, found.value, search.bound, used)
