"""The report of a training run: a table of epochs, and the same as CSV beside the plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from inakit.experiments.run.printed.report import exactness, verdict
from inakit.experiments.run.printed.tables import NARROW, NamedTable
from inakit.experiments.run.record import RunFolder
from inakit.experiments.train.training_curves import Curve
from inakit.experiments.train.training_plot import draw_training
from inakit.topo.errors import writing
from inakit.traffic.training.training_task import TrainingTask

COLUMNS = ("epoch", "ended_s", "time_s", "samples_per_s", "communication_share", "loss", "accuracy")


def rows(curve: Curve) -> Iterator[dict[str, float | None]]:
    """One row per epoch, with `COLUMNS` as keys; times are None for training without a network."""
    for number, (loss, accuracy) in enumerate(zip(curve.loss, curve.accuracy[1:], strict=True), start=1):
        epoch = curve.epochs[number - 1] if curve.epochs else None
        times = {name: getattr(epoch, name, None) for name in COLUMNS[1:5]}
        yield {"epoch": number, **times, "loss": float(loss), "accuracy": float(accuracy)}


def training_table(task: TrainingTask, curves: Sequence[Curve], planners: Mapping[str, Any]) -> NamedTable:
    """A row for each epoch: first those of training in one process, then those of each planner."""
    layers = "-".join(map(str, task.model.sizes))
    table = Table(
        title=f"perceptron {layers}, {task.gradient_bytes / 1e3:.1f} kB of gradients\n{task.workers} workers with "
        f"batches of {task.recipe.batch}, {task.iterations_per_epoch} iterations per epoch",
        **NARROW,
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
    """What the table says beside a planner's epochs, line by line: verdict, exactness, equality with one process."""
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
    """Write `training.csv` for every planner and for one process, and `training.png`."""
    for curve in curves:
        table = [[row[name] for name in COLUMNS] for row in rows(curve)]
        folder.write_rows(f"{curve.name.replace(' ', '-')}/training.csv", COLUMNS, table)
    with writing(folder.path):
        draw_training(curves).savefig(folder.path / "training.png", dpi=150)
