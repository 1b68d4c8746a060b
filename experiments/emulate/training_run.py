"""`inakit train`: trains a small model through the emulated switches, with one planner after another.

Under every plan the losses equal those of training in one process, bit for bit: a plan changes only the time. The
report has a table of epochs, also as CSV, and a plot: accuracy over time, loss, throughput and time per epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import numpy as np
from rich.console import Console
from rich.table import Table

from inakit.experiments.emulate.emulate import (
    Emulation,
    check,
    completing,
    keeping,
    measure,
    new_record,
    planned_and_settled,
)
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.run.console import NARROW, NamedTable, figures, names, working
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.printed_report import exactness, verdict
from inakit.experiments.run.record import PlannerRecord, RunRecord, Training
from inakit.experiments.run.run_folder import RunFolder
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, unknown_name, writing
from inakit.traffic.endpoints.gradient import Learner
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.training_task import (
    DataParallel,
    History,
    Mean,
    Recipe,
    TrainingTask,
    float_mean,
    rounded_mean,
    train_alone,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Epoch:
    """The times of an epoch: its end, its duration since the end of the previous epoch, and its communication time."""

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

    `epochs` is empty for training without a network, whose time is meaningless.
    """

    name: str
    loss: FloatArray
    accuracy: FloatArray
    epochs: tuple[Epoch, ...] = ()


def epochs_of(measured: Measured, task: TrainingTask) -> tuple[Epoch, ...]:
    """The times of all epochs. Each ends with its last iteration's last result; the first begins with the run."""
    epochs: list[Epoch] = []
    for first in range(0, task.iterations, task.iterations_per_epoch):
        iterations = measured.iterations[first : first + task.iterations_per_epoch]
        ended_s = iterations[-1].started_s + iterations[-1].communication_time_s
        time_s = ended_s - (epochs[-1].ended_s if epochs else 0.0)
        epochs.append(Epoch(ended_s, time_s, sum(i.communication_time_s for i in iterations), task.samples_per_epoch))
    return tuple(epochs)


def curve_of(name: str, task: TrainingTask, history: History, measured: Measured | None = None) -> Curve:
    """The curve of a training. `measured`: the run that carried the gradients; None for training without a network."""
    epochs = () if measured is None else epochs_of(measured, task)
    return Curve(name, history.loss(task), history.accuracy(task), epochs)


GREY = "#9AA5B1"


def draw_training(curves: Sequence[Curve]) -> Figure:
    """Draw accuracy over time (GOAT, Fig. 6), loss by epoch, throughput, and time per epoch (Fig. 7)."""
    from matplotlib.figure import Figure  # noqa: PLC0415, matplotlib takes a second

    figure = Figure(figsize=(14, 3.4), layout="constrained")
    over_time, loss, throughput, epoch_time = figure.subplots(1, 4)
    alone, *networks = curves
    epochs = np.arange(1, len(alone.loss) + 1)
    loss.plot(epochs, alone.loss, color=GREY, linewidth=6, label=alone.name)
    styles = styles_of([curve.name for curve in networks])
    for number, curve in enumerate(networks):
        style = styles[curve.name]
        ends = [0.0, *(epoch.ended_s for epoch in curve.epochs)]
        over_time.plot(ends, curve.accuracy, style.marker + "-", color=style.color, label=curve.name)
        size = max(3, 9 - 2 * number)
        loss.plot(epochs, curve.loss, style.marker + "--", color=style.color, markersize=size, label=curve.name)
        draw_bars(throughput, epoch_time, curve, style.color)
    label(over_time, "time (s)", "test accuracy")
    label(loss, "epoch", "training loss")
    label(throughput, "", "training throughput (samples/s)")
    label(epoch_time, "", "time per epoch (s)")
    over_time.legend(fontsize="small")
    loss.legend(fontsize="small")
    return figure


