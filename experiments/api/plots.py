"""The plot of a comparison, in the colours that methods have in every figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from inakit.experiments.papers.common.drawing import BARS, Panel, figure
from inakit.experiments.papers.common.estimates import MISSING, Estimate, exact
from inakit.experiments.report.method_styles import styles_of

SHOWN = {
    "sending_rate_bps": ("sending rate (Mbit/s)", 1e6),
    "ps_ingress_bytes": ("PS ingress (kB)", 1e3),
    "communication_time_s": ("communication time (ms)", 1e-3),
}
"""The figures of the three panels: their axes' names, and units."""


def bars(planned: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A panel for each of `SHOWN`: the planned and, where plans ran, the measured figures by planner."""
    places = ("planned", "measured") if any(measured.values()) else ("planned",)
    styles = styles_of(list(planned))
    panels = []
    for name, (label, unit) in SHOWN.items():
        series = {
            planner: [point(of[planner], name, unit) for of in (planned, measured)[: len(places)]]
            for planner in planned
        }
        panels.append(Panel(BARS, places, series, "", label, styles=styles))
    return figure(panels)


def point(figures: Mapping[str, float | None], name: str, unit: float) -> Estimate:
    """A figure in its unit; missing where there is none."""
    value = figures.get(name)
    return MISSING if value is None else exact(value / unit)
