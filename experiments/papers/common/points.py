"""The CSV beside every figure: one row for each point that the figure draws."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from inakit.experiments.papers.common.estimates import INTERVAL
from inakit.experiments.papers.common.panels import Panel

COLUMNS = (
    "panel", "quantity", "x_axis", "x", "method", "statistic", "value", "interval_low", "interval_high", "interval",
    "draws", "paper", "planned", "drawn_values",
)  # fmt: skip


@dataclass(frozen=True)
class PointRow:
    """A point of a figure. `paper` is the value that the paper prints for it, `planned` what a plan promises there."""

    panel: str
    quantity: str
    x_axis: str
    x: str | float
    method: str
    statistic: str
    value: float | None
    interval_low: float | None
    interval_high: float | None
    interval: str
    draws: int
    paper: float | None
    planned: float | None
    drawn_values: str


def rows(panel: Panel) -> Iterator[PointRow]:
    """All points of a panel, line by line; then the paper's values at places where we have no point."""
    for name, points in panel.series.items():
        paper, planned = panel.paper.get(name, {}), panel.planned.get(name, ())
        for place, point in enumerate(points):
            known = point.low is not None
            yield PointRow(
                panel=panel.title,
                quantity=panel.ylabel,
                x_axis=panel.xlabel,
                x=panel.places[place],
                method=name,
                statistic="mean" if known else "single value",
                value=None if isnan(point.value) else point.value,
                interval_low=point.low,
                interval_high=point.high,
                interval=INTERVAL if known else "",
                draws=len(point.draws),
                paper=paper.get(panel.places[place]),
                planned=planned[place] if planned else None,
                drawn_values=" ".join(f"{value:.9g}" for value in point.draws),
            )

    for name, printed in panel.paper.items():
        for x in [place for place in printed if place not in panel.places]:
            where = (panel.title, panel.ylabel, panel.xlabel, x, name)
            yield PointRow(*where, "", None, None, None, "", 0, printed[x], None, "")


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Write all points of a figure's panels as CSV; the cell of a value that does not exist is empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for panel in panels:
            writer.writerows([getattr(row, column) for column in COLUMNS] for row in rows(panel))
