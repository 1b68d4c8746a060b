"""PANAMA: several trees for each job, its gradient spread over them evenly, each by links that carry the fewest flows.

Gebara, Ghobadi, Costa, *In-network Aggregation for Shared Machine Learning Clusters* (MLSys 2021). A job has several
trees, so that a large transfer makes no path a hot spot. By which rule they are chosen, and how many, is read into what
the abstract and summaries say: trees are routed one after another, of all jobs in turn, and each flow takes the path
whose busiest link has the fewest flows so far. A job has as many as there are shortest ways, but at most `trees`.

Rates are shared out beforehand, equally. Its congestion control is the slot policy `panama`: switches mark what finds a
long queue and OR the marks of what they sum, results are the acknowledgements, and windows follow their marks (DCTCP).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import assign_slots
from inakit.planner.methods.ecmp import Loads, greedy_paths
from inakit.planner.trees.from_paths import tree_from_paths
from inakit.planner.trees.unfolding import unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Path

POLICY = "panama"
"""The slot policy: shadow copies, and congestion control by marks."""


@dataclass(frozen=True)
class PanamaOptions(Options):
    """`trees`: the most trees for each job and PS."""

    trees: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trees < 1:
            raise InputError(f"trees {self.trees}: at least 1 is expected")


@dataclass(frozen=True)
class Owned:
    """A tree, and the job whose it is."""

    job: Job
    tree: AggregationTree


def plan(problem: Problem, options: PanamaOptions) -> Plan:
    """The plan of PANAMA: every job has the same rate, and each of its trees the same part of it."""
    owned = routed(problem, options)
    counts = Counter(each.job.number for each in owned)
    trees = assign_slots(problem.fabric, [each.tree for each in owned], options.window)
    shares = [1 / counts[each.job.number] for each in owned]
    rate = sending_rate_bps(problem.fabric, zip(trees, shares, strict=True))
    planned = tuple(
        PlannedTree(each.job.number, share, rate * share, tree)
        for each, tree, share in zip(owned, trees, shares, strict=True)
    )
    return Plan("panama", problem.fabric.name, planned, SolverOutcome("heuristic", 0.0))


def routed(problem: Problem, options: PanamaOptions) -> list[Owned]:
    """The trees of all jobs, in turn: first one of each job and PS, then the next."""
    fabric, loads, found = problem.fabric, Counter[tuple[str, str]](), list[Owned]()
    tasks = [
        (job, server, most_trees(fabric, job, server, options.trees)) for job in problem.jobs for server in job.servers
    ]
    numbers: Counter[int] = Counter()
    for turn in range(options.trees):
        for job, server, most in tasks:
            if turn < most:
                numbers[job.number] += 1
                draw = random.Random(f"{options.seed} {job.number} {server} {turn}")
                found.append(Owned(job, next_tree(fabric, job, server, numbers[job.number], loads, draw)))
    return found


def next_tree(fabric: Fabric, job: Job, server: str, number: int, loads: Loads, draw: random.Random) -> AggregationTree:
    """A tree by the links that carry the fewest flows, which it adds to `loads`."""
    paths = greedy_paths(fabric, job, server, draw, busiest_above_tor, loads)
    tree = tree_from_paths(fabric, number, paths, fabric.ina_names)
    loads.update(link for branch in tree.branches for link in branch.links if link[1] != server)
    return replace(tree, number=number, policy=POLICY)


def busiest_above_tor(loads: Loads, own: Path) -> float:
    """The flows on the busiest link above the worker's own; of equal paths the one that joins a sum first is better."""
    return max((loads[link] for link in pairwise(own[1:])), default=0) + 1 - 1 / len(own)


def most_trees(fabric: Fabric, job: Job, server: str, most: int) -> int:
    """The ways of the worker that has most to choose from, or `most`."""
    unfolded = unfold(fabric, server)
    return max(min(most, ways(unfolded.next_hops, worker)) for worker in job.workers)


def ways(next_hops: dict[str, tuple[str, ...]], node: str) -> int:
    """The number of paths from a node to the root; 1 for a node that does not reach it, which routing tells."""
    return sum(ways(next_hops, peer) for peer in next_hops.get(node, ())) or 1
