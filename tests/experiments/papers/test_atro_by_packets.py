"""ATRO's figures by packets: every scheme's plan can be carried out by switches, at the rate that is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.experiments.papers import atro
from inakit.planner.core.plan import Plan

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
    first, second = (
        atro.run_trial({**DEFAULT, **atro.LINES_OF_THE_PAPER[line]}, "virtual", tmp_path)
        for line in (atro.ATRO, "PARING, fat-tree")
    )
    assert [found["verdict"] for found in (first, second)] == ["VALID", "VALID"]
    assert first["rate_bps"] == pytest.approx(50e9, rel=0.01)
    assert second["rate_bps"] == pytest.approx(100e9 / 31, rel=0.01)
    assert all(found["rate_bps"] == pytest.approx(found["planned_rate_bps"], rel=0.001) for found in (first, second))
