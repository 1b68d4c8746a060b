"""Random plans, most of them broken: what the checker accepts can be installed, carried and predicted.

Plans of all planners for random problems are changed at random, in one to three places. A plan that passes `check` must
have entries that carry every gradient exactly once and every result to every worker, and a prediction without an
overloaded link, switch or pipeline; everything else must be refused by `PlanError`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import inf, isfinite, nan

import pytest
from entries_model import GRADIENT, NOTICE, RESULT, Network, Packet
from planner_cases import quick_plan
from random_problems import KINDS, problem_of
from tiers import long_unless

from inakit.planner.core.check import check
from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Collective, Plan, PlannedTree
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.core.used_limits import LINK, RECIRCULATION, SWITCH, used_limits
from inakit.planner.install.plan_entries import entries
from inakit.planner.prepared import with_headroom
from inakit.topo.errors import InputError, PlanError

Draw = random.Random
METHODS = ("atp", "forest", "goat", "lbmm", "panama", "sharp", "spar", "ring", "halving-doubling")
NUMBERS = (-1, 0, 1, 2, 3, 255, 256, 65535, 65536, 1 << 40)
RATES = (-1.0, 0.0, 1e-300, 0.5, 1.0, 1 + 1e-12, 1 + 1e-6, 1.5, 1e300, inf, nan)


# -- Changes of a tree.


def some_label(draw: Draw, tree: AggregationTree) -> int:
    return draw.choice([*tree.workers, *tree.aggregator_of, 0, draw.choice(NUMBERS)])


def with_branch(tree: AggregationTree, old: Branch, new: Branch) -> AggregationTree:
    return replace(tree, branches=tuple(new if branch is old else branch for branch in tree.branches))


def another_way(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    """A branch goes by a random walk, up to its parent's node if the walk finds it."""
    branch, neighbors = draw.choice(tree.branches), problem.fabric.neighbors | {"nowhere": ("h1",)}
    path = [branch.path[0]]
    while path[-1] != branch.path[-1] and len(path) < 9:
        path.append(draw.choice(neighbors[path[-1]]))
    return with_branch(tree, branch, replace(branch, path=tuple(path)))


