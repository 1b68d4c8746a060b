"""Pictures of the papers' figures: panels side by side with one legend, and a CSV of exactly their points.

A `Panel` is data; its picture and its CSV use no other data. Panels show lines, bars or violins, each with intervals,
the paper's values and planned values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isnan, nan
from pathlib import Path
from textwrap import wrap

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation, Transform

from inakit.experiments.papers.common.estimates import INTERVAL, Estimate, Series
from inakit.experiments.report.method_styles import Style, style_of
from inakit.topo.errors import writing
from inakit.topo.files.reader import write_csv

Place = str | float
"""A place on the x axis: a number, or the name of a group of bars."""
Values = Mapping[str, Sequence[float]]
"""The values of each line, by its name, one for each place."""
Printed = Mapping[str, Mapping[Place, float]]
"""The values that a paper prints: by the name of a line, then by place."""

LINES, BARS, VIOLINS = "lines", "bars", "violins"


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `series` over `places`, drawn as lines, bars or violins.

    `paper` has the values that the paper prints, `planned` the planned values: by line, then by place. `styles` has the
    styles of lines that are no methods. `log` names the logarithmic axes, as in "y" or "xy".
    """

    kind: str
    places: Sequence[Place]
    series: Series
    xlabel: str
    ylabel: str
    title: str = ""
    paper: Printed = field(default_factory=dict)
    planned: Values = field(default_factory=dict)
    log: str = ""
    styles: Mapping[str, Style] = field(default_factory=dict)

    def style(self, name: str) -> Style:
        return self.styles.get(name) or style_of(name)


MOST_LETTERS = 56
"""The largest total length of the names under an axis, in letters; longer ones are wrapped, or rotated if a word is."""
MARKER, BAR_MARKER = 9.5, 230.0
"""In points: the size of the paper's markers, and the least total width of a panel's bars and gaps, which limits a
marker to the width of its bar."""
FEWEST_DRAWS = 3
"""With fewer draws, the draws are shown instead of the interval, which would be far wider than the axes."""
WIDEST, NARROWEST = 3.4, 1.3
"""The widths of the first and the last line, in points. The first is the widest, so that a later line which coincides
with it leaves its edges visible."""
MOST_DODGE, DODGE = 14.0, 2.5
"""In points: the largest offset between the first and the last line's markers, and between two neighbours."""
PAPER, PAPER_CURVE, INTERVAL_ID, FEW, PLANNED = "paper", "the paper's curve", "interval", "draws", "planned"
"""The ids of a drawing's parts in its SVG."""
NOTHING_PRINTED = "the paper prints no values"
"""The note in a panel beside others in which the paper's values are drawn."""


def draw_lines(panel: Panel, axes: Axes) -> None:
    """Draw a line for each name, with intervals; the markers of different lines are moved apart by some points."""
    for number, name in enumerate(panel.series):
        draw_line(panel, axes, number, name)
    places = [float(place) for place in panel.places]
    if all(place.is_integer() for place in places) and "x" not in panel.log:
        axes.set_xticks(places, [f"{place:g}" for place in places])


def draw_line(panel: Panel, axes: Axes, number: int, name: str) -> None:
    """Draw line `number` of a panel, its intervals, and its planned and the paper's values, all moved by its dodge."""
    style, count, found = panel.style(name), len(panel.series), panel.series[name]
    moved = axes.transData + ScaledTranslation(dodge(number, count) / 72, 0, axes.get_figure(root=True).dpi_scale_trans)  # type: ignore[union-attr]
    pen = Pen(axes, style.color, moved, 2 + number / 100)
    xs = [float(place) for place in panel.places]
    pen.line(xs, [point.value for point in found], name, linestyle=style.dash, marker=style.marker, markersize=6.0,
             linewidth=line_width(number, count))  # fmt: skip
    for x, point in zip(xs, found, strict=True):
        pen.interval(x, point)
    for x, value in zip(xs, panel.planned.get(name, ()), strict=False):
        Pen(axes, "black", moved).line([x], [value], PLANNED, linestyle="", marker="_", markersize=11.0)
    printed = panel.paper.get(name, {})
    if len(printed) > 1:  # joined between neighbouring places only: between others the paper says nothing
        curve = [printed.get(place, nan) for place in panel.places]
        pen.line(xs, curve, PAPER_CURVE, linestyle=(0, (1, 1.5)), linewidth=1.2)
    for place, value in printed.items():
        pen.hollow(float(place), value, style.marker)


