"""The overhead of the engine of sweeps: the time of many short trials compared with the time that they compute."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
from rich.console import Console
from rich.table import Table

from inakit.experiments.run.console import figures
from inakit.experiments.sweeps.run_trials import run_trials
from inakit.experiments.sweeps.trial import Given, Kept, Row, Trial, key_of
from inakit.experiments.sweeps.trial_engines import Loky

TRIALS, TRIAL_S = 1000, 0.010


@dataclass(frozen=True)
class Added:
    """The time `took_s` of a sweep of `trials` trials of `trial_s` seconds each on `processors` processes."""

    trials: int
    trial_s: float
    took_s: float
    processors: int

    @property
    def share(self) -> float:
        """The overhead as a share of the time that the trials compute on all processors."""
        return self.took_s * self.processors / (self.trials * self.trial_s) - 1


def computing(given: Given) -> Row:
    """Compute for the given seconds of this processor's time."""
    ends_s = time.process_time() + given["seconds"]
    while time.process_time() < ends_s:
        pass
    return {"process": os.getpid()}


def bench_sweep(trials: int = TRIALS, trial_s: float = TRIAL_S) -> Added:
    """Run many short trials on all processors; time from the start of the processes to the results on disk."""
    wanted = [Trial(key_of(number=number), computing, {"seconds": trial_s}) for number in range(trials)]
    engine = Loky(joblib.cpu_count())
    with TemporaryDirectory() as folder:
        started_s = time.perf_counter()
        run_trials(wanted, Kept(Path(folder)), engine, Console(quiet=True), "short trials")
        return Added(trials, trial_s, time.perf_counter() - started_s, engine.width)


def sweep_table(added: Added) -> Table:
    """One row: the trials, the time that they took, and the overhead of the engine."""
    headings = ("trials", "each (ms)", "processes", "took (s)", "added by the engine")
    table = Table(*figures(*headings), title="Engine of studies and figures")
    cells = (str(added.trials), f"{1e3 * added.trial_s:g}", str(added.processors), f"{added.took_s:.2f}")
    table.add_row(*cells, f"{added.share:.1%}")
    return table
