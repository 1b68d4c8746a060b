"""Pictures of the papers' figures: panels beside each other with one legend, and the CSV of exactly their points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from inakit.experiments.papers.common import points
from inakit.experiments.papers.common.legend import legend
from inakit.experiments.papers.common.panel_kinds import KINDS
from inakit.experiments.papers.common.panels import Panel
from inakit.topo.errors import writing

PANEL_INCHES, ALONE_INCHES = (4.6, 3.7), (6.6, 4.0)
"""Width and height of a panel that stands beside others, and of a single one."""
MOST_COLUMNS = 3
"""The largest number of panels in a row."""
LEGEND_INCHES, LETTER_INCHES = 0.7, 0.058
"""The width of a legend's entry without its text, and of a letter."""
LEGEND_ROW_INCHES = 0.2
"""The height of a row of the legend."""


def draw_panel(panel: Panel, axes: Axes) -> None:
    """Draw a panel on its axes, with labels, title and grid."""
    axes.set_xscale("log" if "x" in panel.log else "linear")
    axes.set_yscale("log" if "y" in panel.log else "linear")
    KINDS[panel.kind](panel, axes)
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel(panel.ylabel)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(axis="y", color="#E4E8EC", linewidth=0.6)
    axes.set_axisbelow(True)
    if "y" not in panel.log and axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)


def save(path: Path, *panels: Panel) -> None:
    """Write the panels as PNG and SVG with one legend for all, and their points as CSV; `path` has no ending.

    Panels have their places from the first picture on, so that both are the same.
    """
    canvas = figure(panels)
    with writing(path), rc_context({"svg.fonttype": "none"}):  # text stays text, which can be searched and edited
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".png", ".svg"):
            canvas.savefig(path.with_name(path.name + suffix), dpi=150)
            canvas.set_layout_engine("none")
        points.write(path.with_name(path.name + ".csv"), panels)


def figure(panels: Sequence[Panel]) -> Canvas:
    """The panels beside each other, at most `MOST_COLUMNS` in a row, above their legend."""
    columns = 2 if len(panels) == 4 else min(len(panels), MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    panel_width, panel_height = PANEL_INCHES if len(panels) > 1 else ALONE_INCHES
    width, height = panel_width * columns, panel_height * rows
    handles = legend(panels)
    longest = max((len(str(entry.get_label())) for entry in handles), default=0)
    legend_columns = max(1, int(width / (LEGEND_INCHES + LETTER_INCHES * longest)))
    height += LEGEND_ROW_INCHES * -(-len(handles) // legend_columns)
    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    for position, panel in enumerate(panels, start=1):
        draw_panel(panel, canvas.add_subplot(rows, columns, position))
    canvas.legend(handles=handles, loc="outside lower center", ncols=legend_columns, fontsize=8, frameon=False,
                  handlelength=3.2)  # fmt: skip
    return canvas
