"""The states of ARO's Figures 1 and 3, each forced path by path, measured on real packets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tolerance import assert_within

from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.plan import Plan, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.fabric.variations import with_capacity
from inakit.traffic.wire.packet_format import FRAGMENT

pytestmark = pytest.mark.root

LINK_BPS = 2e6
LEAVES = {"w0": "l1", "w1": "l1", "w2": "l2", "w3": "l2", "w4": "l3"}
TRIES = 3


@dataclass(frozen=True)
class State:
    """Which spine each leaf's traffic takes, where it is summed, and the paper's rate as a share of a link's."""

    figure: str
    fabric: str
    spines: dict[str, str]
    summed_at: set[str]
    share: float


STATES = (
    State("1a, no INA", "aro-figure1", {"l1": "s0", "l2": "s1", "l3": "s1"}, set(), 1 / 5),
    State("1b, ARO", "aro-figure1", {"l1": "s1", "l2": "s1", "l3": "s1"}, {"l1", "l2", "s1"}, 1),
    State("3a, ATP", "aro-figure3a", {"l1": "s0", "l2": "s1", "l3": "s1"}, {"l0", "l1", "l2", "l3"}, 1 / 2),
    State("3c, AggTree", "aro-figure1", {"l1": "s0", "l2": "s1", "l3": "s0"}, {"l1", "l2", "s1"}, 1 / 3),
)


def planned(state: State) -> tuple[Problem, Plan]:
    fabric = with_capacity(named_fabric(state.fabric), LINK_BPS)
    job = Job(1, tuple(LEAVES), ("ps",), gradient_bytes=51_200)
    problem = Problem(fabric, (job,), FRAGMENT)
    paths = [(worker, leaf, state.spines[leaf], "l0", "ps") for worker, leaf in LEAVES.items()]
    outcome = SolverOutcome("heuristic", 0.0)
    return problem, plan_from_paths(problem, {1: paths}, state.summed_at, method="state", outcome=outcome)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.figure)
def test_the_state_has_the_rate_that_the_paper_gives(state: State, tmp_path: Path) -> None:
    problem, plan = planned(state)
    assert plan.trees[0].rate_bps == pytest.approx(state.share * LINK_BPS)
    for _ in range(TRIES):
        outcome = run_plan(Run(Prepared(problem, plan), folder=tmp_path), find_world("fast"))
        assert outcome.measured.exact
        if outcome.verdict == "VALID":
            assert_within(outcome.measured.sending_rate_bps, state.share * LINK_BPS, 0.05, state.figure, "bit/s")
            return
    pytest.skip(f"this machine is too busy for a valid run: {outcome.reasons[:3]}")
