"""What a paper's text says of its figures, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.table import Table

ABOUT = 0.1
"""How far a figure may be from the paper's, relatively."""


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, our figures for it, and whether they bear it out."""

    says: str
    ours: str
    holds: bool


def is_about(says: str, value: float, paper: float) -> Statement:
    return Statement(says, f"{value:.3g}", abs(value / paper - 1) <= ABOUT)


def is_below(says: str, value: float, most: float) -> Statement:
    return Statement(says, f"{value:.3g}", value <= most)


def is_above(says: str, value: float, least: float) -> Statement:
    return Statement(says, f"{value:.3g}", value >= least)


def spans(says: str, values: Iterable[float], low: float, high: float) -> Statement:
    """The values reach from about `low` to about `high`."""
    found = list(values)
    holds = abs(min(found) / low - 1) <= ABOUT and abs(max(found) / high - 1) <= ABOUT
    return Statement(says, f"{min(found):.3g} to {max(found):.3g}", holds)


def rises(says: str, values: Sequence[float]) -> Statement:
    """From the first to the last; in between it may waver by 2 %."""
    steady = all(later >= 0.98 * earlier for earlier, later in pairwise(values))
    return Statement(says, shown(values), steady and values[-1] > values[0])


def falls(says: str, values: Sequence[float]) -> Statement:
    return Statement(says, shown(values), rises("", values[::-1]).holds)


def is_level(says: str, values: Sequence[float]) -> Statement:
    """All values are within 10 % of their middle."""
    return Statement(says, shown(values), max(values) <= min(values) * (1 + ABOUT) / (1 - ABOUT))


def shown(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def table_of(statements: Iterable[Statement]) -> Table:
    table = Table("the paper's text", "ours", "")
    for statement in statements:
        table.add_row(statement.says, statement.ours, "[green]holds[/]" if statement.holds else "[red]differs[/]")
    return table
