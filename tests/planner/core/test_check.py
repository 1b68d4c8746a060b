"""The checker: valid plans pass, and each rule that is broken once is named with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

import pytest
from planner_cases import first_is_server, job, quick_plan, single
from tiers import long_unless

from inakit.planner.core.check import check
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.accelerations import VARIANTS
from inakit.planner.registry import METHODS
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import aro_figure1, fat_tree, goat_testbed, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines

UNIT = 20e6
WORKERS = ("w0", "w1", "w2", "w3", "w4")
FIGURE1 = single(aro_figure1(UNIT), WORKERS, "ps")
FULL = METHODS["aro"].plan(FIGURE1)
"""Workers have labels 1 to 5. w0 and w1 are summed on l1, w2 and w3 on l2, and all of them on s1."""
L1, S1, L2 = FULL.trees[0].tree.aggregators


def with_tree(plan: Plan, **changes: object) -> Plan:
    planned = plan.trees[0]
    return replace(plan, trees=(replace(planned, tree=replace(planned.tree, **changes)),))  # type: ignore[arg-type]


def with_sending(**changes: object) -> Plan:
    return replace(FULL, trees=(replace(FULL.trees[0], **changes),))  # type: ignore[arg-type]


def with_branch(label: int, **changes: object) -> Plan:
    tree = FULL.trees[0].tree
    branches = (replace(b, **changes) if b.label == label else b for b in tree.branches)  # type: ignore[arg-type]
    return with_tree(FULL, branches=tuple(branches))


def with_aggregator(aggregator: Aggregator, **changes: object) -> Plan:
    tree = FULL.trees[0].tree
    aggregators = (replace(a, **changes) if a == aggregator else a for a in tree.aggregators)  # type: ignore[arg-type]
    return with_tree(FULL, aggregators=tuple(aggregators))


def test_the_example_is_what_the_mutations_assume() -> None:
    check(FIGURE1, FULL)
    assert (L1.switch, L2.switch, S1.switch) == ("l1", "l2", "s1")
    assert FULL.trees[0].tree.workers == dict(enumerate(WORKERS, start=1))
    assert (L1.label, S1.label, L2.label) == (6, 7, 8)
    assert S1.children == (5, 6, 8)


TREE = FULL.trees[0].tree
MUTATIONS: dict[str, tuple[Plan, str]] = {
    "other fabric": (replace(FULL, fabric="other"), "fabric broken at plan: .*'other', not 'aro-figure1'"),
    "no tree": (replace(FULL, trees=()), "job broken at job 1: it has no tree"),
    "unknown job": (with_sending(job=2), "job broken at job 1: it has no tree"),
    "extra job": (replace(FULL, trees=(*FULL.trees, replace(FULL.trees[0], job=3))), "job broken at job 3"),
    "tree number twice": (
        replace(FULL, trees=tuple(replace(each, share=0.5) for each in FULL.trees * 2)),
        "job broken at job 1: 2 trees have the number 1",
    ),
    "tree number too high": (with_tree(FULL, number=65536), "job broken at job 1, tree 65536: tree numbers are 0 to"),
    "unknown policy": (with_tree(FULL, policy="none"), "policy broken at job 1, tree 1: slot policy 'none'"),
    "priority too high": (with_tree(FULL, priority=256), "policy broken at job 1, tree 1: .*priority 256"),
    "share": (with_sending(share=0.9), "share broken at job 1: its shares sum to 0.9"),
    "share of nothing": (
        replace(FULL, trees=(*FULL.trees, PlannedTree(1, 0.0, 0.0, replace(TREE, number=2)))),
        "share broken at job 1, tree 2",
    ),
    "negative rate": (with_sending(rate_bps=-1.0), "rate broken at job 1, tree 1"),
    "no rate": (with_sending(rate_bps=nan), "rate broken at job 1, tree 1"),
    "infinite rate": (with_sending(rate_bps=inf), "rate broken at job 1, tree 1"),
    "root is a worker": (with_tree(FULL, root="w0"), "root broken at job 1, tree 1, node w0"),
    "root is a switch": (with_tree(FULL, root="l0"), "root broken at job 1, tree 1, node l0"),
    "label twice": (with_aggregator(L1, label=1), "label broken at job 1, tree 1, label 1: it is used 2 times"),
    "label too high": (
        with_tree(FULL, workers=TREE.workers | {70000: "w5"}),
        "label broken at job 1, tree 1, label 70000",
    ),
    "label 0 for a worker": (with_tree(FULL, workers=TREE.workers | {0: "w5"}), "label broken at .*, label 0"),
    "no branch": (with_tree(FULL, branches=TREE.branches[1:]), "label broken at .*, label 1: 0 branches for 1"),
    "two branches": (
        with_tree(FULL, branches=(*TREE.branches, TREE.branches[0])),
        "label broken at .*, label 1: 2 branches",
    ),
    "branch of nobody": (
        with_tree(FULL, branches=(*TREE.branches, replace(TREE.branches[0], label=99))),
        "label broken at .*, label 99: 1 branches for 0",
    ),
    "worker missing": (
        replace(
            FULL,
            trees=(
                replace(
                    FULL.trees[0],
                    tree=replace(
                        TREE,
                        workers={label: host for label, host in TREE.workers.items() if label != 5},
                        branches=tuple(b for b in TREE.branches if b.label != 5),
                    ),
                ),
            ),
        ),
        "worker broken at .*, host w4: it has 0 labels, not 1",
    ),
    "worker of no job": (with_tree(FULL, workers=TREE.workers | {5: "ps"}), "worker broken at .*, host ps"),
    "worker twice": (with_tree(FULL, workers=TREE.workers | {5: "w0"}), "worker broken at .*, host w0"),
    "parent unknown": (with_branch(1, parent=42), "parent broken at .*, label 6 on l1: child 1"),
    "parent does not list": (
        with_aggregator(L1, children=(1,)),
        "parent broken at .*, label 2: aggregator 6 does not list it",
    ),
    "child of another": (with_aggregator(L1, children=(1, 2, 3)), "parent broken at .*, label 6 on l1: child 3"),
    "child twice": (
        with_aggregator(L1, children=(1, 2, 2)),
        "parent broken at .*, label 6 on l1: child 2 is listed 2 times",
    ),
    "no such link": (
        with_branch(1, path=("w0", "l2", "l1")),
        "path broken at .*, label 1, link w0->l2: the fabric has no such link",
    ),
    "path of one node": (with_branch(1, path=("l1",)), "path broken at .*, label 1"),
    "wrong start": (with_branch(1, path=("w1", "l1")), "path broken at .*, label 1: it leads from w1"),
    "wrong end": (with_branch(1, path=("w0", "l1", "s1")), "path broken at .*, label 1: it leads from w0 to s1"),
    "valley": (
        with_branch(5, path=("w4", "l3", "s0", "l1", "s1")),
        "up-down broken at .*, label 5, link l1->s1: it climbs",
    ),
    "turns back": (
        with_branch(6, path=("l1", "s0", "l1", "s1")),
        "up-down broken at .*, link l1->s1: it climbs",
    ),
    "not an INA switch": (with_aggregator(L1, switch="l3"), "ina broken at .*, label 6 on l3"),
    "a host": (with_aggregator(L1, switch="w0"), "ina broken at .*, label 6 on w0"),
    "no such pipeline": (with_aggregator(L1, pipeline=1), "ina broken at .*, label 6 on l1: pipeline 1 of 1"),
    "no children": (with_aggregator(L1, children=()), "children broken at .*, label 6 on l1"),
    "negative slot": (with_aggregator(L1, first_slot=-1), "slots broken at .*, label 6 on l1"),
    "no slots": (with_aggregator(L1, slots=0), "slots broken at .*, label 6 on l1"),
    "too many slots": (with_aggregator(L1, first_slot=500), "slots broken at .*, label 6 on l1: they end at 1012"),
    "too fast": (with_sending(rate_bps=20.1e6), "capacity broken at link w0->l1: 1 flows load it with 2.01e[+]07"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_broken_rule_is_named(name: str) -> None:
    plan, message = MUTATIONS[name]
    with pytest.raises(PlanError, match=f"rule {message}"):
        check(FIGURE1, plan)


def test_a_cycle_is_named() -> None:
    """Aggregators 6 on l1 and 7 on s1 feed each other."""
    branches = tuple(replace(b, parent=6, path=("s1", "l1")) if b.label == 7 else b for b in TREE.branches)
    aggregators = (replace(L1, children=(1, 2, 7)), L2, S1)
    with pytest.raises(PlanError, match=r"rule cycle broken at .*, label 1: it returns to label 6"):
        check(FIGURE1, with_tree(FULL, branches=branches, aggregators=aggregators))


def test_a_path_over_a_host_is_named() -> None:
    with pytest.raises(PlanError, match=r"rule path broken at .*, label 7: it passes host ps"):
        check(FIGURE1, with_branch(7, path=("s1", "l0", "ps", "l0", "ps")))


def test_a_standby_server_is_not_reached_over_a_host() -> None:
    problem = first_is_server(leaf_spine(2, 1, 2))
    plan = METHODS["sharp"].plan(problem)
    root = plan.trees[0].tree.root
    down = ("leaf1",) if root != "leaf1" else ()
    over = (root, *down, "h2", "leaf1", "h1")
    with pytest.raises(PlanError, match=r"rule fallback broken at .*: it passes host h2"):
        check(problem, with_tree(plan, fallback=over))


def test_a_way_that_returns_to_a_switch_is_named() -> None:
    """Up and down the same cable keeps the up-down rule, but forwarding by label cannot do it."""
    problem = first_is_server(fat_tree(4), workers=3)
    path = ("h3", "edge1_2", "agg1_1", "core1", "agg1_1", "edge1_1", "h1")
    plan = plan_of_branches(problem, {"h3": path})
    with pytest.raises(PlanError, match=r"rule forwarding broken at .*, label 2: its way .* passes agg1_1 2 times"):
        check(problem, plan)


def plan_of_branches(problem: Problem, changed: dict[str, tuple[str, ...]]) -> Plan:
    """LBMM's plan with some workers' paths exchanged."""
    plan = METHODS["lbmm"].plan(problem)
    tree = plan.trees[0].tree
    branches = (replace(b, path=changed.get(b.path[0], b.path)) for b in tree.branches)
    return with_tree(plan, branches=tuple(branches))


def test_a_crossing_is_allowed_at_the_top_only() -> None:
    """In GOAT's triangle w1 under s1 may reach the PS under s3 by way of s2."""
    problem = single(goat_testbed(2, UNIT), ("w1",), "ps")
    check(problem, plan_of_branches(problem, {}))
    check(problem, plan_of_branches(problem, {"w1": ("w1", "s1", "s2", "s3", "ps")}))


