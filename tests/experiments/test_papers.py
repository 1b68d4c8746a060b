"""Figures of the papers: found by name, planned as the papers say, and in the small what they claim."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from itertools import chain, combinations
from pathlib import Path

import pulp
import pytest
from command import inakit, nothing_left
from rich.console import Console

from experiments.papers.common.figure import Request
from experiments.papers.figures import FIGURES, figures, find_figure
from experiments.papers.goat.asynchrony_panels import panels
from experiments.papers.goat.asynchrony_report import AsynchronyPoint, conclusion, means_table, over_spread, over_window
from planner.core.check import check
from planner.core.evaluate import evaluate
from topo.errors import InputError
from topo.fabric.generators import units
from traffic.endpoints.worker_options import WorkerOptions
from traffic.measure.verdict import VALID
from traffic.runs.closed_loop import ReliableOptions
from traffic.wire.packet_format import FRAGMENT

NEVER_AGAIN = ReliableOptions(WorkerOptions(min_timeout_s=9.0, first_timeout_s=9.0, max_timeout_s=9.0), stall_s=30.0)
"""However busy the machine, nobody takes a packet for lost that is only late."""


def test_every_figure_is_listed_and_found() -> None:
    listed = dict(figures())
    assert {tuple(name.split()) for name in listed} == {(p, f) for p, found in FIGURES.items() for f in found}
    assert all(find_figure(*name.split()) is figure for name, figure in listed.items())


def test_unknown_papers_and_figures_are_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown paper 'goatt': did you mean 'goat'"):
        find_figure("goatt", "fig13-emulated")
    with pytest.raises(InputError, match=r"unknown figure of 'goat' 'fig31': .*fig13"):
        find_figure("goat", "fig31")


def test_the_command_lists_and_refuses(tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        listed = inakit("reproduce", at=tmp_path)
        unknown = inakit("reproduce", "goat", "fig31", at=tmp_path)
    assert listed.code == 0
    assert "goat fig13-emulated" in listed.output
    assert unknown.code == 2
    assert "unknown figure of 'goat' 'fig31'" in unknown.error


# ---- GOAT, Figure 13 ---------------------------------------------------------------------------


def point(policy: str, spread: float, transfers: float, verdict: str = VALID, window: int = 256) -> AsynchronyPoint:
    return AsynchronyPoint(
        policy, spread, 0, window, transfers * 1e3, transfers, 1e3, 1e3, 0.1, 5, 3, exact=True, verdict=verdict
    )


POINTS = [
    point("atp", 0.0, 11.0), point("goat", 0.0, 14.0),
    point("atp", 0.2, 22.0), point("atp", 0.2, 99.0, "OVERLOADED"), point("goat", 0.2, 77.0, "OVERLOADED"),
    point("atp", 0.2, 13.0, window=16), point("shadow-copy", 0.2, 11.0, window=16),
]  # fmt: skip


def test_what_was_overloaded_is_no_result() -> None:
    console = Console(width=80, record=True, file=StringIO())
    console.print(means_table("spread", over_spread(POINTS)), means_table("window", over_window(POINTS)))
    text = console.export_text()
    assert "…" not in text
    assert "22.00" in text
    assert "1/2" in text
    assert "99.00" not in text
    assert "77.00" not in text
    assert [line.partition(":")[0] for line in conclusion(POINTS)] == ["atp", "goat"]
    assert "22.00 at spread 0.2 (+100%)" in next(conclusion(POINTS))


def test_the_figure_has_a_panel_for_windows_where_there_are_several() -> None:
    assert [len(panels(of, 24)) for of in (POINTS, POINTS[:2])] == [3, 2]


@pytest.mark.parametrize(("policy", "transfers"), [("atp", 11), ("esa", 11), ("shadow-copy", 11), ("goat", 14.375)])
def test_plans_by_policy(policy: str, transfers: float) -> None:
    """Without spread: 8 + 2 + 1 links where every switch sums; for GOAT 14 by s1 or s2, and 17 by s3 for an eighth."""
    from experiments.papers.goat.asynchrony_runs import FRAGMENTS, PLANS, testbed  # noqa: PLC0415, needs Mininet

    problem = testbed()
    plan = PLANS[policy](problem)
    check(problem, plan)
    prediction = evaluate(problem, plan)
    assert prediction.overhead_bytes / (FRAGMENTS * FRAGMENT.wire_bytes) == transfers
    assert prediction.ps_ingress_bytes == FRAGMENTS * FRAGMENT.wire_bytes


def test_the_sub_models_places_are_nearly_the_optimum_of_equation_1() -> None:
    """As near as sixteen sub-models fill the slots. Every set of switches for every fragment."""
    from experiments.papers.goat.asynchrony_runs import FRAGMENTS, SLOTS, testbed  # noqa: PLC0415, needs Mininet
    from experiments.papers.goat.testbed import goat  # noqa: PLC0415

    switches = ("s1", "s2", "s3")
    links = {"s1": {"s1": 1, "s2": 2, "s3": 2, "ps": 3}, "s2": {"s1": 2, "s2": 1, "s3": 2, "ps": 3}}
    to_server = {"s1": 2, "s2": 2, "s3": 1}
    sets = [*chain.from_iterable(combinations(switches, size) for size in range(4))]
    cost = {
        chosen: sum(4 * min(links[tor][node] for node in (*chosen, "ps")) for tor in links)
        + sum(to_server[node] for node in chosen)
        for chosen in sets
    }
    model = pulp.LpProblem("gina", pulp.LpMinimize)
    count = {chosen: model.add_variable("n" + "".join(chosen), 0, cat="Integer") for chosen in sets}
    model += pulp.lpSum(cost[chosen] * count[chosen] for chosen in sets)
    model += pulp.lpSum(count.values()) == FRAGMENTS
    for node in switches:
        model += pulp.lpSum(count[chosen] for chosen in sets if node in chosen) <= SLOTS
    model.solve(pulp.HiGHS(msg=False))
    problem = testbed()
    optimum = pulp.value(model.objective) * FRAGMENT.wire_bytes
    assert optimum <= evaluate(problem, goat(problem)).overhead_bytes <= 1.01 * optimum


@pytest.mark.root
@pytest.mark.parametrize("shared", ["atp", pytest.param("esa", marks=pytest.mark.long)])
def test_shared_slots_degrade_with_the_spread_and_goats_do_not(shared: str, tmp_path: Path) -> None:
    """Counts, not times: on a busy machine equal rates are only nearly equal."""
    from experiments.papers.common.emulated_runs import run_emulated  # noqa: PLC0415
    from experiments.papers.goat import asynchrony as goat_asynchrony  # noqa: PLC0415, needs Mininet
    from experiments.papers.goat.asynchrony_runs import FRAGMENTS, AsynchronyRun  # noqa: PLC0415

    tried = [(shared, 0.0), (shared, 0.3), ("goat", 0.3)]
    settings = [AsynchronyRun(policy, spread) for policy, spread in tried]
    runs = [
        replace(setting.emulated_run(), options=NEVER_AGAIN) if setting.policy == "goat" else setting.emulated_run()
        for setting in settings
    ]
    with nothing_left():
        done = run_emulated("shape", runs, Request(tmp_path, switch="fast"), Console(quiet=True))
    points = {
        (setting.policy, setting.spread): goat_asynchrony.point(setting, outcome)
        for setting, outcome in zip(settings, done.outcomes, strict=True)
    }
    model = FRAGMENTS * FRAGMENT.wire_bytes
    assert all(found.exact for found in points.values())
    equal, uneven, goat = points.values()
    assert goat.transfers == pytest.approx(14.375, rel=0.02)
    assert goat.ps_ingress_bytes == pytest.approx(model, rel=0.05)
    assert goat.collisions == 0
    assert uneven.collisions > 1.5 * equal.collisions
    assert uneven.transfers > 1.25 * equal.transfers
    assert uneven.transfers > 1.1 * goat.transfers
    assert uneven.ps_ingress_bytes > 1.5 * max(model, equal.ps_ingress_bytes)


# ---- GOAT, training ----------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [4, 16])
@pytest.mark.parametrize(("scheme", "models"), [("goat", 1), ("esa", 1), ("atp", 1), ("geryon", None)])
def test_what_comes_to_the_ps_of_resnet18_without_spread(scheme: str, models: int | None, workers: int) -> None:
    """One model where all is summed, as the text has it of GOAT; without sums every worker's."""
    from experiments.papers.goat.testbed import SCHEMES  # noqa: PLC0415, needs Mininet
    from experiments.papers.goat.training_runs import fragments, testbed  # noqa: PLC0415

    problem = testbed("resnet18", workers)
    plan = SCHEMES[scheme](problem)
    check(problem, plan)
    assert fragments(problem) == 183  # 44.6 MiB of 44
    # A small sub-model may be summed at two switches.
    assert 1 <= evaluate(problem, plan).ps_ingress_bytes / (models or workers) / 183 / FRAGMENT.wire_bytes < 1.02


