"""The plot of a comparison, in the colours that methods have in every figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from inakit.experiments.api.display import FIGURES
from inakit.experiments.papers.common.drawing import BARS, Panel, figure
from inakit.experiments.papers.common.estimates import MISSING, Estimate, exact
from inakit.experiments.report.method_styles import styles_of

SHOWN = ("sending_rate_bps", "ps_ingress_bytes", "communication_time_s")
"""Those of `FIGURES` that have a panel."""


def bars(planned: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A panel for each of `SHOWN`: the planned and, where plans ran, the measured figures by planner."""
    places = ("planned", "measured") if any(measured.values()) else ("planned",)
    styles = styles_of(list(planned))
    panels = []
    for name in SHOWN:
        label, unit, _ = FIGURES[name]
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