def two_pipelines() -> tuple[Problem, Plan]:
    """Two racks: the spine receives leaf2 (port 2) and leaf3 (port 3) in pipeline 1, and leaf1 in pipeline 0."""
    problem = single(with_pipelines(leaf_spine(3, 1, 2), 2), ["h3", "h4", "h5", "h6"], "h1")
    return problem, METHODS["aro"].plan(problem)


def test_a_child_in_another_pipeline_is_named() -> None:
    problem, plan = two_pipelines()
    spine = next(a for a in plan.trees[0].tree.aggregators if a.switch == "spine1")
    aggregators = tuple(
        replace(a, pipeline=1 - a.pipeline) if a == spine else a for a in plan.trees[0].tree.aggregators
    )
    with pytest.raises(PlanError, match=r"rule pipeline broken at .*, link leaf\d->spine1: it arrives in pipeline 1"):
        check(problem, with_tree(plan, aggregators=aggregators))


def test_two_aggregators_in_one_pipeline_cannot_share_slots() -> None:
    tree = TREE
    extra = Aggregator(9, "l1", 0, (2,), 256, 256)
    branches = [replace(b, parent=9) if b.label == 2 else b for b in tree.branches]
    branches.append(Branch(9, S1.label, ("l1", "s1")))
    aggregators = (replace(L1, children=(1,)), L2, replace(S1, children=(*S1.children, 9)), extra)
    with pytest.raises(PlanError, match=r"rule ina broken at .*, switch l1: 2 aggregators in pipeline 0; under 'atp'"):
        check(FIGURE1, with_tree(FULL, branches=tuple(branches), aggregators=aggregators, policy="atp"))


