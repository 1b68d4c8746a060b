"""The bar of a sweep: how many trials are done, and the time left by how long trials of the same kinds took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from inakit.experiments.run.printed.progress import Lines
from inakit.experiments.sweeps.kept import Finished
from inakit.experiments.sweeps.one_trial import Trial


class TimeLeft:
    """Estimates how long the trials that are left take on `width` processors; those to be alone take one."""

    def __init__(self, trials: Iterable[Trial], width: int) -> None:
        self.trials = {trial.key: trial for trial in trials}
        self.width = width
        self.left = Counter((trial.kind, trial.alone) for trial in self.trials.values())
        self.took_s: defaultdict[str, list[float]] = defaultdict(list)

    def note(self, finished: Finished) -> None:
        """Note a trial that is done."""
        trial = self.trials[finished.key]
        self.left[trial.kind, trial.alone] -= 1
        self.took_s[trial.kind].append(finished.seconds)

    @property
    def seconds(self) -> float | None:
        """The seconds left; None before the first trial is done. A kind that is new takes as long as the mean trial."""
        if not self.took_s:
            return None
        every = fmean(seconds for kind in self.took_s.values() for seconds in kind)
        means = {kind: fmean(self.took_s[kind]) if kind in self.took_s else every for kind, _ in self.left}
        return sum(count * means[kind] / (1 if alone else self.width) for (kind, alone), count in self.left.items())

    @property
    def words(self) -> str:
        """The time left in words."""
        seconds = self.seconds
        return "" if seconds is None else f"about {in_words(seconds)} left"


def in_words(seconds: float) -> str:
    """A duration as a person would say it."""
    for unit, length_s in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length_s:
            return f"{seconds / length_s:.1f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def countdown(
    console: Console, title: str, trials: Iterable[Trial], done: Iterable[Finished], width: int
) -> Iterator[Callable[[Finished], None]]:
    """Show the progress of trials, of which some are `done` before; yields what takes each one that is done then."""
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
    """A bar on a terminal, elsewhere a line every ten seconds; yields what shows the state of `left`."""
    count = len(left.trials)
    if not console.is_terminal:
        with Lines(console, title) as lines:
            yield lambda: lines.report(1 - left.left.total() / count, left.words)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(title, total=count, completed=count - left.left.total(), words=left.words)
        yield lambda: progress.update(bar, completed=count - left.left.total(), words=left.words)
