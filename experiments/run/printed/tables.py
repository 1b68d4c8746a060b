"""Tables whose first columns are names that stay whole at any width, also without a terminal (80 columns)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

NARROW: dict[str, Any] = {"box": SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
"""How Rich is to make a table of many columns: a line below the headings, and one space between columns."""
CUT = "…"
"""What Rich puts where it cuts a cell."""


@dataclass(frozen=True)
class NamedTable:
    """A table whose first columns are names. Where it is too wide each name has a line of its own above its figures.

    A row without names belongs to the row before it. All cells are strings.
    """

    table: Table
    names: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if self.fits(console, options):
            yield self.table
            return
        yield self.part([], show_header=True)
        for name, rows in self.groups():
            yield Text(name, style="bold", overflow="fold")
            yield self.part(rows, show_header=False)
            yield Text()
        if self.table.caption:
            yield self.table.caption

    def fits(self, console: Console, options: ConsoleOptions) -> bool:
        """Whether the table fits the console, so that no cell is cut and no name is broken."""
        lines = console.render_lines(self.table, options, pad=False)
        text = "\n".join("".join(segment.text for segment in line) for line in lines)
        names = (plain(str(cell)) for column in self.table.columns[: self.names] for cell in column.cells)
        return CUT not in text and all(name in text for name in names)

    def groups(self) -> list[tuple[str, list[int]]]:
        """Every name with the numbers of the rows that belong to it, in order."""
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
        """A table of some rows without their names, whose columns are as wide as those of the whole table."""
        whole = self.table
        part = Table(
            title=whole.title if show_header else None, box=whole.box, show_header=show_header,
            show_edge=False, pad_edge=whole.pad_edge, padding=whole.padding,
        )  # fmt: skip
        figures = whole.columns[self.names :]
        for column in figures:
            width = max(width_of(str(cell)) for cell in (column.header, *column.cells))
            part.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, min_width=width)
        cells = [list(column.cells) for column in figures]
        for row in rows:
            part.add_row(*(column[row] for column in cells))
        return part


def plain(cell: str) -> str:
    """A cell without its markup."""
    return Text.from_markup(cell).plain


def width_of(cell: str) -> int:
    """How many columns of the terminal a cell takes without being wrapped."""
    return max((cell_len(line) for line in plain(cell).splitlines()), default=0)
