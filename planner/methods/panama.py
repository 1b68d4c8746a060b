"""PANAMA: several trees for each job, with its gradient spread evenly; each takes the links with the fewest flows.

Gebara, Ghobadi, Costa, *In-network Aggregation for Shared Machine Learning Clusters* (MLSys 2021). A job has several
trees, so that a large transfer makes no path a hot spot. The number of trees and the rule that selects them are the
kit's reading of the abstract and summaries: trees are routed one after another, of all jobs in turn, and each flow
takes the path whose busiest link has the fewest flows. A job has as many trees as shortest ways, at most `trees`.

Rates are fixed beforehand, in equal parts. Its congestion control is the slot policy `panama`: switches mark packets
that find a long queue and OR the marks of packets that they sum; results are the acknowledgements, and windows follow
their marks (DCTCP).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.ecmp import Loads, greedy_paths
from inakit.planner.trees.from_paths import plan_of_trees, tree_from_paths
from inakit.planner.trees.unfolding import unfold
from inakit.topo.fabric.fabric import DirectedLink, Path

POLICY = "panama"
"""The slot policy: shadow copies, and congestion control by marks."""


@dataclass(frozen=True)
class PanamaOptions(Options):
    """`trees`: the maximum number of trees for each job and PS."""

    trees: int = 4
    LEAST: ClassVar[Mapping[str, int]] = {"trees": 1}


def plan(problem: Problem, options: PanamaOptions) -> Plan:
    """PANAMA's plan: every job has the same rate, divided equally over its trees."""
    owned = routed(problem, options)
    counts = Counter(job for job, _ in owned)
    return plan_of_trees(
        "panama", problem, [(job, 1 / counts[job], tree) for job, tree in owned], options.window, by_share=True
    )


def routed(problem: Problem, options: PanamaOptions) -> list[tuple[int, AggregationTree]]:
    """The trees of all jobs, each with its job's number, in turn: first one for each job and PS, then the next.

    A job and PS have as many trees as a worker has ways. Each tree takes the links with the fewest flows at that point.
    """
    fabric, loads, found = problem.fabric, Counter[DirectedLink](), []
    most = {}
    for job in problem.jobs:
        for server in job.servers:
            next_hops = unfold(fabric, server).next_hops
            counted = {fabric.tor_of(worker): ways(next_hops, fabric.tor_of(worker)) for worker in job.workers}
            most[job.number, server] = max(counted.values())
    for turn in range(options.trees):
        for job in problem.jobs:
            for server in job.servers:
                if turn < most[job.number, server]:
                    draw = random.Random(f"{options.seed} {job.number} {server} {turn}")
                    paths = greedy_paths(fabric, job, server, draw, busiest_above_tor, loads)
                    tree = tree_from_paths(fabric, 1, paths, fabric.ina_names)
                    loads.update(link for branch in tree.branches for link in branch.links if link[1] != server)
                    found.append((job.number, replace(tree, policy=POLICY)))
    return found


def busiest_above_tor(loads: Loads, own: Path) -> float:
    """The flows on the busiest link above the worker's own; of equal paths, one that joins a sum earlier is better."""
    return max((loads[link] for link in pairwise(own[1:])), default=0) + 1 - 1 / len(own)


def ways(next_hops: Mapping[str, tuple[str, ...]], node: str) -> int:
    """The number of paths from a node to the root; 1 for a node that does not reach it, which routing reports."""
    return sum(ways(next_hops, peer) for peer in next_hops.get(node, ())) or 1
