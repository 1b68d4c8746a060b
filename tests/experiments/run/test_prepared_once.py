"""A run makes, checks, evaluates and fits its plan once each, from the planner to the report."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import inakit as ina
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.install.ina_program import DataPlaneProgram
from inakit.planner.install.plan_entries import entries

pytestmark = pytest.mark.compiler

STEPS: dict[CodeType, str] = {
    each.__code__: each.__name__ for each in (check, evaluate, entries, DataPlaneProgram.fitted)
}


def test_each_step_of_preparation_happens_once(tmp_path: Path) -> None:
    done: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in STEPS:
            done[STEPS[frame.f_code]] += 1

    fabric = ina.fabric("aro-figure1")
    sys.setprofile(note)
    try:
        plan = ina.plan(fabric, ina.job(fabric, gradient_bytes=8192), "aro")
        result = ina.run(plan, "virtual", results=tmp_path)
    finally:
        sys.setprofile(None)
    assert result.valid
    assert done == {"check": 1, "evaluate": 1, "entries": 1, "fitted": 1}


def test_another_plan_or_problem_is_evaluated_anew() -> None:
    fabric = ina.fabric("aro-figure1")
    plan = ina.plan(fabric, ina.job(fabric, gradient_bytes=8192), "aro")
    known = replace(plan.prepared, known=plan.prediction)
    slower = replace(known, plan=known.plan.with_rates_times(0.5))
    assert known.prediction is plan.prediction
    assert slower.prediction.sending_rate_bps == plan.prediction.sending_rate_bps / 2
