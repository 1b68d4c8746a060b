"""Every figure of every paper writes a CSV of exactly what it draws. Results are made up; the drawing is real."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from io import StringIO
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_sweeps import SWEEPING, made_up_sweep
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from rich.console import Console
from tiers import long_unless

from inakit.experiments.papers import inarouting as instances
from inakit.experiments.papers import soar as utilisation
from inakit.experiments.papers.common import drawing
from inakit.experiments.papers.common.drawing import Panel
from inakit.experiments.papers.common.figure_registry import FIGURES, Request
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inarouting import INSTANCES
from inakit.experiments.papers.inart import example as inart_lp
from inakit.experiments.papers.inart.setting import SETTINGS, drawn_problem

TABLES = (("atro", "studies"), ("atro", "readings"))
"""Figures that are tables only."""
SIMULATED = [
    (paper, name)
    for paper, found in FIGURES.items()
    for name, figure in found.items()
    if figure.simulated and (paper, name) not in TABLES
]
FIRST = dict(reversed(SIMULATED)).items()
"""A figure of each paper: all are drawn, but only these are also written as SVG in the short form."""


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Canvas, list[Panel]]]:
    """Make up the results of sweeps, and keep every drawn figure with its panels. Only SVG is rendered, not PNG."""
    monkeypatch.setattr(SWEEPING, "sweep", made_up_sweep)
    monkeypatch.setattr(instances, "INSTANCES", INSTANCES[:1])
    monkeypatch.setattr(utilisation, "SIZES", (255, 511, 8191))
    monkeypatch.setattr(utilisation, "QUICK_DRAWS", 2)
    monkeypatch.setattr(inart_lp, "large_problem", lambda *_: drawn_problem(SETTINGS["homogeneous"], 6, 0))
    found: list[tuple[Canvas, list[Panel]]] = []
    make: Callable[..., Canvas] = drawing.figure

    def kept(panels: list[Panel], **more: bool) -> Canvas:
        found.append((make(panels, **more), panels))
        return found[-1][0]

    monkeypatch.setattr(drawing, "figure", kept)
    render = Canvas.savefig

    def rendered(canvas: Canvas, path: Path, **options: Any) -> None:
        if path.suffix == ".svg":
            render(canvas, path, **options)
        else:
            path.touch()

    monkeypatch.setattr(Canvas, "savefig", rendered)
    return found


def digits(value: object) -> float:
    """A value rounded to the nine digits that are compared."""
    return float(f"{float(str(value)):.9g}")


def values(line: Line2D) -> list[float]:
    return [digits(y) for y in np.asarray(line.get_ydata(), dtype=float)]


def heights(axes: Axes) -> Counter[float]:
    """The measured values that lines, bars and violins show: no intervals, no planned values, none of the paper's."""
    asides = {drawing.PAPER, drawing.PAPER_CURVE, drawing.INTERVAL_ID, drawing.FEW, drawing.PLANNED}
    lines = [line for line in axes.get_children() if isinstance(line, Line2D) and line.get_gid() not in asides]
    bars = [bar for container in axes.containers for bar in container if isinstance(bar, Rectangle)]
    violin = axes.get_title() in ("(a) default", "(a) one pipeline") or not axes.get_xlabel()
    ys = [values(line)[: 1 if violin else None] for line in lines]
    return Counter(digits(y) for row in [*ys, [bar.get_height() for bar in bars]] for y in row if not isnan(y))


def printed(axes: Axes) -> Counter[float]:
    """The paper's values."""
    found = [line for line in axes.get_children() if isinstance(line, Line2D) and line.get_gid() == drawing.PAPER]
    return Counter(values(line)[0] for line in found)


def intervals(axes: Axes, name: str = drawing.INTERVAL_ID) -> Counter[tuple[float, ...]]:
    """The ends of the drawn intervals; or, where they are few, the draws."""
    found = [line for line in axes.get_children() if isinstance(line, Line2D) and line.get_gid() == name]
    return Counter(tuple(values(line)) for line in found)


