"""SOAR's setting: complete binary trees, loads at their leaves, rates of links, and rules of thumb to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from inakit.planner.methods.soar.optimum import best_switches
from inakit.planner.methods.soar.reduction_tree import DESTINATION, Indices, Numbers, ReductionTree, reduction_tree

SWITCHES = 255
"""The switches of BT(256): 128 leaves, and the destination is the 256th node."""
MEAN_LOAD, MOST_LOAD = 5, 63
BUDGETS = (1, 2, 4, 8, 16, 32)
DRAWS, QUICK_DRAWS = 10, 3

Choose = Callable[[ReductionTree, int], tuple[int, ...]]
"""Which switches aggregate, given how many may."""


def uniform_loads(leaves: int, draw: np.random.Generator) -> Indices:
    """4, 5 or 6 messages at a leaf."""
    return draw.integers(4, 7, leaves)


def power_law_loads(leaves: int, draw: np.random.Generator) -> Indices:
    """1 to 63 messages at a leaf, with a probability of x ** -s, where s makes the mean 5."""
    values = np.arange(1, MOST_LOAD + 1)
    chances = values**-EXPONENT
    return draw.choice(values, leaves, p=chances / chances.sum())


def exponent_of(mean: float) -> float:
    """The s for which the mean of 1 to 63 with weights x ** -s is `mean`, by bisection."""
    values, low, high = np.arange(1, MOST_LOAD + 1), 0.0, 4.0
    for _ in range(60):
        s = (low + high) / 2
        weights = values**-s
        low, high = (s, high) if (values * weights).sum() / weights.sum() > mean else (low, s)
    return low


EXPONENT = exponent_of(MEAN_LOAD)

LOADS: Mapping[str, Callable[[int, np.random.Generator], Indices]] = {
    "uniform": uniform_loads,
    "power law": power_law_loads,
}
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
"""SOAR and the rules of thumb that it is compared with, by name."""


def normalised(tree: ReductionTree, strategy: str, k: int) -> float:
    """The utilisation with at most k switches that aggregate, as a part of that without any."""
    return tree.utilisation_s(STRATEGIES[strategy](tree, k)) / tree.utilisation_s()
