"""SOAR's utilisation over k: the optimum against rules of thumb, by load and by rates of links."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from inakit.experiments.papers.common import statements, value_tables
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import Series, estimate, exact, means
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import LINES, Panel
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.soar.setting import (
    BUDGETS,
    DRAWS,
    LOADS,
    QUICK_DRAWS,
    RATES,
    STRATEGIES,
    SWITCHES,
    binary_tree,
    normalised,
)
from inakit.experiments.styles.method_styles import Style, categories
from inakit.planner.methods.soar.reduction_tree import reduction_tree
from inakit.traffic.measure.verdict import VALID, Verdict

ALL = "all switches"
EXAMPLE = reduction_tree(parent=[-1, 0, 0, 1, 1, 2, 2], load=[0, 0, 0, 2, 6, 5, 4])
EXAMPLE_BEST = {0: 51.0, 1: 35.0, 2: 20.0, 3: 15.0, 4: 11.0}
"""The least utilisation of a small tree by k, as enumeration of all choices gives it."""


def run(console: Console, request: Request) -> str:
    """Print and draw the utilisation over k; VALID if the example's are those of enumeration and none beats SOAR."""
    draws = QUICK_DRAWS if request.quick else DRAWS
    panels, said = [], list(example())
    for rates in RATES:
        for loads in LOADS:
            series = curves(loads, rates, draws)
            title = f"{loads} loads, {rates} rates"
            panels.append(Panel(LINES, BUDGETS, series, "k", "normalised utilisation", title, styles=styles()))
            console.print(value_tables.table_of(f"SOAR: {title}", "k", BUDGETS, means(series)))
            said.append(statements.is_lowest(title, "SOAR", STRATEGIES, means(series), BUDGETS))
    console.print(statements.table_of(said))
    save(request.results / "soar-utilisation", *panels)
    return VALID if all(statement.holds for statement in said) else Verdict.UNPROVEN


def styles() -> dict[str, Style]:
    """The styles of the lines."""
    return categories([*STRATEGIES, ALL])


def curves(loads: str, rates: str, draws: int) -> Series:
    """The normalised utilisation of every strategy over k, and that of aggregation everywhere."""
    trees = [binary_tree(loads, rates, seed) for seed in range(draws)]
    found = {name: [estimate([normalised(tree, name, k) for tree in trees]) for k in BUDGETS] for name in STRATEGIES}
    least = estimate([normalised(tree, "SOAR", SWITCHES) for tree in trees])
    return {**found, ALL: [exact(least.value)] * len(BUDGETS)}


def example() -> Iterator[Statement]:
    """A small example: the best k of 7 switches, beside what enumeration gives."""
    for k, enumerated in EXAMPLE_BEST.items():
        yield statements.is_about(f"example, k = {k}: {enumerated:g} by enumeration", best_of_example(k), enumerated)


def best_of_example(k: int) -> float:
    """The least utilisation of the example with k switches."""
    return EXAMPLE.utilisation_s(STRATEGIES["SOAR"](EXAMPLE, k))
