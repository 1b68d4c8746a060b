"""The judge of statements: a paper's sentences about its figures, compared with our values; and tables of values.

This file alone decides whether a statement holds or differs. A number agrees with the paper's within 10 %. Trends and
orders need more than noise: a difference counts if it exceeds 2 % and the 95 % interval of the ratio, so that equal
curves are in no order and a level curve does not rise. Values are numbers, or estimates with their draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from inakit.experiments.papers.common.estimates import Estimate, exact, ratio_of_means
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
"""Two values are equal if they differ by at most this fraction; a trend or an order needs more."""
ADVANTAGE = 0.5
"""An advantage agrees with the paper's if it is at least this share of it: 7 % for 13.4 %."""

Point = float | Estimate
"""A value of a curve."""
Points = Sequence[Point]
"""The values of a curve, from left to right."""
Lines = Mapping[str, Points]
"""Curves by name."""
Curves = Mapping[str, Sequence[float]]
"""The values of each line, by its name, from left to right, without their intervals."""


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, or an order of its curves, with our values and whether they confirm it.

    `paper` is the paper's value as it is printed. `claim` is the name of its entry in the ledger, if it has one, and
    `value` and `interval` are our number for it, where it is about one number.
    """

    says: str
    ours: str
    holds: bool
    paper: str = ""
    claim: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None


def mean(point: Point) -> float:
    return point.value if isinstance(point, Estimate) else float(point)


def ratio(above: Point, below: Point) -> Estimate:
    """The ratio of two points, with the interval of paired draws if both have the same number of several draws."""
    if mean(below) == 0:
        return exact(1.0 if mean(above) == 0 else inf)
    if isinstance(above, Estimate) and isinstance(below, Estimate) and len(above.draws) == len(below.draws) > 1:
        return ratio_of_means(above.draws, below.draws)
    return exact(mean(above) / mean(below))


def exceeds(above: Point, below: Point) -> bool:
    """Whether the first point is above the second by more than noise."""
    found = ratio(above, below)
    return found.value > 1 + WAVER and (found.low is None or found.low > 1)


def is_about(says: str, value: Point, paper: float) -> Statement:
    """The statement that a value is about the paper's, which holds within 10 %."""
    return of_number(says, value, agrees(mean(value), paper), number(paper))


def agrees(value: float, paper: float) -> bool:
    """Whether a value is within 10 % of the paper's."""
    return abs(value - paper) <= ABOUT * abs(paper)


def is_advantage(says: str, found: Point, paper: float) -> Statement:
    """The statement that a ratio of two schemes is about the paper's.

    It holds if the ratio is within 10 % of the paper's, on the same side of 1 beyond its interval, and its distance
    from 1 is at least half of the paper's.
    """
    value = mean(found)
    size = (value - 1) * (1 if paper >= 1 else -1)
    beyond = not isinstance(found, Estimate) or found.low is None or found.high is None
    beyond = beyond or (found.low > 1 if paper >= 1 else found.high < 1)  # type: ignore[union-attr,operator]
    holds = agrees(value, paper) and size > 0 and size >= ADVANTAGE * abs(paper - 1) and beyond
    return of_number(says, found, holds, number(paper))


def is_below(says: str, value: Point, most: float) -> Statement:
    """The statement that a value is at most `most`."""
    return of_number(says, value, mean(value) <= most, f"at most {number(most)}")


def are_below(says: str, values: Points, most: Sequence[float]) -> Statement:
    """The statement that each value is at most its limit, with three decimals."""
    holds = all(mean(value) <= limit for value, limit in zip(values, most, strict=True))
    ours = ", ".join(f"{mean(value):.3f}" for value in values)
    return Statement(says, ours, holds, f"at most {', '.join(f'{limit:g}' for limit in most)}")


def is_above(says: str, value: Point, least: float) -> Statement:
    """The statement that a value is at least `least`."""
    return of_number(says, value, mean(value) >= least, f"at least {number(least)}")


def of_number(says: str, value: Point, holds: bool, paper: str) -> Statement:
    low, high = (value.low, value.high) if isinstance(value, Estimate) else (None, None)
    interval = None if low is None or high is None else (low, high)
    ours = number(mean(value)) + (f" [{number(interval[0])}, {number(interval[1])}]" if interval else "")
    return Statement(says, ours, holds, paper, value=mean(value), interval=interval)


def spans(says: str, values: Iterable[Point], low: float, high: float) -> Statement:
    """The statement that values reach from `low` to `high`, which holds if both ends are within 10 %."""
    found = list(map(mean, values))
    holds = agrees(min(found), low) and agrees(max(found), high)
    return Statement(says, f"{number(min(found))} to {number(max(found))}", holds, f"{number(low)} to {number(high)}")


