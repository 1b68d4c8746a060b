"""Trees for SOAR: the paper's example, complete binary trees, random ones; and two other ways to the optimum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pulp
from hypothesis import strategies as st

from inakit.planner.methods.soar import DESTINATION, ReductionTree, reduction_tree

EXAMPLE = reduction_tree(parent=[DESTINATION, 0, 0, 1, 1, 2, 2], load=[0, 0, 0, 2, 6, 5, 4])
"""SOAR's Figure 2: 7 switches, messages enter at the leaves only, every link costs 1."""


def binary_tree(switches: int, seed: int = 0) -> ReductionTree:
    """A complete binary tree whose leaves have a load of 4 to 6."""
    parent = [DESTINATION, *((switch - 1) // 2 for switch in range(1, switches))]
    leaves = np.arange(switches) >= switches // 2
    return reduction_tree(parent, np.where(leaves, np.random.default_rng(seed).integers(4, 7, switches), 0).tolist())


@st.composite
def trees(draw: Callable[..., Any], most: int = 8) -> ReductionTree:
    """A tree of any shape, with loads at any switch, any costs, one or two sums, and switches that cannot aggregate."""
    n = draw(st.integers(1, most))
    parent = [DESTINATION, *(draw(st.integers(0, switch - 1)) for switch in range(1, n))]
    numbers = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    cost = draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    sums = draw(st.lists(st.integers(1, 2), min_size=n, max_size=n))
    available = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return reduction_tree(parent, draw(numbers), cost, sums, available)


def least_by_enumeration(tree: ReductionTree, k: int) -> float:
    """The least utilisation over every set of at most k available switches."""
    usable = np.flatnonzero(tree.available).tolist()
    sets = (chosen for size in range(k + 1) for chosen in combinations(usable, size))
    return min(tree.utilisation_s(chosen) for chosen in sets)


def least_by_program(tree: ReductionTree, k: int) -> float:
    """The optimum of a mixed-integer program with a variable for the messages that leave each switch."""
    model = pulp.LpProblem("soar", pulp.LpMinimize)
    n, most = tree.switches, int(tree.load.sum())
    b = [model.add_variable(f"b_{v}", 0, int(tree.available[v]), pulp.LpInteger) for v in range(n)]
    m = [model.add_variable(f"m_{v}", 0) for v in range(n)]
    model += pulp.lpSum(float(tree.cost[v]) * m[v] for v in range(n))
    model += pulp.lpSum(b) <= k
    for v in range(n):
        received = int(tree.load[v]) + pulp.lpSum(m[c] for c in tree.children[v])
        model += m[v] >= received - 2 * most * b[v]  # a sum is at most 2 messages
        model += m[v] >= int(tree.sending[v]) * int(tree.sums[v]) * b[v]
    model.solve(pulp.HiGHS(msg=False))
    return float(pulp.value(model.objective))