def draw_bars(panel: Panel, axes: Axes) -> None:
    """Draw a bar of each name for each place, with its interval; a black line across a bar is the planned value."""
    width = 0.84 / len(panel.series)
    for position, (name, found) in enumerate(panel.series.items()):
        style, aside = panel.style(name), (position - (len(panel.series) - 1) / 2) * width
        middles = [group + aside for group in range(len(panel.places))]
        axes.bar(
            middles, [point.value for point in found], 0.92 * width, color=style.color, hatch=style.hatch,
            edgecolor="white" if style.hatch else "black", linewidth=0.5, gid=name, label=name,
        )  # fmt: skip
        for middle, place, point in zip(middles, panel.places, found, strict=True):
            beside(
                axes, middle, point, panel.paper.get(name, {}).get(place), style, BAR_MARKER * width / len(panel.places)
            )
        for middle, planned in zip(middles, panel.planned.get(name, ()), strict=False):
            axes.plot(
                [middle - width / 2, middle + width / 2], [planned] * 2, color="black", linewidth=1.6, gid=PLANNED
            )
    name_places(axes, [str(place) for place in panel.places])


def draw_violins(panel: Panel, axes: Axes) -> None:
    """Draw a violin of the draws of each name, and a black line at their mean, with its interval.

    Draws that are all equal have no violin.
    """
    (place,) = panel.places
    for at, (name, (point,)) in enumerate(panel.series.items()):
        style = panel.style(name)
        if len(set(point.draws)) > 1:
            for body in axes.violinplot(point.draws, [at], showextrema=False)["bodies"]:  # type: ignore[attr-defined]
                body.set(facecolor=style.color, edgecolor="black", alpha=0.65, linewidth=0.6, hatch=style.hatch)
        axes.plot([at - 0.25, at + 0.25], [point.value] * 2, color="black", linewidth=1.8, gid=name)
        beside(axes, at, point, panel.paper.get(name, {}).get(place), style)
    name_places(axes, list(panel.series))


def beside(axes: Axes, x: float, point: Estimate, paper: float | None, style: Style, size: float = MARKER) -> None:
    """Draw, in black upon the coloured bar or violin, its interval and the value that the paper prints for it."""
    pen = Pen(axes, "black", axes.transData)
    pen.interval(x, point)
    if paper is not None:
        pen.hollow(x, paper, style.marker, min(size, MARKER))


