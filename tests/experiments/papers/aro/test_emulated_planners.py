"""The baselines and ATRO's network with real packets: what is planned is measured, and every sum is exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command import nothing_left
from rich.console import Console

from inakit.experiments.papers.aro.emulated import NETWORKS, TRAP, about_pipelines
from inakit.experiments.papers.atro import designed
from inakit.experiments.papers.common.emulated_figure import QUICK_GRADIENT_BYTES, Planned, RateRow, run_plans
from inakit.experiments.papers.common.figure_registry import Request
from inakit.traffic.wire.packet_format import FRAGMENT

TRIES = 2
ON_FAST = (pytest.mark.root, pytest.mark.long)
NETWORKS_TRIED = ("leaf-spine", "fat-tree", "ATRO's")

GRADIENT_BYTES = 100 * 4 * FRAGMENT.values


def planned(network: str) -> dict[str, Planned]:
    """The baselines' plans on a network, or ATRO's on its own."""
    if network not in NETWORKS:
        return designed(GRADIENT_BYTES)
    baselines = replace(NETWORKS[network], planners=("random", "grid", "aggtree"))
    return {network: baselines.plans(GRADIENT_BYTES)}


@pytest.mark.compiler
@pytest.mark.parametrize("switch", ["virtual", pytest.param("fast", marks=ON_FAST)])
@pytest.mark.parametrize("network", NETWORKS_TRIED)
def test_rates_are_those_of_the_plans(network: str, switch: str, tmp_path: Path) -> None:
    for _ in range(TRIES):
        with nothing_left():
            rows, verdict = run_plans("test", planned(network), Console(quiet=True), Request(tmp_path, switch=switch))
        assert all(row.exact for row in rows)
        if verdict != "OVERLOADED":
            assert verdict == "VALID", rows
            return
    pytest.skip("this machine is too busy for a valid run")


def test_the_trap_is_one_in_the_model() -> None:
    """A plan that respects pipelines has 4/5 of a link's rate; one that ignores them has 1/3, and expects all."""
    problem, plans = NETWORKS[TRAP].plans(QUICK_GRADIENT_BYTES)
    rows = [
        RateRow(TRAP, name, plan.trees[0].rate_bps, plan.trees[0].rate_bps, True, "VALID")
        for name, plan in plans.items()
    ]
    assert [row.planned_bps for row in rows] == pytest.approx([1.6e6, 2e6 / 3])
    assert "expects 2000 kbit/s; it has 0.42 of the best" in about_pipelines(problem, rows)
