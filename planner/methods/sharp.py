"""SHARP's tree, the baseline of industry: one static tree of the whole fabric, with its root in a switch.

Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), COM-HPC 2016: when an InfiniBand network starts, a
tree of aggregation nodes is laid over its switches. A job uses the part of it above its hosts: every switch of this
part sums the packets from below, the root has the result and sends it back down. There is no parameter server (PS).

No paper states how the tree is chosen, so the kit's reading is: its root is the first switch of the highest tier to
which all workers of all jobs climb, counted from the seed on, and every other switch sends to the next hop of this
number. A job's root is the lowest INA switch of the tree where one aggregator sums all. The job's first PS is its
standby. SHARP sums all ports of a switch together. If a root cannot, because flows enter several of its pipelines or
more than 64 enter one, the job's tree continues from the fabric's root to its first PS, by static routes.
"""

from __future__ import annotations

from dataclasses import replace

from inakit.planner.core.method import Options
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.from_paths import plan_of_trees, tree_from_paths
from inakit.planner.trees.headroom import rooted_in_network
from inakit.planner.trees.unfolding import static_path, static_paths, unfold
from inakit.topo.fabric.fabric import Fabric

POLICY = "switchml"
"""The slot policy of a root that answers by itself: a segment with two versions, one of which keeps the last sums."""


def plan(problem: Problem, options: Options) -> Plan:
    """One tree for each job, in the fabric's static tree, all flows at the best equal rate."""
    root = static_root(problem, options.seed)
    trees = [(job.number, 1.0, job_tree(problem.fabric, job, root, options.seed)) for job in problem.jobs]
    return plan_of_trees("sharp", problem, trees, options.window)


def static_root(problem: Problem, seed: int) -> str | None:
    """The root of the fabric's tree: an INA switch of the highest tier that all workers reach by climbing, if there is
    one.

    Among several it is number `seed`.
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
    for node in waiting:  # the list grows in the loop
        found = {peer for peer in fabric.neighbors[node] if fabric.tiers[peer] < fabric.tiers[node]} - below
        below |= found
        waiting += found
    return below


def job_tree(fabric: Fabric, job: Job, root: str | None, seed: int) -> AggregationTree:
    """The job's part of the tree, with its root in the network if one aggregator can sum all.

    Otherwise its paths lead to its first PS: up to `root` and down again. They turn back below it where both parts
    would pass the same switch.
    """
    to_server = unfold(fabric, job.servers[0])
    paths = static_paths(to_server, job.workers, seed)
    if root is not None:
        up = static_paths(unfold(fabric, root), job.workers, seed)
        shared = set.intersection(*(set(path) for path in up)) & fabric.ina_names
        for switch in (node for node in up[0] if node in shared):  # from the lowest up to the root
            tree = tree_from_paths(fabric, 1, [path[: path.index(switch) + 1] for path in up], fabric.ina_names)
            last = [branch for branch in tree.branches if branch.parent == ROOT_LABEL]
            if len(last) == 1 and last[0].label in tree.aggregator_of and len(last[0].path) == 1:
                way = static_path(to_server, switch, seed)
                return replace(rooted_in_network(job.number, tree), policy=POLICY, fallback=way)
        down = static_path(to_server, root, seed)
        both = zip(paths, up, strict=True)
        paths = [direct if set(above) & set(down[1:]) else above + down[1:] for direct, above in both]
    return tree_from_paths(fabric, 1, paths, fabric.ina_names)
