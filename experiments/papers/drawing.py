"""What the papers' figures are drawn with: violins, lines and bars side by side, and tables of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from rich.box import SIMPLE_HEAD
from rich.table import Table

from topo.errors import writing

Draw = Callable[[Axes], None]
"""Draws one panel."""

Values = Mapping[str, Sequence[float]]
"""By the name of a line, or of a violin."""

Colors = Mapping[str, str]

NO_STYLES: Mapping[str, str] = {}

PANEL_INCHES = (5.5, 4.2)


def save(path: Path, *panels: Draw) -> None:
    """The panels side by side, as PNG and SVG."""
    width, height = PANEL_INCHES
    canvas = Canvas(figsize=(width * len(panels), height), layout="constrained")
    FigureCanvasAgg(canvas)
    for position, draw in enumerate(panels, start=1):
        draw(canvas.add_subplot(1, len(panels), position))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".png", ".svg"):
            canvas.savefig(path.with_name(path.name + suffix))


def violins(values: Values, colors: Colors, ylabel: str, title: str = "") -> Draw:
    """A violin for each name with a red line at its mean; where all values are equal, the line only."""

    def draw(axes: Axes) -> None:
        for place, (name, found) in enumerate(values.items()):
            if len(set(found)) > 1:
                for body in axes.violinplot(found, [place], showextrema=False)["bodies"]:  # type: ignore[attr-defined]
                    body.set_facecolor(colors.get(name, "grey"))
            axes.plot([place - 0.2, place + 0.2], [sum(found) / len(found)] * 2, color="red")
        axes.set_xticks(range(len(values)), [name.replace(", ", ",\n") for name in values], fontsize=7, rotation=30)
        label(axes, "", ylabel, title)

    return draw


def lines(
    places: Sequence[float],
    values: Values,
    colors: Colors,
    xlabel: str,
    ylabel: str,
    title: str = "",
    log: str = "",
    styles: Mapping[str, str] = NO_STYLES,
) -> Draw:
    """A line for each name over `places`; `log` names the axes that are logarithmic, "y" or "xy"."""

    def draw(axes: Axes) -> None:
        for name, found in values.items():
            style = styles.get(name, "-")
            axes.plot(places, found, style, marker="o", color=colors.get(name), label=name)
        axes.legend(fontsize=7)
        axes.set_xscale("log" if "x" in log else "linear")
        axes.set_yscale("log" if "y" in log else "linear")
        label(axes, xlabel, ylabel, title)

    return draw


def bars(groups: Sequence[str], values: Values, colors: Colors, ylabel: str, title: str = "") -> Draw:
    """For each group a bar of each name."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(values)
        for position, (name, found) in enumerate(values.items()):
            places = [group + (position - (len(values) - 1) / 2) * width for group in range(len(groups))]
            axes.bar(places, found, width, color=colors.get(name), label=name)
        axes.set_xticks(range(len(groups)), list(groups))
        axes.legend(fontsize=8)
        label(axes, "", ylabel, title)

    return draw


def label(axes: Axes, xlabel: str, ylabel: str, title: str) -> None:
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, fontsize=10)


def table_of(title: str, axis: str, places: Sequence[object], values: Values) -> Table:
    """A row for each name, a column for each place."""
    table = Table(title=title, box=SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column(axis, min_width=20)
    for place in places:
        table.add_column(str(place), justify="right", no_wrap=True)
    for name, found in values.items():
        table.add_row(name, *map(number, found))
    return table


def number(value: float | None) -> str:
    """Three digits, or as many as there are before the point."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