def plans(axes: Axes) -> Counter[float]:
    """The planned values."""
    found = [line for line in axes.get_children() if isinstance(line, Line2D) and line.get_gid() == drawing.PLANNED]
    return Counter(values(line)[0] for line in found)


def assert_csv_is_what_is_drawn(path: Path, canvas: Canvas) -> None:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(drawing.COLUMNS)
    axes = canvas.axes
    assert sum(map(heights, axes), Counter()) == Counter(digits(r["value"]) for r in rows if r["value"])
    assert sum(map(printed, axes), Counter()) == Counter(digits(r["paper"]) for r in rows if r["paper"])
    known = [row for row in rows if row["interval_low"]]
    many, few = ([r for r in known if (int(r["draws"]) >= drawing.FEWEST_DRAWS) == enough] for enough in (True, False))
    ends = Counter((digits(r["interval_low"]), digits(r["interval_high"])) for r in many)
    assert sum(map(intervals, axes), Counter()) == ends
    draws = Counter(tuple(map(digits, r["drawn_values"].split())) for r in few)
    assert sum((intervals(each, drawing.FEW) for each in axes), Counter()) == draws
    planned = Counter(digits(r["planned"]) for r in rows if r["planned"])
    assert sum(map(plans, axes), Counter()) == planned
    assert all(int(r["draws"]) == len(r["drawn_values"].split()) for r in rows)


