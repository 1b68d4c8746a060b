"""The display of results in a notebook: tables in HTML or pandas, pictures, and the plot of a comparison."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from inakit.experiments.papers.common.drawing import BARS, Panel, figure
from inakit.experiments.papers.common.estimates import MISSING, Estimate, exact
from inakit.experiments.report.method_styles import styles_of
from inakit.topo.errors import lacking, writing
from inakit.topo.files.quantities import shown_unit

if TYPE_CHECKING:
    import pandas

    from inakit.planner.prepared import Prepared


FIGURES = {
    "sending_rate_bps": ("sending rate", "bit/s"),
    "ps_ingress_bytes": ("PS ingress", "bytes"),
    "communication_time_s": ("communication time", "s"),
    "aggregation_ratio": ("aggregation ratio", ""),
}
"""The figures in tables and plots: heading and unit."""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", notes: Iterable[str] = ()) -> str:
    """An HTML table with its title above and its notes below; all texts are escaped."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    above = f"<caption>{escape(title)}</caption>" if title else ""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    """Rows as a pandas data frame. Raises `MachineError` if pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415, a package of an extra
    except ImportError as error:
        raise lacking("pandas", "a table of figures") from error
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Picture:
    """A picture: a notebook shows it, `save` writes it, and `figure` is the matplotlib figure, which you can change."""

    figure: Figure

    def save(self, path: str | Path) -> Path:
        """Write the picture in the format of the suffix (.svg, .png, .pdf); return its path. Raises `OutputError`."""
        with writing(Path(path)):
            self.figure.savefig(path, bbox_inches="tight")
        return Path(path)

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure.savefig(text, format="svg", bbox_inches="tight")
        return text.getvalue()


def picture_of(prepared: Prepared, title: str) -> Picture:
    """The fabric with a plan's trees and link loads."""
    from inakit.experiments.run.planning import drawn_parts  # noqa: PLC0415, only pictures need matplotlib
    from inakit.topo.picture import Picture as Drawing  # noqa: PLC0415

    return Picture(Drawing(prepared.problem.fabric, **drawn_parts(prepared)).figure(title))


SHOWN = ("sending_rate_bps", "ps_ingress_bytes", "communication_time_s")
"""The `FIGURES` that have a panel."""


def bars(planned: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A figure with a panel for each of `SHOWN`: the planned and, if plans ran, the measured figures by planner."""
    places = ("planned", "measured") if any(measured.values()) else ("planned",)
    styles = styles_of(list(planned))
    panels = []
    for name in SHOWN:
        label, base = FIGURES[name]
        values = [
            value for of in (planned, measured) for figures in of.values() if (value := figures.get(name)) is not None
        ]
        unit, unit_name = shown_unit(base, values)
        series = {
            planner: [point(of[planner], name, unit) for of in (planned, measured)[: len(places)]]
            for planner in planned
        }
        panels.append(Panel(BARS, places, series, "", f"{label} ({unit_name})", styles=styles))
    return figure(panels)


def point(figures: Mapping[str, float | None], name: str, unit: float) -> Estimate:
    """A figure in its unit; `MISSING` if there is none."""
    value = figures.get(name)
    return MISSING if value is None else exact(value / unit)
