"""Accuracy over time: one training, whose gradients are summed by the plans of several schemes.

Sums are exact, so all schemes have the same accuracy after the same epoch, bit for bit, as a training in one process. A
plan changes only the time of an epoch. The data are the digits that the kit draws.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path

from inakit.experiments.emulate.training_run import curve_of
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import EmulatedRun, run_alone
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.sweep import Result
from inakit.planner.install.ina_program import INA, DataPlaneProgram
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.training.training_task import DataParallel, History, Recipe, TrainingTask, train_alone


@dataclass(frozen=True)
class AccuracyCurve:
    """The ends of epochs in seconds, from 0 before the first, and the test accuracy at each."""

    ended_s: tuple[float, ...]
    accuracy: tuple[float, ...]

    @classmethod
    def of(cls, result: Result) -> AccuracyCurve:
        """The curve in a result of `trained`."""
        return cls(*(tuple(json.loads(str(result[name]))) for name in ("ended_s", "accuracy")))

    @property
    def epoch_s(self) -> float:
        """The mean duration of an epoch."""
        return self.ended_s[-1] / (len(self.ended_s) - 1)

    def at(self, time_s: float) -> float:
        """The accuracy after the last epoch that has ended by this time."""
        return self.accuracy[bisect_right(self.ended_s, time_s) - 1]

    def time_to(self, accuracy: float) -> float:
        """The time of the first epoch that ends with at least this accuracy; infinite if none does."""
        ends = zip(self.ended_s, self.accuracy, strict=True)
        return next((end_s for end_s, reached in ends if reached >= accuracy), inf)


def trained(
    name: str, run: EmulatedRun, task: TrainingTask, switch: str, results: Path, program: DataPlaneProgram = INA
) -> Result:
    """Train through the network of a run, whose problem is that of `training_problem`; return curve and verdict.

    The verdict is WRONG if losses or parameters are not those of a training in one process.
    """
    learner = DataParallel(task)
    outcome, folder = run_alone(name, replace(run, gradients=learner), switch, results, program)
    curve = curve_of(run.name, task, learner.history, outcome.measured)
    same = learner.history.equals(in_one_process(task.recipe, task.workers))
    return {
        "ended_s": json.dumps([0.0, *(epoch.ended_s for epoch in curve.epochs)]),
        "accuracy": json.dumps(curve.accuracy.tolist()),
        "verdict": outcome.verdict if same or outcome.verdict != VALID else Verdict.WRONG,
        "folder": folder,
    }


@cache
def in_one_process(recipe: Recipe, workers: int) -> History:
    """The same training without a network."""
    return train_alone(TrainingTask(recipe, workers))


PLACES = 24
"""The number of moments at which accuracies are drawn."""


def over_time(curves: Mapping[str, AccuracyCurve], title: str) -> Panel:
    """The panel of accuracies over time, until the slowest scheme has ended."""
    end_s = max(curve.ended_s[-1] for curve in curves.values())
    moments = [end_s * number / PLACES for number in range(PLACES + 1)]
    series = {name: [exact(curve.at(moment)) for moment in moments] for name, curve in curves.items()}
    return Panel(LINES, moments, series, "time (s)", "test accuracy", title)
