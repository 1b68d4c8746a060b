"""`inakit calibrate --curve`: how packet rate, set-up, memory and idle CPU grow with the size of a fat-tree.

A `Curve` says what is printed, written and drawn of each size; `CALIBRATED` is that of emulated networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from matplotlib.figure import Figure
from rich.table import Table

from inakit.experiments.calibrate.limit import Calibration
from inakit.experiments.run.printed.tables import NARROW
from inakit.topo.errors import writing
from inakit.topo.files.csv_table import write_csv

T = TypeVar("T")


@dataclass(frozen=True)
class Quantity(Generic[T]):
    """A column of a curve: its name in files, its value and, where it is printed, its heading and format."""

    name: str
    value: Callable[[T], float]
    heading: str = ""
    format: str = ""


@dataclass(frozen=True)
class Curve(Generic[T]):
    """A table's title, its columns, the name of each row, and what is drawn over the number of switches.

    `quantities` include "switches". `panels`: the names of the quantities of each plot.
    """

    title: str
    name: Callable[[T], str]
    quantities: Sequence[Quantity[T]]
    panels: Sequence[Sequence[str]]


QUANTITIES: tuple[Quantity[Calibration], ...] = (
    Quantity("switches", lambda found: len(found.fabric.switches), "switches", "d"),
    Quantity("hosts", lambda found: len(found.fabric.hosts)),
    Quantity("workers", lambda found: found.workers, "workers", "d"),
    Quantity("link_mbps", lambda found: max_capacity_bps(found) / 1e6, "links\nMbit/s", ".2f"),
    Quantity("worker_mbps", lambda found: found.trial.worker_bps / 1e6),
    Quantity("endpoint_pps", lambda found: found.trial.load.endpoint_pps, "endpoints\npackets/s", ",.0f"),
    Quantity("switch_pps", lambda found: found.trial.load.switch_pps, "switches\npackets/s", ",.0f"),
    Quantity("setup_s", lambda found: found.setup_s, "set-up\ns", ".1f"),
    Quantity("memory_mb", lambda found: found.memory_bytes / 1e6, "memory\nMB", ",.0f"),
    Quantity("idle", lambda found: found.idle, "idle\nCPU", ".0%"),
)
PANELS = (("endpoint_pps", "switch_pps"), ("link_mbps",), ("setup_s",), ("memory_mb",), ("idle",))


def max_capacity_bps(found: Calibration) -> float:
    """The capacity of the fastest link at the scale that was found, in bit/s."""
    return max(found.fabric.capacities_bps.values()) * found.trial.scale


CALIBRATED = Curve(
    "fat-trees at the highest link rate that stays VALID", lambda found: found.fabric.name, QUANTITIES, PANELS
)


def curve_table(curve: Curve[T], found: Sequence[T]) -> Table:
    """The quantities that have a heading, one row for each fat-tree."""
    printed = [quantity for quantity in curve.quantities if quantity.heading]
    table = Table(title=curve.title, **NARROW)
    for quantity in printed:
        table.add_column(quantity.heading, justify="right", no_wrap=True)
    for one in found:
        table.add_row(*(format(quantity.value(one), quantity.format) for quantity in printed))
    return table


def write_curve(curve: Curve[T], found: Sequence[T], folder: Path) -> list[Path]:
    """Write `curve.csv` and `curve.png` to the folder, and return their paths."""
    table, picture = folder / "curve.csv", folder / "curve.png"
    headings = ("fabric", *(quantity.name for quantity in curve.quantities))
    write_csv(table, headings, ([curve.name(one), *(q.value(one) for q in curve.quantities)] for one in found))
    with writing(picture):
        draw_curve(curve, found).savefig(picture, dpi=150)
    return [table, picture]


def draw_curve(curve: Curve[T], found: Sequence[T]) -> Figure:
    """Draw the curve's panels over the number of switches."""
    by_name = {quantity.name: quantity for quantity in curve.quantities}
    switches = [by_name["switches"].value(one) for one in found]
    figure = Figure(figsize=(3 * len(curve.panels), 3), layout="constrained")
    panels: Any = figure.subplots(1, len(curve.panels))
    for panel, names in zip(panels, curve.panels, strict=True):
        for quantity in (by_name[name] for name in names):
            panel.plot(
                switches, [quantity.value(one) for one in found], "o-", label=quantity.heading.replace("\n", " ")
            )
        panel.set_xlabel("switches")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return figure
