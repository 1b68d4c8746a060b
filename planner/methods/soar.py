"""SOAR on a fabric: a static tree for each task, and the best k switches of it.

SOAR's input is a tree. In a fabric with several ways the planner takes, of the static trees towards the parameter
server (PS), the one with the least optimum; tasks take turns among equally good trees. Link rates are the fabric's.
SOAR minimises the total time that links are busy, not the time of the busiest link, which determines the rate: a small
k suits it best. A switch that several tasks choose serves all of them (SOAR's bound on the workloads of a switch is the
planner's option `workloads`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.solvers import divided, min_plus
from inakit.planner.trees.from_paths import plan_of_trees, tree_from_paths
from inakit.planner.trees.unfolding import static_paths, turns, unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Path

# -- SOAR's network: switches in a tree, the messages that enter at each, and the time that links are busy with them.

DESTINATION = -1
"""The parent of the tree's root switch: SOAR's node d, the destination of all messages."""

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReductionTree:
    """A tree of n switches. All arrays have the shape (n,).

    - `parent`: the index of the next switch towards the destination; `DESTINATION` for the root
    - `cost`: the seconds that a switch's link to its parent takes for a message, SOAR's rho = 1 / rate
    - `load`: the messages that enter at a switch from its own hosts, SOAR's L
    - `sums`: the messages that leave a switch that aggregates. SOAR has 1; a switch of several pipelines sends one for
      each pipeline that messages enter
    - `available`: whether a switch may aggregate, SOAR's set Lambda

    Raises `InputError` for arrays of other shapes, for none or several roots, and for a cycle.
    """

    parent: Indices
    cost: Numbers
    load: Indices
    sums: Indices
    available: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name in ("cost", "load", "sums", "available"):
            if getattr(self, name).shape != self.parent.shape:
                raise InputError(f"{name} has shape {getattr(self, name).shape}, parent has {self.parent.shape}")
        roots = int(np.count_nonzero(self.parent == DESTINATION))
        if roots != 1:
            raise InputError(f"{roots} switches have the parent {DESTINATION}; a tree has one root")
        if len(self.order) < self.switches:
            raise InputError("some switches do not reach the root: their parents form a cycle")

    @property
    def switches(self) -> int:
        return len(self.parent)

    @cached_property
    def children(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(self.switches)]
        for switch, parent in enumerate(self.parent.tolist()):
            if parent != DESTINATION:
                found[parent].append(switch)
        return found

    @cached_property
    def order(self) -> list[int]:
        found = np.flatnonzero(self.parent == DESTINATION).tolist()
        for switch in found:  # the list grows in the loop
            found += self.children[switch]
        return found

    @cached_property
    def depth(self) -> Indices:
        """By switch, the links from it to the destination; 1 for the root."""
        depth = np.ones(self.switches, np.int64)
        for switch in self.order[1:]:
            depth[switch] = depth[self.parent[switch]] + 1
        return depth

    @cached_property
    def sending(self) -> NDArray[np.bool_]:
        """Whether any message enters at or below a switch."""
        below = self.load.copy()
        for switch in reversed(self.order[1:]):
            below[self.parent[switch]] += below[switch]
        return below > 0

    def messages(self, aggregating: Collection[int]) -> Indices:
        """For each switch, the messages on its link to its parent if the switches `aggregating` sum their input."""
        leaving = self.load.copy()
        chosen = set(aggregating)
        for switch in reversed(self.order):
            if switch in chosen and self.sending[switch]:
                leaving[switch] = self.sums[switch]
            if self.parent[switch] != DESTINATION:
                leaving[self.parent[switch]] += leaving[switch]
        return leaving

    def utilisation_s(self, aggregating: Collection[int] = ()) -> float:
        """The seconds that all links together are busy, SOAR's utilisation phi = sum of messages x rho over links."""
        return float(self.messages(aggregating) @ self.cost)


def reduction_tree(
    parent: Sequence[int],
    load: Sequence[int],
    cost: Sequence[float] | None = None,
    sums: Sequence[int] | None = None,
    available: Sequence[bool] | None = None,
) -> ReductionTree:
    """Build the tree from lists of n numbers. By default links cost 1, sums are 1, and all switches are available."""
    n = len(parent)
    return ReductionTree(
        np.asarray(parent, np.int64),
        np.ones(n) if cost is None else np.asarray(cost, np.float64),
        np.asarray(load, np.int64),
        np.ones(n, np.int64) if sums is None else np.asarray(sums, np.int64),
        np.ones(n, np.bool_) if available is None else np.asarray(available, np.bool_),
    )


