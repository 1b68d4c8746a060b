"""`inakit train`: a small model is trained through the emulated switches, with one planner after another.

Whatever the plan, its losses are those of training in one process, bit for bit; what a plan changes is the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from rich.console import Console

from experiments.emulate.emulate import (
    Emulation,
    check,
    ended_early,
    make_plans,
    measure,
    new_record,
    overall,
    runs_of,
    settled,
)
from experiments.run.outcome import Outcome
from experiments.run.pace import TooSlowError
from experiments.run.progress import working
from experiments.run.record import RunFolder, RunRecord
from experiments.run.report import print_report
from experiments.train.training_report import Curve, curve_of, training_table, write_curves
from planner.core.problem import Problem
from topo.errors import InputError, unknown_name
from traffic.endpoints.gradient import Learner
from traffic.measure.measured import Measured
from traffic.measure.verdict import Verdict
from traffic.training.parallel import DataParallel, Mean, float_mean, rounded_mean, train_alone
from traffic.training.training_task import History, Recipe, TrainingTask

ALONE = "one process"
TICKS_S = 0.016
"""Four ticks of the endpoints' loop: one until it sees that it is time, one until it sends, and two to spare."""


class Learning(Learner, Protocol):
    """Training under way, and what it leaves to be looked at."""

    @property
    def history(self) -> History:
        """Losses, accuracies and parameters so far."""
        ...


@dataclass(frozen=True)
class Framework:
    """What computes the gradients. `learn`: of a job whose sums come from elsewhere; `alone`: all in one process."""

    learn: Callable[[TrainingTask], AbstractContextManager[Learning]]
    alone: Callable[[TrainingTask, Mean], History]


def numpy_framework() -> Framework:
    """The kit's own perceptron in NumPy."""
    return Framework(lambda task: nullcontext(DataParallel(task)), train_alone)


def torch_framework() -> Framework:
    """PyTorch, a process per worker. Raises `MachineError` where it is not installed."""
    from traffic.training.ddp import TorchRanks, train_alone_in_torch  # noqa: PLC0415

    return Framework(TorchRanks, train_alone_in_torch)


FRAMEWORKS = {"numpy": numpy_framework, "torch": torch_framework}


def find_framework(name: str) -> Framework:
    """Raises `InputError` for an unknown name, `MachineError` for one that is not installed."""
    if name not in FRAMEWORKS:
        raise unknown_name("framework", name, FRAMEWORKS)
    return FRAMEWORKS[name]()


def training_problem(problem: Problem, recipe: Recipe, compute_s: float) -> tuple[Problem, TrainingTask]:
    """The problem whose one job trains by `recipe`: its gradient is the model's, and its time begins with computing.

    `compute_s` is how long emulated workers compute in each iteration. 0: as long as it takes here, where one
    processor computes for all of them; then time begins with the first gradient sent.
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
    """The same training in one process: rounded as in the network, and not at all."""

    rounded: History
    floats: History


def run_training(emulation: Emulation, task: TrainingTask, framework: str, console: Console) -> RunRecord:
    """Train with every planner, print epochs and report, and return the record with its verdict. Raises `InakitError`.

    The emulation's problem is one of `training_problem`. As in `emulate`, what can be known to be wrong is found
    before a file or an interface is made.
    """
    used = find_framework(framework)
    world = check(emulation)
    emulation, plans = settled(emulation, make_plans(emulation, console), world, console)
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
    print_report(console, record.as_json())
    console.print(f"everything of this run: {folder.path}", highlight=False)
    return record


def judged(outcome: Outcome, compute_s: float, history: History, alone: History) -> dict[str, Any]:
    """The verdict and its reasons, those of training among them: sums may be exact and training wrong all the same."""
    reasons = [*outcome.reasons, *slow_computing(outcome.measured, compute_s)]
    if outcome.measured.exact and not history.equals(alone):
        return {"verdict": Verdict.WRONG, "reasons": [*reasons, f"losses or parameters are not those of {ALONE}"]}
    return {"verdict": replace(outcome, reasons=tuple(reasons)).verdict, "reasons": reasons}


def slow_computing(measured: Measured, compute_s: float) -> Iterator[str]:
    """Whether computing took longer here than the emulated workers are said to take."""
    ends = [i.started_s + i.communication_time_s for i in measured.iterations]
    pauses = [i.started_s - end for i, end in zip(measured.iterations[1:], ends, strict=False)]
    longest = max(pauses, default=0.0)
    if compute_s and longest > compute_s + TICKS_S:
        yield f"computing took up to {longest:.3f} s where {compute_s:.3f} s are planned: choose a longer --compute-s"


def training_figures(curve: Curve, history: History, alone: References) -> dict[str, Any]:
    """What `run.json` says of a planner's training. `loss_off_floats`: the most that rounding has changed any loss."""
    return {
        "epochs": [asdict(epoch) for epoch in curve.epochs],
        "loss": curve.loss.tolist(),
        "accuracy": curve.accuracy.tolist(),
        "as_one_process": history.equals(alone.rounded),
        "loss_off_floats": float(abs(history.losses - alone.floats.losses).max()),
    }