def draw_bars(throughput: Axes, epoch_time: Axes, curve: Curve, color: str) -> None:
    """Draw a planner's means over epochs: throughput, and time per epoch with its communication hatched."""
    throughput.bar(curve.name, fmean(epoch.samples_per_s for epoch in curve.epochs), color=color)
    epoch_time.bar(curve.name, fmean(epoch.time_s for epoch in curve.epochs), color=color)
    communication_s = fmean(epoch.communication_s for epoch in curve.epochs)
    epoch_time.bar(curve.name, communication_s, color="none", edgecolor="white", hatch="//")
    epoch_time.set_title("hatched: communication", fontsize="small")


def label(axes: Axes, x: str, y: str) -> None:
    """Name the axes, and let the vertical axis begin at 0."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)


COLUMNS = ("epoch", "ended_s", "time_s", "samples_per_s", "communication_share", "loss", "accuracy")


def rows(curve: Curve) -> Iterator[dict[str, float | None]]:
    """Yield one row per epoch, with `COLUMNS` as keys; times are None for training without a network."""
    for number, (loss, accuracy) in enumerate(zip(curve.loss, curve.accuracy[1:], strict=True), start=1):
        epoch = curve.epochs[number - 1] if curve.epochs else None
        times = {name: getattr(epoch, name, None) for name in COLUMNS[1:5]}
        yield {"epoch": number, **times, "loss": float(loss), "accuracy": float(accuracy)}


def training_table(task: TrainingTask, curves: Sequence[Curve], planners: Mapping[str, PlannerRecord]) -> NamedTable:
    """A table with one row per epoch: first of training in one process, then of each planner."""
    table = Table(
        *names("planner"),
        *figures("epoch", "time\n(s)", "samples/s", "comm.\nshare", "loss", "test\naccuracy", no_wrap=True),
        *names("verdict"),
        title=f"{task.model.name}, {task.gradient_bytes / 1e3:.1f} kB of gradients\n{task.workers} workers with "
        f"batches of {task.recipe.batch}, {task.iterations_per_epoch} iterations per epoch",
        **NARROW,
    )
    for curve in curves:
        notes = remarks(planners.get(curve.name))
        for row in rows(curve):
            name = curve.name if row["epoch"] == 1 else ""
            table.add_row(name, *cells(row), next(notes, ""), end_section=row["epoch"] == len(curve.loss))
    return NamedTable(table)


def remarks(entry: PlannerRecord | None) -> Iterator[str]:
    """Yield the remarks beside a planner's epochs: verdict, exactness, equality with training in one process."""
    if entry is not None and entry.training is not None:
        yield verdict(entry)
        yield exactness(entry)
        yield "[green]as one process[/]" if entry.training.as_one_process else "[bold red]not as one process[/]"


def cells(row: Mapping[str, float | None]) -> Iterator[str]:
    """Yield the table cells of an epoch; a dash if there is no figure."""
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


ALONE = "one process"
TICKS_S = 0.016
"""The tolerance for the computing time, in seconds: four ticks of the endpoints' loop.

The loop can need one tick to see the end of the pause and one to send; two more are a margin."""


class Learning(Learner, Protocol):
    """Training in progress, with its history."""

    @property
    def history(self) -> History:
        """Losses, accuracies and parameters so far."""
        ...


@dataclass(frozen=True)
class Framework:
    """A framework that computes gradients: `learn` with sums from the network, `alone` in one process."""

    learn: Callable[[TrainingTask], AbstractContextManager[Learning]]
    alone: Callable[[TrainingTask, Mean], History]


def find_framework(name: str) -> Framework:
    """Return the framework: the kit's perceptron in NumPy, or PyTorch with one process per worker.

    Raises `InputError` for an unknown name, `MachineError` if PyTorch is not installed.
    """
    if name not in FRAMEWORKS:
        raise unknown_name("framework", name, FRAMEWORKS)
    if name == "numpy":
        return Framework(lambda task: nullcontext(DataParallel(task)), train_alone)
    from inakit.traffic.training.ddp import TorchRanks, train_alone_in_torch  # noqa: PLC0415, PyTorch is optional

    return Framework(TorchRanks, train_alone_in_torch)


FRAMEWORKS = ("numpy", "torch")