# -- The best k switches of a tree, by SOAR's dynamic program: SOAR-Gather upwards, SOAR-Color downwards.
#
# X_v(l, i) is the least time that links are busy with the messages of the subtree of v, on its own links and on the l
# links above v, on which nothing sums them, when at most i switches of the subtree aggregate. A switch that does not
# aggregate ("red") passes all on, so its children have l + 1 links without sums above them; behind one that does
# ("blue") they have one:
#
#     X_v(l, i) = min( L_v rho(v, l) + min over i_1 + ... = i     of sum of X_c(l + 1, i_c),
#                      s_v rho(v, l) + min over i_1 + ... = i - 1 of sum of X_c(1, i_c) )
#
# rho(v, l) is the cost of the l links above v, s_v the messages that leave v when it aggregates (1 in SOAR). Children
# are added one by one (SOAR's Y and mCost). Here all switches of one depth go together, and a table ends at as many
# switches as a subtree has. The optimum takes O(n h k^2) steps for n switches and height h.

ROUNDING = 1e-12
"""The relative gain below which aggregation at a switch is not worthwhile."""


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
        """By number of aggregating switches, from 0 on, the least utilisation in seconds."""
        found: Numbers = self.tables[0][0, 0]
        return found


def best_switches(tree: ReductionTree, k: int) -> tuple[int, ...]:
    """The at most `k` switches whose aggregation minimises the utilisation, in ascending order.

    Switches that save nothing are omitted. Raises `InputError` for a negative number.
    """
    return color(gather(tree, k), k)


def gather(tree: ReductionTree, k: int) -> Gathered:
    """SOAR-Gather: the tables of all switches, for at most `k` that aggregate. Raises `InputError` for a negative k."""
    if k < 0:
        raise InputError(f"{k} switches that aggregate: at least 0 are expected")
    height = int(tree.depth.max())
    levels = [np.flatnonzero(tree.depth == depth) for depth in range(1, height + 1)]
    row = np.zeros(tree.switches, np.int64)
    for level in levels:
        row[level] = np.arange(len(level))
    above = np.zeros((tree.switches, height + 1))
    for switch in tree.order:
        parent = tree.parent[switch]
        above[switch, 1:] = tree.cost[switch] + (above[parent, :-1] if parent != DESTINATION else 0.0)
    gathered = Gathered(tree, [np.empty(0)] * height, row, above)
    for depth in range(height, 0, -1):
        gathered.tables[depth - 1] = level_table(gathered, levels[depth - 1], depth, k)
    return gathered


def level_table(gathered: Gathered, level: Indices, depth: int, k: int) -> Numbers:
    """X of all switches of one depth, given the tables below; the first children are added, then the second ones."""
    tree = gathered.tree
    above = gathered.above[level, 1 : depth + 1]
    red = (tree.load[level][:, None] * above)[:, :, None]
    blue = np.zeros((len(level), 1, 1))
    children = [tree.children[switch] for switch in level.tolist()]
    for turn in range(max(map(len, children), default=0)):
        rows = np.asarray([row for row, own in enumerate(children) if len(own) > turn])
        below = gathered.tables[depth][gathered.row[[children[row][turn] for row in rows]]]
        red = added(red, rows, below[:, 1:], k)
        blue = added(blue, rows, below[:, :1], k)
    width = min(k, blue.shape[2]) + 1  # one more, for the switch itself
    aggregated = np.full((len(level), depth, width), inf)
    usable = tree.available[level] & tree.sending[level]
    leaving = (tree.sums[level][:, None] * above)[:, :, None]
    aggregated[usable, :, 1:] = (leaving + blue[:, :, : width - 1])[usable]
    found: Numbers = np.minimum(padded(red, width), aggregated)
    return found


def added(sums: Numbers, rows: Indices, below: Numbers, k: int) -> Numbers:
    """`sums` with one more child in `rows`: the least over all divisions of i switches between it and the others."""
    width = min(k + 1, sums.shape[2] + below.shape[2] - 1)
    wider = padded(sums, width)
    wider[rows] = min_plus(wider[rows], below)
    return wider


