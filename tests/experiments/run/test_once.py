"""A plan is made, checked, evaluated, fitted and turned into entries once on its way from a planner to its report."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from rich.console import Console

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


def counted(planners: tuple[str, ...], at: Path) -> Counter[str]:
    """How often each of these happens to a plan in one emulation in virtual time, with its report."""
    found: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (name := WATCHED.get(frame.f_code)):
            found[name] += 1

    problem = build_problem(FabricChoice("fattree", k=4), JobChoice(workers=4, gradient_bytes=6400, iterations=1))
    sys.setprofile(profile)
    try:
        run(Emulation(problem, planners, "virtual", results=at), Console(quiet=True))
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.compiler
def test_each_plan_is_prepared_once(tmp_path: Path) -> None:
    assert counted(("atp", "lbmm"), tmp_path) == {"made": 2, "checked": 2, "evaluated": 2, "fitted": 2, "entries": 2}