def test_more_children_than_a_bitmap_has_bits_are_named() -> None:
    problem = first_is_server(leaf_spine(1, 1, 66))
    workers = dict(enumerate(problem.jobs[0].workers, start=1))
    branches = [Branch(label, 66, (host, "leaf1")) for label, host in workers.items()]
    tree = AggregationTree(
        1,
        "h1",
        workers,
        (Aggregator(66, "leaf1", 0, tuple(workers), 0, 1),),
        (*branches, Branch(66, 0, ("leaf1", "h1"))),
    )
    with pytest.raises(PlanError, match=r"rule children broken at .*, label 66 on leaf1: 65 children"):
        check(problem, Plan("hand", problem.fabric.name, (PlannedTree(1, 1.0, 1.0, tree),), FULL.outcome))


def test_overlapping_segments_are_named() -> None:
    problem = single(leaf_spine(2, 1, 3), ["h4", "h5"], "h1", "h2")
    plan = METHODS["atp"].plan(problem)
    first, second = plan.trees
    moved = tuple(replace(a, first_slot=255) for a in second.tree.aggregators)
    broken = replace(plan, trees=(first, replace(second, tree=replace(second.tree, aggregators=moved))))
    with pytest.raises(PlanError, match=r"rule overlap broken at switch leaf2, pipeline 0: job 1, tree 1.* tree 2"):
        check(problem, broken)


