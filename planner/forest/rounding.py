"""A few trees in the place of many: whole trees for given rates, all tasks' at once.

The best packing of any number of trees says which rates the tasks could have. Divided evenly over a few trees each,
these rates may be too high for whole trees; then lower ones are tried, in proportion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import floor
from time import monotonic

from planner.aro.flow import Demand
from planner.aro.program import Program, Term
from planner.aro.search import ROUNDING, flows_within
from planner.forest.model import TreeColumns, add_tree, column_of
from planner.forest.packing import Column, Forest, Ground, pack, task_rates
from planner.unfold import DirectedLink

PRECISION = 0.01
"""How close to the highest part of the rates that has whole trees the search comes."""

PATIENCE_S = 5.0
"""For a question that can be asked again for lower rates."""

MOST_TREES = 4
"""More are not asked for: the question gets harder, and a few trees are nearly as good as many."""

ANY_GAP = 1e9


def rounded(
    best: Forest, every: Forest, ground: Ground, demands: Sequence[Demand], most: float, deadline: float
) -> Forest:
    """At most `most` trees for each task, with rates near those of `every`; or `best`, if that is better."""
    rates = task_rates(ground, every.columns, every.rates_bps)
    for count in sorted({2, int(min(most, MOST_TREES))}):
        low, high, part = best.value / every.value, 1.0, 1.0
        while low < high * (1 - PRECISION) and monotonic() < deadline:
            wanted = [rate * part for rate in rates]
            trees = whole_trees(ground, demands, wanted, count, min(PATIENCE_S, deadline - monotonic()))
            if trees is None:
                high = part
            else:
                best = max(best, pack(ground, trees), key=lambda forest: forest.value)
                low = max(part, best.value / every.value)
            part = (low + high) / 2
    return best


def whole_trees(
    ground: Ground, demands: Sequence[Demand], rates_bps: Sequence[float], count: int, time_limit_s: float
) -> list[Column] | None:
    """`count` trees for each task with a rate, each with its part of it; None if none are found."""
    program = Program()
    trees: list[tuple[int, TreeColumns]] = []
    loads: dict[DirectedLink, list[tuple[float, int]]] = defaultdict(list)
    for task in (task for task, rate in enumerate(rates_bps) if rate > 0):
        for _ in range(count):
            tree = add_tree(program, demands[task], whole=True)
            trees.append((task, tree))
            for link, column in tree.y.items():
                loads[link].append((rates_bps[task] / count, column))
    for link, flows in loads.items():
        fit(program, flows, ground.capacity_bps(link))
    program.maximise([(1, column) for _, tree in trees for column in tree.x.values()])
    solution = program.solve(time_limit_s, gap=ANY_GAP)
    if not solution.found:
        return None
    return [column_of(ground, task, demands[task], tree, solution) for task, tree in trees]


def fit(program: Program, flows: Sequence[tuple[float, int]], capacity_bps: float) -> None:
    """Flows of these rates fit a link. They are whole: so do they with rates rounded to multiples of the least."""
    least, most = min(flows)[0], max(flows)[0]
    whole: list[Term] = [(floor(rate / least * (1 + ROUNDING)), column) for rate, column in flows]
    program.at_most(whole, flows_within(capacity_bps, 1 / least))
    if most > least * (1 + ROUNDING):
        program.at_most([(rate / capacity_bps, column) for rate, column in flows], 1 + ROUNDING)
