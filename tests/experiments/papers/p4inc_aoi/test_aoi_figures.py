"""P4INC-AOI's simulated figures: every point is reproducible, and the order of the schemes is the paper's."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import Request, find_figure
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi import simulated_testbed, table1
from inakit.experiments.papers.p4inc_aoi.setting import COMPARED, DEFAULTS, FIGURE_8, READINGS, measure
from inakit.experiments.papers.p4inc_aoi.simulation import CHARTS, FIGURES, SchedulerChart, order

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


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_changes_only_its_own_policies(reading: str) -> None:
    for scheme in ("INC-FCFS", "INC-TW"):
        trial: Trial = {**SMALL, "scheme": scheme, "seed": 0}
        same = measure(trial)["connections"] == measure({**trial, "reading": reading})["connections"]
        assert same == (scheme not in READINGS[reading])


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_a_chart_varies_its_own_key(chart: SchedulerChart) -> None:
    drawn = chart.charts(20.0)["AOI"]
    trials = [drawn.cell("INC-TW", at) for at in drawn.points]
    assert len({str(trial) for trial in trials}) == len(chart.points)
    assert all(trial[chart.key] == at for trial, at in zip(trials, chart.points, strict=True))
    assert set(trials[0]) <= {*DEFAULTS, "scheme"}


def test_an_interrupted_figure_goes_on(tmp_path: Path) -> None:
    chart = SchedulerChart("fig8", "small", "jobs", (30, 60), order, FIGURE_8, {"units": 16})
    text, figure = StringIO(), replace(FIGURES["fig8"], cells=chart.cells, show=chart.show)
    figure(Console(file=text, width=160), Request(tmp_path, quick=True))
    assert "INC-TW to INC-FCFS, CT-BTI" in text.getvalue()
    assert (tmp_path / "p4inc-aoi-fig8.png").stat().st_size > 0

    def forbidden(trial: Trial) -> Result:
        raise AssertionError(f"{trial} is measured twice")

    forbidden.__module__ = measure.__module__  # results of other code would not count
    again = replace(figure, measure=forbidden)
    again(Console(file=StringIO()), Request(tmp_path, quick=True))


def test_table_1_and_the_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1, "PROVABLE", (6,))
    monkeypatch.setattr(table1, "LARGER", (8,))
    monkeypatch.setattr(simulated_testbed, "TESTBED_JOBS", (4,))
    monkeypatch.setitem(table1.PAPER_SECONDS, 6, 1.0)
    text = StringIO()
    console, request = Console(file=text, width=200), Request(tmp_path, quick=True)
    for figure in ("table1", "fig6", "fig7"):
        find_figure("p4inc-aoi", figure).run(console, request)
        assert (tmp_path / f"p4inc-aoi-{figure}.svg").stat().st_size > 0
    assert "1 of 1" in text.getvalue()
    assert "noINC-TW to noINC-FCFS, JCT" in text.getvalue()
