"""SHARP's tree, the baseline of industry: one static tree of the whole fabric, with its root in a switch.

Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COM-HPC 2016: when an InfiniBand network starts, a
tree of aggregation nodes is laid over its switches. A job uses the part of it below which its hosts hang: every switch
of it sums what comes from below, the root has the result and sends it back down. There is no parameter server (PS).

What is read into it, since no paper says how the tree is chosen: its root is the first switch of the highest tier that
all workers of all jobs climb to, counted from the seed on, and every other switch sends to the next hop of that number.
A job's root is the lowest INA switch of the tree where one aggregator sums all. The job's first PS stands by behind it.
SHARP sums all ports of a switch together. Where a root cannot, because flows enter several of its pipelines or more
than 64 enter one, the job's tree goes on from the fabric's root to its first PS, by static routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inakit.planner.core.method import Options
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.from_paths import plan_of_trees, tree_from_paths
from inakit.planner.trees.under_policy import rooted_in_network
from inakit.planner.trees.unfolding import static_path, static_paths, unfold
from inakit.topo.fabric.fabric import Fabric, Path

POLICY = "switchml"
"""The slot policy of a root that answers by itself: a segment with two versions, of which one keeps the last sums."""


def plan(problem: Problem, options: Options) -> Plan:
    """One tree for each job, in the fabric's static tree, all flows at the best equal rate."""
    root = static_root(problem, options.seed)
    trees = [(job.number, 1.0, job_tree(problem.fabric, job, root, options.seed)) for job in problem.jobs]
    return plan_of_trees("sharp", problem, trees, options.window)


def static_root(problem: Problem, seed: int) -> str | None:
    """The root of the fabric's tree: an INA switch of the highest tier that all workers only climb to, if there is one.

    Of several it is number `seed`.
    """
    workers = {worker for job in problem.jobs for worker in job.workers}
    tiers = problem.fabric.tiers
    common = [name for name in problem.fabric.ina_names if workers <= climbing(problem.fabric, name)]
    top = max((tiers[name] for name in common), default=0)
    highest = [name for name in sorted(common) if tiers[name] == top]
    return highest[seed % len(highest)] if highest else None


def climbing(fabric: Fabric, root: str) -> set[str]:
    """The nodes from which static routes only climb to `root`."""
    below = {root}
    waiting = [root]
    for node in waiting:  # grows while it is walked
        found = {peer for peer in fabric.neighbors[node] if fabric.tiers[peer] < fabric.tiers[node]} - below
        below |= found
        waiting += found
    return below


def job_tree(fabric: Fabric, job: Job, root: str | None, seed: int) -> AggregationTree:
    """The job's part of the tree, with its root in the network if one aggregator can sum all."""
    if root is not None:
        paths = static_paths(unfold(fabric, root), job.workers, seed)
        for switch in last_common(fabric, paths):
            tree = tree_from_paths(fabric, 1, [path[: path.index(switch) + 1] for path in paths], fabric.ina_names)
            if sums_all(tree):
                way = static_path(unfold(fabric, job.servers[0]), switch, seed)
                return replace(rooted_in_network(job.number, tree), policy=POLICY, fallback=way)
    return tree_from_paths(fabric, 1, paths_to_server(fabric, job, root, seed), fabric.ina_names)


def paths_to_server(fabric: Fabric, job: Job, root: str | None, seed: int) -> list[Path]:
    """Static paths to the job's first PS: climbing to `root`, and down again, where this passes no switch twice."""
    to_server = unfold(fabric, job.servers[0])
    paths = static_paths(to_server, job.workers, seed)
    if root is None:
        return paths
    to_root, down = unfold(fabric, root), static_path(to_server, root, seed)
    return [through(path, static_path(to_root, path[0], seed), down) for path in paths]


def through(direct: Path, up: Path, down: Path) -> Path:
    """The path up and down, or the direct one, which turns back below the root, where both parts pass a switch."""
    return direct if set(up) & set(down[1:]) else up + down[1:]


def last_common(fabric: Fabric, paths: Sequence[Path]) -> Iterator[str]:
    """The INA switches that all paths pass, from the lowest up to the root."""
    shared = set.intersection(*(set(path) for path in paths))
    yield from (node for node in paths[0] if node in shared and node in fabric.ina_names)


def sums_all(tree: AggregationTree) -> bool:
    """Whether one aggregator at the root sums all."""
    last = [branch for branch in tree.branches if branch.parent == ROOT_LABEL]
    return len(last) == 1 and last[0].label in tree.aggregator_of and len(last[0].path) == 1
