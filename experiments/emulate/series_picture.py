"""The picture of a run in virtual time: the deepest queues, the most loaded links and the workers' rates, over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.papers.common.method_styles import categories
from experiments.run.observed import Observed
from topo.errors import writing
from traffic.measure.link_series import LinkSeries

DRAWN = 5
"""How many links have a line of their own."""
MOST_LINES = 8
"""Up to so many workers have a line of their own; of more, the range of all is drawn."""
GREY, GRID = "#9AA5B1", "#E4E8EC"
TIME_UNITS = ((1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3))
RATE_UNITS = ((1e9, "Gbit/s", 1e-9), (1e6, "Mbit/s", 1e-6), (1e3, "kbit/s", 1e-3))


def draw_series(title: str, observed: Observed, path: Path, started_s: Sequence[float]) -> None:
    """Write the picture as a PNG. `started_s`: when iterations began, which thin lines show."""
    links = observed.links
    figure = Figure(figsize=(9, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    queues, used, rates = figure.subplots(3, 1, sharex=True)
    times, unit, factor = in_unit(links)
    draw_links(queues, times, links, links.deepest(DRAWN), links.samples.most_queue)
    draw_links(used, times, links, links.most_loaded(DRAWN), links.samples.utilisation)
    draw_workers(rates, times, observed)
    name(queues, "deepest queues", "packets that wait,\nmost of each interval")
    name(used, "most loaded links", "share of time\nin which the link sends")
    used.set_ylim(top=1.05)
    for axes in (queues, used, rates):
        for start in started_s:
            axes.axvline(start * factor, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    rates.set_xlabel(f"virtual time ({unit}); dotted: an iteration begins; intervals of {links.interval_s * factor:g} {unit}")
    figure.suptitle(title)
    with writing(path):
        figure.savefig(path, dpi=120)


def in_unit(links: LinkSeries) -> tuple[NDArray[np.float64], str, float]:
    """When intervals begin, in a unit that suits the whole time; the unit, and how many of it a second has."""
    end_s = float(links.starts_s[-1]) if len(links.starts_s) else 0.0
    unit, factor = next(((unit, factor) for below, unit, factor in TIME_UNITS if end_s < below), ("s", 1.0))
    return links.starts_s * factor, unit, factor


def draw_links(
    axes: Axes, times: NDArray[np.float64], links: LinkSeries, chosen: Sequence[int], values: NDArray[np.float64]
) -> None:
    """Draw one line for each chosen link."""
    names = [" → ".join(links.links[link]) for link in chosen]
    styles = categories(names)
    for link, label in zip(chosen, names, strict=True):
        axes.step(times, values[link], where="post", color=styles[label].color, linewidth=1.2, label=label)
    if chosen:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)


def draw_workers(axes: Axes, times: NDArray[np.float64], observed: Observed) -> None:
    """Draw each worker's rate or, of many workers, the median of all and the range that they are in."""
    rates = observed.links.rates[observed.links.uplinks(observed.workers)]
    peak = float(rates.max(initial=0.0))
    unit, factor = next(((unit, factor) for least, unit, factor in RATE_UNITS if peak >= least), ("bit/s", 1.0))
    if len(rates) <= MOST_LINES:
        styles = categories(observed.workers)
        for worker, rate in zip(observed.workers, rates * factor, strict=True):
            axes.step(times, rate, where="post", color=styles[worker].color, linewidth=1.2, label=worker)
    else:
        low, middle, high = np.percentile(rates * factor, (0, 50, 100), axis=0)
        axes.fill_between(times, low, high, step="post", color=GREY, alpha=0.5, linewidth=0, label="slowest to fastest")
        axes.step(times, middle, where="post", color="#2C23A3", linewidth=1.2, label="median")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
    name(axes, f"what the {len(rates)} workers send", f"rate of a worker\n({unit})")


def name(axes: Axes, title: str, y: str) -> None:
    """Give axes their titles and a grid, and let the vertical one begin at 0."""
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(y, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0)
