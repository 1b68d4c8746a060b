"""Tables of a figure's values: a row for each line, a column for each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table


def table_of(title: str, axis: str, places: Sequence[object], values: Mapping[str, Sequence[float | None]]) -> Table:
    """A table with a row for each name and a column for each place; `axis` is the heading of the names."""
    table = Table(title=title, box=SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column(axis, min_width=20)
    for place in places:
        table.add_column(str(place), justify="right", no_wrap=True)
    for name, found in values.items():
        table.add_row(name, *map(number, found))
    return table


def number(value: float | None) -> str:
    """A value with three digits, or all that it has before the point; "-" for None."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
