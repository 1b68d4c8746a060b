"""Runs the trials of a sweep without a kept result, and shows the time left; measures rows one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Generic, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from inakit.experiments.run.console import Lines, working
from inakit.experiments.sweeps.trial import Finished, Found, Kept, Trial, tried
from inakit.experiments.sweeps.trial_engines import Engine, surviving
from inakit.topo.live.signals import interrupts_held


class TimeLeft:
    """Estimates the time of the remaining trials on `width` processors; trials that must be alone take one."""

    def __init__(self, trials: Iterable[Trial], width: int) -> None:
        self.trials = {trial.key: trial for trial in trials}
        self.width = width
        self.left = Counter((trial.kind, trial.alone) for trial in self.trials.values())
        self.took_s: defaultdict[str, list[float]] = defaultdict(list)

    def note(self, finished: Finished) -> None:
        """Count a trial that is done."""
        trial = self.trials[finished.key]
        self.left[trial.kind, trial.alone] -= 1
        self.took_s[trial.kind].append(finished.seconds)

    @property
    def seconds(self) -> float | None:
        """The seconds left; None before the first trial is done. A kind without results counts as the mean trial."""
        if not self.took_s:
            return None
        every = fmean(seconds for kind in self.took_s.values() for seconds in kind)
        means = {kind: fmean(self.took_s[kind]) if kind in self.took_s else every for kind, _ in self.left}
        return sum(count * means[kind] / (1 if alone else self.width) for (kind, alone), count in self.left.items())

    @property
    def words(self) -> str:
        seconds = self.seconds
        return "" if seconds is None else f"about {in_words(seconds)} left"


def in_words(seconds: float) -> str:
    """A duration in words."""
    for unit, length_s in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length_s:
            return f"{seconds / length_s:.1f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def countdown(
    console: Console, title: str, trials: Iterable[Trial], done: Iterable[Finished], width: int
) -> Iterator[Callable[[Finished], None]]:
    """Show the progress of trials, of which some are `done` before; yield a function to call with each new one."""
    left = TimeLeft(trials, width)
    for finished in done:
        left.note(finished)
    with shown(console, title, left) as update:

        def note(finished: Finished) -> None:
            left.note(finished)
            update()

        yield note


@contextmanager
def shown(console: Console, title: str, left: TimeLeft) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal, elsewhere a line every ten seconds; yield a function that shows the state of `left`."""
    count = len(left.trials)
    if not console.is_terminal:
        with Lines(console, title) as lines:
            yield lambda: lines.report(1 - left.left.total() / count, left.words)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(title, total=count, completed=count - left.left.total(), words=left.words)
        yield lambda: progress.update(bar, completed=count - left.left.total(), words=left.words)


def run_trials(
    trials: Sequence[Trial], kept: Kept, engine: Engine, console: Console, title: str
) -> dict[str, Finished]:
    """Return the results of all trials by key, in their order; kept results are not measured again.

    A result of a worker that does not share this machine's folder is also kept here. An error that ends the sweep early
    gets a note with the number of trials that are done. Raises `OutputError`.
    """
    found = {trial.key: finished for trial in trials if (finished := kept.get(trial.key)) is not None}
    missing = [trial for trial in trials if trial.key not in found]
    if missing:
        try:
            with countdown(console, title, trials, found.values(), engine.width) as note:
                for finished in surviving(engine, missing, kept):
                    keep_here(finished, kept)
                    found[finished.key] = finished
                    note(finished)
        except BaseException as ended:
            ended.add_note(f"{title}: {len(found)} of {len(trials)} are kept, and the same command continues")
            raise
    return {trial.key: found[trial.key] for trial in trials}


def keep_here(finished: Finished, kept: Kept) -> None:
    """Keep a result that a worker kept on a disk of its own. Raises `OutputError`."""
    if not kept.path(finished.key).exists():
        with kept.claim(finished.key) as claim:
            if claim.finished is None:
                claim.keep(finished)


Asked = TypeVar("Asked")
Shown = TypeVar("Shown")


@dataclass(frozen=True)
class Row(Generic[Asked, Found]):
    """A request and its result, or the `error` that left no result."""

    asked: Asked
    found: Found | None
    error: str | None = None


def measure_rows(
    asked: Sequence[Asked],
    measure: Callable[[Asked], Found],
    words: Callable[[Found], str],
    show: Callable[[list[Row[Asked, Found]]], Shown],
    console: Console,
    keep: Callable[[list[Row[Asked, Found]]], None] = lambda _: None,
    *,
    waiting: Callable[[Console, str], AbstractContextManager[None]] = working,
) -> Shown:
    """Measure one row after another, print each in `words`, and `show` all at the end.

    `keep` gets all rows after each new one. An error leaves a row with its reason, and the next one is measured. If an
    interrupt or a full disk ends everything, the rows before it are still shown. `waiting` shows that a row is being
    measured.
    """
    rows: list[Row[Asked, Found]] = []
    try:
        for number, each in enumerate(asked, start=1):
            name = f"{number} of {len(asked)}: {each}"
            with waiting(console, name):
                found, error = tried(partial(measure, each))
            rows.append(Row(each, found, error))
            said = f"[bold red]failed[/]: {escape(error or '')}" if found is None else words(found)
            console.print(f"{escape(name)}: {said}", highlight=False, soft_wrap=True)
            keep(rows)
    finally:
        with interrupts_held():
            shown = show(rows)
    return shown
