"""The kinds of panels: lines, bars and violins, each with intervals, the paper's values and planned values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, Transform

from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.panels import BARS, LINES, VIOLINS, Panel
from inakit.experiments.styles.method_styles import Style

MOST_LETTERS = 56
"""The largest number of letters of all names that stand side by side under an axis; longer names stand aslant."""
MARKER, BAR_MARKER = 9.5, 230.0
"""In points: the size of the paper's markers, and the least width of all bars of a panel together with their gaps,
from which follows how wide a marker may be so that it is no wider than its bar."""
FEWEST_DRAWS = 3
"""The interval of fewer draws is so wide that the axes make no room for it: it is cut off at their edge."""
WIDEST, NARROWEST = 3.4, 1.3
"""The widths of the first and the last line, in points. The first is the widest, so that a later line which coincides
with it leaves its edges visible."""
MOST_DODGE, DODGE = 14.0, 2.5
"""In points: how far the first and the last line's markers are moved apart at most, and those of two neighbours."""
PAPER, INTERVAL_ID, CUT_OFF, PLANNED = "paper", "interval", "interval of few draws", "planned"
"""The names of parts of a drawing in its SVG."""


def draw_lines(panel: Panel, axes: Axes) -> None:
    """Draw a line for each name, with intervals; the markers of different lines are moved apart by some points."""
    for number, name in enumerate(panel.series):
        draw_line(panel, axes, number, name)
    places = [float(place) for place in panel.places]
    known = [place.is_integer() for place in places]
    if all(known) and "x" not in panel.log:
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
    for place, value in panel.paper.get(name, {}).items():
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
    """Draw a violin of the draws for each name, and a black line at their mean, with its interval.

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
    """Name the places of the x axis, aslant where the names are too long to stand side by side."""
    if max(map(len, names)) * len(names) <= MOST_LETTERS:
        axes.set_xticks(range(len(names)), names, fontsize=8)
    else:
        axes.set_xticks(range(len(names)), names, fontsize=7, rotation=40, ha="right", rotation_mode="anchor")


KINDS: Mapping[str, Callable[[Panel, Axes], None]] = {
    LINES: draw_lines,
    BARS: draw_bars,
    VIOLINS: draw_violins,
}


def dodge(number: int, count: int) -> float:
    """How many points to the right of its place the marker of line `number` of `count` stands."""
    step = min(DODGE, MOST_DODGE / max(1, count - 1))
    return step * (number - (count - 1) / 2)


def line_width(number: int, count: int) -> float:
    """The width of line `number` of `count`, in points: each is narrower than those that it is drawn over."""
    return WIDEST - (WIDEST - NARROWEST) * number / max(1, count - 1)


@dataclass(frozen=True)
class Pen:
    """Draws in one colour, moved by `transform`, and widens the axes so that they contain what it draws."""

    axes: Axes
    color: str
    transform: Transform
    layer: float = 3.0

    def line(self, xs: Sequence[float], ys: Sequence[float], name: str, **more: object) -> None:
        """Draw the points, joined by a line; `name` is its name in the SVG, `more` are matplotlib's properties."""
        drawn = Line2D(xs, ys, color=self.color, transform=self.transform, zorder=self.layer, gid=name)
        drawn.set(**more)
        self.axes.add_artist(drawn)
        if name != CUT_OFF:
            self.axes.update_datalim(list(zip(xs, ys, strict=True)))
            self.axes.autoscale_view()

    def interval(self, x: float, point: Estimate) -> None:
        """Draw the interval of a point, if it has one."""
        if point.low is not None and point.high is not None:
            name = INTERVAL_ID if len(point.draws) >= FEWEST_DRAWS else CUT_OFF
            self.line([x, x], [point.low, point.high], name, linewidth=1.0, marker="_", markersize=5.0)

    def hollow(self, x: float, value: float, marker: str, size: float = MARKER) -> None:
        """Draw a value that the paper prints: the method's marker, large, white inside and on top."""
        filled = marker if marker in Line2D.filled_markers else "o"
        self.line([x], [value], PAPER, linestyle="", marker=filled, markersize=size, markerfacecolor="white",
                  markeredgewidth=1.8, zorder=4.0)  # fmt: skip
