"""Capacity for results, and slots of another policy: it turns a method's plan into one that a closed loop can run.

The papers plan only the way to the PS. A job with one PS rarely needs more, because its results use links in the
directions that its gradients do not. With several PSs or jobs, results of one share links with gradients of another
(ARO, footnote 3): rates are lowered until gradients, and the results that return at the same time, fit every link and
chip.

Under another slot policy a plan keeps its trees and rates; slots differ, and for some policies the root is a switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from inakit.planner.core.evaluate import Prediction, TreeLoad, tree_loads
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Branch, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.core.slots import assign_slots, most_children
from inakit.planner.core.used_limits import used_windows
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import DirectedLink

RESULTS_RETURN = {"reliable": True, "replay": False}
"""By mode of a run, whether results return while gradients are still sent."""
ROUNDING = 1e-9
"""A factor this close to 1 counts as 1, since a plan can fill a link with gradients alone."""


def headroom(problem: Problem, plan: Plan, prediction: Prediction) -> tuple[float, str]:
    """The factor of all rates at which gradients and results fit, at most 1, and the reason if it is below 1."""
    capacities, loads = problem.fabric.capacities_bps, prediction.loads_with_results_bps
    factors = {link: capacities[link] / load for link, load in loads.items() if load > 0}
    factor = min(factors.values(), default=1.0)
    links = [link for link, own in factors.items() if own <= factor * (1 + ROUNDING)]
    used = (window for window in used_windows(problem, plan) if window.used > 0)
    window = max(used, key=lambda window: window.share, default=None)
    if window is not None and 1 / window.share < factor:
        factor = 1 / window.share
        why = f"{window.used:.0f} fragments are on their way, and slots at {window.where} hold {window.limit:.0f}"
    else:
        why = sharing(problem, plan, links) if factor < 1 - ROUNDING else ""
    return (factor, why) if factor < 1 - ROUNDING else (1.0, "")


def sharing(problem: Problem, plan: Plan, links: list[DirectedLink]) -> str:
    """A sentence that names the results and the gradients that share the first of these links, if it has both."""
    loads, link = list(tree_loads(problem, plan)), links[0]
    results = [load for load in loads if link in {(above, node) for node, above in load.tree.result_parents.items()}]
    gradients = [load for load in loads if any(link in branch.links for branch in load.tree.branches)]
    counted = "1 more link is" if len(links) == 2 else f"{len(links) - 1} more links are"
    more = f" (and {counted} as full)" if len(links) > 1 else ""
    name = f"link {' → '.join(link)}"
    if not results or not gradients:
        return f"{name} would carry more than it can{more}"
    return f"results of {owners(results)} share {name} with gradients of {owners(gradients)}{more}"


def owners(loads: Iterable[TreeLoad]) -> str:
    """The jobs and roots of trees as text, such as "job 1 (root h24) and job 3 (root h12)"."""
    roots: dict[int, list[str]] = {}
    for load in loads:
        roots.setdefault(load.job, []).append(load.tree.root)
    return " and ".join(f"job {job} (root {', '.join(dict.fromkeys(found))})" for job, found in roots.items())


def with_policy(problem: Problem, plan: Plan, name: str) -> Plan:
    """The plan with slots by a policy of `inakit.planner.core.slot_policies`.

    Raises `InputError` for an unknown name and `PlanError` for a tree that cannot have its root in the network.
    """
    return with_policies(problem, plan, {job.number: name for job in problem.jobs})


def with_policies(problem: Problem, plan: Plan, names: Mapping[int, str]) -> Plan:
    """Apply `with_policy`, with a policy for each job by its number."""
    return plan.with_trees(assign_slots(problem.fabric, under_policies(problem, plan, names)))


def under_policies(problem: Problem, plan: Plan, names: Mapping[int, str]) -> list[AggregationTree]:
    """The trees of the plan under these policies; their slots are still to be assigned."""
    trees = []
    for planned in plan.trees:
        name = names[planned.job]
        tree = rooted_in_network(planned.job, planned.tree) if policy_of(name).needs_root else planned.tree
        tree = replace(tree, policy=name)
        if any(len(tree.summands(a)) > most_children(problem.fabric, a.switch) for a in tree.aggregators):
            tree = replace(tree, whole_children=True)  # a chip has too few bits to tell the workers apart
        trees.append(tree)
    return trees


def rooted_in_network(job: int, tree: AggregationTree) -> AggregationTree:
    """The tree whose last aggregator answers the workers itself; the PS behind it is on standby.

    Raises `PlanError` for a tree in which some flow bypasses the last aggregator.
    """
    if tree.in_network_root:
        return tree
    last = [branch for branch in tree.branches if branch.parent == ROOT_LABEL]
    if len(last) != 1 or last[0].label not in tree.aggregator_of:
        raise PlanError(
            f"job {job}, tree {tree.number}: {len(last)} flows reach PS '{tree.root}', and a root in the network "
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
