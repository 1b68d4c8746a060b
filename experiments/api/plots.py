"""The plot of a comparison, in the colours that methods have in every figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from inakit.experiments.papers.common.drawing import figure
from inakit.experiments.papers.common.estimates import MISSING, Estimate, exact
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.styles.method_styles import styles_of

if TYPE_CHECKING:
    from inakit.experiments.api.runs import Result

SHOWN = {
    "sending_rate_bps": ("sending rate (Mbit/s)", 1e6),
    "ps_ingress_bytes": ("PS ingress (kB)", 1e3),
    "communication_time_s": ("communication time (ms)", 1e-3),
}
"""The figures of the three panels: their axes' names, and units."""


def bars(results: Mapping[str, Result]) -> Figure:
    """A panel for each of `SHOWN`: planned and, where plans ran, measured figures of each planner."""
    ran = any(result.measured for result in results.values())
    places = ("planned", "measured") if ran else ("planned",)
    styles = styles_of(list(results))
    panels = []
    for name, (label, unit) in SHOWN.items():
        series = {
            planner: [point(result.planned, name, unit), point(result.measured, name, unit)][: len(places)]
            for planner, result in results.items()
        }
        panels.append(Panel(BARS, places, series, "", label, styles=styles))
    return figure(panels)


def point(figures: Mapping[str, float | None], name: str, unit: float) -> Estimate:
    """A figure in its unit; missing where there is none."""
    value = figures.get(name)
    return MISSING if value is None else exact(value / unit)
