"""Trees planned on an overlay: workers, aggregators and the PS are its nodes, shortest paths its edges.

PARING and SPAR choose the receiver of each node, and leave the ways to shortest-path routing. Their papers let a
gradient descend to an aggregator and climb again (a detour), which up-down routing forbids and `check` refuses. Without
detours a node sends only to aggregators on a shortest path to the PS, and the plan can be installed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf

from inakit.planner.core.method import Options
from inakit.planner.core.plan import MOST_BITS, ROOT_LABEL, AggregationTree, Aggregator, Branch, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import Inp
from inakit.planner.trees.from_paths import Summing, plan_of_trees
from inakit.planner.trees.unfolding import unreachable
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.up_down import Move, hops_to, up_down_paths


@dataclass(frozen=True)
class OverlayOptions(Options):
    """`detours`: whether a gradient may descend to an aggregator and climb again. `degree`: the maximum senders of a
    node. `children`: the maximum number of flows in one sum; an aggregator with more senders sends several sums.
    `passes_once`: whether a detour passes no switch twice, as switches forward by tree and label.

    The papers' comparisons allow detours and limit neither the degree nor the children.
    """

    detours: bool = False
    degree: float = MOST_BITS
    children: float = inf
    passes_once: bool = False


@dataclass
class Overlay:
    """A tree that grows from the PS. `parents[node]` is the aggregator, or the PS, to which a node sends.

    `children` counts the senders of each node; `hops` and `drawn` cache distances and paths.
    """

    fabric: Fabric
    server: str
    options: OverlayOptions
    parents: dict[str, str] = field(default_factory=dict)
    children: Counter[str] = field(default_factory=Counter)
    hops: dict[str, dict[str, float]] = field(default_factory=dict)
    drawn: dict[tuple[str, str], Path] = field(default_factory=dict)

    def distance(self, source: str, target: str) -> float:
        """The hops of the shortest up-down paths from one node to another; infinite if there is none."""
        if source in self.fabric.host_names:
            return 1 + self.distance(self.fabric.tor_of(source), target)
        if target in self.fabric.host_names:
            return 1 + self.distance(source, self.fabric.tor_of(target))
        if target not in self.hops:
            states = hops_to(self.fabric, target)
            self.hops[target] = {node: count for (node, last), count in states.items() if last == Move.UP}
        return self.hops[target].get(source, inf)

    def reach(self, source: str, targets: Iterable[str]) -> float:
        """The distance from `source` to the nearest of the targets and the PS to which it may send."""
        return min(self.distance(source, target) for target in [*targets, self.server] if self.allows(source, target))

    def allows(self, source: str, target: str) -> bool:
        """Whether `source` may send to `target`, without detours only on one of its shortest paths to the PS."""
        if self.options.detours or target == self.server:
            return self.distance(source, target) < inf
        direct = self.distance(source, self.server)
        return self.distance(source, target) + self.distance(target, self.server) == direct

    def attach(self, node: str, candidates: Iterable[str]) -> None:
        """Connect `node` to the nearest of the candidates with room for it."""
        parent = self.nearest(node, candidates)
        self.parents[node] = parent
        self.children[parent] += 1

    def has_room(self, parent: str) -> bool:
        """Whether one more node may send to `parent`; the PS takes any number."""
        if parent == self.server:
            return True
        chip = self.fabric.switch_by_name[parent].chip
        return self.children[parent] < min(self.options.degree, chip.children_per_slot if chip else inf)

    def nearest(self, node: str, candidates: Iterable[str]) -> str:
        """The nearest candidate with room, the first of several; the PS if none has room."""
        free = [name for name in candidates if self.allows(node, name) and self.has_room(name)]
        if self.options.passes_once:
            free = [name for name in free if not set(self.path(node, name)[:-1]) & set(self.way(name))]
        return min(free, key=lambda name: self.distance(node, name), default=self.server)

    def path(self, node: str, parent: str) -> Path:
        """A shortest path, drawn by a hash of seed, rack and `parent`, so that a rack's flows stay together.

        Raises `InputError` where there is none.
        """
        if node in self.fabric.host_names:
            return (node, *self.path(self.fabric.tor_of(node), parent))
        if (node, parent) not in self.drawn:
            paths = up_down_paths(self.fabric, node, parent)
            if not paths:
                raise unreachable(node, parent)
            self.drawn[node, parent] = random.Random(f"{self.options.seed} {node} {parent}").choice(paths)
        return self.drawn[node, parent]

    def way(self, node: str) -> Path:
        """The nodes from an aggregator, or the PS, to the PS."""
        if node == self.server:
            return (node,)
        parent = self.parents.get(node, self.server)
        return (*self.path(node, parent), *self.way(parent)[1:])

    def depth(self, node: str) -> int:
        """The number of overlay hops from `node` to the PS."""
        return 0 if node == self.server else 1 + self.depth(self.parents[node])


def tree_of(overlay: Overlay, number: int, workers: Collection[str]) -> AggregationTree:
    """The overlay as a tree without slots: an aggregator for each entered pipeline, or several for few children."""
    labels: dict[str | Summing, int] = {worker: label for label, worker in enumerate(workers, start=1)}
    arrived: Counter[Inp] = Counter()
    children: dict[Summing, list[int]] = {}
    branches: list[Branch] = []

    def send(sender: str | Summing, node: str) -> None:
        path, parent = overlay.path(node, overlay.parents[node]), ROOT_LABEL
        if path[-1] != overlay.server:
            inp = path[-1], overlay.fabric.ingress_pipeline(path[-1], path[-2])
            summing = Summing(*inp, int(arrived[inp] // overlay.options.children))
            arrived[inp] += 1
            parent = labels.setdefault(summing, len(labels) + 1)
            children.setdefault(summing, []).append(labels[sender])
        branches.append(Branch(labels[sender], parent, path))

    for worker in workers:
        send(worker, worker)
    switches = [node for node in overlay.parents if node not in overlay.fabric.host_names]
    for switch in sorted(switches, key=overlay.depth, reverse=True):
        for summing in [summing for summing in children if summing.switch == switch]:
            send(summing, switch)
    aggregators = tuple(
        Aggregator(labels[own], own.switch, own.pipeline, tuple(found), 0, 0) for own, found in children.items()
    )
    return AggregationTree(number, overlay.server, {labels[w]: w for w in workers}, aggregators, tuple(branches))


def plan_of(method: str, problem: Problem, options: OverlayOptions, grow: Callable[[Job, Overlay], None]) -> Plan:
    """A plan with one tree for each PS, all flows at the best equal rate.

    `grow` attaches a job's workers to an overlay.
    """
    trees = []
    for job in problem.jobs:
        for number, server in enumerate(job.servers, start=1):
            overlay = Overlay(problem.fabric, server, options)
            grow(job, overlay)
            trees.append((job.number, 1 / len(job.servers), tree_of(overlay, number, job.workers)))
    return plan_of_trees(method, problem, trees, options.window)


def single_task(method: str, problem: Problem) -> Job:
    """The only job, which has only one PS. Raises `InputError` for more."""
    job = problem.jobs[0]
    if len(problem.jobs) > 1 or len(job.servers) > 1:
        raise InputError(
            f"{method} places one job with one parameter server, {len(problem.jobs)} jobs with "
            f"{sum(len(job.servers) for job in problem.jobs)} are given: give one"
        )
    return job


def aggregating(fabric: Fabric) -> list[str]:
    return [switch.name for switch in fabric.switches if switch.ina]
