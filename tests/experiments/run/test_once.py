"""A plan is made, checked, evaluated, fitted and turned into entries once on its way from a planner to its report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from rich.console import Console

import inakit as ina
from inakit.experiments.emulate.emulate import Emulation, run
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core import check, evaluate
from inakit.planner.core.method import Method
from inakit.planner.install import plan_entries
from inakit.planner.install.ina_program import DataPlaneProgram

WATCHED: dict[CodeType, str] = {
    Method.plan.__code__: "made",
    check.check.__code__: "checked",
    evaluate.evaluate.__code__: "evaluated",
    DataPlaneProgram.fitted.__code__: "fitted",
    plan_entries.entries.__code__: "entries",
}


@contextmanager
def profiled(found: Counter[str]) -> Iterator[None]:
    """Count the calls of what is watched."""

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (name := WATCHED.get(frame.f_code)):
            found[name] += 1

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def counted(planners: tuple[str, ...], at: Path) -> Counter[str]:
    """How often each of these happens to a plan in one emulation in virtual time, with its report."""
    found: Counter[str] = Counter()
    problem = build_problem(FabricChoice("fattree", k=4), JobChoice(workers=4, gradient_bytes=6400, iterations=1))
    with profiled(found):
        run(Emulation(problem, planners, "virtual", results=at), Console(quiet=True))
    return found


@pytest.mark.compiler
def test_each_plan_is_prepared_once(tmp_path: Path) -> None:
    assert counted(("atp", "lbmm"), tmp_path) == {"made": 2, "checked": 2, "evaluated": 2, "fitted": 2, "entries": 2}


@pytest.mark.compiler
def test_so_is_a_plan_from_python(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    with profiled(found):
        fabric = ina.fabric("aro-figure1")
        plan = ina.plan(fabric, ina.job(fabric, gradient_bytes=8192), "aro")
        result = ina.run(plan, "virtual", results=tmp_path)
    assert result.valid
    assert found == {"made": 1, "checked": 1, "evaluated": 1, "fitted": 1, "entries": 1}


def test_another_plan_or_problem_is_evaluated_anew() -> None:
    fabric = ina.fabric("aro-figure1")
    plan = ina.plan(fabric, ina.job(fabric, gradient_bytes=8192), "aro")
    known = replace(plan.prepared, known=plan.prediction)
    slower = replace(known, plan=known.plan.with_rates_times(0.5))
    assert known.prediction is plan.prediction
    assert slower.prediction.sending_rate_bps == plan.prediction.sending_rate_bps / 2
