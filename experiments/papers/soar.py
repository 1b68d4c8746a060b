"""SOAR's utilisation over k and that of simple heuristics, by load and link rates; the time of its dynamic program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
from rich.console import Console

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.estimates import Series, estimate, exact, means
from inakit.experiments.papers.common.figure_engine import Part, Picture, present
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.report.method_styles import categories
from inakit.planner.methods.soar import DESTINATION, Indices, Numbers, ReductionTree, best_switches, reduction_tree
from inakit.traffic.measure.verdict import VALID, Verdict

SWITCHES = 255
"""The switches of BT(256): 128 leaves, and the destination is the 256th node."""
MEAN_LOAD, MOST_LOAD = 5, 63
BUDGETS = (1, 2, 4, 8, 16, 32)
DRAWS, QUICK_DRAWS = 10, 3

Choose = Callable[[ReductionTree, int], tuple[int, ...]]
"""Selects the switches that aggregate, given the largest number of them."""


def exponent_of(mean: float) -> float:
    """The exponent s for which the mean of 1 to 63 with weights x ** -s is `mean`, found by bisection."""
    values, low, high = np.arange(1, MOST_LOAD + 1), 0.0, 4.0
    for _ in range(60):
        s = (low + high) / 2
        weights = values**-s
        low, high = (s, high) if (values * weights).sum() / weights.sum() > mean else (low, s)
    return low


EXPONENT = exponent_of(MEAN_LOAD)
VALUES = np.arange(1, MOST_LOAD + 1)
CHANCES = VALUES**-EXPONENT

LOADS: Mapping[str, Callable[[int, np.random.Generator], Indices]] = {
    "uniform": lambda leaves, draw: draw.integers(4, 7, leaves),
    "power law": lambda leaves, draw: draw.choice(VALUES, leaves, p=CHANCES / CHANCES.sum()),
}
"""Messages at leaves: 4, 5 or 6, or 1 to 63 with a probability of x ** -s, where s makes the mean 5."""
RATES: Mapping[str, Callable[[Indices], Numbers]] = {
    "constant": lambda height: np.ones(len(height)),
    "linear": lambda height: height.astype(np.float64),
    "exponential": lambda height: np.exp2(height - 1.0),
}
"""The rate of a switch's link to its parent, by the switch's height; a leaf's is 1."""


