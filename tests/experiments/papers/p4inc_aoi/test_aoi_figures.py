"""P4INC-AOI's simulated figures: every point is reproducible, and the order of the schemes is the paper's."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from math import prod
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import Request, find_figure
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi import simulated_testbed, table1
from inakit.experiments.papers.p4inc_aoi.setting import CHOICES, COMPARED, DEFAULTS, FIGURE_8, SETTING, drawn, measure
from inakit.experiments.papers.p4inc_aoi.simulation import CHARTS, FIGURES, SchedulerChart, chosen, order
from inakit.experiments.papers.p4inc_aoi.testbed import MODELS, TESTBED
from inakit.experiments.papers.p4inc_aoi.testbed import testbed_jobs as jobs_of_testbed
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.registry import find_scheduler

SMALL: Trial = {**DEFAULTS, "jobs": 150, "units": 16}


def test_the_papers_order_holds_on_a_small_network() -> None:
    found = {scheme: measure({**SMALL, "scheme": scheme, "seed": 0}) for scheme in (*COMPARED, "pack")}
    connections = {scheme: float(result["connections"]) for scheme, result in found.items()}
    ends = {scheme: float(result["ct_bti_s"]) for scheme, result in found.items()}
    assert connections["INC-TW"] < connections["noINC-TW"] < connections["INC-FCFS"] < connections["noINC-FCFS"]
    assert ends["pack"] <= ends["INC-TW"] <= ends["noINC-TW"] < ends["INC-FCFS"] < ends["noINC-FCFS"]


def test_a_trial_gives_the_same_again() -> None:
    trial = {**SMALL, "scheme": "INC-TW", "seed": 3}
    first, second = ({**measure(trial), "seconds": 0.0} for _ in range(2))
    assert first == second != {**measure({**trial, "seed": 4}), "seconds": 0.0}


@pytest.mark.parametrize(("choice", "value"), [("links", "none"), ("inc", "across"), ("fcfs", "passing"), ("free", 64)])
def test_each_choice_that_the_text_leaves_open_decides_something(choice: str, value: str | int) -> None:
    trial: Trial = {**SMALL, "scheme": "INC-FCFS", "seed": 0}
    assert measure(trial)["connections"] != measure({**trial, choice: value})["connections"]
    if choice == "fcfs":
        without_seconds = [
            {**measure({**trial, "scheme": "INC-TW", choice: which}), "seconds": 0} for which in ("strict", value)
        ]
        assert without_seconds[0] == without_seconds[1]


@pytest.mark.parametrize("scheme", COMPARED)
def test_no_worker_sends_faster_than_its_server_has_a_link(scheme: str) -> None:
    """Without links, INC-FCFS granted hundreds of Gbit/s to a worker."""
    for problem in (drawn({**SMALL, "scheme": scheme, "seed": 0}), vgg16(60)):
        schedule = find_scheduler(scheme).schedule(problem)
        assert max(grant.rate_bps for slot in schedule.slots for grant in slot.grants) <= 40e9 * (1 + 1e-6)


@pytest.mark.parametrize("scheme", COMPARED)
def test_racks_of_four_gpus_run_four_workers_at_a_time(scheme: str) -> None:
    problem = vgg16(60)
    for slot in find_scheduler(scheme).schedule(problem).slots:
        for rack in ("gpu1", "gpu2"):
            assert sum(problem.job_of[grant.job].workers.get(rack, 0) for grant in slot.grants) <= 4


def vgg16(jobs: int) -> Scheduling:
    return Scheduling(TESTBED, jobs_of_testbed(MODELS["VGG16"], jobs, 0))


def test_figure_5_by_packets_takes_the_times_of_its_schedule() -> None:
    """Without computing and updates, two workers to one link are twice as fast with INC; the paper has 3.7."""
    vgg16: Trial = {"model": "VGG16", "computing": "none", "update_gb_s": 0.0}
    without, with_inc = (simulated_testbed.alone({**vgg16, "scheme": scheme}) for scheme in COMPARED[:2])
    for each in (without, with_inc):
        assert each["iteration_s"] == pytest.approx(each["planned_s"], rel=0.01)
    assert float(without["iteration_s"]) / float(with_inc["iteration_s"]) == pytest.approx(2, rel=0.01)
    updated = simulated_testbed.alone({**vgg16, "scheme": COMPARED[0], "update_gb_s": 4.0})
    assert float(updated["iteration_s"]) - float(without["iteration_s"]) == pytest.approx(528e6 / 4e9, rel=0.01)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_a_chart_varies_its_own_key(chart: SchedulerChart) -> None:
    drawn = chart.charts({})["aoi"]
    trials = [drawn.cell("INC-TW", at) for at in drawn.points]
    assert len({str(trial) for trial in trials}) == len(chart.points)
    assert all(trial[chart.key] == at for trial, at in zip(trials, chart.points, strict=True))
    assert set(trials[0]) <= {*DEFAULTS, "scheme", chart.key}


def test_readings_are_all_combinations_of_what_the_text_leaves_open(tmp_path: Path) -> None:
    every = chosen(Request(tmp_path))
    assert len({str(reading) for reading in every}) == len(every) == prod(map(len, CHOICES.values()))
    near = chosen(Request(tmp_path, quick=True))
    assert SETTING in near
    assert {sum(reading[key] != SETTING[key] for key in CHOICES) for reading in near} == {0, 1}


def test_an_interrupted_figure_goes_on(tmp_path: Path) -> None:
    chart = SchedulerChart("fig8", "small", "jobs", (30, 60), order, FIGURE_8, {"units": 16})
    text, figure = StringIO(), replace(FIGURES["fig8"], cells=chart.cells, show=chart.show)
    figure(Console(file=text, width=160), Request(tmp_path, quick=True))
    assert "CT-BTI, INC-TW to INC-FCFS" in text.getvalue()
    assert "22 free servers, fitted to the connections" in text.getvalue()
    assert (tmp_path / "p4inc-aoi-fig8.png").stat().st_size > 0

    def forbidden(trial: Trial) -> Result:
        raise AssertionError(f"{trial} is measured twice")

    forbidden.__module__ = measure.__module__  # results of other code would not count
    again = replace(figure, measure=forbidden)
    again(Console(file=StringIO()), Request(tmp_path, quick=True))


def test_table_1_and_the_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1, "PROVABLE", (40,))
    monkeypatch.setattr(table1, "LARGER", (80,))
    monkeypatch.setattr(simulated_testbed, "TESTBED_JOBS", (4,))
    text = StringIO()
    console, request = Console(file=text, width=200), Request(tmp_path, quick=True)
    for figure in ("table1", "fig6", "fig7"):
        find_figure("p4inc-aoi", figure).run(console, request)
        assert (tmp_path / f"p4inc-aoi-{figure}.svg").stat().st_size > 0
    assert "1 of 1" in text.getvalue()
    assert "JCT, noINC-TW to noINC-FCFS" in text.getvalue()
    assert text.getvalue().count("80% of the jobs are inside one rack, chosen") == 2, "what is fitted stands under both"
