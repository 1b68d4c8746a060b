"""ATRO's figures by packets: every scheme's plan can be carried out by switches, at the rate that is planned."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers import atro
from inakit.experiments.papers.common.emulated_figure import EmulatedRun, run_emulated
from inakit.experiments.papers.common.figure_registry import Request
from inakit.planner.core.plan import Plan
from inakit.planner.prepared import with_headroom

DEFAULT = {"workers": 90, "aggregators": 4, "seed": 0}


def passed(plan: Plan) -> list[list[str]]:
    """The nodes that each label's flows pass on their way to the PS."""
    tree = plan.trees[0].tree
    return [list(tree.way(label)) for label in tree.branch_of]


@pytest.mark.parametrize("line", ["PARING, fat-tree", "PARING, one aggregator, leaf-spine", "SPAR, fat-tree"])
def test_a_detour_passes_no_switch_twice_and_a_sum_has_64_flows_at_most(line: str) -> None:
    trial = {**DEFAULT, **atro.LINES_OF_THE_PAPER[line]}
    plan = atro.installable(trial, 25_600).plan
    assert all(len(set(way)) == len(way) for way in passed(plan))
    assert max(len(aggregator.children) for aggregator in plan.trees[0].tree.aggregators) <= 64


def test_the_published_reading_passes_switches_twice() -> None:
    problem = atro.drawn_problem(atro.NETWORKS["fat-tree"](), 90, 4, 0)
    assert any(len(set(way)) < len(way) for way in passed(atro.ARRANGED["PARING"](problem, seed=0).plan))


@pytest.mark.compiler
def test_schemes_send_at_their_rates_at_100_gbit(tmp_path: Path) -> None:
    runs: list[EmulatedRun] = []
    for line in (atro.ATRO, "PARING, fat-tree"):
        planned = atro.installable({**DEFAULT, **atro.LINES_OF_THE_PAPER[line]}, 25_600)
        plan = with_headroom(planned.problem, planned.plan).plan
        runs.append(EmulatedRun(f"run{len(runs)}", planned.problem, plan))
    console = Console(file=StringIO(), width=120)
    done = run_emulated("atro", runs, Request(tmp_path, switch="virtual"), console)
    assert atro.rates_as_planned(done, []) == "VALID"
    first, second = (outcome.measured.sending_rate_bps / 1e9 for outcome in done.outcomes)
    assert first == pytest.approx(50, rel=0.01)
    assert second == pytest.approx(100 / 31, rel=0.01)
