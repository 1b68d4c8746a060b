"""INARouting's instances are the published ones, and its figure judges what it finds."""

from __future__ import annotations

import pytest

from inakit.experiments.papers.inarouting import PROGRAM, REROUTED, Solved, claims, instance
from inakit.topo.errors import InputError


@pytest.mark.parametrize(
    ("name", "workers", "server"),
    [
        ("leaf-spine", {"h10", "h17", "h22", "h23", "h52", "h7", "h9"}, "h25"),
        ("fat-tree", {"h15", "h16", "h2", "h48", "h62", "h64", "h9"}, "h18"),
    ],
)
def test_the_first_job_is_that_of_the_published_instance(name: str, workers: set[str], server: str) -> None:
    problem = instance(name)
    assert (set(problem.jobs[0].workers), problem.jobs[0].servers) == (workers, (server,))
    assert len(problem.jobs) == 8
    assert len({host for job in problem.jobs for host in (*job.workers, *job.servers)}) == 64


def test_an_unknown_instance_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'fat-tree'"):
        instance("fattree")


@pytest.mark.parametrize(("seconds", "gbps", "holds"), [(0.5, 900, [True, True]), (5, 800, [False, False])])
def test_what_is_below_the_published_total_or_slow_differs(seconds: float, gbps: float, holds: list[bool]) -> None:
    ways = {REROUTED: Solved(gbps, gbps, seconds, "heuristic"), PROGRAM: Solved(900, 900, 10, "optimal")}
    assert [said.holds for said in claims("leaf-spine", ways)] == holds