def name_places(axes: Axes, names: Sequence[str]) -> None:
    width = max(1, MOST_LETTERS // len(names))
    lines = [wrap(name, width, break_long_words=False, break_on_hyphens=False) for name in names]
    if all(len(line) <= width for name in lines for line in name):
        axes.set_xticks(range(len(names)), map("\n".join, lines), fontsize=8)
    else:
        axes.set_xticks(range(len(names)), names, fontsize=7, rotation=40, ha="right", rotation_mode="anchor")


KINDS: Mapping[str, Callable[[Panel, Axes], None]] = {LINES: draw_lines, BARS: draw_bars, VIOLINS: draw_violins}


def dodge(number: int, count: int) -> float:
    """The offset in points, to the right of its place, of the marker of line `number` of `count`."""
    step = min(DODGE, MOST_DODGE / max(1, count - 1))
    return step * (number - (count - 1) / 2)


def line_width(number: int, count: int) -> float:
    """The width in points of line `number` of `count`; each line is narrower than the lines below it."""
    return WIDEST - (WIDEST - NARROWEST) * number / max(1, count - 1)


@dataclass(frozen=True)
class Pen:
    """Draws in one colour, moved by `transform`, and widens the axes to contain its drawings."""

    axes: Axes
    color: str
    transform: Transform
    layer: float = 3.0

    def line(self, xs: Sequence[float], ys: Sequence[float], name: str, **more: object) -> None:
        """Draw the points, joined by a line; `name` is its name in the SVG, `more` are matplotlib's properties."""
        drawn = Line2D(xs, ys, color=self.color, transform=self.transform, zorder=self.layer, gid=name)
        drawn.set(**more)
        self.axes.add_artist(drawn)
        self.axes.update_datalim(list(zip(xs, ys, strict=True)))
        self.axes.autoscale_view()

    def interval(self, x: float, point: Estimate) -> None:
        """Draw a point's interval, or its draws where they are few."""
        if point.low is None or point.high is None:
            return
        if len(point.draws) >= FEWEST_DRAWS:
            self.line([x, x], [point.low, point.high], INTERVAL_ID, linewidth=1.0, marker="_", markersize=5.0)
        else:
            self.line([x] * len(point.draws), point.draws, FEW, linestyle="", marker="_", markersize=7.0)

    def hollow(self, x: float, value: float, marker: str, size: float = MARKER) -> None:
        """Draw a value that the paper prints: the method's marker, large, white inside and on top."""
        filled = marker if marker in Line2D.filled_markers else "o"
        self.line([x], [value], PAPER, linestyle="", marker=filled, markersize=size, markerfacecolor="white",
                  markeredgewidth=1.8, zorder=4.0)  # fmt: skip


def legend(panels: Sequence[Panel], interval: str = INTERVAL) -> list[Artist]:
    """The legend's entries: all names that are not on an axis, then the paper's values, intervals and plans if present.

    `interval` names the kind of intervals.
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
    points = [point for panel in panels for line in panel.series.values() for point in line if point.low is not None]
    if any(len(point.draws) >= FEWEST_DRAWS for point in points):
        found.append(Line2D([], [], color="black", marker="|", linewidth=1.0, markersize=6, label=interval))
    if any(len(point.draws) < FEWEST_DRAWS for point in points):
        few = "a draw (too few for an interval)"
        found.append(Line2D([], [], color="black", linestyle="", marker="_", markersize=8, label=few))
    if any(panel.planned for panel in panels):
        found.append(Line2D([], [], color="black", linewidth=1.6, label=PLANNED))
    return found


def handle(panel: Panel, name: str, width: float) -> Artist:
    """The line or patch of a name in the legend; `width` is its line width in points."""
    style = panel.style(name)
    if panel.kind == "lines":
        return Line2D([], [], color=style.color, linestyle=style.dash, marker=style.marker, linewidth=width, label=name)  # type: ignore[arg-type]
    edge = "white" if style.hatch else "black"
    return Patch(facecolor=style.color, hatch=style.hatch, edgecolor=edge, linewidth=0.5, label=name)


COLUMNS = (
    "panel", "quantity", "x_axis", "x", "method", "statistic", "value", "interval_low", "interval_high", "interval",
    "draws", "paper", "planned", "drawn_values",
)  # fmt: skip


def point_rows(panel: Panel) -> Iterator[tuple[object, ...]]:
    """The cells of `COLUMNS` of all points of a panel, line by line; then the paper's values where we have no point.

    The cell of a value that does not exist is None.
    """
    for name, points in panel.series.items():
        paper, planned = panel.paper.get(name, {}), panel.planned.get(name, ())
        for number, (place, point) in enumerate(zip(panel.places, points, strict=True)):
            known = point.low is not None
            yield (
                panel.title, panel.ylabel, panel.xlabel, place, name, "mean" if known else "single value",
                None if isnan(point.value) else point.value, point.low, point.high, INTERVAL if known else "",
                len(point.draws), paper.get(place), planned[number] if planned else None,
                " ".join(f"{value:.9g}" for value in point.draws),
            )  # fmt: skip
    for name, printed in panel.paper.items():
        for x in [place for place in printed if place not in panel.places]:
            empty = ("", None, None, None, "", 0)
            yield panel.title, panel.ylabel, panel.xlabel, x, name, *empty, printed[x], None, ""


PANEL_INCHES, ALONE_INCHES = (4.6, 3.7), (6.6, 4.0)
"""The width and height of a panel beside others, and of a single panel."""
MOST_COLUMNS = 3
"""The largest number of panels in a row."""
LEGEND_INCHES, LETTER_INCHES = 0.7, 0.058
"""The width of a legend's entry without its text, and of a letter."""
LEGEND_ROW_INCHES = 0.2
"""The height of a row of the legend."""


def draw_panel(panel: Panel, axes: Axes) -> None:
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


def save(path: Path, *panels: Panel, unprinted: bool = False) -> None:
    """Write the panels as PNG and SVG with one legend for all, and their points as CSV; `path` has no suffix.

    The layout of the first picture is reused, so that both pictures are the same.
    """
    canvas = figure(panels, unprinted=unprinted)
    with writing(path), rc_context({"svg.fonttype": "none"}):  # text stays text, which can be searched and edited
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".png", ".svg"):
            canvas.savefig(path.with_name(path.name + suffix), dpi=150)
            canvas.set_layout_engine("none")
    write_csv(path.with_name(path.name + ".csv"), COLUMNS, chain.from_iterable(map(point_rows, panels)))


def figure(panels: Sequence[Panel], *, unprinted: bool = False) -> Canvas:
    """The panels side by side, at most `MOST_COLUMNS` in a row, above their legend.

    Panels without values of the paper say so beside panels with some, and if it is `unprinted`.
    """
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
        axes = canvas.add_subplot(rows, columns, position)
        draw_panel(panel, axes)
        if unprinted or any(each.paper for each in panels):
            axes.set_title(panel.title, fontsize=10, pad=14)  # above the note, which may be as wide
            note = "" if panel.paper else NOTHING_PRINTED
            axes.text(1, 1.015, note, transform=axes.transAxes, ha="right", va="bottom", fontsize=6.5, alpha=0.7)
    canvas.legend(handles=handles, loc="outside lower center", ncols=legend_columns, fontsize=8, frameon=False,
                  handlelength=3.2)  # fmt: skip
    return canvas