def padded(table: Numbers, width: int) -> Numbers:
    """The table with the given number of columns: switches beyond the size of a subtree change nothing."""
    missing = width - table.shape[2]
    return np.pad(table, ((0, 0), (0, 0), (0, max(missing, 0))), mode="edge")[:, :, :width]


def color(gathered: Gathered, k: int) -> tuple[int, ...]:
    """SOAR-Color: the switches that aggregate in the optimum, in ascending order."""
    tree, chosen = gathered.tree, []

    def below(switch: int, links: int) -> list[Numbers]:
        """For each child, the least time by number of switches, with `links` above `switch` without sums."""
        return [gathered.table(child)[links] for child in tree.children[switch]]

    def least_below(switch: int, links: int, number: int) -> float:
        """The least time of all children's subtrees when at most `number` of their switches aggregate (mSplit)."""
        return float(reduce(min_plus, below(switch, links), np.zeros(number + 1))[number])

    waiting = [(tree.order[0], 1, k)]  # switch, links above it without sums, switches that may aggregate in its subtree
    while waiting:
        switch, links, number = waiting.pop()
        if number == 0 or not tree.sending[switch]:
            continue
        if tree.available[switch]:
            rho = gathered.above[switch, links]
            red = tree.load[switch] * rho + least_below(switch, links, number)
            blue = tree.sums[switch] * rho + least_below(switch, 0, number - 1)
            if blue < red * (1 - ROUNDING):  # aggregation at this switch saves time
                chosen.append(switch)
                links, number = 0, number - 1
        shares = divided(np.zeros(number + 1), below(switch, links))
        waiting += [(child, links + 1, own) for child, own in zip(tree.children[switch], shares, strict=True)]
    return tuple(sorted(chosen))


# -- The planner.


@dataclass(frozen=True)
class SoarOptions(Options):
    """`switches`: the maximum that aggregate for a task, SOAR's k. `workloads`: the maximum number of tasks of a
    switch.
    """

    switches: int = 4
    workloads: int | None = None
    LEAST: ClassVar[Mapping[str, int]] = {"switches": 0, "workloads": 1}


def plan(problem: Problem, options: SoarOptions) -> Plan:
    """SOAR's plan: one tree for each task, one after another, all flows at the best equal rate.

    A task gets the best static tree towards its PS, with the tree's best switches among those that can serve another
    task. Among equally good trees it is the first from number seed + turn on.
    """
    fabric = problem.fabric
    serving: Counter[str] = Counter()
    trees = []
    tasks = [(job, server) for job in problem.jobs for server in job.servers]
    for turn, (job, server) in enumerate(tasks):
        full = {name for name, served in serving.items() if served == options.workloads}
        unfolded = unfold(fabric, server)
        choices = []
        for number in range(turns(unfolded)):
            paths = static_paths(unfolded, job.workers, number)
            names, tree = tree_of_paths(fabric, paths, full)
            best = best_switches(tree, options.switches)
            choices.append((tree.utilisation_s(best), paths, [names[switch] for switch in best]))
        first = (options.seed + turn) % len(choices)
        _, paths, aggregating = min(choices[first:] + choices[:first], key=itemgetter(0))
        serving.update(aggregating)
        trees.append((job.number, 1 / len(job.servers), tree_from_paths(fabric, 1, paths, aggregating)))
    return plan_of_trees("soar", problem, trees, options.window)


def tree_of_paths(fabric: Fabric, paths: Sequence[Path], full: Collection[str] = ()) -> tuple[list[str], ReductionTree]:
    """The switches of the paths, which form a tree, and this tree for messages of one bit.

    A switch that aggregates sends a message for each of its pipelines that receives some. SOAR ignores the limit of 64
    flows per aggregator.
    """
    parents = {node: following for path in paths for node, following in pairwise(path[1:])}
    names, server = list(parents), paths[0][-1]
    index = {name: number for number, name in enumerate(names)} | {server: DESTINATION}
    entered = {(node, fabric.ingress_pipeline(node, before)) for path in paths for before, node in pairwise(path[:-1])}
    load = Counter(path[1] for path in paths)
    sums = Counter(node for node, _ in entered)
    tree = reduction_tree(
        parent=[index[parents[name]] for name in names],
        load=[load[name] for name in names],
        cost=[1 / fabric.capacities_bps[name, parents[name]] for name in names],
        sums=[sums[name] for name in names],
        available=[fabric.switch_by_name[name].ina and name not in full for name in names],
    )
    return names, tree
