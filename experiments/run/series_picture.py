"""The picture of a run in virtual time: the deepest queues, the most loaded links and the workers' rates, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from inakit.experiments.run.observation import Observed
from inakit.topo.errors import writing
from inakit.topo.files.quantities import shown_unit
from inakit.topo.picture import COMMON, INK, TREE_COLORS
from inakit.traffic.measure.over_time import LinkSeries
from inakit.traffic.sockets.ports import FloatArray

DRAWN = len(TREE_COLORS) // 2
"""The number of links in each panel."""
GREY = "#9AA5B1"
WIDTH, HEIGHT = 9, 7.2
MARGINS = {"left": 0.095, "bottom": 0.07, "top": 0.905, "hspace": 0.22}
"""Fixed margins: computing them from the drawn text takes as long as drawing it."""
BESIDE, LETTER = 0.55, 0.072
"""The width in inches of a legend beside the axes, and of each letter of its longest line."""


def draw_series(title: str, observed: Observed, path: Path, started_s: Sequence[float]) -> None:
    """Write the picture as a PNG. `started_s`: the times at which iterations began, shown by thin lines."""
    links = observed.links
    figure = Figure(figsize=(WIDTH, HEIGHT))
    FigureCanvasAgg(figure)
    queues, used, rates = figure.subplots(3, 1, sharex=True)
    starts_s = links.starts_s[: max(1, len(links.starts_s) - 1)]  # the last interval ends after the run
    factor, unit = shown_unit("s", starts_s)
    times = starts_s / factor
    deepest, loaded = links.deepest(DRAWN), links.most_loaded(DRAWN)
    lines = lines_of(links, (*deepest, *loaded))
    draw_lines(queues, times, [(lines[link], links.samples.most_queue[link]) for link in deepest])
    draw_lines(used, times, [(lines[link], links.samples.utilisation[link]) for link in loaded])
    draw_workers(rates, times, observed)
    name(queues, "deepest queues", "waiting packets,\nmaximum per interval")
    name(used, "most loaded links", "share of time\nthat the link sends")
    used.set_ylim(top=1.05)
    for axes in (queues, used, rates):
        for start in started_s:
            axes.axvline(start / factor, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    interval = f"{links.interval_s / factor:g} {unit}"
    rates.set_xlabel(f"virtual time ({unit}), in intervals of {interval}; dotted: an iteration begins")
    figure.suptitle(title)
    longest = max(len(text.get_text()) for axes in figure.axes if (box := axes.get_legend()) for text in box.texts)
    figure.subplots_adjust(**MARGINS, right=1 - (BESIDE + longest * LETTER) / WIDTH)
    with writing(path):
        figure.savefig(path, dpi=120, pil_kwargs={"compress_level": 1})


@dataclass(frozen=True)
class Line:
    """The label and the colour of a link's or a worker's line."""

    label: str
    color: str


def lines_of(links: LinkSeries, chosen: Sequence[int]) -> dict[int, Line]:
    """The line of each chosen link, by its number. A link has the same line in both panels."""
    different = zip(dict.fromkeys(chosen), TREE_COLORS, strict=False)
    return {link: Line(" → ".join(links.links[link]), color) for link, color in different}


def draw_lines(axes: Axes, times: FloatArray, rows: Sequence[tuple[Line, NDArray[Any]]]) -> None:
    """Draw a line for each row of values; the first lines are wider, so that lines that overlap stay visible."""
    for place, (line, values) in enumerate(rows):
        width = 1.2 + 0.7 * (len(rows) - 1 - place)
        axes.step(times, values[: len(times)], where="post", color=line.color, linewidth=width,
                  label=line.label)  # fmt: skip
    if rows:
        legend(axes)


def draw_workers(axes: Axes, times: FloatArray, observed: Observed) -> None:
    """Draw each worker's rate or, for many workers, the median and the range of their rates."""
    rates = observed.links.rates[observed.links.uplinks(observed.workers), : len(times)]
    factor, unit = shown_unit("bit/s", (float(rates.max(initial=0.0)),))
    if len(rates) <= len(TREE_COLORS):
        lines = (Line(worker, color) for worker, color in zip(observed.workers, TREE_COLORS, strict=False))
        draw_lines(axes, times, list(zip(lines, rates / factor, strict=True)))
    else:
        low, middle, high = np.percentile(rates / factor, (0, 50, 100), axis=0)
        axes.fill_between(times, low, high, step="post", color=GREY, alpha=0.5, linewidth=0, label="slowest to fastest")
        draw_lines(axes, times, [(Line("median", INK), middle)])
    name(axes, f"sending rates of the {len(rates)} workers", f"rate of a worker\n({unit})")


def legend(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)


def name(axes: Axes, title: str, y: str) -> None:
    """Set the titles and a grid of the axes, and let the vertical axis begin at 0."""
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(y, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=COMMON, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0)
