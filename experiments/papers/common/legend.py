"""The legend under a figure's panels."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from inakit.experiments.papers.common.estimates import INTERVAL
from inakit.experiments.papers.common.panel_kinds import PAPER, PLANNED, line_width
from inakit.experiments.papers.common.panels import LINES, VIOLINS, Panel


def legend(panels: Sequence[Panel], interval: str = INTERVAL) -> list[Artist]:
    """The legend's entries: all names that are not on an axis, then the paper's values, intervals and plans, if any.

    `interval` says what kind of intervals they are.
    """
    handles: dict[str, Artist] = {}
    for panel in sorted(panels, key=lambda panel: panel.kind != LINES):
        count = len(panel.series)
        for number, name in enumerate(() if panel.kind == VIOLINS else panel.series):
            handles.setdefault(name, handle(panel, name, line_width(number, count)))
    found = list(handles.values())
    if any(value for panel in panels for value in panel.paper.values()):
        found.append(Line2D([], [], color="black", linestyle="", marker="o", markersize=8, markerfacecolor="white",
                            markeredgewidth=1.8, label=PAPER))  # fmt: skip
    if any(point.low is not None for panel in panels for line in panel.series.values() for point in line):
        found.append(Line2D([], [], color="black", marker="|", linewidth=1.0, markersize=6, label=interval))
    if any(panel.planned for panel in panels):
        found.append(Line2D([], [], color="black", linewidth=1.6, label=PLANNED))
    return found


def handle(panel: Panel, name: str, width: float) -> Artist:
    """The line or patch that stands for a name in the legend; `width` is that of its line, in points."""
    style = panel.style(name)
    if panel.kind == "lines":
        return Line2D([], [], color=style.color, linestyle=style.dash, marker=style.marker, linewidth=width, label=name)  # type: ignore[arg-type]
    edge = "white" if style.hatch else "black"
    return Patch(facecolor=style.color, hatch=style.hatch, edgecolor=edge, linewidth=0.5, label=name)