def test_workers_send_at_their_share_of_the_link_and_no_faster_than_planned() -> None:
    from experiments.papers.goat.testbed import SCHEMES  # noqa: PLC0415, needs Mininet
    from experiments.papers.goat.training_runs import INTAKE_BPS, own_shares, testbed  # noqa: PLC0415

    problem = testbed("resnet18", 16)
    drawn = {worker: 0.1 + 0.05 * number for number, worker in enumerate(problem.jobs[0].workers)}
    alone = own_shares(SCHEMES["atp"](problem), drawn)
    assert alone == pytest.approx(drawn)
    shared = own_shares(SCHEMES["geryon"](problem), drawn)
    assert set(shared.values()) == {1.0}
    assert INTAKE_BPS / 16 <= INTAKE_BPS * 0.1


def test_only_runs_that_can_be_trusted_are_kept(tmp_path: Path) -> None:
    from experiments.papers.goat.training_runs import Epoch, EpochRun, keep, kept  # noqa: PLC0415, needs Mininet

    good, off = Epoch(0.4, 44, 0.01, 0, VALID), Epoch(0.4, 44, 0.06, 0, VALID)
    runs = {
        EpochRun("resnet18", 8, "goat"): off,
        EpochRun("resnet18", 8, "atp"): off,
        EpochRun("resnet18", 8, "geryon"): good,
        EpochRun("resnet18", 8, "esa"): replace(good, verdict="OVERLOADED"),
    }
    keep(tmp_path / "runs.jsonl", runs.items())
    assert [setting.scheme for setting in kept(tmp_path / "runs.jsonl")] == ["atp", "geryon"]


