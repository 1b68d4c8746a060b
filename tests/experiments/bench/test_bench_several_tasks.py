"""The bench of several tasks on a small case: what is proven, and the literal model's share."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from inakit.experiments.bench import planner_times
from inakit.experiments.bench.planner_times import (
    OverTime,
    SeveralTasks,
    Timed,
    bench_over_time,
    bench_several,
    trial,
    worth_bps,
)
from inakit.experiments.papers.aro.setting import AroSetting
from inakit.topo.fabric.generators import leaf_spine

SMALL = SeveralTasks("small", AroSetting(jobs=2, workers=8, leaves=4, share=0.5), seeds=3, literal=1)


def test_a_case_is_planned_by_both() -> None:
    tried = trial(SMALL, 0, literal_s=20)
    assert tried.gap == 0
    assert tried.share(tried.soon) == pytest.approx(1)
    assert tried.literal is not None
    assert 0.9 < tried.share(tried.literal) <= 1 + 1e-6


def test_a_worth_is_equation_3() -> None:
    tried = trial(SMALL, 1, literal_s=20)
    assert tried.literal is None
    assert tried.full.plan is not None
    rates = [planned.rate_bps for planned in tried.full.plan.trees]
    assert worth_bps(tried.problem, tried.full.plan) == pytest.approx(min(rates) + 0.001 * sum(rates))


def test_no_plan_is_worth_nothing() -> None:
    tried = trial(SMALL, 2, literal_s=20)
    assert tried.share(Timed(None, 1.0)) == 0


def test_the_table_has_a_row_for_each_case() -> None:
    console = Console(file=StringIO(), width=120, record=True)
    assert bench_several(console, quick=True, cases=[SMALL, SMALL])
    rows = [line.split()[1:4] for line in console.export_text().splitlines() if "│" in line]
    assert rows == [["small", "│", "2"]] * 2


def test_plans_after_a_short_time_are_shares_of_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_times, "LIMITS_S", (5.0, 10.0))
    case = OverTime("small", lambda: leaf_spine(4, 2, 4), 1, 2, 4)
    console = Console(file=StringIO(), width=200, record=True)
    assert bench_over_time(console, quick=True, cases=[case])
    (row,) = (line for line in console.export_text().splitlines() if "small" in line and "│" in line)
    ours, printed, _, gaps, lower = (cell.strip() for cell in row.split("│")[2:-1])
    assert (ours, printed, gaps, lower) == ("100% 100%", "100% 100%", "0% 0%", "0")