def another_node(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    """A node of a path is lost, doubled or exchanged."""
    branch = draw.choice(tree.branches)
    place, node = draw.randrange(len(branch.path)), draw.choice([*problem.fabric.neighbors, "nowhere"])
    middle = draw.choice([(), (node,), (branch.path[place],) * 2])
    return with_branch(tree, branch, replace(branch, path=branch.path[:place] + middle + branch.path[place + 1 :]))


def another_parent(draw: Draw, _: Problem, tree: AggregationTree) -> AggregationTree:
    branch = draw.choice(tree.branches)
    return with_branch(tree, branch, replace(branch, parent=some_label(draw, tree)))


def past_its_aggregator(draw: Draw, _: Problem, tree: AggregationTree) -> AggregationTree:
    """A flow is no longer summed by its aggregator, and takes the way of its sum."""
    summed = [branch for branch in tree.branches if branch.parent in tree.aggregator_of and branch.parent]
    if not summed:
        return tree
    branch = draw.choice(summed)
    if branch.parent not in tree.branch_of:
        return tree
    onward = tree.branch_of[branch.parent]
    tree = with_branch(tree, branch, Branch(branch.label, onward.parent, branch.path + onward.path[1:]))
    above = [replace(a, children=tuple(c for c in a.children if c != branch.label)) for a in tree.aggregators]
    above = [replace(a, children=(*a.children, branch.label)) if a.label == onward.parent else a for a in above]
    return replace(tree, aggregators=tuple(above))


def another_aggregator(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    """An aggregator sums elsewhere, others, or in other slots."""
    if not tree.aggregators:
        return tree
    old = draw.choice(tree.aggregators)
    change: Callable[[], Aggregator] = draw.choice(
        [
            lambda: replace(old, switch=draw.choice([*problem.fabric.neighbors])),
            lambda: replace(old, pipeline=draw.choice(NUMBERS)),
            lambda: replace(old, first_slot=draw.choice([*NUMBERS, old.first_slot + 1])),
            lambda: replace(old, slots=draw.choice([*NUMBERS, old.slots + 1])),
            lambda: replace(old, children=old.children[1:]),
            lambda: replace(old, children=(*old.children, some_label(draw, tree))),
            lambda: replace(old, children=tuple(draw.sample(old.children, len(old.children)))),
            lambda: replace(old, label=some_label(draw, tree)),
        ]
    )
    new = change()
    return replace(tree, aggregators=tuple(new if a is old else a for a in tree.aggregators))


def other_labels(draw: Draw, _: Problem, tree: AggregationTree) -> AggregationTree:
    """A label gets another number, everywhere."""
    old, new = some_label(draw, tree), draw.choice(NUMBERS)

    def of(label: int) -> int:
        return new if label == old else label

    return replace(
        tree,
        workers={of(label): host for label, host in tree.workers.items()},
        aggregators=tuple(replace(a, label=of(a.label), children=tuple(map(of, a.children))) for a in tree.aggregators),
        branches=tuple(replace(b, label=of(b.label), parent=of(b.parent)) for b in tree.branches),
    )


def other_workers(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    """A worker is missing, twice there, or another host."""
    if not tree.workers:
        return tree
    label = draw.choice([*tree.workers])
    if draw.random() < 0.5:
        return replace(tree, workers=tree.workers | {label: draw.choice([host.name for host in problem.fabric.hosts])})
    branches = tuple(branch for branch in tree.branches if branch.label != label)
    return replace(
        tree,
        workers={number: host for number, host in tree.workers.items() if number != label},
        aggregators=tuple(replace(a, children=tuple(c for c in a.children if c != label)) for a in tree.aggregators),
        branches=branches,
    )


def other_results(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    """Results return by links of branches, chosen at random, or elsewhere at one node."""
    if draw.random() < 0.5:
        links = [link for branch in tree.branches for link in branch.links]
        return replace(tree, results=dict(draw.sample(links, len(links))))
    results = dict(tree.results or dict.fromkeys(tree.workers.values(), tree.root))
    results[draw.choice([*results])] = draw.choice([*problem.fabric.neighbors])
    return replace(tree, results=results)


def another_fallback(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    path = [tree.root if tree.root in problem.fabric.neighbors else "h1"]
    while path[-1] not in problem.jobs[0].servers and len(path) < 9:
        path.append(draw.choice(problem.fabric.neighbors[path[-1]]))
    return replace(tree, fallback=tuple(path) if draw.random() < 0.8 else ())


def other_settings(draw: Draw, problem: Problem, tree: AggregationTree) -> AggregationTree:
    change: Callable[[], AggregationTree] = draw.choice(
        [
            lambda: replace(tree, number=draw.choice(NUMBERS)),
            lambda: replace(tree, policy=draw.choice([*POLICIES, "none"])),
            lambda: replace(tree, priority=draw.choice(NUMBERS)),
            lambda: replace(tree, root=draw.choice([*problem.fabric.neighbors, "nowhere"])),
        ]
    )
    return change()


TREE_CHANGES = (
    another_way,
    another_node,
    another_parent,
    past_its_aggregator,
    another_aggregator,
    other_labels,
    other_workers,
    other_results,
    another_fallback,
    other_settings,
)


# -- Changes of a plan.


def changed(draw: Draw, problem: Problem, plan: Plan) -> Plan:
    """The plan with one change. A plan without trees and connections stays as it is."""
    if plan.collectives and all(c.connections and all(x.transfers for x in c.connections) for c in plan.collectives):
        return with_collective(draw, problem, plan)
    if not plan.trees or not all(branch.path for planned in plan.trees for branch in planned.tree.branches):
        return plan
    place, kind = draw.randrange(len(plan.trees)), draw.random()
    old = plan.trees[place]
    new: Sequence[PlannedTree]
    if kind < 0.7:
        new = (replace(old, tree=draw.choice(TREE_CHANGES)(draw, problem, old.tree)),)
    elif kind < 0.8:
        new = (replace(old, rate_bps=old.rate_bps * draw.choice(RATES)),)
    elif kind < 0.9:
        new = (replace(old, share=old.share * draw.choice(RATES)),)
    elif kind < 0.95:
        half = replace(old, share=old.share / 2, rate_bps=old.rate_bps / 2)
        new = (half, replace(half, tree=replace(old.tree, number=draw.choice(NUMBERS))))
    else:
        new = draw.choice([(), (replace(old, job=draw.choice(NUMBERS)),)])
    return replace(plan, trees=(*plan.trees[:place], *new, *plan.trees[place + 1 :]))


def with_collective(draw: Draw, problem: Problem, plan: Plan) -> Plan:
    """The plan with one change of a collective."""
    place = draw.randrange(len(plan.collectives))
    old = plan.collectives[place]
    at = draw.randrange(len(old.connections))
    connection = old.connections[at]
    transfer = draw.choice(connection.transfers)
    nodes = [*problem.fabric.neighbors]

    def connections(**changes: object) -> Collective:
        made = replace(connection, **changes)  # type: ignore[arg-type]
        return replace(old, connections=(*old.connections[:at], made, *old.connections[at + 1 :]))

    def transfers(**changes: object) -> Collective:
        made = (replace(t, **changes) if t == transfer else t for t in connection.transfers)  # type: ignore[arg-type]
        return connections(transfers=tuple(made))

    change: Callable[[], Collective] = draw.choice(
        [
            lambda: replace(old, chunks=draw.choice([-1, 0, 1, old.chunks + 1])),
            lambda: replace(old, ranks=tuple(draw.sample(old.ranks, len(old.ranks)))),
            lambda: replace(old, ranks=old.ranks[:-1]),
            lambda: replace(old, connections=old.connections[1:]),
            lambda: replace(old, connections=()),
            lambda: connections(rate_bps=connection.rate_bps * draw.choice(RATES)),
            lambda: connections(source=draw.choice([-1, 0, 1, 2, 99])),
            lambda: connections(destination=draw.choice([-1, 0, 1, 2, 99])),
            lambda: connections(path=(*connection.path[:1], draw.choice(nodes), *connection.path[1:])),
            lambda: connections(path=connection.path[:-1]),
            lambda: connections(transfers=connection.transfers[1:]),
            lambda: transfers(step=draw.choice([-1, 0, 1, 7])),
            lambda: transfers(first=draw.choice([-1, 0, 1, 7])),
            lambda: transfers(count=draw.choice([-1, 0, 1, 7])),
            lambda: transfers(adds=not transfer.adds),
        ]
    )
    made = change()
    return replace(plan, collectives=(*plan.collectives[:place], made, *plan.collectives[place + 1 :]))


# -- What an accepted plan must be.


def overloaded(problem: Problem, plan: Plan) -> bool:
    """Whether the prediction loads a link, a switch or a pipeline with more than it has."""
    limits = (each for each in used_limits(problem, plan, with_results=False))
    return any(each.kind in (LINK, SWITCH, RECIRCULATION) and each.share > 1 + 1e-8 for each in limits)


def assert_it_runs(problem: Problem, plan: Plan) -> None:
    assert not overloaded(problem, plan)
    prediction = evaluate(problem, plan)
    assert_finite(prediction, plan)
    for mode in ("reliable", "replay"):
        prepared = with_headroom(problem, plan, mode)
        capacities = problem.fabric.capacities_bps
        loads = prepared.prediction.link_loads_bps
        if mode == "reliable":
            loads = prepared.prediction.loads_with_results_bps
        assert all(load <= capacities[link] * (1 + 1e-6) for link, load in loads.items())
    try:
        installed = entries(problem, plan)
    except PlanError as error:
        assert "the P4 program" in str(error)
        return
    assert_packets_arrive(Network(problem.fabric, installed), plan)


def assert_finite(prediction: Prediction, plan: Plan) -> None:
    assert all(isfinite(load) and load >= 0 for load in prediction.link_loads_bps.values())
    if all(planned.rate_bps > 1 for planned in plan.trees):
        assert isfinite(prediction.communication_time_s)


def assert_packets_arrive(network: Network, plan: Plan) -> None:
    for planned in plan.trees:
        tree, network = planned.tree, network.cleared()
        at = tree.server if tree.server is not None else tree.root
        for label, worker in tree.workers.items():
            network.send(worker, Packet(GRADIENT, planned.job, tree.number, label, Counter([worker]), at))
        assert not network.slots
        assert not network.dropped
        if tree.in_network_root:
            for worker in tree.workers.values():
                (result,) = network.received[worker]
                assert result.workers == Counter(tree.workers.values())
        else:
            assert network.links == flow_counts([tree])
            arrived = network.received[tree.root]
            assert sum((packet.workers for packet in arrived), Counter()) == Counter(tree.workers.values())
            network = network.cleared()
            network.send(tree.root, Packet(RESULT, planned.job, tree.number, 0))
            received = Counter({host: len(found) for host, found in network.received.items() if found})
            assert received == Counter(tree.workers.values())
        network = network.cleared()
        for label, worker in tree.workers.items():
            if tree.server is not None:
                direct = Packet(GRADIENT, planned.job, tree.number, label, Counter([worker]), tree.server, direct=True)
                network.send(worker, direct)
                network.send(tree.server, Packet(NOTICE, planned.job, tree.number, 0, to=worker, retransmitted=True))
                assert network.received[worker]
                assert network.received[tree.server]
        assert not network.dropped


@cache
def plan_of(method: str, kind: str, seed: int) -> Plan | None:
    try:
        return quick_plan(method, problem_of(kind, seed))
    except (InputError, PlanError):
        return None


def refusal(problem: Problem, plan: Plan) -> str | None:
    try:
        check(problem, plan)
    except PlanError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [long_unless(seeds.start == 0, kind, seeds) for kind in KINDS for seeds in (range(1), range(1, 13))],
)
@pytest.mark.parametrize("method", METHODS)
def test_what_the_checker_accepts_runs(method: str, kind: str, seeds: range) -> None:
    for seed in seeds:
        problem, plan = problem_of(kind, seed), plan_of(method, kind, seed)
        if plan is not None:
            assert_it_runs(problem, plan)
            for number in range(20 if seed == 0 else 100):
                draw, broken = random.Random(f"{kind} {seed} {method} {number}"), plan
                for _ in range(draw.randint(1, 3)):
                    broken = changed(draw, problem, broken)
                if refusal(problem, broken) is None:
                    assert_it_runs(problem, broken)