def test_an_aggregation_rate_is_a_capacity() -> None:
    slow = with_aggregators(FIGURE1.fabric, rate_bps=UNIT)
    problem = replace(FIGURE1, fabric=slow)
    with pytest.raises(PlanError, match=r"rule capacity broken at switch l1: its aggregators get 4e[+]07"):
        check(problem, FULL)
    assert METHODS["aro"].plan(problem).trees[0].rate_bps == pytest.approx(UNIT / 2)


def test_a_plan_for_another_problem_is_refused() -> None:
    fewer = single(FIGURE1.fabric, WORKERS[:4], "ps")
    with pytest.raises(PlanError, match=r"rule worker broken at .*, host w4"):
        check(fewer, FULL)
    other = replace(FIGURE1, jobs=(job(WORKERS, "ps", number=2),))
    with pytest.raises(PlanError, match="rule job"):
        check(other, FULL)


VARIATIONS: list[Callable[[Fabric], Fabric]] = [
    lambda fabric: fabric,
    lambda fabric: with_pipelines(fabric, 2),
    lambda fabric: with_ina(with_pipelines(fabric, 4), share=0.4, seed=3),
]


@pytest.mark.parametrize(
    ("fabric", "variation"),
    [
        long_unless(fabric.name.startswith("fat") or variation is VARIATIONS[-1], fabric, variation)
        for fabric in (fat_tree(4), leaf_spine(8, 8, 4))
        for variation in VARIATIONS
    ],
    ids=lambda given: given.name if isinstance(given, Fabric) else "",
)
@pytest.mark.parametrize("method", [long_unless(not name.endswith("-best"), name) for name in sorted(METHODS)])
def test_every_methods_plans_pass(method: str, fabric: Fabric, variation: Callable[[Fabric], Fabric]) -> None:
    """`Method.plan` checks every plan: a rate one part in a million higher, or one quantized step, is refused."""
    problem = first_is_server(variation(fabric))
    plan = quick_plan(method, problem)
    step = 0.04 if method in VARIANTS and VARIANTS[method].qsr else 1e-6
    faster = plan.with_rates_times(1 + step)
    with pytest.raises(PlanError, match="rule capacity"):
        check(problem, faster)
