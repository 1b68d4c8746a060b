"""Rows of a table that are measured one after another in this process: however that ends, those that came are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from rich.console import Console
from rich.markup import escape

from inakit.experiments.run.printed.progress import working
from inakit.experiments.sweeps.one_trial import Found, tried
from inakit.topo.live.signals import interrupts_held

Asked = TypeVar("Asked")
Shown = TypeVar("Shown")


@dataclass(frozen=True)
class Row(Generic[Asked, Found]):
    """What was asked, and what was found; or the `error` for which there is nothing."""

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
    """Measure one row after another, print each in `words`, and `show` all in the end.

    `keep` gets all rows after each new one. An error leaves a row that says why, and the next one is measured. Where
    something ends everything, such as Ctrl-C or a full disk, the rows that came before it are still shown.
    `waiting` shows that a row is being measured, for those that do not show it themselves.
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