def rises(says: str, values: Points) -> Statement:
    """The statement that values rise: the last exceeds the first by more than noise, and none falls by more."""
    return Statement(says, shown(values), is_rising(values))


def falls(says: str, values: Points) -> Statement:
    """The statement that values fall: the first exceeds the last by more than noise, and none rises by more."""
    return Statement(says, shown(values), is_rising(values[::-1]))


def is_rising(values: Points) -> bool:
    """Whether values rise by more than noise from the first to the last, and fall by more nowhere."""
    return exceeds(values[-1], values[0]) and not any(exceeds(earlier, later) for earlier, later in pairwise(values))


def is_level(says: str, values: Points) -> Statement:
    """The statement that values stay level, which holds if all are within 10 % of the middle between the extremes."""
    found = list(map(mean, values))
    return Statement(says, shown(values), max(found) <= min(found) * (1 + ABOUT) / (1 - ABOUT))


def crosses(says: str, values: Points, other: Points) -> Statement:
    """The statement that values begin below the other curve and end above it, each by more than noise."""
    ours = f"{shown(values[:1])} to {shown(values[-1:])}, the other {shown(other[:1])} to {shown(other[-1:])}"
    return Statement(says, ours, exceeds(other[0], values[0]) and exceeds(values[-1], other[-1]))


def in_order(says: str, highest_first: Sequence[str], curves: Lines, places: Sequence[object]) -> Iterator[Statement]:
    """One statement for each pair of neighbours of an order: the first is over the second, as `is_over` judges it."""
    for upper, lower in pairwise(highest_first):
        yield is_over(f"{says}: {upper} above {lower}", (curves[upper], curves[lower]), places)


def is_highest(says: str, best: str, others: Iterable[str], curves: Lines, places: Sequence[object]) -> Statement:
    """The statement that the curve of `best` is over the highest of the others."""
    rivals = [max(points, key=mean) for points in zip(*(curves[other] for other in others), strict=True)]
    return is_over(f"{says}: {best} is highest", (curves[best], rivals), places)


def is_lowest(says: str, best: str, others: Iterable[str], curves: Lines, places: Sequence[object]) -> Statement:
    """The statement that the lowest of the other curves is over that of `best`."""
    rivals = [min(points, key=mean) for points in zip(*(curves[other] for other in others), strict=True)]
    return is_over(f"{says}: {best} is lowest", (rivals, curves[best]), places, ours_first=False)


def is_over(says: str, pair: tuple[Points, Points], places: Sequence[object], *, ours_first: bool = True) -> Statement:
    """The statement that the first curve of a pair is over the second.

    It holds if the first exceeds the second by more than noise at more than half of the places, and the second exceeds
    the first nowhere. With `ours_first` false our value, which is printed first, is the second curve's.
    """
    pairs = list(zip(places, *pair, strict=True))
    over = [found for found in pairs if exceeds(found[1], found[2])]
    wrong = [found for found in pairs if exceeds(found[2], found[1])]
    equal = len(pairs) - len(over) - len(wrong)
    if len(pairs) == 1:
        held = compared(pairs[0], ours_first)
    else:
        where = ", ".join(f"{str(found[0]).replace(chr(10), ' ')}: {compared(found, ours_first)}" for found in wrong)
        held = f"at all {len(pairs)}" if len(over) == len(pairs) else f"at {len(over)} of {len(pairs)}"
        held += f"; equal at {equal}" if equal else ""
        held += f"; not at {where}" if wrong else ""
    return Statement(says, held, not wrong and 2 * len(over) > len(pairs))


def compared(found: tuple[object, Point, Point], ours_first: bool) -> str:
    """Two values at a place, ours first: "5 to 7"."""
    _, first, second = found if ours_first else (found[0], found[2], found[1])
    return f"{mean(first):.3g} to {mean(second):.3g}"


def is_true(says: str, holds: bool) -> Statement:
    """The statement that a fact is true."""
    return Statement(says, "yes" if holds else "no", holds)


def all_of(says: str, each: Iterable[Statement]) -> Statement:
    """The statement that all of some statements hold; our values are theirs, each after what it says."""
    found = list(each)
    ours = "; ".join(f"{one.says}: {one.ours}" if one.says else one.ours for one in found)
    return Statement(says, ours, all(one.holds for one in found))


def shown(values: Iterable[Point]) -> str:
    """The values in a row, with three significant digits each."""
    return ", ".join(number(mean(value)) for value in values)


def table_of(statements: Iterable[Statement]) -> Table:
    """A row for each statement: the paper's sentence and value, our values, and *holds* or *differs*."""
    table = Table("the paper's text", "paper", "ours", "")
    for statement in statements:
        verdict = "[green]holds[/]" if statement.holds else "[red]differs[/]"
        table.add_row(statement.says, statement.paper, statement.ours, verdict)
    return table
