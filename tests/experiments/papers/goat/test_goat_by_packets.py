"""GOAT's Figures 10 to 12 by packets: what the simulation counts is what packets show, where nothing is sent again."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.common.emulated_figure import run_emulated
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.goat import simulation
from inakit.experiments.papers.goat.by_packets import FRAGMENTS, SLOTS, PacketRun, point
from inakit.planner.core.check import check


@pytest.mark.parametrize("scheme", ["goat-krgs", "goat", "esa", "atp", "geryon"])
def test_plans_keep_all_rules_and_the_papers_memory(scheme: str) -> None:
    run = PacketRun("leaf-spine", 35, scheme, 0)
    problem = run.problem()
    check(problem, run.plan(problem))
    assert (FRAGMENTS, SLOTS) == (863, 250)  # 221 and 64 MB
    assert {switch.aggregator_slots for switch in problem.fabric.switches if switch.ina} == {SLOTS}


@pytest.mark.compiler
def test_without_retransmissions_the_ps_receives_what_the_simulation_counts(tmp_path: Path) -> None:
    """Equal rates leave no straggler behind: five workers on the leaf-spine, under Geryon and under ATP."""
    settings = [PacketRun("leaf-spine", 5, scheme, 1) for scheme in ("geryon", "atp")]
    runs = [setting.emulated_run("virtual") for setting in settings]
    done = run_emulated("goat", runs, Request(tmp_path, switch="virtual"), Console(quiet=True))
    geryon, atp = (point(*each) for each in zip(settings, done.outcomes, strict=True))
    assert geryon.exact and atp.exact
    assert geryon.ingress == pytest.approx(5 * 0.221, rel=0.01)
    assert geryon.overhead == pytest.approx(settings[0].drawn.links * 0.221, rel=0.01)
    simulated = simulation.measure(
        {"scheme": "ATP, on the path", "network": "leaf-spine", "workers": 5, "spread": 0.2, "seed": 1}
    )
    assert atp.first == pytest.approx(float(simulated["ingress"]), rel=0.1)
