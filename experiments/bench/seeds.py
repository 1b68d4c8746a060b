"""Cases that are measured with several seeds each: a table with a row for each, of the seeds that it has so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

from inakit.experiments.sweeps.rows import Row, measure_rows


class Named(Protocol):
    """A case, which has a name."""

    @property
    def name(self) -> str:
        """The name, with which its row begins."""
        ...


C = TypeVar("C", bound=Named)
F = TypeVar("F")


@dataclass(frozen=True)
class Draw(Generic[C]):
    """One seed of the case that has row `row` of the table."""

    row: int
    case: C
    seed: int

    def __str__(self) -> str:
        return f"{self.case.name}, seed {self.seed}"


def measure_seeds(
    cases: Sequence[C],
    seeds: Callable[[C], int],
    measure: Callable[[C, int], F],
    words: Callable[[F], str],
    cells: Callable[[C, Sequence[F]], Sequence[str]],
    table: Table,
    console: Console,
) -> bool:
    """Measure every case with its number of `seeds`, fill the `table` and print it; whether no seed failed.

    However it ends, the table has the seeds that were measured.
    """
    draws = [Draw(row, case, seed) for row, case in enumerate(cases) for seed in range(seeds(case))]

    def show(rows: Sequence[Row[Draw[C], F]]) -> bool:
        for number, case in enumerate(cases):
            if found := [row.found for row in rows if row.asked.row == number and row.found is not None]:
                table.add_row(case.name, *cells(case, found))
        console.print(table)
        return not any(row.error for row in rows)

    return measure_rows(draws, lambda draw: measure(draw.case, draw.seed), words, show, console)
