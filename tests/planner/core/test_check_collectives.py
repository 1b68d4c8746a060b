"""The checker of collectives: every rule is broken once, and sums are followed symbolically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from planner_cases import first_is_server

from inakit.planner.core.check import check
from inakit.planner.core.plan import Collective, Connection, Plan, Transfer
from inakit.planner.core.problem import Problem
from inakit.planner.registry import METHODS
from inakit.topo.errors import PlanError
from inakit.topo.fabric.generators import leaf_spine

FABRIC = leaf_spine(2, 2, 3)
"""Hosts h1 to h3 under leaf1, h4 to h6 under leaf2."""


def problem_of(workers: int = 4) -> Problem:
    """Workers h2, h3, h4, ...; h1 is the PS."""
    return first_is_server(FABRIC, workers)


def ring_of(problem: Problem) -> Plan:
    return METHODS["ring"].plan(problem)


Change = Callable[[Connection], Connection]


def with_first(plan: Plan, change: Change) -> Plan:
    """The plan with its first connection changed."""
    (collective,) = plan.collectives
    first, *others = collective.connections
    return replace(plan, collectives=(replace(collective, connections=(change(first), *others)),))


def with_first_transfer(**changes: object) -> Change:
    def change(connection: Connection) -> Connection:
        first, *others = connection.transfers
        return replace(connection, transfers=(replace(first, **changes), *others))  # type: ignore[arg-type]

    return change


BROKEN: dict[str, Change] = {
    "rule path broken at job 1, connection 0->1: it leads from h2 to h4, not from h2 to h3": lambda c: replace(
        c, path=("h2", "h3", "h4")
    ),
    "rule path broken at job 1, connection 0->1, link h2->leaf2": lambda c: replace(c, path=("h2", "leaf2", "h3")),
    "rule rate .*-1 bit/s": lambda c: replace(c, rate_bps=-1.0),
    "rule capacity broken at link h2->leaf1": lambda c: replace(c, rate_bps=2e9),
    "rule chunk .*1 chunks from 9, but there are 4": with_first_transfer(first=9),
    "rule step .*ascending": with_first_transfer(step=7),
    "rule sum broken at job 1": with_first_transfer(first=1),
    "rule connection broken at job 1, connection 0->0": lambda c: replace(c, destination=0),
    "rule connection broken at job 1, connection 1->2: there are 2": lambda c: replace(c, source=1, destination=2),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_rule_is_named(message: str) -> None:
    problem = problem_of()
    broken = with_first(ring_of(problem), BROKEN[message])
    with pytest.raises(PlanError, match=message):
        check(problem, broken)


def test_a_path_that_climbs_again_is_refused() -> None:
    problem = problem_of()
    detour = ("h2", "leaf1", "spine1", "leaf2", "spine2", "leaf1", "h3")
    with pytest.raises(PlanError, match=r"rule up-down .* connection 0->1: it passes leaf1 2 times"):
        check(problem, with_first(ring_of(problem), lambda c: replace(c, path=detour)))


def test_a_lost_transfer_leaves_a_rank_without_a_sum() -> None:
    problem = problem_of()
    shorter = with_first(ring_of(problem), lambda c: replace(c, transfers=c.transfers[:-1]))
    with pytest.raises(PlanError, match=r"rule sum broken at job 1, host h3 \(rank 1\): its sum of chunk 3 lacks h4"):
        check(problem, shorter)


def test_a_place_is_taken_by_one_transfer() -> None:
    """Both neighbours put their chunk 0 into rank 1 in the same step."""
    problem = problem_of(3)
    plan = ring_of(problem)
    (collective,) = plan.collectives
    both = tuple(
        Connection(source, 1, (collective.ranks[source], *path), 1e6, (Transfer(0, 0, 1, adds=False),))
        for source, path in ((0, ("leaf1", "h3")), (2, ("leaf2", "spine1", "leaf1", "h3")))
    )
    with pytest.raises(PlanError, match=r"rule place .*connection 2->1, chunk 0"):
        check(problem, replace(plan, collectives=(replace(collective, connections=both),)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: replace(c, ranks=(*c.ranks[:-1], "h1")),
            "rule rank broken at job 1, host h1: it has 1 ranks, not 0",
        ),
        (lambda c: replace(c, chunks=0, connections=()), "rule chunk .*divided into 0 chunks"),
        (lambda c: replace(c, job=2), "rule job broken at job 1: it has no tree"),
    ],
)
def test_ranks_are_the_workers(change: Callable[[Collective], Collective], message: str) -> None:
    problem = problem_of()
    plan = ring_of(problem)
    with pytest.raises(PlanError, match=message):
        check(problem, replace(plan, collectives=(change(plan.collectives[0]),)))


def test_a_job_has_trees_or_a_collective() -> None:
    problem = problem_of()
    both = replace(ring_of(problem), trees=METHODS["aro"].plan(problem).trees)
    with pytest.raises(PlanError, match="rule job broken at job 1: 1 collectives, and some trees"):
        check(problem, both)
