"""The best k switches of a tree, by SOAR's dynamic program: SOAR-Gather upwards, SOAR-Color downwards.

X_v(l, i) is the least time that links are busy with the messages of the subtree of v, on its own links and on the l
links above v, on which nothing sums them, when at most i switches of the subtree aggregate. A switch that does not
aggregate ("red") passes all on, so its children have l + 1 links without sums above them; behind one that does ("blue")
they have one:

    X_v(l, i) = min( L_v rho(v, l) + min over i_1 + ... = i     of sum of X_c(l + 1, i_c),
                     s_v rho(v, l) + min over i_1 + ... = i - 1 of sum of X_c(1, i_c) )

rho(v, l) is the cost of the l links above v, s_v the messages that leave v when it aggregates (1 in SOAR). Children are
added one by one (SOAR's Y and mCost). Here all switches of one depth go together, and a table ends at as many switches
as a subtree has. The optimum takes O(n h k^2) steps for n switches and height h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from inakit.planner.methods.soar.reduction_tree import DESTINATION, Indices, Numbers, ReductionTree
from inakit.planner.solvers.min_plus import min_plus
from inakit.topo.errors import InputError

ROUNDING = 1e-12
"""The relative gain below which a switch is not worth to aggregate."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """The tables of all switches.

    `tables[depth - 1]` has the shape (switches of that depth, depth, i + 1): [v, l - 1, i] is X_v(l, i). `row[v]` is a
    switch's place in its table. `above[v, l]` is rho(v, l), of the shape (n, height + 1).
    """

    tree: ReductionTree
    tables: list[Numbers]
    row: Indices
    above: Numbers

    def table(self, switch: int) -> Numbers:
        """X of one switch, of the shape (depth, i + 1)."""
        found: Numbers = self.tables[self.tree.depth[switch] - 1][self.row[switch]]
        return found

    def utilisations_s(self) -> Numbers:
        """By number of switches, from 0 on, the least utilisation in seconds that so many can give."""
        found: Numbers = self.tables[0][0, 0]
        return found


def best_switches(tree: ReductionTree, k: int) -> tuple[int, ...]:
    """The at most `k` switches whose aggregation makes the utilisation the least, in rising order.

    Switches that save nothing are left out. Raises `InputError` for a negative number.
    """
    return color(gather(tree, k), k)


def gather(tree: ReductionTree, k: int) -> Gathered:
    """SOAR-Gather: the tables of all switches, for at most `k` that aggregate. Raises `InputError` for a negative k."""
    if k < 0:
        raise InputError(f"{k} switches that aggregate: a number of at least 0 is expected")
    height = int(tree.depth.max())
    levels = [np.flatnonzero(tree.depth == depth) for depth in range(1, height + 1)]
    row = np.zeros(tree.switches, np.int64)
    for level in levels:
        row[level] = np.arange(len(level))
    gathered = Gathered(tree, [np.empty(0)] * height, row, costs_above(tree, height))
    for depth in range(height, 0, -1):
        gathered.tables[depth - 1] = level_table(gathered, levels[depth - 1], depth, k)
    return gathered


def costs_above(tree: ReductionTree, height: int) -> Numbers:
    """rho(v, l) of every switch v for l links, in the shape (n, height + 1). No link follows the root's."""
    above = np.zeros((tree.switches, height + 1))
    for switch in tree.order:
        parent = tree.parent[switch]
        rest = above[parent, :-1] if parent != DESTINATION else 0.0
        above[switch, 1:] = tree.cost[switch] + rest
    return above


