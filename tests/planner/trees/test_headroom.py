"""Rates leave room for results where links carry both, and a line says which links those are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_jobs
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.files.fabrics import load_fabric
from inakit.traffic.wire.packet_format import FRAGMENT

CASES = Path(__file__).resolve().parents[2] / "experiments" / "cases"


def three_jobs() -> Problem:
    """Jobs 1 and 2 send to the second pod, job 3 to the first, over links of 5 Mbit/s."""
    return Problem(load_fabric(CASES / "two-pods.yml"), load_jobs(CASES / "two-pods-jobs.yml"), FRAGMENT)


def test_a_plan_has_room_for_results_in_a_closed_loop_only() -> None:
    problem = three_jobs()
    plan = find_method("aggtree-balanced").plan(problem)
    reliable, replay = (with_headroom(problem, plan, mode) for mode in ("reliable", "replay"))
    assert (replay.plan, replay.factor, replay.notes) == (plan, 1.0, ())
    assert reliable.factor == pytest.approx(2 / 3)
    rates = {mode: evaluate(problem, run.plan).sending_rate_bps for mode, run in (("c", reliable), ("r", replay))}
    assert rates == {"c": pytest.approx(5e6 / 3), "r": pytest.approx(2.5e6)}


def test_a_line_says_whose_results_share_which_link_with_whose_gradients() -> None:
    problem = three_jobs()
    assert with_headroom(problem, find_method("aggtree-balanced").plan(problem)).notes == (
        "results of job 3 (root h12) share link agg2_1 → leaf2_2 with gradients of job 1 (root h24) and job 2 "
        "(root h23) (and 3 more links are as full): rates are x0.667, 1.667 instead of 2.500 Mbit/s",
    )


def test_of_a_collective_that_overloads_a_link_the_line_names_the_link_alone() -> None:
    job = Job(1, ("h1", "h2", "h3", "h4", "h5", "h6", "h8", "h9"), ("h7",), 60_000)
    problem = Problem(leaf_spine(3, 2, 3, capacity_bps=20e6), (job,), FRAGMENT)
    run = with_headroom(problem, find_method("halving-doubling").plan(problem))
    assert run.factor < 1
    assert re.match(
        r"link \w+ → \w+ would carry more than it can( \(and \d+ more links? (is|are) as full\))?: ", run.notes[0]
    )


def test_nothing_is_said_where_gradients_alone_fill_a_link() -> None:
    problem = three_jobs()
    run = with_headroom(problem, find_method("lbmm").plan(problem))
    assert (run.factor, run.notes) == (1.0, ())


def test_a_single_job_with_one_server_needs_no_room() -> None:
    problem = three_jobs()
    one = replace(problem, jobs=problem.jobs[:1])
    plan = find_method("aggtree-balanced").plan(one)
    assert with_headroom(one, plan).plan is plan


def test_an_unknown_mode_is_named() -> None:
    problem = three_jobs()
    with pytest.raises(InputError, match="unknown mode 'replai': did you mean 'replay'"):
        with_headroom(problem, find_method("lbmm").plan(problem), "replai")
