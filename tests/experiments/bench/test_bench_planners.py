"""`inakit bench planners` on a small case: a row with the rate, the times and their ratio."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from inakit.experiments.bench.planner_times import OneTask, Timing, bench_planners, timing
from inakit.topo.fabric.generators import leaf_spine

SMALL = OneTask("small", lambda: leaf_spine(4, 4, 4), workers=10, share=0.5, seeds=3, literal=2)


def test_a_case_is_planned_by_both() -> None:
    timed = timing(SMALL, 0)
    assert timed.literal is not None
    assert timed.gap == 0
    assert abs(timed.literal.trees[0].rate_bps / timed.rate_bps - 1) < 1e-6
    assert timed.ratio == timed.literal.outcome.seconds / timed.search_s


def test_only_the_first_seeds_are_planned_literally() -> None:
    assert timing(SMALL, 2).literal is None


def test_each_seed_is_printed_and_the_table_has_a_row_for_each_case() -> None:
    console, brief = Console(file=StringIO(), width=120, record=True), replace(SMALL, seeds=2, literal=1)
    assert bench_planners(console, [brief, replace(brief, name="other")])
    text = console.export_text()
    assert "2 of 4: small, seed 1: " in text
    assert [line.split()[1:4] for line in text.splitlines() if "│" in line] == [
        ["small", "│", "2"],
        ["other", "│", "2"],
    ]


def test_an_interrupted_case_has_a_row_of_the_seeds_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(case: OneTask, seed: int) -> Timing:
        if case.name == "other" and seed == 1:
            raise KeyboardInterrupt
        return timing(case, seed)

    monkeypatch.setattr("inakit.experiments.bench.planner_times.timing", ended)
    console, brief = Console(file=StringIO(), width=120, record=True), replace(SMALL, seeds=2, literal=0)
    with pytest.raises(KeyboardInterrupt):
        bench_planners(console, [brief, replace(brief, name="other"), replace(brief, name="third")])
    assert [line.split()[1:4] for line in console.export_text().splitlines() if "│" in line] == [
        ["small", "│", "2"],
        ["other", "│", "1"],
    ]


def test_the_servers_switch_always_sums() -> None:
    problem = SMALL.problem(1)
    tor = problem.fabric.tor_of(problem.jobs[0].servers[0])
    assert problem.fabric.switch_by_name[tor].ina
    assert sum(switch.ina for switch in problem.fabric.switches) == 4
