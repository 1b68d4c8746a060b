"""`inakit train`: a small model is trained through the emulated switches, with one planner after another.

Under every plan the losses are those of training in one process, bit for bit. A plan changes only the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from rich.console import Console

from inakit.experiments.emulate.emulate import (
    Emulation,
    check,
    conclude,
    ended_early,
    measure,
    new_record,
    overall,
    prepared,
    runs_of,
)
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.run.printed.progress import working
from inakit.experiments.run.record import RunFolder, RunRecord
from inakit.experiments.train.training_curves import Curve, curve_of
from inakit.experiments.train.training_report import training_table, write_curves
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.endpoints.gradient import Learner
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.training.parallel import DataParallel, Mean, float_mean, rounded_mean, train_alone
from inakit.traffic.training.training_task import History, Recipe, TrainingTask

ALONE = "one process"
TICKS_S = 0.016
"""By how many seconds a pause for computing may exceed its plan: four ticks of the endpoints' loop.

The loop may need one tick to see that the pause is over and one to send; two are to spare."""


class Learning(Learner, Protocol):
    """Training under way, which keeps its history."""

    @property
    def history(self) -> History:
        """Losses, accuracies and parameters so far."""
        ...


@dataclass(frozen=True)
class Framework:
    """What computes the gradients. `learn`: for a job whose sums come from the network; `alone`: all in one process."""

    learn: Callable[[TrainingTask], AbstractContextManager[Learning]]
    alone: Callable[[TrainingTask, Mean], History]


def numpy_framework() -> Framework:
    """The kit's own perceptron in NumPy."""
    return Framework(lambda task: nullcontext(DataParallel(task)), train_alone)


def torch_framework() -> Framework:
    """PyTorch, a process per worker. Raises `MachineError` where it is not installed."""
    from inakit.traffic.training.ddp import TorchRanks, train_alone_in_torch  # noqa: PLC0415

    return Framework(TorchRanks, train_alone_in_torch)


FRAMEWORKS = {"numpy": numpy_framework, "torch": torch_framework}


def find_framework(name: str) -> Framework:
    """The framework of that name. Raises `InputError` for an unknown name, `MachineError` if it is not installed."""
    if name not in FRAMEWORKS:
        raise unknown_name("framework", name, FRAMEWORKS)
    return FRAMEWORKS[name]()


def training_problem(problem: Problem, recipe: Recipe, compute_s: float) -> tuple[Problem, TrainingTask]:
    """The problem with its one job changed so that it trains by `recipe`, and the training task.

    The job has the size of the model's gradient, and begins to compute at time 0. `compute_s`: how many seconds the
    emulated workers compute in each iteration. With 0 they take as long as it takes here, where one processor computes
    for all of them, and time 0 is when the first gradient is sent. Raises `InputError` for several jobs.
    """
    if len(problem.jobs) != 1:
        raise InputError(f"{len(problem.jobs)} jobs: one job is trained at a time")
    (job,) = problem.jobs
    task = TrainingTask(recipe, len(job.workers))
    trained = replace(
        job,
        gradient_bytes=task.gradient_bytes,
        iterations=task.iterations,
        compute_s=compute_s,
        arrival_s=compute_s,
    )
    return replace(problem, jobs=(trained,)), task


@dataclass(frozen=True)
class References:
    """The same training in one process: with gradients rounded as in the network, and with gradients not rounded."""

    rounded: History
    floats: History


def run_training(emulation: Emulation, task: TrainingTask, framework: str, console: Console) -> RunRecord:
    """Train with every planner, print epochs and report, and return the record with its verdict. Raises `InakitError`.

    The emulation's problem is one of `training_problem`. As in `emulate`, the request is checked before a file or an
    interface is made.
    """
    used = find_framework(framework)
    world = check(emulation)
    emulation, plans = prepared(emulation, world, console)
    with working(console, f"{ALONE}: training"):
        alone = References(used.alone(task, rounded_mean), used.alone(task, float_mean))
    folder = RunFolder(emulation.results, f"train-{emulation.problem.fabric.name}")
    record = new_record(emulation, plans, world)
    record.configuration["training"] = asdict(task.recipe) | {"framework": framework}
    runs = runs_of(emulation, plans, folder)
    folder.write_record(record)
    curves = [curve_of(ALONE, task, alone.rounded)]
    with folder.completing(record):
        for name, planned in runs.items():
            try:
                with used.learn(task) as learning:
                    outcome = measure(emulation, name, planned, world, console, learning)
                    history = learning.history
            except TooSlowError as slow:
                record.planners[name] |= ended_early(slow, emulation)
            else:
                outcome.write(folder, name)
                curves.append(curve_of(name, task, history, outcome.measured))
                entry = outcome.as_json() | judged(outcome, emulation.problem.jobs[0].compute_s, history, alone.rounded)
                record.planners[name] |= entry | {"training": training_figures(curves[-1], history, alone)}
            folder.write_record(record)
        write_curves(folder, curves)
        record.finish(*overall(record.planners))
    console.print(training_table(task, curves, record.planners))
    conclude(record, folder, console)
    return record


def judged(outcome: Outcome, compute_s: float, history: History, alone: History) -> dict[str, Any]:
    """The verdict and the reasons, with those of the training: it may be wrong although all sums are exact."""
    reasons = [*outcome.reasons, *slow_computing(outcome.measured, compute_s)]
    if outcome.measured.exact and not history.equals(alone):
        return {"verdict": Verdict.WRONG, "reasons": [*reasons, f"losses or parameters are not those of {ALONE}"]}
    return {"verdict": replace(outcome, reasons=tuple(reasons)).verdict, "reasons": reasons}


def slow_computing(measured: Measured, compute_s: float) -> Iterator[str]:
    """The reason, in words, if computing took longer here than the `compute_s` of the emulated workers."""
    ends = [i.started_s + i.communication_time_s for i in measured.iterations]
    pauses = [i.started_s - end for i, end in zip(measured.iterations[1:], ends, strict=False)]
    longest = max(pauses, default=0.0)
    if compute_s and longest > compute_s + TICKS_S:
        yield f"computing took up to {longest:.3f} s where {compute_s:.3f} s are planned: choose a longer --compute-s"


def training_figures(curve: Curve, history: History, alone: References) -> dict[str, Any]:
    """The planner's entry `training` in `run.json`. `loss_off_floats`: the most that rounding has changed any loss."""
    return {
        "epochs": [asdict(epoch) for epoch in curve.epochs],
        "loss": curve.loss.tolist(),
        "accuracy": curve.accuracy.tolist(),
        "as_one_process": history.equals(alone.rounded),
        "loss_off_floats": float(abs(history.losses - alone.floats.losses).max()),
    }
