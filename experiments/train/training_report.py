"""What a person sees of a training run: a table of epochs, the same as CSV, and accuracy over time as GOAT plots it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.run.record import RunFolder
from experiments.run.report import exactness, verdict
from experiments.run.tables import NamedTable
from topo.errors import writing
from topo.picture.draw import TREE_COLORS
from traffic.measure.measured import Measured
from traffic.sockets.ports import FloatArray
from traffic.training.training_task import History, TrainingTask

GREY = "#9AA5B1"
COLUMNS = ("epoch", "ended_s", "time_s", "samples_per_s", "communication_share", "loss", "accuracy")


@dataclass(frozen=True)
class Epoch:
    """The times of an epoch: when it ended, how long after the one before, and how much of that was communication."""

    ended_s: float
    time_s: float
    communication_s: float
    samples: int

    @property
    def samples_per_s(self) -> float:
        """Training throughput (GOAT, section VII-A)."""
        return self.samples / self.time_s

    @property
    def communication_share(self) -> float:
        """The share of the epoch's time in which gradients were exchanged."""
        return self.communication_s / self.time_s


@dataclass(frozen=True)
class Curve:
    """Training with one planner: `loss` of each epoch, test `accuracy` before the first and after each.

    `epochs` is empty for training without a network, whose time says nothing.
    """

    name: str
    loss: FloatArray
    accuracy: FloatArray
    epochs: tuple[Epoch, ...] = ()


def epochs_of(measured: Measured, task: TrainingTask) -> tuple[Epoch, ...]:
    """The times of all epochs: each ends when its last iteration's sums have come, the first begins with the run."""
    epochs: list[Epoch] = []
    for first in range(0, task.iterations, task.iterations_per_epoch):
        iterations = measured.iterations[first : first + task.iterations_per_epoch]
        ended_s = iterations[-1].started_s + iterations[-1].communication_time_s
        time_s = ended_s - (epochs[-1].ended_s if epochs else 0.0)
        epochs.append(Epoch(ended_s, time_s, sum(i.communication_time_s for i in iterations), task.samples_per_epoch))
    return tuple(epochs)


def curve_of(name: str, task: TrainingTask, history: History, measured: Measured | None = None) -> Curve:
    """`measured` is what carried the gradients, None where nothing did."""
    epochs = () if measured is None else epochs_of(measured, task)
    return Curve(name, history.loss(task), history.accuracy(task), epochs)


# ---- table and files ---------------------------------------------------------------------------


def rows(curve: Curve) -> Iterator[dict[str, float | None]]:
    """One row per epoch, keys are `COLUMNS`; no times where there was no network."""
    for number, (loss, accuracy) in enumerate(zip(curve.loss, curve.accuracy[1:], strict=True), start=1):
        epoch = curve.epochs[number - 1] if curve.epochs else None
        times = {name: getattr(epoch, name, None) for name in COLUMNS[1:5]}
        yield {"epoch": number, **times, "loss": float(loss), "accuracy": float(accuracy)}


def training_table(task: TrainingTask, curves: Sequence[Curve], planners: Mapping[str, Any]) -> NamedTable:
    """A row for each epoch of each planner, and before them those of one process."""
    layers = "-".join(map(str, task.model.sizes))
    table = Table(
        title=f"perceptron {layers}, {task.gradient_bytes / 1e3:.1f} kB of gradients\n{task.workers} workers with "
        f"batches of {task.recipe.batch}, {task.iterations_per_epoch} iterations per epoch",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("planner", no_wrap=True)
    for heading in ("epoch", "time\n(s)", "samples/s", "comm.\nshare", "loss", "test\naccuracy"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for curve in curves:
        notes = remarks(planners.get(curve.name))
        for row in rows(curve):
            name = curve.name if row["epoch"] == 1 else ""
            table.add_row(name, *cells(row), next(notes, ""), end_section=row["epoch"] == len(curve.loss))
    return NamedTable(table)


def remarks(entry: Mapping[str, Any] | None) -> Iterator[str]:
    """What stands beside the epochs of a planner, line by line."""
    if entry is not None:
        yield verdict(entry)
        yield exactness(entry)
        yield "[green]as one process[/]" if entry["training"]["as_one_process"] else "[bold red]not as one process[/]"


def cells(row: Mapping[str, float | None]) -> Iterator[str]:
    """The figures of an epoch as the table shows them; a dash where there is none."""
    for name, form in zip(COLUMNS, ("d", "", ".2f", ".0f", ".0%", ".4f", ".1%"), strict=True):
        if name != "ended_s":
            yield "-" if row[name] is None else format(row[name], form)


def write_curves(folder: RunFolder, curves: Sequence[Curve]) -> None:
    """`training.csv` of every planner and of one process, and `training.png`."""
    for curve in curves:
        table = [[row[name] for name in COLUMNS] for row in rows(curve)]
        folder.write_rows(f"{curve.name.replace(' ', '-')}/training.csv", COLUMNS, table)
    with writing(folder.path):
        draw_training(curves).savefig(folder.path / "training.png", dpi=150)


# ---- plot --------------------------------------------------------------------------------------


def draw_training(curves: Sequence[Curve]) -> Figure:
    """Accuracy over time (GOAT, Fig. 6), loss by epoch beside one process, throughput, and time per epoch (Fig. 7)."""
    figure = Figure(figsize=(14, 3.4), layout="constrained")
    over_time, loss, throughput, epoch_time = figure.subplots(1, 4)
    alone, *networks = curves
    epochs = np.arange(1, len(alone.loss) + 1)
    loss.plot(epochs, alone.loss, color=GREY, linewidth=6, label=alone.name)
    for number, curve in enumerate(networks):
        color = TREE_COLORS[number % len(TREE_COLORS)]
        ends = [0.0, *(epoch.ended_s for epoch in curve.epochs)]
        over_time.plot(ends, curve.accuracy, "o-", color=color, label=curve.name)
        loss.plot(epochs, curve.loss, "o--", color=color, markersize=max(3, 9 - 2 * number), label=curve.name)
        draw_bars(throughput, epoch_time, curve, color)
    label(over_time, "time (s)", "test accuracy")
    label(loss, "epoch", "training loss")
    label(throughput, "", "training throughput (samples/s)")
    label(epoch_time, "", "time per epoch (s)")
    over_time.legend(fontsize="small")
    loss.legend(fontsize="small")
    return figure


def draw_bars(throughput: Axes, epoch_time: Axes, curve: Curve, color: str) -> None:
    """The means over epochs; what is communication is hatched."""
    throughput.bar(curve.name, fmean(epoch.samples_per_s for epoch in curve.epochs), color=color)
    epoch_time.bar(curve.name, fmean(epoch.time_s for epoch in curve.epochs), color=color)
    communication_s = fmean(epoch.communication_s for epoch in curve.epochs)
    epoch_time.bar(curve.name, communication_s, color="none", edgecolor="white", hatch="//")
    epoch_time.set_title("hatched: communication", fontsize="small")


def label(axes: Axes, x: str, y: str) -> None:
    """Name the axes, and let the vertical one begin at 0."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
