"""ARO for one task (SJST): the routes with the highest rate, proven, by the fastest way that is exact for its fabric.

A leaf-spine with equal links has a closed form (`leafspine`), as long as no INP has to make several sums; for all else
a solver decides which INPs are used (`flow`). Both test whether the flows fit at a given t = 1 / r, and `search` finds
the least t at which they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from inakit.planner.core.solving import FEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.methods.aro.decoupling import task_graph
from inakit.planner.methods.aro.single.flow import Counts, Demand, FlowTest
from inakit.planner.methods.aro.single.flows_to_paths import generate_routes
from inakit.planner.methods.aro.single.leafspine import Choice, LeafSpine
from inakit.planner.methods.aro.single.recognise import leaf_spine
from inakit.planner.methods.aro.single.search import Least, Steps, least_t
from inakit.planner.methods.aro.task import Task
from inakit.planner.solvers.solve import PROVEN_GAP
from inakit.planner.trees.unfolding import Path
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric

TIDYING_TIME_S = 5.0
"""The most time for removing flows that serve nothing."""


@dataclass(frozen=True)
class ProvenPaths:
    """A path for every worker, and how well their rate is proven to be the highest."""

    paths: list[Path]
    outcome: SolverOutcome


def best_routing(fabric: Fabric, task: Task, options: SolverOptions) -> ProvenPaths:
    """The routes with the highest rate. Raises `SolverError` when there are none, or the time limit is too short."""
    started = monotonic()
    lowest = 0.0
    closed = leaf_spine(fabric, task)
    if closed is not None:
        choice = best_choice(closed, options)
        bound = best_choice(replace(closed, most_children=closed.workers), options)
        assert bound is not None
        lowest = bound.bound
        fits = choice is not None and closed.most_children_at_tor(choice.solution) <= closed.most_children
        if choice is not None and fits and choice.t <= bound.t:
            return ProvenPaths(closed.paths(choice.solution), outcome_of(choice, started))
    graph = task_graph(fabric, task.job.workers, task.server)
    test = FlowTest(Demand(graph), options, started + options.time_limit_s)
    flows = best_flows(test, lowest)
    return ProvenPaths(generate_routes(graph, tidied(test, flows)), outcome_of(flows, started, options.solver))


def best_choice(closed: LeafSpine, options: SolverOptions) -> Least[Choice] | None:
    """The least t in closed form; None if an INP has to take in more flows than it can at every t."""
    capacities = closed.capacities_bps
    highest = closed.workers / min(capacities)
    return least_t(closed.fits, Steps(capacities), 1 / closed.worker_bps, highest, options.gap)


def best_flows(test: FlowTest, lowest: float) -> Least[Counts]:
    """The least t, found by the solver. Below `lowest` there is none."""
    demand = test.demand
    summing = {*demand.aggregation_rates_bps.values(), *demand.pipeline_rates_bps.values()}
    capacities = {*demand.capacities_bps.values(), *summing}
    steps, highest, gap = Steps(capacities), len(demand.graph.workers) / min(capacities), test.options.gap
    least = least_t(test.fits, steps, max(lowest, demand.lowest_t), highest, gap)
    if least is not None and least.gap > max(gap, PROVEN_GAP):  # now what is undecided may take all the time left
        least = least_t(replace(test, share=1.0).fits, steps, least.bound, highest, gap, known=least)
    assert least is not None  # at the highest t, every link carries all flows
    return least


def tidied(test: FlowTest, least: Least[Counts]) -> Counts:
    """The flows without those that serve nothing, as far as they are found in `TIDYING_TIME_S`."""
    deadline = min(test.deadline, monotonic() + TIDYING_TIME_S)
    try:
        return replace(test, deadline=deadline).tidy(least.t, least.solution)
    except SolverError:  # no time for it
        return least.solution


def outcome_of(least: Least[Any], started: float, solver: str | None = None) -> SolverOutcome:
    """How well t is proven: optimal, or feasible with its relative gap."""
    proven = least.gap <= PROVEN_GAP
    return SolverOutcome(OPTIMAL if proven else FEASIBLE, monotonic() - started, 0.0 if proven else least.gap, solver)
