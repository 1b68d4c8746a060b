"""The parts of P4INC-AOI's Figure 2: jobs placed inside units or over two, with and without INC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inakit.experiments.papers.common.emulated_runs import EmulatedRun
from inakit.planner.core.plan import Plan
from inakit.planner.core.policies import DEFAULT_POLICY
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import with_room_for_results
from inakit.planner.trees.under_policy import with_policies
from inakit.topo.fabric.generators import units
from inakit.traffic.wire.frames import FRAGMENT

CAPACITY_BPS = 5e6
GRADIENT_BYTES, QUICK_GRADIENT_BYTES = 548_000, 64_000
IN_NETWORK = "p4inc-aoi"
Placement = Mapping[int, tuple[tuple[str, ...], str]]
"""By the number of a job, its workers and its PS."""
COMPACT: Placement = {
    1: (("u1h1", "u1h2"), "u3h1"),
    2: (("u1h3", "u1h4"), "u3h2"),
    3: (("u2h1", "u2h2", "u2h3", "u2h4"), "u4h1"),
}
"""Figures 2b and 2d: the workers of each job share a unit. PSs are in units 3 and 4."""
FRAGMENTED: Placement = {
    1: (("u1h1", "u1h2"), "u3h1"),
    2: (("u2h1", "u2h2"), "u3h2"),
    3: (("u1h3", "u1h4", "u2h3", "u2h4"), "u4h1"),
}
"""Figures 2a and 2c: job 3 has workers in units 1 and 2."""


@dataclass(frozen=True)
class Scene:
    """A part of Figure 2: where the jobs are, and the planner. `claim` says whether nothing may cross."""

    title: str
    placement: Placement
    planner: str
    claim: bool


SCENES = {
    "compact": Scene("2d: inside units, INC", COMPACT, "atp-tor", claim=True),
    "fragmented": Scene("2c: job 3 over two, INC", FRAGMENTED, "atp-tor", claim=False),
    "compact-no-inc": Scene("2b: inside units", COMPACT, "lbmm", claim=False),
    "fragmented-no-inc": Scene("2a: job 3 over two", FRAGMENTED, "lbmm", claim=False),
}
"""Planner `atp-tor` sums at the workers' own switches and nowhere else, as the paper's INC; `lbmm` sums nowhere."""
QUICK_SCENES = {name: scene for name, scene in SCENES.items() if scene.planner == "atp-tor"}


def problem_of(placement: Placement, gradient_bytes: int) -> Problem:
    """The jobs of a placement on four units."""
    jobs = (Job(number, workers, (server,), gradient_bytes) for number, (workers, server) in placement.items())
    return Problem(units(capacity_bps=CAPACITY_BPS), tuple(jobs), FRAGMENT)


def plan_of(problem: Problem, planner: str) -> Plan:
    """The planner's trees, where those inside a unit have their root there and others at the PS (section III)."""
    plan = with_room_for_results(problem, find_method(planner).plan(problem))
    summed = {shard.job for shard in plan.shards for tree in shard.trees if tree.aggregators}
    local = {job.number for job in problem.jobs if len({problem.fabric.tor_of(host) for host in job.workers}) == 1}
    in_network = summed & local
    policies = {job.number: IN_NETWORK if job.number in in_network else DEFAULT_POLICY for job in problem.jobs}
    return with_policies(problem, plan, policies)


def emulated_runs(scenes: Mapping[str, Scene], gradient_bytes: int) -> Iterator[EmulatedRun]:
    """A run for each part of the figure."""
    for name, scene in scenes.items():
        problem = problem_of(scene.placement, gradient_bytes)
        yield EmulatedRun(name, problem, plan_of(problem, scene.planner), {"figure": scene.title})
