"""`goat` and `goat-krgs`: plans that pass every check, gradients summed at most once, within every switch's memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from planner_cases import single

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import ROOT_LABEL, Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.planner.methods.goat.goat import GoatOptions, KrgsPlanOptions, cut, partition
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree, goat_testbed, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

FRAGMENTS = 96


def goat_problem(slots: int, pipelines: int = 1) -> Problem:
    fabric = with_pipelines(with_aggregators(goat_testbed(), slots=slots), pipelines)
    workers = tuple(host.name for host in fabric.hosts if host.name != "ps")
    return sized(single(fabric, workers, "ps"))


def sized(problem: Problem) -> Problem:
    jobs = tuple(replace(job, gradient_bytes=FRAGMENTS * 4 * FRAGMENT.values) for job in problem.jobs)
    return replace(problem, jobs=jobs)


def planned(problem: Problem, **options: int) -> Plan:
    return passed(problem, METHODS["goat"].plan(problem, GoatOptions(**options)))  # type: ignore[arg-type]


def as_printed(problem: Problem, seed: int = 0, objective: str = "saved") -> Plan:
    return passed(problem, METHODS["goat-krgs"].plan(problem, KrgsPlanOptions(seed=seed, objective=objective)))


def passed(problem: Problem, plan: Plan) -> Plan:
    entries(problem, plan)
    return plan


def unaggregated(plan: Plan) -> float:
    """The gradients that come to the PS unsummed: 1 for each worker of whose gradient nothing is summed."""
    raw = [(each.share, b) for each in plan.trees for b in each.tree.branches
           if b.parent == ROOT_LABEL and b.label in each.tree.workers]  # fmt: skip
    return sum(share for share, _ in raw)


@pytest.mark.parametrize("pipelines", [1, 2])
def test_with_memory_for_the_gradient_nothing_is_left_to_the_ps(pipelines: int) -> None:
    plan = planned(goat_problem(slots=48, pipelines=pipelines))
    assert len(plan.trees) == 8
    for each in plan.trees:
        tree = each.tree
        assert tree.policy == "goat"
        assert all(tree.branch_of[aggregator.label].parent == ROOT_LABEL for aggregator in tree.aggregators)
        assert {aggregator.slots for aggregator in tree.aggregators} <= {FRAGMENTS // 8}
    assert pipelines > 1 or unaggregated(plan) == 0


def test_sub_models_that_no_switch_holds_are_cut() -> None:
    """A sub-model has twelve fragments. The paper's algorithm takes sub-models as they are: nothing is summed."""
    problem = goat_problem(slots=11)
    assert unaggregated(as_printed(problem)) == pytest.approx(8)
    plan = planned(problem)
    assert sum(each.share for each in plan.trees) == pytest.approx(1)
    assert sum(len(part) for part in fragment_ranges(problem, plan).values()) == FRAGMENTS
    assert sum(a.slots for each in plan.trees for a in each.tree.aggregators) == 3 * 11


def test_tensors_that_no_switch_holds_are_cut() -> None:
    """AlexNet's largest layer has 62 % of its parameters, and each of the three switches holds 35 % of all."""
    problem = goat_problem(slots=34)
    of_layers = replace(problem, jobs=(replace(problem.jobs[0], model="alexnet"),))
    assert max(partition("alexnet", FRAGMENTS, 8)) == 59
    assert unaggregated(as_printed(of_layers)) > 4
    assert unaggregated(planned(of_layers)) == 0


def test_pieces_fill_what_the_switches_have() -> None:
    assert cut([12, 5], [10, 8]) == [10, 2, 5]
    assert cut([30, 5, 30], [10.5, 8]) == [10, 8, 12, 5, 30]
    assert cut([12, 5], []) == cut([12, 5], [0, 0.5]) == [12, 5]


def test_without_memory_all_goes_to_the_ps() -> None:
    problem = goat_problem(slots=48)
    without = replace(problem, fabric=with_ina(problem.fabric, ()))
    for plan in (planned(without), as_printed(without)):
        assert unaggregated(plan) == pytest.approx(8)
        assert not any(each.tree.aggregators for each in plan.trees)


@pytest.mark.parametrize("objective", ["saved", "traffic"])
@pytest.mark.parametrize("pipelines", [1, 2])
def test_as_printed_a_switch_without_memory_forwards_what_it_was_to_sum(objective: str, pipelines: int) -> None:
    """The paper's roundings exceed memory; the gradients that a full switch gets pass it on their way to the PS."""
    problem, passing = goat_problem(slots=30, pipelines=pipelines), 0
    for seed in range(10):
        plan = as_printed(problem, seed, objective)
        assert plan.method == "goat-krgs"
        held = Counter[tuple[str, int]]()
        for each in plan.trees:
            held.update({a.inp: a.slots for a in each.tree.aggregators})
            ways = (branch.path for branch in each.tree.branches if branch.parent == ROOT_LABEL)
            passing += any(len(path) > 4 for path in ways)
        assert max(held.values()) <= 30
        assert plan == replace(as_printed(problem, seed, objective), outcome=plan.outcome)
    assert passing


@pytest.mark.parametrize("fabric", [leaf_spine(4, 4, 4), fat_tree(4)], ids=lambda fabric: fabric.name)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_fabric_with_some_programmable_switches(fabric: object, seed: int) -> None:
    some = with_aggregators(with_ina(fabric, share=0.4, seed=seed), slots=48)  # type: ignore[arg-type]
    hosts = [host.name for host in some.hosts]
    problem = sized(single(some, hosts[1:13], hosts[0]))
    plan = planned(problem, sub_models=4, seed=seed)
    assert sum(each.share for each in plan.trees) == pytest.approx(1)
    assert plan == replace(planned(problem, sub_models=4, seed=seed), outcome=plan.outcome)


def test_layers_are_sub_models_of_unequal_size() -> None:
    problem = goat_problem(slots=48)
    of_layers = replace(problem, jobs=(replace(problem.jobs[0], model="resnet18"),))
    plan = planned(of_layers, sub_models=12)
    counts = [len(part) for part in fragment_ranges(of_layers, plan).values()]
    assert counts == partition("resnet18", FRAGMENTS, 12)
    assert len(set(counts)) > 1
    owned = {aggregator.slots for each in plan.trees for aggregator in each.tree.aggregators}
    assert owned <= set(counts)
    assert unaggregated(plan) == 0


def test_gradients_make_a_detour_to_a_sum_that_saves_more() -> None:
    """Figure 2(c): with a slot in each switch for a third of the gradient, s1 and s2 sum for each other's workers."""
    problem = goat_problem(slots=FRAGMENTS // 3)
    plan = planned(problem, sub_models=3)
    summing = sorted(a.switch for each in plan.trees for a in each.tree.aggregators)
    assert summing == ["s1", "s2", "s3"]
    assert unaggregated(plan) == 0
    assert evaluate(problem, plan).ps_ingress_bytes == FRAGMENTS * FRAGMENT.wire_bytes


def test_a_switch_for_more_workers_than_a_slot_has_bits() -> None:
    fabric = with_aggregators(leaf_spine(2, 1, 40), slots=200)
    hosts = [host.name for host in fabric.hosts]
    plan = planned(sized(single(fabric, hosts[1:], hosts[0])), sub_models=2)
    assert max(len(a.children) for each in plan.trees for a in each.tree.aggregators) <= 64


def test_options_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="sub_models 0"):
        GoatOptions(sub_models=0)
    with pytest.raises(InputError, match="unknown objective"):
        GoatOptions(objective="time")
