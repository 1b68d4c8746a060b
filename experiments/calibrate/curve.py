"""`inakit calibrate --curve`: how packet rate, set-up, memory and idle CPU grow with the size of a fat-tree."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.calibrate.limit import Calibration
from topo.errors import writing


@dataclass(frozen=True)
class Quantity:
    """A column of the curve: its name in files, its value and, where it is printed, its heading and format."""

    name: str
    value: Callable[[Calibration], float]
    heading: str = ""
    format: str = ""


QUANTITIES = (
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
"""The quantities that are drawn over the number of switches: one plot for each tuple."""


def max_capacity_bps(found: Calibration) -> float:
    """The capacity of the fastest link at the scale that was found, in bit/s."""
    return max(found.fabric.capacities_bps.values()) * found.trial.scale


def curve_table(found: Sequence[Calibration]) -> Table:
    """The quantities that have a heading, one row for each fat-tree."""
    printed = [quantity for quantity in QUANTITIES if quantity.heading]
    table = Table(
        title="fat-trees at the highest link rate that stays VALID",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for quantity in printed:
        table.add_column(quantity.heading, justify="right", no_wrap=True)
    for one in found:
        table.add_row(*(format(quantity.value(one), quantity.format) for quantity in printed))
    return table


def write_curve(found: Sequence[Calibration], folder: Path) -> list[Path]:
    """Write `curve.csv` and `curve.png` to the folder, and return their paths."""
    table, picture = folder / "curve.csv", folder / "curve.png"
    with writing(table), table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["fabric", *(quantity.name for quantity in QUANTITIES)])
        writer.writerows([one.fabric.name, *(quantity.value(one) for quantity in QUANTITIES)] for one in found)
    with writing(picture):
        draw_curve(found).savefig(picture, dpi=150)
    return [table, picture]


def draw_curve(found: Sequence[Calibration]) -> Figure:
    """Draw one plot for each of `PANELS`, over the number of switches."""
    by_name = {quantity.name: quantity for quantity in QUANTITIES}
    switches = [by_name["switches"].value(one) for one in found]
    figure = Figure(figsize=(3 * len(PANELS), 3), layout="constrained")
    panels: Any = figure.subplots(1, len(PANELS))
    for panel, names in zip(panels, PANELS, strict=True):
        for quantity in (by_name[name] for name in names):
            panel.plot(
                switches, [quantity.value(one) for one in found], "o-", label=quantity.heading.replace("\n", " ")
            )
        panel.set_xlabel("switches")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return figure
