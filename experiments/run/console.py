"""Terminal output of a run: tables that stay readable at any width, and progress.

The names in the first columns of a table are never broken. Without a terminal the width is 80 columns. On a narrower
terminal, a table that does not fit is printed row by row, one line per cell. Progress is a bar or a spinner on a
terminal, and a line of text every ten seconds elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

NARROW: dict[str, Any] = {"box": SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
"""Rich's options for a table with many columns: a line below the headings, and one space between columns."""
USUAL_WIDTH = 80
"""The usual width of a terminal in columns. Tables are designed for at least this width."""
UNLIMITED = 10_000
CUT = "…"
"""The character that Rich puts at the end of a cell that it cuts."""


def names(*headings: str) -> list[Column]:
    """Columns of names, which are never broken."""
    return [Column(heading, no_wrap=True) for heading in headings]


def figures(*headings: str, no_wrap: bool = False) -> list[Column]:
    """Columns of figures, which are aligned to the right."""
    return [Column(heading, justify="right", no_wrap=no_wrap) for heading in headings]


@dataclass(frozen=True)
class NamedTable:
    """A table whose first columns are names. If it is too wide, each name gets a line of its own above its figures.

    A row without names belongs to the row before it. All cells are strings.
    """

    table: Table
    names: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if self.fits(console, options):
            yield self.table
            return
        heading = self.part([], show_header=True)
        wide = console.measure(heading, options=options.update(max_width=UNLIMITED)).maximum > options.max_width
        if options.max_width < USUAL_WIDTH and (wide or not self.names):
            yield from rows_of(self.table)
            return
        yield heading
        for name, rows in self.groups():
            yield Text(name, style="bold", overflow="fold")
            yield self.part(rows, show_header=False)
            yield Text()
        if self.table.caption:
            yield self.table.caption

    def fits(self, console: Console, options: ConsoleOptions) -> bool:
        """Whether the table fits the console: no cell is cut and no name (in a narrow console: no word) is broken."""
        lines = console.render_lines(self.table, options, pad=False)
        text = "\n".join("".join(segment.text for segment in line) for line in lines)
        names = [plain(str(cell)) for column in self.table.columns[: self.names] for cell in column.cells]
        if options.max_width < USUAL_WIDTH:
            cells = (plain(str(cell)) for column in self.table.columns for cell in (column.header, *column.cells))
            names += (word for cell in cells for word in cell.split())
        return CUT not in text and all(name in text for name in names)

    def groups(self) -> list[tuple[str, list[int]]]:
        """The names in order, each with the numbers of its rows."""
        found: list[tuple[str, list[int]]] = []
        for number, cells in enumerate(
            zip(*(column.cells for column in self.table.columns[: self.names]), strict=True)
        ):
            name = "  ".join(plain(str(cell)) for cell in cells if cell)
            if name or not found:
                found.append((name, []))
            found[-1][1].append(number)
        return found

    def part(self, rows: list[int], *, show_header: bool) -> Table:
        """A table of some rows without their names, with the column widths of the whole table."""
        whole = self.table
        part = Table(
            title=whole.title if show_header else None, box=whole.box, show_header=show_header,
            show_edge=False, pad_edge=whole.pad_edge, padding=whole.padding,
        )  # fmt: skip
        figures = whole.columns[self.names :]
        for column in figures:
            texts = [plain(str(cell)) for cell in (column.header, *column.cells)]
            width = max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
            part.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, min_width=width)
        cells = [list(column.cells) for column in figures]
        for row in rows:
            part.add_row(*(column[row] for column in cells))
        return part


class Screen(Console):
    """A console whose tables stay readable on a terminal that is narrower than usual."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, but print tables that would be cut row by row."""
        super().print(*(NamedTable(each, names=0) if self.cuts(each) else each for each in objects), **options)

    def cuts(self, each: Any) -> bool:
        """Whether `each` is a table that does not fit a terminal that is narrower than usual."""
        narrow = self.width < USUAL_WIDTH and isinstance(each, Table)
        return narrow and not NamedTable(each, names=0).fits(self, self.options)


def rows_of(table: Table) -> Iterator[RenderableType]:
    """Yield a table as lines: for each row a line per cell, with the column's heading, and an empty line."""
    if table.title:
        yield table.title
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            heading = " ".join(plain(str(column.header)).split())
            if text := plain(str(cell)):
                yield Text(f"{heading}: {text}" if heading else text, overflow="fold")
        yield Text()
    if table.caption:
        yield table.caption


def plain(cell: str) -> str:
    return Text.from_markup(cell).plain


LINE_EVERY_S = 10.0
"""Seconds between two lines of progress without a terminal."""

Report = Callable[[float], None]
"""A function that takes the fraction of the work that is done, from 0 to 1."""


Stage = Callable[[str], AbstractContextManager[Report]]
"""A function that takes the name of a part of the work and shows the part's progress in a context."""


def unseen(part: str) -> AbstractContextManager[Report]:  # noqa: ARG001, it shows nothing
    """A stage that shows nothing."""
    return nullcontext(lambda _: None)


@contextmanager
def bar(console: Console, title: str) -> Iterator[Report]:
    """Show the progress of the work in the block. Yield the function that takes the fraction done."""
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
    """Show that the work in the block, whose duration is unknown, is going on."""
    if console.is_terminal:
        with console.status(title):
            yield
    else:
        with Lines(console, title):
            yield


class Lines:
    """Prints a line every `LINE_EVERY_S` seconds until the block ends. Shorter work prints nothing."""

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
        """Set the fraction done, and the text `more` to append, for the next line."""
        self.fraction, self.more = fraction, more

    def _tell(self) -> None:
        while not self._over.wait(LINE_EVERY_S):
            done = "" if self.fraction is None else f" {self.fraction:.0%} done"
            more = self.more and f", {self.more}"
            line = f"{self.title}:{done} after {time.monotonic() - self.began_s:.0f} s{more}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
