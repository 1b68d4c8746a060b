"""Progress that a person can follow: a bar or a spinner on a terminal, elsewhere a line in words every ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 10.0
"""Seconds between two lines where there is no terminal."""

Report = Callable[[float], None]
"""Takes the fraction of the work that is done, from 0 to 1."""


Stage = Callable[[str], AbstractContextManager[Report]]
"""Shows the progress of a part of some work; the part is named in a few words."""


def unseen(part: str) -> AbstractContextManager[Report]:  # noqa: ARG001, it shows nothing
    """A stage that shows nothing."""
    return nullcontext(lambda _: None)


@contextmanager
def bar(console: Console, title: str) -> Iterator[Report]:
    """Show the progress of the work in the block; yields the function that takes the fraction done."""
    if not console.is_terminal:
        with Lines(console, title) as lines:
            yield lines.report
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda fraction: progress.update(task, completed=fraction)


@contextmanager
def working(console: Console, title: str) -> Iterator[None]:
    """Show that the work in the block goes on, if its duration is not known."""
    if console.is_terminal:
        with console.status(title):
            yield
    else:
        with Lines(console, title):
            yield


class Lines:
    """Prints a line every `LINE_EVERY_S` seconds until the block ends; work that is over sooner prints nothing."""

    def __init__(self, console: Console, title: str) -> None:
        self.console, self.title = console, title
        self.fraction: float | None = None
        self.more = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self.began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def report(self, fraction: float, more: str = "") -> None:
        """Note the fraction done, and what `more` there is to say, for the next line."""
        self.fraction, self.more = fraction, more

    def _tell(self) -> None:
        while not self._over.wait(LINE_EVERY_S):
            done = "" if self.fraction is None else f" {self.fraction:.0%} done"
            more = self.more and f", {self.more}"
            line = f"{self.title}:{done} after {time.monotonic() - self.began_s:.0f} s{more}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