def level_table(gathered: Gathered, level: Indices, depth: int, k: int) -> Numbers:
    """X of all switches of one depth, given those below."""
    tree = gathered.tree
    above = gathered.above[level, 1 : depth + 1]
    red = (tree.load[level][:, None] * above)[:, :, None]
    blue = np.zeros((len(level), 1, 1))
    for rows, children in rounds(tree, level):
        below = gathered.tables[depth][gathered.row[children]]
        red = added(red, rows, below[:, 1:], k)
        blue = added(blue, rows, below[:, :1], k)
    width = min(k, blue.shape[2]) + 1  # one more, which may be the switch itself
    aggregated = np.full((len(level), depth, width), inf)
    usable = tree.available[level] & tree.sending[level]
    leaving = (tree.sums[level][:, None] * above)[:, :, None]
    aggregated[usable, :, 1:] = (leaving + blue[:, :, : width - 1])[usable]
    found: Numbers = np.minimum(padded(red, width), aggregated)
    return found


def rounds(tree: ReductionTree, level: Indices) -> Iterator[tuple[Indices, Indices]]:
    """The first child of each switch of a level, then the second, and so on: (rows of the level, their children)."""
    children = [tree.children[switch] for switch in level.tolist()]
    for turn in range(max(map(len, children), default=0)):
        rows = [row for row, own in enumerate(children) if len(own) > turn]
        yield np.asarray(rows), np.asarray([children[row][turn] for row in rows])


def added(sums: Numbers, rows: Indices, below: Numbers, k: int) -> Numbers:
    """`sums` with one more child in `rows`: the least over all ways to divide i switches between it and the others."""
    width = min(k + 1, sums.shape[2] + below.shape[2] - 1)
    wider = padded(sums, width)
    wider[rows] = min_plus(wider[rows], below)
    return wider


def padded(table: Numbers, width: int) -> Numbers:
    """The table with as many columns: more switches than a subtree has are as good as all that it has."""
    missing = width - table.shape[2]
    return np.pad(table, ((0, 0), (0, 0), (0, max(missing, 0))), mode="edge")[:, :, :width]


def color(gathered: Gathered, k: int) -> tuple[int, ...]:
    """SOAR-Color: the switches that aggregate in the optimum, in rising order."""
    tree, chosen = gathered.tree, []
    waiting = [(tree.order[0], 1, k)]  # switch, links above it without sums, switches that may aggregate in its subtree
    while waiting:
        switch, links, number = waiting.pop()
        if number == 0 or not tree.sending[switch]:
            continue
        if is_blue(gathered, switch, links, number):
            chosen.append(switch)
            links, number = 0, number - 1
        for child, own in zip(tree.children[switch], divided(gathered, switch, links, number), strict=True):
            waiting.append((child, links + 1, own))
    return tuple(sorted(chosen))


def is_blue(gathered: Gathered, switch: int, links: int, number: int) -> bool:
    """Whether it saves time that this switch aggregates."""
    tree = gathered.tree
    if not tree.available[switch]:
        return False
    rho = gathered.above[switch, links]
    red = tree.load[switch] * rho + prefixes(gathered, switch, links, number)[-1][number]
    blue = tree.sums[switch] * rho + prefixes(gathered, switch, 0, number - 1)[-1][number - 1]
    return bool(blue < red * (1 - ROUNDING))


def prefixes(gathered: Gathered, switch: int, links: int, number: int) -> list[Numbers]:
    """For none, one, two, ... of a switch's children: the least time by number of switches, of the shape (number + 1,).

    `links` are those above the switch without sums.
    """
    found = [np.zeros(number + 1)]
    for child in gathered.tree.children[switch]:
        found.append(min_plus(found[-1], gathered.table(child)[links]))
    return found


def divided(gathered: Gathered, switch: int, links: int, number: int) -> list[int]:
    """How many of `number` switches each child's subtree gets in the optimum (SOAR's mSplit)."""
    before = prefixes(gathered, switch, links, number)
    shares = []
    for child, rest in zip(reversed(gathered.tree.children[switch]), reversed(before[:-1]), strict=True):
        table = gathered.table(child)[links]
        most = min(number, len(table) - 1)
        own = int(np.argmin(rest[number - np.arange(most + 1)] + table[: most + 1]))
        shares.append(own)
        number -= own
    return shares[::-1]
