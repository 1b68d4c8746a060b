"""`inakit calibrate --curve`: how packet rate, set-up, memory and idle CPU grow with the size of a fat-tree."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

from experiments.calibrate.limit import Calibration


@dataclass(frozen=True)
class Quantity:
    """A column of the curve: its name in files, its heading, its text's format, and its value."""

    name: str
    heading: str
    format: str
    value: Callable[[Calibration], float]


QUANTITIES = (
    Quantity("switches", "switches", "d", lambda found: len(found.fabric.switches)),
    Quantity("hosts", "hosts", "d", lambda found: len(found.fabric.hosts)),
    Quantity("workers", "workers", "d", lambda found: found.workers),
    Quantity("link_mbps", "link rate\n(Mbit/s)", ".2f", lambda found: max_capacity_bps(found) / 1e6),
    Quantity("worker_mbps", "each worker\n(Mbit/s)", ".2f", lambda found: found.trial.worker_bps / 1e6),
    Quantity("endpoint_pps", "packets/s at\nendpoints", ",.0f", lambda found: found.trial.load.endpoint_pps),
    Quantity("switch_pps", "packets/s\nin switches", ",.0f", lambda found: found.trial.load.switch_pps),
    Quantity("setup_s", "set-up\n(s)", ".1f", lambda found: found.setup_s),
    Quantity("memory_mb", "memory\n(MB)", ",.0f", lambda found: found.memory_bytes / 1e6),
    Quantity("idle", "idle CPU", ".0%", lambda found: found.idle),
)
PANELS = (("endpoint_pps", "switch_pps"), ("link_mbps",), ("setup_s",), ("memory_mb",), ("idle",))
"""What is drawn over the number of switches, one plot each."""


def max_capacity_bps(found: Calibration) -> float:
    """Of the fastest link, at the rate that was found."""
    return max(found.fabric.capacities_bps.values()) * found.trial.scale


def curve_table(found: Sequence[Calibration]) -> Table:
    """One row for each size."""
    table = Table(title="At the highest link rate that stays VALID")
    table.add_column("fabric")
    for quantity in QUANTITIES:
        table.add_column(quantity.heading, justify="right")
    for one in found:
        table.add_row(one.fabric.name, *(format(quantity.value(one), quantity.format) for quantity in QUANTITIES))
    return table


def write_curve(found: Sequence[Calibration], folder: Path) -> list[Path]:
    """`curve.csv` and `curve.png`."""
    table, picture = folder / "curve.csv", folder / "curve.png"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["fabric", *(quantity.name for quantity in QUANTITIES)])
        writer.writerows([one.fabric.name, *(quantity.value(one) for quantity in QUANTITIES)] for one in found)
    draw_curve(found).savefig(picture, dpi=150)
    return [table, picture]


def draw_curve(found: Sequence[Calibration]) -> Figure:
    """One plot for each of `PANELS`, over the number of switches."""
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
