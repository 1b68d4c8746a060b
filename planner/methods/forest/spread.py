"""Several trees for one task on a leaf-spine with equal links, in closed form: each has spines of its own.

Trees that go through different pipelines of the PS's leaf give the PS fewer flows each than one that goes through all.
So each such pipeline, with the spines behind it, goes to one tree, or its spines are dealt out to all trees. For every
way to do so, each tree has the best rate that its spines allow; the trees share only the PS's link and the workers'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from inakit.planner.methods.aro.single.leafspine import Choice, LeafSpine, Spines
from inakit.planner.methods.aro.single.search import Steps, least_t
from inakit.planner.trees.unfolding import Path

Gates = Mapping[int, Spines]

MOST_TREES = 4
"""More trees are not tried: the ways to deal are as many as the partitions of a switch's pipelines."""


@dataclass(frozen=True)
class Tree:
    """A task with the spines that are the tree's own, its routes, and the rate that these spines allow."""

    task: LeafSpine
    choice: Choice
    rate_bps: float

    @property
    def flows_to_server(self) -> int:
        """The flows of the tree on the PS's link."""
        if self.task.tor_sums:
            return len({*self.task.local, *self.task.gates})
        return flows_to_tor(self.task, self.choice) + sum(map(len, self.task.local.values()))

    @property
    def paths(self) -> list[Path]:
        """The tree's path for every worker."""
        return self.task.paths(self.choice)


def spread(task: LeafSpine, most: int) -> list[Tree]:
    """At most `most` trees with the highest total rate; none where an INP would have more flows than bits."""
    best: list[Tree] = []
    known: dict[tuple[tuple[int, Spines], ...], Tree | None] = {}
    for dealt in deals(task.gates, min(most, MOST_TREES)):
        for gates in dealt:
            if key(gates) not in known:
                known[key(gates)] = tree_on(task, gates)
        trees = [tree for gates in dealt if (tree := known[key(gates)])]
        best = max(best, trees, key=lambda trees: total_rate(task, trees))
    return best


def key(gates: Gates) -> tuple[tuple[int, Spines], ...]:
    """The gates in a form that a dictionary can have as key."""
    return tuple(gates.items())


def deals(gates: Gates, most: int) -> Iterator[list[Gates]]:
    """The ways to give each gate to one tree, or to deal its spines out to all trees in turn."""
    for count in range(len(gates) + 1):
        for divided in combinations(gates, count):
            whole = [gate for gate in gates if gate not in divided]
            for groups in partitions(whole, most):
                trees = most if divided else len(groups)
                yield [
                    {gate: gates[gate] for gate in group} | {gate: every(gates[gate], k, trees) for gate in divided}
                    for k, group in enumerate([*groups, *[[]] * (trees - len(groups))])
                ]


def partitions(gates: Sequence[int], most: int) -> Iterator[list[list[int]]]:
    """The ways to divide the gates into at most `most` groups."""
    if not gates:
        yield []
        return
    first, *others = gates
    for groups in partitions(others, most):
        for k, group in enumerate(groups):
            yield [*groups[:k], [first, *group], *groups[k + 1 :]]
        if len(groups) < most:
            yield [[first], *groups]


def every(spines: Spines, k: int, trees: int) -> Spines:
    """The k-th tree's part of these spines."""
    return Spines(spines.aggregating[k::trees], spines.common[k::trees])


def tree_on(task: LeafSpine, gates: Gates) -> Tree | None:
    """The best tree over the spines of these gates; None without spines, or if an INP would get too many flows."""
    own = replace(task, gates={gate: spines for gate, spines in gates.items() if spines.aggregating or spines.common})
    if task.leaves and not own.gates:
        return None

    def fits(t: float) -> Choice | None:
        choice = own.fits(t)
        return choice if choice is not None and children(own, choice) <= own.most_children else None

    highest = task.workers / min(task.capacities_bps)
    least = least_t(fits, Steps(task.capacities_bps), 1 / task.worker_bps, highest)
    return Tree(own, least.solution, 1 / least.t) if least else None


def children(task: LeafSpine, choice: Choice) -> int:
    """An upper bound of the flows that enter one INP of the PS's leaf."""
    through_one = flows_to_tor(task, choice) + max(map(len, task.local.values()), default=0)
    return min(task.most_children_at_tor(choice), through_one)


def flows_to_tor(task: LeafSpine, choice: Choice) -> int:
    """The flows that the spines send to the PS's leaf: one for each INP, and those that INPs leave over."""
    taken = 0
    for pipeline, sizes in task.sizes.items():
        n = choice.inps[pipeline]
        taken += min(sum(min(size, choice.link_flows * n) for size in sizes), task.most_children * n)
    return choice.inps.total() + sum(map(sum, task.sizes.values())) - taken


def total_rate(task: LeafSpine, trees: Sequence[Tree]) -> float:
    """The bit/s of all trees together, those first that give the PS the fewest flows."""
    to_server, of_workers, total = task.server_bps, task.worker_bps, 0.0
    for tree in sorted(trees, key=lambda tree: tree.flows_to_server):
        rate = min(tree.rate_bps, to_server / tree.flows_to_server, of_workers)
        to_server -= rate * tree.flows_to_server
        of_workers -= rate
        total += rate
    return total


def rate_bound(task: LeafSpine) -> float:
    """A rate that no forest exceeds, by counting: workers' links, what leaves a leaf, what the PS gets."""
    uplinks = [task.spine_bps * spine_count(task) / len(leaf.flows) for leaf in task.leaves]
    return min(task.worker_bps, *uplinks, task.server_bps / fewest_flows(task))


def spine_count(task: LeafSpine) -> int:
    """The number of spines behind all gates."""
    return sum(len(spines.aggregating) + len(spines.common) for spines in task.gates.values())


def fewest_flows(task: LeafSpine) -> int:
    """The fewest flows that the PS gets from a tree.

    Its leaf sums what comes in by one pipeline, a spine what comes from leaves that enter it by one.
    """
    if task.tor_sums:
        through_local = not task.leaves or any(gate in task.local for gate in task.gates)
        return len(task.local) + (0 if through_local else 1)
    if task.most_aggregating:
        return len(task.sizes) + sum(map(len, task.local.values()))
    return task.workers
