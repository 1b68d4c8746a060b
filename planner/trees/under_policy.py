"""A plan under another slot policy: the same trees and rates, other slots, and for some policies an in-network root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Branch, Plan
from inakit.planner.core.policies import policy_of
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import assign_slots, most_children
from inakit.topo.errors import PlanError


def with_policy(problem: Problem, plan: Plan, name: str) -> Plan:
    """The plan with slots by a policy of `inakit.planner.core.policies`.

    Raises `InputError` for an unknown name and `PlanError` for a tree that cannot have its root in the network.
    """
    return with_policies(problem, plan, {job.number: name for job in problem.jobs})


def with_policies(problem: Problem, plan: Plan, names: Mapping[int, str]) -> Plan:
    """As `with_policy`, with a policy for each job by its number."""
    trees = []
    for planned in plan.trees:
        name = names[planned.job]
        tree = rooted_in_network(planned.job, planned.tree) if policy_of(name).needs_root else planned.tree
        tree = replace(tree, policy=name)
        if any(len(tree.summands(a)) > most_children(problem.fabric, a.switch) for a in tree.aggregators):
            tree = replace(tree, whole_children=True)  # a chip has too few bits to tell the workers apart
        trees.append(tree)
    return plan.with_trees(assign_slots(problem.fabric, trees))


def rooted_in_network(job: int, tree: AggregationTree) -> AggregationTree:
    """The tree whose last aggregator answers the workers itself; the PS behind it stands by.

    Raises `PlanError` for a tree in which some flow bypasses the last aggregator.
    """
    if tree.in_network_root:
        return tree
    last = [branch for branch in tree.branches if branch.parent == ROOT_LABEL]
    if len(last) != 1 or last[0].label not in tree.aggregator_of:
        raise PlanError(
            f"job {job}, tree {tree.number}: {len(last)} flows come to PS '{tree.root}', and a root in the network "
            "needs one aggregator that all pass; plan with aggregation at the PS's own switch, on one pipeline"
        )
    top = last[0]

    def renamed(label: int) -> int:
        return ROOT_LABEL if label == top.label else label

    return replace(
        tree,
        root=tree.aggregator_of[top.label].switch,
        aggregators=tuple(replace(a, label=renamed(a.label)) for a in tree.aggregators),
        branches=tuple(Branch(b.label, renamed(b.parent), b.path) for b in tree.branches if b is not top),
        fallback=top.path,
        results={node: above for node, above in tree.results.items() if node not in top.path},
    )
