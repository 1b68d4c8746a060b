"""A few trees in the place of many: whole trees for given rates, all tasks' at once.

The best packing of any number of trees says which rates the tasks could have. Divided over a few trees each, these
rates may be too high for whole trees; then lower ones are tried, in proportion. Several trees of one task are routed
like several tasks (`inakit.planner.methods.aro.several.routing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic

from inakit.planner.methods.aro.several.reduced import network
from inakit.planner.methods.aro.several.routing import Router
from inakit.planner.methods.aro.several.several_tasks import worker_paths
from inakit.planner.methods.forest.packing import Column, Forest, Ground, pack, task_rates

PRECISION = 0.01
"""The search ends within this part of the highest rates that have whole trees."""

PATIENCE_S = 5.0
"""The seconds for a question that can be asked again for lower rates."""

MOST_TREES = 4
"""More trees are not asked for: the question gets harder, and a few trees are nearly as good as many."""


def rounded(best: Forest, every: Forest, ground: Ground, most: float, deadline: float) -> Forest:
    """At most `most` trees for each task, with rates near those of `every`; or `best`, if that is worth more."""
    rates = task_rates(ground, every.columns, every.rates_bps)
    for split in splits(most):
        low, high, part = best.value / every.value, 1.0, 1.0
        while low < high * (1 - PRECISION) and monotonic() < deadline:
            wanted = [rate * part for rate in rates]
            trees = whole_trees(ground, wanted, split, min(PATIENCE_S, deadline - monotonic()))
            if trees:
                best = max(best, pack(ground, trees), key=lambda forest: forest.value)
                low = max(part, best.value / every.value)
            else:
                high = part
            part = (low + high) / 2
    return best


def splits(most: float) -> Iterator[tuple[float, ...]]:
    """The ways to divide a task's rate over its trees."""
    yield from ((1 / 2, 1 / 2), (3 / 5, 2 / 5))
    if most > 2:
        count = int(min(most, MOST_TREES))
        yield (1 / count,) * count


def whole_trees(
    ground: Ground, rates_bps: Sequence[float], split: Sequence[float], time_limit_s: float
) -> list[Column]:
    """For each task that has a rate, one tree for each part of it. The list is empty where no routing is found."""
    wanted = [(task, rate * part) for task, rate in enumerate(rates_bps) if rate > 0 for part in split]
    net = network(ground.fabric, [ground.tasks[task] for task, _ in wanted], results=ground.results)
    _, routing = Router(net).route(tuple(rate for _, rate in wanted), time_limit_s)
    if routing is None:
        return []
    return [
        ground.column(task, list(worker_paths(net, ground.tasks[task], pieces)), results)
        for (task, _), pieces, results in zip(wanted, routing.pieces, routing.results, strict=True)
    ]
