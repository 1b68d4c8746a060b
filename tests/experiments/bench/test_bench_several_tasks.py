"""The bench of several tasks on a small case: the worth of plans, and their shares of the best of all."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from inakit.experiments.bench import planner_times
from inakit.experiments.bench.planner_times import (
    PlansOverTime,
    SeveralTasks,
    bench_several,
    plan_within,
    several_tasks_cells,
    some_jobs,
    worth_bps,
)
from inakit.experiments.papers.aro.setting import AroSetting
from inakit.topo.fabric.generators import leaf_spine

SMALL = SeveralTasks("small", lambda seed: some_jobs(leaf_spine(4, 2, 4), 1, 2, 4, seed))


def test_a_worth_is_equation_3() -> None:
    problem = AroSetting(jobs=2, workers=8, leaves=4, share=0.5).problem(1)
    plan = plan_within("aro", problem, 20)
    assert plan is not None
    rates = [planned.rate_bps for planned in plan.trees]
    assert worth_bps(problem, plan) == pytest.approx(min(rates) + 0.001 * sum(rates))
    assert worth_bps(problem, None) == 0


def test_plans_are_shares_of_the_best_of_all() -> None:
    draws = [
        PlansOverTime({"aro": (5.0, 10.0), "aro-raw": (0.0, 8.0), "panama": (4.0, 4.0)}, (1.0, 0.0)),
        PlansOverTime({"aro": (10.0, 10.0), "aro-raw": (20.0, 8.0), "panama": (4.0, 4.0)}, (1.0, 0.5)),
    ]
    assert several_tasks_cells(SMALL, draws) == ["50% 75%", "50% 60%", "30% 30%", "100% 25%", "1"]


def test_the_table_has_a_row_for_each_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_times, "LIMITS_S", (5.0, 10.0))
    console = Console(file=StringIO(), width=200, record=True)
    assert bench_several(console, quick=True, cases=[SMALL])
    (row,) = (line for line in console.export_text().splitlines() if "small" in line and "│" in line)
    ours, printed, _, gaps, lower = (cell.strip() for cell in row.split("│")[2:-1])
    assert (ours, printed, gaps, lower) == ("100% 100%", "100% 100%", "0% 0%", "0")
