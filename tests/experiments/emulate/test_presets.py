"""Presets run with the paper's constants, reach its figures where we say so, and print a readable table."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from made_up_record import FIGURES, made_up_record, planner
from rich.console import Console

from inakit.experiments.emulate.presets import PRESETS, comparison, find_preset
from inakit.experiments.run.scenario import FabricChoice
from inakit.planner.core.evaluate import evaluate
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.topo.errors import InputError
from inakit.topo.fabric.variations import with_aggregators

FATTREE = FabricChoice("fattree", 6)


def test_inarts_network_is_as_the_paper_says() -> None:
    problem = find_preset("inart").problem(FATTREE, "VGG19", seed=0)
    (job,) = problem.jobs
    assert (len(problem.fabric.switches), len(problem.fabric.hosts)) == (45, 54)
    assert (len(job.workers), len(job.servers), job.gradient_bytes) == (50, 4, 548_000)
    assert set(problem.fabric.capacities_bps.values()) == {20e6}
    assert {switch.aggregation_rate_bps for switch in problem.fabric.switches} == {9e6}


def test_what_is_chosen_is_kept() -> None:
    problem = find_preset("inart").problem(replace(FATTREE, capacity="10M"), "LSTM", seed=0)
    assert set(problem.fabric.capacities_bps.values()) == {10e6}


def test_the_papers_atp_follows_from_racks_that_share_the_pss_links() -> None:
    """The paper reports 4.44 Mbit/s for 50 workers, which exceeds its own limit of what a switch can sum.

    With the limit, a ToR sums 11 of its 12 flows.
    """
    problem = find_preset("inart").problem(FATTREE, "LSTM", seed=0)
    unlimited = replace(problem, fabric=with_aggregators(problem.fabric, rate_bps=1e12))
    rates = {
        what: evaluate(of, find_method("atp-tor").plan(of)).sending_rate_bps
        for what, of in (("as printed", problem), ("unlimited", unlimited))
    }
    assert rates == {"as printed": pytest.approx(4 * 9e6 / 11), "unlimited": pytest.approx(4 * 20e6 / 18)}


def test_an_unknown_preset_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="inart"):
        find_preset("inatr")


@pytest.mark.parametrize("planner", ["atp", "lbmm"])
def test_room_for_results_is_made_where_links_carry_both(planner: str) -> None:
    problem = find_preset("inart").problem(FATTREE, "LSTM", seed=0)
    problem = replace(problem, fabric=with_aggregators(problem.fabric, rate_bps=1e12))
    plan = find_method(planner).plan(problem)
    roomy = with_headroom(problem, plan).plan
    capacities = problem.fabric.capacities_bps
    loads = evaluate(problem, roomy).loads_with_results_bps
    assert max(load / capacities[link] for link, load in loads.items()) <= 1 + 1e-9
    ratio = evaluate(problem, roomy).sending_rate_bps / evaluate(problem, plan).sending_rate_bps
    assert ratio == (pytest.approx(1) if planner == "lbmm" else pytest.approx(13 / 15))


def test_the_comparison_fits_a_terminal_and_has_the_rates_of_the_paper() -> None:
    """A run at a scale of 0.5 is compared with the paper at a scale of 1."""
    figures = {"sending_rate_bps": 6.154e6, "communication_time_s": 2.694}
    entry = planner(FIGURES | figures, setup_s=3.71, verdict="OVERLOADED")
    preset = PRESETS["inart"]
    records = {model: made_up_record(dict.fromkeys(preset.planners, entry), scale=0.5) for model in preset.models}
    console = Console(width=80, record=True, file=StringIO())
    console.print(comparison(preset, records))
    text = console.export_text()
    assert "…" not in text
    assert re.search(r"LSTM +inart +10\.75 +12\.31 +12\.31 +- +2\.694 +2\.694 +3\.7 +OVERLOADED", text)
