"""A study's figures as PDF, as wide as a paper's column or page, with the colours and names of the kit's methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from inakit.experiments.papers.common.drawing import BARS, Panel, draw_panel, legend
from inakit.experiments.papers.common.estimates import MISSING, Estimate
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.study.study import FigureAsked
from inakit.experiments.study.summary import (
    INTERVAL,
    Unit,
    bootstrapped,
    column_of,
    grouped,
    name,
    title_of,
    unit_of,
    value_of,
)
from inakit.experiments.study.table import Row
from inakit.topo.errors import InputError, writing

WIDTHS_INCHES = {"column": 3.5, "page": 7.16}
"""The widths of a column and of a page with two columns in IEEE's papers."""
PANEL_INCHES, PANEL_RATIO = 2.3, 0.72
"""The least width of a panel, and the ratio of its height to its width."""
LEGEND_ROW_INCHES, ENTRY_INCHES, LETTER_INCHES = 0.16, 0.5, 0.046
"""The height of a row of the legend; the width of an entry without its text, and of a letter."""
THINNER = 0.55
"""The size of lines and markers relative to figures for a screen, which are twice as large."""
STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,  # fonts are embedded as TrueType, as publishers require
    "font.size": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "axes.linewidth": 0.5,
}


def panels_of(asked: FigureAsked, rows: Sequence[Row]) -> list[Panel]:
    """The panels of a figure, one for each value of its facet. Raises `InputError` if no row has a value of it."""
    known = [row for row in rows if value_of(row, asked.y) is not None]
    if not known:
        raise InputError(f"figure of {asked.y}: no run that counts has a value of it")
    facets = grouped(known, [asked.facet]) if asked.facet else {("",): known}
    colours = list(dict.fromkeys(name(asked.colour, row[asked.colour]) for row in known))
    unit = unit_of(asked.y, (value_of(row, asked.y) or 0.0 for row in known))
    return [panel_of(asked, own, str(facet), colours, unit) for (facet,), own in facets.items()]


def panel_of(asked: FigureAsked, rows: Sequence[Row], title: str, colours: Sequence[str], unit: Unit) -> Panel:
    """One panel: an estimate for each colour at each place of the x axis."""
    places = places_of(asked.x, rows)
    kind = asked.kind if all(isinstance(place, int | float) for place in places) else BARS
    cells = grouped(rows, [asked.colour, asked.x])
    lines = {name(asked.colour, colour): colour for (colour,) in grouped(rows, [asked.colour])}
    series = {
        label: [estimate_of(cells.get((colour, place), ()), asked.y, unit) for place in places]
        for label, colour in lines.items()
    }
    styles = {label: style for label, style in styles_of(colours).items() if label in lines}
    shown = places if kind != BARS else [name(asked.x, place) for place in places]
    ylabel = title_of(column_of(rows[0], asked.y), unit)
    return Panel(kind, shown, series, asked.x.replace("_", " "), ylabel, title, log=asked.log, styles=styles)


def places_of(key: str, rows: Sequence[Row]) -> list[Any]:
    """The places of the x axis: numbers in ascending order, names in the order of the rows."""
    places = list(dict.fromkeys(row[key] for row in rows))
    return sorted(places) if all(isinstance(place, int | float) for place in places) else places


def estimate_of(rows: Sequence[Row], figure: str, unit: Unit) -> Estimate:
    """The mean and the interval of a figure in some rows; a missing point if no row has a value."""
    values = [value / unit.factor for row in rows if (value := value_of(row, figure)) is not None]
    return bootstrapped(values) if values else MISSING


def draw(asked: FigureAsked, rows: Sequence[Row], path: Path) -> None:
    """Write a figure as vector PDF. Raises `InputError` without values, `OutputError`."""
    figure = drawn(asked, rows)
    with writing(path), rc_context(STYLE):
        figure.savefig(path, metadata={"CreationDate": None})


def drawn(asked: FigureAsked, rows: Sequence[Row]) -> Canvas:
    """Draw a figure by matplotlib. Raises `InputError` without values."""
    with rc_context(STYLE):
        return canvas(panels_of(asked, rows), WIDTHS_INCHES[asked.size])


def canvas(panels: Sequence[Panel], width: float) -> Canvas:
    """Draw the panels above one legend, in rows of as many as fit the width."""
    columns = max(1, min(len(panels), int(width / PANEL_INCHES)))
    rows = -(-len(panels) // columns)
    handles = legend(panels, INTERVAL)
    entries = legend_columns(handles, width)
    legend_rows = -(-len(handles) // entries)
    height = rows * (width / columns * PANEL_RATIO) + LEGEND_ROW_INCHES * legend_rows
    found = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasPdf(found)
    for place, panel in enumerate(panels, start=1):
        draw_panel(panel, found.add_subplot(rows, columns, place))
        thin(found.axes[-1])
    thin_lines(handles)
    found.legend(handles=handles, loc="outside lower center", ncols=entries, fontsize=6.5,
                 frameon=False, handlelength=2.2, columnspacing=1.0)  # fmt: skip
    return found


def thin(axes: Axes) -> None:
    axes.title.set_fontsize(7)
    for label in axes.get_xticklabels():
        label.set_fontsize(6.5)
    thin_lines(axes.lines)


def thin_lines(artists: Iterable[Artist]) -> None:
    for artist in artists:
        if isinstance(artist, Line2D):
            artist.set_linewidth(THINNER * artist.get_linewidth())
            artist.set_markersize(THINNER * artist.get_markersize())


def legend_columns(handles: Sequence[Artist], width: float) -> int:
    """The number of entries in a row of the legend; `width` is in inches."""
    widths = [ENTRY_INCHES + LETTER_INCHES * len(str(handle.get_label())) for handle in handles]
    return len(handles) if sum(widths) <= width else max(1, int(width / max(widths)))