@pytest.mark.parametrize("figure", ["fig4", "fig5", "fig7", "fig8", "fig9"])
def test_a_figure_of_what_is_measured_already(figure: str, tmp_path: Path) -> None:
    from experiments.papers.goat.testbed import SCHEMES  # noqa: PLC0415, needs Mininet
    from experiments.papers.goat.training import CHARTS, run  # noqa: PLC0415
    from experiments.papers.goat.training_runs import Epoch, EpochRun, keep  # noqa: PLC0415

    places = CHARTS[figure].places(quick=True)
    settings = [EpochRun(*place, scheme) for place in places for scheme in SCHEMES]
    keep(tmp_path / "goat-testbed.jsonl", [(setting, Epoch(0.36, 44, 0, 0, VALID)) for setting in settings])
    console = Console(width=120, record=True, file=StringIO())
    assert run(figure, console, Request(tmp_path, quick=True)) == VALID
    goat = next(line for line in console.export_text().splitlines() if "goat" in line and "│" in line)
    ratio = float(goat.split("│")[-2])
    assert ratio == (1.0 if figure != "fig4" else pytest.approx(1.15, abs=0.05))
    assert (tmp_path / f"goat-{figure}.png").exists()


@pytest.mark.root
def test_goat_brings_one_model_to_the_ps_and_geryon_every_workers(tmp_path: Path) -> None:
    from experiments.papers.common.emulated_runs import run_emulated  # noqa: PLC0415
    from experiments.papers.goat.training_runs import EpochRun, epoch  # noqa: PLC0415, needs Mininet

    runs = [EpochRun("densenet121", 4, scheme).emulated_run() for scheme in ("goat", "geryon")]
    with nothing_left():
        done = run_emulated("testbed", runs, Request(tmp_path, switch="fast"), Console(quiet=True))
    goat, geryon = (epoch(*each) for each in zip(runs, done.outcomes, strict=True))
    assert all(outcome.measured.exact for outcome in done.outcomes)
    assert goat.ps_ingress_mb == pytest.approx(30.5, rel=0.05)
    assert geryon.ps_ingress_mb == pytest.approx(4 * 30.5, rel=0.05)