def training_problem(problem: Problem, recipe: Recipe, compute_s: float) -> tuple[Problem, TrainingTask]:
    """The problem with its single job changed to train by `recipe`, and the training task.

    The job has the size of the model's gradient, and begins to compute at time 0. `compute_s`: the computing time of
    the emulated workers in each iteration, in seconds. With 0 they take the real computing time of one processor of
    this machine for all workers, and send the first gradient at time 0. Raises `InputError` for several jobs.
    """
    if len(problem.jobs) != 1:
        raise InputError(f"{len(problem.jobs)} jobs: expected a single job, because one job is trained at a time")
    (job,) = problem.jobs
    task = TrainingTask(recipe, len(job.workers))
    trained = replace(
        job, gradient_bytes=task.gradient_bytes, iterations=task.iterations, compute_s=compute_s, arrival_s=compute_s
    )
    return replace(problem, jobs=(trained,)), task


@dataclass(frozen=True)
class References:
    """The same training in one process: with gradients rounded as in the network, and without rounding."""

    rounded: History
    floats: History


def run_training(emulation: Emulation, task: TrainingTask, framework: str, console: Console) -> RunRecord:
    """Train with every planner, print epochs and report, and return the record with its verdict. Raises `InakitError`.

    The emulation's problem comes from `training_problem`. As in `emulate`, the request is checked before a file or an
    interface is made.
    """
    used = find_framework(framework)
    world = check(emulation)
    emulation, plans = planned_and_settled(emulation, world, console)
    with working(console, f"{ALONE}: training"):
        alone = References(used.alone(task, rounded_mean), used.alone(task, float_mean))
    folder = RunFolder(emulation.results, f"train-{emulation.problem.fabric.name}")
    record = new_record(emulation, plans, world)
    record.configuration.training = asdict(task.recipe) | {"framework": framework}
    curves = [curve_of(ALONE, task, alone.rounded)]
    with completing(emulation, plans, record, folder, console) as runs:
        for name, planned in runs.items():
            with keeping(emulation, name, record, folder):
                with used.learn(task) as learning:
                    outcome = measure(emulation, name, planned, world, console, learning)
                    history = learning.history
                outcome.write(folder, name)
                curves.append(curve_of(name, task, history, outcome.measured))
                entry, compute_s = record.planners[name], emulation.problem.jobs[0].compute_s
                entry.take(outcome.results)
                entry.verdict, entry.reasons = judged(outcome, compute_s, history, alone.rounded)
                entry.training = training_figures(curves[-1], history, alone)
        write_curves(folder, curves)
        console.print(training_table(task, curves, record.planners))
    return record


def judged(outcome: Outcome, compute_s: float, history: History, alone: History) -> tuple[str, list[str]]:
    """The verdict and the reasons, including those of the training, which can be wrong although all sums are exact."""
    reasons = [*outcome.reasons, *slow_computing(outcome.measured, compute_s)]
    if outcome.measured.exact and not history.equals(alone):
        return Verdict.WRONG, [*reasons, f"losses or parameters differ from those of {ALONE}"]
    return replace(outcome, reasons=tuple(reasons)).verdict, reasons


def slow_computing(measured: Measured, compute_s: float) -> Iterator[str]:
    """Yield a reason if computing on this machine took longer than the `compute_s` of the emulated workers."""
    ends = [i.started_s + i.communication_time_s for i in measured.iterations]
    pauses = [i.started_s - end for i, end in zip(measured.iterations[1:], ends, strict=False)]
    longest = max(pauses, default=0.0)
    if compute_s and longest > compute_s + TICKS_S:
        yield f"computing took up to {longest:.3f} s, but {compute_s:.3f} s are planned: choose a longer --compute"


def training_figures(curve: Curve, history: History, alone: References) -> Training:
    return Training(
        epochs=[asdict(epoch) for epoch in curve.epochs],
        loss=curve.loss.tolist(),
        accuracy=curve.accuracy.tolist(),
        as_one_process=history.equals(alone.rounded),
        loss_off_floats=float(abs(history.losses - alone.floats.losses).max()),
    )
