"""The states of ARO's Figures 1 and 3, each forced path by path, measured on real packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tolerance import assert_within

from inakit.experiments.papers.aro.examples import (
    ARO,
    GRID,
    LINK_BPS,
    PRINTED,
    STATES,
    broken_rule,
    grid_at_l1,
    grids_places,
    job_of_five,
)
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import aro_figure1

BYTES, TRIES = 51_200, 3


def planned(state: str) -> tuple[Problem, Plan]:
    if state in STATES:
        return STATES[state].planned(BYTES)
    problem = job_of_five(aro_figure1(LINK_BPS), BYTES)
    return problem, METHODS["aro"].plan(problem) if state == ARO else grid_at_l1(problem)


@pytest.mark.parametrize("state", PRINTED)
def test_the_state_has_the_printed_rate_by_the_model(state: str) -> None:
    problem, plan = planned(state)
    assert evaluate(problem, plan).sending_rate_bps == pytest.approx(PRINTED[state] * LINK_BPS)
    assert ("up-down" in broken_rule(problem, plan)) == (state == GRID)


def test_grids_first_program_chooses_one_switch_for_all() -> None:
    assert len(grids_places(job_of_five(aro_figure1(LINK_BPS), BYTES))) >= 1


@pytest.mark.root
@pytest.mark.parametrize("state", [*STATES, ARO])
def test_the_state_has_the_rate_that_the_paper_gives(state: str, tmp_path: Path) -> None:
    problem, plan = planned(state)
    for _ in range(TRIES):
        outcome = run_plan(Run(Prepared(problem, plan), folder=tmp_path), find_world("fast"))
        assert outcome.measured.exact
        if outcome.verdict == "VALID":
            assert_within(outcome.measured.sending_rate_bps, PRINTED[state] * LINK_BPS, 0.05, state, "bit/s")
            return
    pytest.skip(f"this machine is too busy for a valid run: {outcome.reasons[:3]}")