# ---- P4INC-AOI, locality -----------------------------------------------------------------------


def test_only_the_circuits_are_between_units() -> None:
    from experiments.papers.p4inc_aoi.crossings import between_units  # noqa: PLC0415, needs Mininet

    found = list(between_units(units(4)))
    assert len(found) == len(set(found)) == 12
    assert all(a in units(4).switch_by_name and b in units(4).switch_by_name for a, b in found)


def test_by_plan_nothing_crosses_where_the_claim_says_so() -> None:
    from experiments.papers.p4inc_aoi.crossings import planned_crossing  # noqa: PLC0415, needs Mininet
    from experiments.papers.p4inc_aoi.placements import SCENES, emulated_runs  # noqa: PLC0415, needs Mininet

    crossing = {run.name: planned_crossing(run) // FRAGMENT.wire_bytes for run in emulated_runs(SCENES, 256 * 10)}
    # Of ten fragments: job 3's two sums and two copies of its results; without sums each worker's own.
    assert crossing == {
        "compact": 0,
        "fragmented": 10 * (2 + 2),
        "compact-no-inc": 10 * (8 + 3),
        "fragmented-no-inc": 10 * (8 + 4),
    }


def test_what_the_bytes_say() -> None:
    from experiments.papers.p4inc_aoi.crossings import judgement  # noqa: PLC0415, needs Mininet

    assert "the claim holds" in judgement(0, VALID)
    assert "does not hold" in judgement(1, VALID)
    assert "no result" in judgement(1, "OVERLOADED")


@pytest.mark.root
@pytest.mark.parametrize("switch", ["fast", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_of_jobs_inside_units_not_a_byte_crosses(switch: str, tmp_path: Path) -> None:
    """Of one over two units much does. Nobody turns to the PS only because the machine is busy."""
    from experiments.papers.common.emulated_runs import run_emulated  # noqa: PLC0415
    from experiments.papers.p4inc_aoi.crossings import crossing  # noqa: PLC0415, needs Mininet
    from experiments.papers.p4inc_aoi.placements import SCENES, emulated_runs  # noqa: PLC0415, needs Mininet

    chosen = [
        replace(t, options=NEVER_AGAIN) for t in emulated_runs(SCENES, 12_800) if t.name in ("compact", "fragmented")
    ]
    with nothing_left():
        done = run_emulated("locality", chosen, Request(tmp_path, switch=switch), Console(quiet=True))
    inside, over = (crossing(*each) for each in zip(chosen, done.outcomes, strict=True))
    assert all(outcome.measured.exact for outcome in done.outcomes)
    assert (inside.measured_bytes, inside.circuits) == (0, ())
    assert over.measured_bytes >= over.planned_bytes > 0
    assert over.circuits == ("u1-u4", "u2-u4")


@pytest.mark.root
def test_the_command_leaves_a_table(tmp_path: Path) -> None:
    with nothing_left():
        answer = inakit("reproduce", "p4inc-aoi", "locality", "--quick", "--switch", "fast", at=tmp_path)
    assert answer.code in (0, 1), answer
    with (tmp_path / "results" / "latest" / "locality.csv").open() as file:
        rows = {row["scene"]: row for row in csv.DictReader(file)}
    assert rows["compact"]["measured_bytes"] == "0" or rows["compact"]["verdict"] == "OVERLOADED"
    assert int(rows["fragmented"]["measured_bytes"]) >= int(rows["fragmented"]["planned_bytes"]) > 0
    assert "between units" in answer.output
