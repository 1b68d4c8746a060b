"""What chips cost a plan, in words; the report and `inakit plan` have the same lines."""

from __future__ import annotations

from pathlib import Path

from command import inakit

from inakit.experiments.run.planning import chip_cost, chip_lines
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS


def problem_of(chip: str | None) -> Problem:
    return build_problem(FabricChoice("aro-figure1", capacity="100G", chip=chip), JobChoice(gradient_bytes=8192))


def lines(chip: str) -> list[str]:
    problem = problem_of(chip)
    cost = chip_cost(Prepared(problem, METHODS["aro"].plan(problem)), "aro")
    assert cost is not None
    return list(chip_lines("aro", cost))


def test_a_chip_that_costs() -> None:
    first, *binding = lines("tofino1")
    assert first == ("aro: with tofino1 in 3 switches 50 Gbit/s, 50.0% less than with generic (100 Gbit/s)")
    assert "  binds: recirculation at l1, pipeline 0 (100 Gbit/s of 100 Gbit/s); l2, pipeline 0" in binding[-1]


def test_a_chip_that_costs_nothing() -> None:
    first, binding = lines("tofino2")
    assert first.endswith("100 Gbit/s, as much as with generic (100 Gbit/s)")
    assert binding.startswith("  binds: link at l0 → ps (100 Gbit/s of 100 Gbit/s of gradients and results); ")


def test_a_fabric_without_chips_has_no_lines() -> None:
    problem = problem_of(None)
    assert chip_cost(Prepared(problem, METHODS["aro"].plan(problem)), "aro") is None


def test_the_command_says_it_for_each_planner(tmp_path: Path) -> None:
    asked = ("plan", "--topo", "aro-figure1", "--capacity", "100G", "--chip", "tofino1", "--planners", "aro,lbmm")
    said = inakit(*asked, at=tmp_path).output
    assert "50.0% less than with generic" in said
    assert "lbmm: with tofino1 in 3 switches 20 Gbit/s, as much as with generic" in said
