"""The judge of statements: a paper's sentences about its figures, compared with our values; and tables of values.

This file alone decides whether a statement holds or differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from inakit.experiments.run.console import figures


def value_table(title: str, axis: str, places: Sequence[object], values: Mapping[str, Sequence[float | None]]) -> Table:
    """A table with a row for each name and a column for each place; `axis` is the heading of the names."""
    columns = (Column(axis, min_width=20), *figures(*map(str, places), no_wrap=True))
    table = Table(*columns, title=title, box=SIMPLE_HEAD, show_edge=False, padding=0)
    for name, found in values.items():
        table.add_row(name, *map(number, found))
    return table


def number(value: float | None) -> str:
    """A value with three significant digits, or all digits before the point; "-" for None."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def beside_paper(
    title: str | None,
    rows: Iterable[tuple[str, float | None, float] | tuple[str, float | None, float, float]],
    forms: Sequence[str] = ("", "", ""),
    heading: str = "",
) -> Table:
    """A table of the paper's values beside ours. A row has a name, the paper's value or None, ours, and our deviation.

    The deviation column is omitted if no row has a deviation. `forms` are the formats of values and of the ratio of
    ours to the paper's; an empty one stands for `number`.
    """
    every = list(rows)
    table = Table(heading, "paper", "ours", "ratio", *["sd"][: len(every[0]) - 3], title=title)
    for name, paper, ours, *spread in every:
        shown = zip((paper, ours, ours / paper if paper else None, *spread), (*forms, forms[1]), strict=False)
        table.add_row(name, *(formatted(value, form) for value, form in shown))
    return table


def formatted(value: float | None, form: str) -> str:
    """A value in a format such as `.2f`, or as `number` formats it if the format is empty; "-" for None."""
    return number(value) if value is None or not form else format(value, form)


ABOUT = 0.1
"""A value agrees with the paper's if it differs by at most this fraction of it."""
WAVER = 0.02
"""The tolerance of trends and orders: a rising curve may fall by this fraction in between, and neighbours in an order
may be swapped by up to this fraction."""


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, or an order of its curves, with our values and whether they confirm it."""

    says: str
    ours: str
    holds: bool


def is_about(says: str, value: float, paper: float) -> Statement:
    """The statement that a value is about the paper's, which holds within 10 %."""
    return Statement(says, f"{value:.3g}", abs(value / paper - 1) <= ABOUT)


def is_below(says: str, value: float, most: float) -> Statement:
    """The statement that a value is at most `most`."""
    return Statement(says, f"{value:.3g}", value <= most)


def is_above(says: str, value: float, least: float) -> Statement:
    """The statement that a value is at least `least`."""
    return Statement(says, f"{value:.3g}", value >= least)


def spans(says: str, values: Iterable[float], low: float, high: float) -> Statement:
    """The statement that values reach from `low` to `high`, which holds if both ends are within 10 %."""
    found = list(values)
    holds = abs(min(found) / low - 1) <= ABOUT and abs(max(found) / high - 1) <= ABOUT
    return Statement(says, f"{min(found):.3g} to {max(found):.3g}", holds)


def rises(says: str, values: Sequence[float]) -> Statement:
    """The statement that values rise from the first to the last; in between each may be 2 % below the one before."""
    steady = all(later >= (1 - WAVER) * earlier for earlier, later in pairwise(values))
    return Statement(says, shown(values), steady and values[-1] > values[0])


def falls(says: str, values: Sequence[float]) -> Statement:
    """The statement that values fall from the first to the last; in between each may be 2 % above the one before."""
    return Statement(says, shown(values), rises("", values[::-1]).holds)


def is_level(says: str, values: Sequence[float]) -> Statement:
    """The statement that values stay level, which holds if all are within 10 % of the middle between the extremes."""
    return Statement(says, shown(values), max(values) <= min(values) * (1 + ABOUT) / (1 - ABOUT))


def crosses(says: str, values: Sequence[float], other: Sequence[float]) -> Statement:
    """The statement that values begin below the other curve and end above it."""
    ours = f"{values[0]:.3g} to {values[-1]:.3g}, the other {other[0]:.3g} to {other[-1]:.3g}"
    return Statement(says, ours, values[0] < other[0] and values[-1] > other[-1])


Curves = Mapping[str, Sequence[float]]
"""The values of each line, by its name, from left to right."""


def in_order(says: str, highest_first: Sequence[str], curves: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """One statement for each pair of neighbours of an order: the first has the higher value at every place.

    A statement that differs names the places where the order is reversed by more than 2 %.
    """
    for upper, lower in pairwise(highest_first):
        yield is_over(f"{says}: {upper} above {lower}", (curves[upper], curves[lower]), places)


def is_highest(says: str, best: str, others: Iterable[str], curves: Curves, places: Sequence[object]) -> Statement:
    """The statement that at every place no other curve is above that of `best`."""
    rivals = [max(values) for values in zip(*(curves[other] for other in others), strict=True)]
    return is_over(f"{says}: {best} is highest", (curves[best], rivals), places)


def is_lowest(says: str, best: str, others: Iterable[str], curves: Curves, places: Sequence[object]) -> Statement:
    """The statement that at every place no other curve is below that of `best`."""
    rivals = [min(values) for values in zip(*(curves[other] for other in others), strict=True)]
    return is_over(f"{says}: {best} is lowest", (rivals, curves[best]), places, ours_first=False)


def is_over(
    says: str, pair: tuple[Sequence[float], Sequence[float]], places: Sequence[object], *, ours_first: bool = True
) -> Statement:
    """The statement that the first curve of a pair is nowhere more than 2 % below the second.

    With `ours_first` false our value, which is printed first, is the second curve's.
    """
    pairs = list(zip(places, *pair, strict=True))
    wrong = [found for found in pairs if found[1] < (1 - WAVER) * found[2]]
    if len(pairs) == 1:
        held = compared(pairs[0], ours_first)
    elif wrong:
        where = ", ".join(f"{str(found[0]).replace(chr(10), ' ')}: {compared(found, ours_first)}" for found in wrong)
        held = f"at {len(pairs) - len(wrong)} of {len(pairs)}; not at {where}"
    else:
        held = f"at all {len(pairs)}"
    return Statement(says, held, not wrong)


def compared(found: tuple[object, float, float], ours_first: bool) -> str:
    """Two values at a place, ours first: "5 to 7"."""
    _, first, second = found if ours_first else (found[0], found[2], found[1])
    return f"{first:.3g} to {second:.3g}"


def shown(values: Iterable[float]) -> str:
    """The values in a row, with three significant digits each."""
    return ", ".join(f"{value:.3g}" for value in values)


def table_of(statements: Iterable[Statement]) -> Table:
    """A row for each statement: the paper's sentence, our values, and *holds* or *differs*."""
    table = Table("the paper's text", "ours", "")
    for statement in statements:
        table.add_row(statement.says, statement.ours, "[green]holds[/]" if statement.holds else "[red]differs[/]")
    return table
