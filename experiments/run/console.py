"""Terminal output of a run: tables that stay readable at any width, or as JSON or CSV, and progress.

The names in the first columns of a table are never broken. On a terminal that is narrower than usual, a table that does
not fit is printed row by row, one line per cell; without a terminal nothing is cut. Progress is a bar or a spinner on a
terminal, and a line of text every ten seconds elsewhere.

A cell can be a `Amount`: the table then shows its column in the unit that fits its largest value, and JSON and CSV
have the exact values in bit/s, bytes and seconds.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import floor, log10
from types import TracebackType
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from inakit.topo.files.quantities import in_words, shown_unit

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


class Amount(str):
    """A cell with a value in bit/s, bytes or seconds."""

    value: float
    unit: str

    def __new__(cls, value: float, unit: str) -> Self:
        """The cell, whose text alone is the value in the unit that fits it."""
        cell = super().__new__(cls, in_words(value, unit))
        cell.value, cell.unit = value, unit
        return cell


def figure_cell(value: float | None, unit: str) -> str:
    """The cell of a figure in bit/s, bytes, seconds or, for "", without a unit; a dash if there is none."""
    return "-" if value is None else Amount(value, unit) if unit else f"{value:.2f}"


DIGITS = {"bit/s": 5, "bytes": 4, "s": 4}
"""The significant digits of the smallest value of a column."""
MOST_DECIMALS = 3


def in_one_unit(table: Table, *, shared: bool = False) -> Table:
    """Write the amounts of each column in the unit that fits the largest, and name it in the heading.

    With `shared` all columns have one unit.
    """
    columns = {id(column): [each for each in column.cells if isinstance(each, Amount)] for column in table.columns}
    of_all = [each for held in columns.values() for each in held]
    for column in table.columns:
        held = of_all if shared and columns[id(column)] else columns[id(column)]
        if not held:
            continue
        unit, sizes = held[0].unit, [abs(each.value) for each in held if each.value]
        factor, name = shown_unit(unit, sizes)
        whole = floor(log10(min(sizes) / factor)) if sizes else DIGITS[unit]
        decimals = min(MOST_DECIMALS, max(0, DIGITS[unit] - 1 - whole))
        column._cells[:] = [
            f"{each.value / factor:,.{decimals}f}" if isinstance(each, Amount) else each for each in column._cells
        ]
        heading = str(column.header)
        column.header = f"{heading}{'' if heading.endswith(chr(10)) else ' '}({name})"
    return table


def listing(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, named: int = 0) -> Table:
    """A table of texts without frame, whose cells are shown as they are; the first `named` columns are never broken."""
    table = Table(
        *(Column(heading, no_wrap=number < named) for number, heading in enumerate(headings)),
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for row in rows:
        table.add_row(*map(escape, row))
    return table


@dataclass(frozen=True)
class Detail:
    """A table that a `Screen` prints only if all tables are asked for."""

    table: NamedTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self.table


@dataclass(frozen=True)
class NamedTable:
    """A table whose first columns are names. If it is too wide, each name gets a line of its own above its figures.

    A row without names belongs to the row before it. All cells are strings. `one_unit`: all amounts have the same unit.
    """

    table: Table
    names: int = 1
    one_unit: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        in_one_unit(self.table, shared=self.one_unit)
        if self.fits(console, options):
            yield self.table
            return
        heading = self.part([], show_header=True)
        wide = console.measure(heading, options=options.update(max_width=UNLIMITED)).maximum > options.max_width
        if wide or not self.names:
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


FORMATS = ("table", "json", "csv")


@dataclass
class Printing:
    """How the tables of a command are printed, and what is not printed yet."""

    format: str = FORMATS[0]
    quiet: bool = False
    details: bool = False
    tables: list[dict[str, Any]] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    withheld: int = 0

    def end(self) -> None:
        """Print the tables as JSON or CSV, or how many more there are."""
        if self.format == "json":
            print(json.dumps({"tables": self.tables} | self.document, indent=1, allow_nan=False))
        for number, table in enumerate(self.tables if self.format == "csv" else ()):
            if len(self.tables) > 1:
                print("\n" * (number > 0) + f"# {table['title']}" * bool(table["title"]))
            heads = dict.fromkeys(key for row in table["rows"] for key in row)
            csv.DictWriter(sys.stdout, heads, lineterminator="\n").writeheader()
            csv.DictWriter(sys.stdout, heads, lineterminator="\n").writerows(table["rows"])
        if self.withheld and not self.quiet:
            print(f"--details prints {self.withheld} more {'table' if self.withheld == 1 else 'tables'}")


PRINTING = [Printing()]
"""How the running command prints, at the end of the list."""


@contextmanager
def printing(how: Printing) -> Iterator[None]:
    """Print tables in the block so."""
    PRINTING.append(how)
    try:
        yield
    finally:
        PRINTING.pop()


def drawn() -> bool:
    """Whether the running command may draw a bar on its output."""
    return not PRINTING[-1].quiet and PRINTING[-1].format == FORMATS[0]


class Screen(Console):
    """A console whose tables are never cut, and which prints as the options of its command say."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"emoji": False} | options)
        if not self.is_terminal and "COLUMNS" not in os.environ and "width" not in options:
            self.width = UNLIMITED

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, but print tables that would be cut row by row, or keep them for JSON or CSV."""
        how, (first, *more) = PRINTING[-1], objects or ("",)
        table = first.table if isinstance(first, Detail) else first
        if isinstance(table, NamedTable | Table):
            self.show(table, how, **options, withheld=isinstance(first, Detail) and not how.details)
        elif not how.quiet:
            aside = how.format != FORMATS[0] and not self.stderr
            Console.print(Console(stderr=True) if aside else self, first, *more, **options)

    def show(self, table: NamedTable | Table, how: Printing, *, withheld: bool, **options: Any) -> None:
        """Print a table or, in another format, keep it. JSON has all tables, also those that are withheld."""
        if how.format == "json" or (how.format == "csv" and not withheld):
            how.tables.append(data_of(table))
        elif withheld:
            how.withheld += how.format == FORMATS[0]
        elif isinstance(table, Table) and self.cuts(in_one_unit(table)):
            super().print(NamedTable(table, names=0), **options)
        else:
            super().print(table, **options)

    def row(self, line: str, cells: Mapping[str, Any], title: str = "") -> None:
        """Print a row of a table that is shown as lines, at once or, in another format, with the table.

        A row without a line is in the other formats alone.
        """
        how = PRINTING[-1]
        if how.format == FORMATS[0]:
            if line:
                super().print(line, highlight=False, markup=False, soft_wrap=True)
            return
        if not how.tables or how.tables[-1]["title"] != title:
            how.tables.append({"title": title, "caption": "", "rows": []})
        how.tables[-1]["rows"].append(dict(cells))

    def as_json(self, document: Mapping[str, Any]) -> None:
        """Have JSON name these values beside the tables."""
        PRINTING[-1].document.update(document)

    def cuts(self, table: Table) -> bool:
        """Whether a table does not fit the terminal."""
        return not NamedTable(table, names=0).fits(self, self.options)


def data_of(table: NamedTable | Table) -> dict[str, Any]:
    """A table as JSON has it: title, caption, rows. A name that a row lacks is that of the row above."""
    plain_table = table.table if isinstance(table, NamedTable) else table
    named = [column.no_wrap and column.justify == "left" for column in plain_table.columns]
    heads: list[str] = []
    for column in plain_table.columns:
        quantity = next((cell for cell in column.cells if isinstance(cell, Amount)), None)
        key = key_of(f"{plain(str(column.header))} {quantity.unit if quantity else ''}") or "row"
        heads.append(key if key not in heads else f"{key}_{len(heads) + 1}")
    rows: list[dict[str, Any]] = []
    for cells in zip(*(column.cells for column in plain_table.columns), strict=True):
        row = dict(zip(heads, map(value_of, cells), strict=True))
        for head in heads[: (*named, False).index(False)] if rows else ():
            row[head] = rows[-1][head] if row[head] == "" else row[head]
        rows.append(row)
    title, caption = (plain(str(each)) if each else "" for each in (plain_table.title, plain_table.caption))
    return {"title": title, "caption": caption, "rows": rows}


def key_of(heading: str) -> str:
    """A heading as a key: "sending rate bit/s" is `sending_rate_bps`."""
    words = heading.lower().replace("-\n", "").replace("bit/s", "bps").replace("µ", "u").replace("%", "percent")
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def value_of(cell: Any) -> Any:
    """A cell's number, exact if it is a quantity; else its text."""
    if isinstance(cell, Amount):
        return cell.value
    text = plain(str(cell))
    number = text.replace(",", "")
    if re.fullmatch(r"[+-]?\d+", number):
        return int(number)
    return float(number) if re.fullmatch(r"[+-]?\d+\.\d+", number) else text


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
    if PRINTING[-1].quiet:
        yield lambda _: None
        return
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
    if PRINTING[-1].quiet:
        yield
    elif console.is_terminal:
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