def binary_tree(loads: str, rates: str, seed: int, switches: int = SWITCHES) -> ReductionTree:
    """A complete binary tree with loads at its leaves drawn by seed."""
    number = np.arange(switches)
    parent = np.where(number == 0, DESTINATION, (number - 1) // 2)
    depth = np.floor(np.log2(number + 1)).astype(np.int64) + 1
    leaves = depth == depth.max()
    load = np.zeros(switches, np.int64)
    load[leaves] = LOADS[loads](int(leaves.sum()), np.random.default_rng(seed))
    cost = 1 / RATES[rates](depth.max() - depth + 1)
    return reduction_tree(parent.tolist(), load.tolist(), cost.tolist())


def top(tree: ReductionTree, k: int) -> tuple[int, ...]:
    """Top: the k switches nearest to the root."""
    return tuple(tree.order[:k])


def most_loaded(tree: ReductionTree, k: int) -> tuple[int, ...]:
    """Max: the k switches with the largest loads of their own."""
    return tuple(np.argsort(-tree.load, kind="stable")[:k].tolist())


def level(tree: ReductionTree, k: int) -> tuple[int, ...]:
    """Level: all switches of the deepest depth that has at most k."""
    depths = [np.flatnonzero(tree.depth == depth) for depth in range(1, tree.depth.max() + 1)]
    return tuple(max((found for found in depths if len(found) <= k), key=len, default=depths[0][:0]).tolist())


STRATEGIES: Mapping[str, Choose] = {"SOAR": best_switches, "Level": level, "Top": top, "Max": most_loaded}
"""SOAR and the heuristics that it is compared with, by name."""


def normalised(tree: ReductionTree, strategy: str, k: int) -> float:
    """The utilisation with at most k aggregating switches, as a fraction of the utilisation without aggregation."""
    return tree.utilisation_s(STRATEGIES[strategy](tree, k)) / tree.utilisation_s()


SIZES, TIMED_BUDGETS = (255, 511, 1023, 2047, 4095, 8191, 16383), (4, 16, 64, 128)
MOST_SECONDS = 1.0
"""The processor time is bounded for the largest tree with up to 10,000 switches, for each of these k."""


def running_time(console: Console, request: Request) -> str:
    """Print and draw processor seconds; VALID if 8,191 switches take less than a second for every k."""
    found = {f"k = {k}": [exact(seconds(size, k)) for size in SIZES] for k in TIMED_BUDGETS}
    slowest = max(points[SIZES.index(8191)].value for points in found.values())
    said = statements.is_below("8,191 switches take less than 1 s", slowest, MOST_SECONDS)
    panel = Panel(LINES, SIZES, found, "switches", "processor seconds", log="xy", styles=categories(found))
    table = statements.value_table("SOAR: processor seconds", "switches", SIZES, means(found))
    present(console, request.results / "soar-time", (table, [said], Picture([panel])))
    return VALID if said.holds else Verdict.SLOW


def seconds(size: int, k: int) -> float:
    tree = binary_tree("uniform", "constant", 0, size)
    _ = tree.order, tree.children
    started = time.process_time()
    best_switches(tree, k)
    return time.process_time() - started


ALL = "all switches"
EXAMPLE = reduction_tree(parent=[-1, 0, 0, 1, 1, 2, 2], load=[0, 0, 0, 2, 6, 5, 4])
EXAMPLE_BEST = {0: 51.0, 1: 35.0, 2: 20.0, 3: 15.0, 4: 11.0}
"""The least utilisation of a small tree by k, found by enumerating all choices."""


def run(console: Console, request: Request) -> str:
    """Print and draw the utilisation over k; VALID if enumeration confirms the example and no strategy beats SOAR."""
    said = present(console, request.results / "soar-utilisation", show(QUICK_DRAWS if request.quick else DRAWS))
    return VALID if all(statement.holds for statement in said) else Verdict.UNPROVEN


def show(draws: int) -> Iterator[Part]:
    styles, panels, said = categories([*STRATEGIES, ALL]), [], []
    for k, enumerated in EXAMPLE_BEST.items():
        ours = EXAMPLE.utilisation_s(STRATEGIES["SOAR"](EXAMPLE, k))
        said.append(statements.is_about(f"example, k = {k}: {enumerated:g} by enumeration", ours, enumerated))
    for rates, loads in product(RATES, LOADS):
        series, title = curves(loads, rates, draws), f"{loads} loads, {rates} rates"
        panels.append(Panel(LINES, BUDGETS, series, "k", "normalised utilisation", title, styles=styles))
        yield statements.value_table(f"SOAR: {title}", "k", BUDGETS, means(series))
        worst = max(over_best_other(series, place, draw) for place in range(len(BUDGETS)) for draw in range(draws))
        said.append(statements.is_below(f"{title}: SOAR over the best other, in the worst draw", worst, 1 + ROUNDING))
    yield said
    yield Picture(panels)


def over_best_other(series: Series, place: int, draw: int) -> float:
    """SOAR's utilisation over the lowest of the other strategies, in one draw at one k."""
    found = {name: series[name][place].draws[draw] for name in STRATEGIES}
    return found.pop("SOAR") / min(found.values())


ROUNDING = 1e-9
"""By how much a ratio of equal sums of floating-point numbers may differ from 1."""


def curves(loads: str, rates: str, draws: int) -> Series:
    """The normalised utilisation of every strategy over k, and that of aggregation everywhere."""
    trees = [binary_tree(loads, rates, seed) for seed in range(draws)]
    found = {name: [estimate([normalised(tree, name, k) for tree in trees]) for k in BUDGETS] for name in STRATEGIES}
    least = estimate([normalised(tree, "SOAR", SWITCHES) for tree in trees])
    return {**found, ALL: [exact(least.value)] * len(BUDGETS)}


FIGURES = {"utilisation": run, "time": running_time}
