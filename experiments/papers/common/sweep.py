"""Sweeps that can be interrupted: every result is a line of JSON, and results that are kept are not computed again."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.papers.common.estimates import Estimate, estimate
from topo.errors import writing
from traffic.measure.verdict import VALID

Value = str | int | float
Trial = Mapping[str, Value]
"""One measurement that is asked for: {"network": "fattree", "scheme": "aro", "workers": 90, "seed": 3}."""
Result = Mapping[str, Value]
"""What a measurement gives: {"rate_bps": 5.2e9, "seconds": 0.01}."""


@dataclass(frozen=True)
class Measured:
    """The results of a sweep, by `name_of` their trials."""

    results: dict[str, Result]

    def result(self, trial: Trial) -> Result:
        """The result of a trial of the sweep."""
        return self.results[name_of(trial)]

    def of(self, key: str, trials: Iterable[Trial]) -> list[float]:
        """The values of `key`, in the order of the trials."""
        return [float(self.result(trial)[key]) for trial in trials]

    def mean(self, key: str, trials: Iterable[Trial]) -> float:
        """The mean of `key` over the trials."""
        return fmean(self.of(key, trials))

    def estimate(self, key: str, trials: Iterable[Trial]) -> Estimate:
        """The mean of `key` over the trials, with its interval."""
        return estimate(self.of(key, trials))


def sweep(
    trials: Iterable[Trial],
    measure: Callable[[Trial], Result],
    file: Path,
    console: Console,
    processes: int = 1,
) -> Measured:
    """Measure the trials that `file` does not contain, and add each result to it at once; the results of all trials.

    A result whose `verdict` is not VALID does not count, and is measured again in the next sweep.
    """
    wanted = {name_of(trial): trial for trial in trials}
    known = dict(read(file))
    missing = [trial for name, trial in wanted.items() if name not in known]
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with writing(file), Progress(*columns, console=console, transient=True) as progress, file.open("a") as lines:
        if lines.tell() and not file.read_bytes().endswith(b"\n"):
            lines.write("\n")  # behind what an interruption cut off
        measured = zip(missing, in_order(measure, missing, processes), strict=True)
        for trial, result in progress.track(measured, total=len(missing), description=file.stem):
            known[name_of(trial)] = result
            lines.write(json.dumps({"trial": trial, "result": result}) + "\n")
            lines.flush()
    return Measured({name: known[name] for name in wanted})


def in_order(measure: Callable[[Trial], Result], trials: Sequence[Trial], processes: int) -> Iterator[Result]:
    """The result of each trial, in order; with several processes `measure` has to be a function of a module."""
    if processes == 1 or len(trials) < processes:
        yield from map(measure, trials)
        return
    with get_context("spawn").Pool(processes, initializer=leave_interrupts_to_the_first) as pool:
        yield from pool.imap(measure, trials)


def leave_interrupts_to_the_first() -> None:
    """Ignore Ctrl-C in a process of a pool: the process that started the pool ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def name_of(trial: Trial) -> str:
    """A trial as a text that is the same for equal trials."""
    return json.dumps(trial, sort_keys=True)


def read(file: Path) -> Iterator[tuple[str, Result]]:
    """The names and results of the valid trials in a file; a line that an interruption cut off is left out."""
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if entry["result"].get("verdict", VALID) == VALID:
            yield name_of(entry["trial"]), entry["result"]