@pytest.mark.parametrize(
    ("paper", "name", "rendered"),
    [
        *(long_unless(each in FIRST, *each, True) for each in SIMULATED),
        *((*each, False) for each in SIMULATED if each not in FIRST),
    ],
)
def test_a_simulated_figure_leaves_a_csv_of_what_it_draws(
    paper: str,
    name: str,
    rendered: bool,
    saved: list[tuple[Canvas, list[Panel]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not rendered:
        monkeypatch.setattr(Canvas, "savefig", lambda _, path, **__: path.touch())
    FIGURES[paper][name].run(Console(file=StringIO(), width=160), Request(tmp_path, quick=True))
    pictures = sorted(tmp_path.glob("*.png"), key=lambda path: path.stat().st_mtime_ns)
    assert len(pictures) == len(saved) >= 1
    for picture, (canvas, _) in zip(pictures, saved, strict=True):
        assert picture.stem.startswith(f"{paper}-{name}")
        assert picture.with_suffix(".svg").exists()
        assert_csv_is_what_is_drawn(picture.with_suffix(".csv"), canvas)


def saved_as(path: Path, panels: list[Panel], saved: list[tuple[Canvas, list[Panel]]]) -> None:
    drawing.save(path, *panels)
    assert_csv_is_what_is_drawn(path.with_suffix(".csv"), saved[-1][0])


@pytest.mark.parametrize("name", ["fig4", "fig5", "fig7", "fig8", "fig9"])
def test_goats_training_leaves_a_csv(
    name: str, saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inakit.experiments.papers.goat import training  # noqa: PLC0415

    def made_up(trial: Trial, **_: object) -> Result:
        time_s = int(trial["workers"]) / 10
        return {
            "communication_time_s": time_s, "ps_ingress_mb": 40, "first_mb": 40, "apart_s": 1, "verdict": "VALID",
        }  # fmt: skip

    monkeypatch.setattr(training, "measure", made_up)
    FIGURES["goat"][name].run(Console(file=StringIO(), width=160), Request(tmp_path, quick=True, switch="fast"))
    assert_csv_is_what_is_drawn(tmp_path / f"goat-{name}.csv", saved[-1][0])


@pytest.mark.parametrize("name", ["fig7", "fig8", "fig9", "fig10"])
def test_aros_figures_by_packets_leave_a_csv(
    name: str, saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path
) -> None:
    FIGURES["aro"][f"{name}-emulated"].run(Console(file=StringIO(), width=160), Request(tmp_path, quick=True))
    assert all(panel.planned for panel in saved[-1][1])
    assert_csv_is_what_is_drawn(tmp_path / f"aro-{name}-emulated-virtual.csv", saved[-1][0])


@pytest.mark.parametrize("name", ["fig2", "fig8", "fig11"])
def test_inarts_runs_leave_a_csv(name: str, saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path) -> None:
    FIGURES["inart"][f"{name}-emulated"].run(Console(file=StringIO(), width=160), Request(tmp_path, switch="fast"))
    assert_csv_is_what_is_drawn(tmp_path / f"inart-{name}-emulated.csv", saved[-1][0])


def test_goats_asynchrony_leaves_a_csv_with_gaps_where_no_run_was_valid(
    saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path
) -> None:
    from inakit.experiments.papers.goat.asynchrony import AsynchronyPoint, panels  # noqa: PLC0415

    def point(policy: str, spread: float, draw: int, verdict: str = "VALID", window: int = 256) -> AsynchronyPoint:
        transfers = 10 + 5 * spread + draw
        return AsynchronyPoint(policy, spread, draw, window, 1e3, transfers, 1e3, 1e3 + draw, 0.1, 5, 3, True, verdict)

    runs = [point("atp", spread, draw) for spread in (0.0, 0.2) for draw in range(3)]
    runs += [point("goat", 0.0, 0), point("goat", 0.2, 0, "OVERLOADED"), point("atp", 0.2, 0, window=16)]
    saved_as(tmp_path / "figure", panels(runs, 24), saved)
    with (tmp_path / "figure.csv").open() as file:
        gap = next(row for row in csv.DictReader(file) if (row["method"], row["x"]) == ("goat (ours)", "0.2"))
    assert (gap["value"], gap["draws"]) == ("", "0")


def test_planned_and_measured_rates_leave_a_csv(saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path) -> None:
    from inakit.experiments.papers.common.emulated_figure import RateRow, panel  # noqa: PLC0415

    names = ("aro", "random", "grid", "aggtree", "forest")
    rows = [RateRow("leaf-spine", name, 500e3, 490e3 + n, True, "VALID") for n, name in enumerate(names)]
    saved_as(tmp_path / "figure", [panel(rows)], saved)
    with (tmp_path / "figure.csv").open() as file:
        assert {row["planned"] for row in csv.DictReader(file)} == {"500.0"}


def test_four_racks_and_their_circuits_leave_a_csv(saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path) -> None:
    from inakit.experiments.papers.p4inc_aoi.testbed import (  # noqa: PLC0415
        ScenarioRow,
        Totals,
        faults_panel,
        panels,
        reductions_panel,
    )

    totals = {
        name: Totals({"ResNet50": 8.0 - n, "VGG16": 20.0 - n}, 10 - n)
        for n, name in enumerate(("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW"))
    }
    rows = [ScenarioRow(name, each, each, 0, 0, 0.0, exact=True, verdict="VALID") for name, each in totals.items()]
    saved_as(tmp_path / "testbed", panels(rows), saved)
    saved_as(tmp_path / "reductions", [reductions_panel({"planned, 20 draws": totals})], saved)
    saved_as(tmp_path / "fault", [faults_panel((0.0, 0.5), {"noINC-TW": [8.0, 9.0], "INC-TW": [4.0, 4.2]})], saved)


def test_what_crosses_between_units_leaves_a_csv(saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path) -> None:
    from inakit.experiments.papers.p4inc_aoi.locality import Crossing, crossings_panel  # noqa: PLC0415

    found = [Crossing("compact", 0, 0, (), 0.1, "VALID"), Crossing("fragmented", 2000, 2100, ("u1-u4",), 0.1, "VALID")]
    saved_as(tmp_path / "figure", [crossings_panel(found)], saved)


def test_new_routes_leave_a_csv(saved: list[tuple[Canvas, list[Panel]]], tmp_path: Path) -> None:
    from inakit.experiments.papers.inart.emulated import KEPT, LIVE, times_panel  # noqa: PLC0415

    panel = times_panel({KEPT: [0.3, 0.7, 0.7], LIVE: [0.3, 0.7, 0.4]}, [0.3, 0.4, 0.4])
    saved_as(tmp_path / "figure", [panel], saved)
