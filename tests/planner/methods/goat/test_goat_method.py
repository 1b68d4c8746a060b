"""The planner `goat`: plans that pass every check, each gradient summed at most once, within every switch's memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_cases import single

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import ROOT_LABEL, Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.planner.methods.goat.goat import GoatOptions, partition
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
    plan = METHODS["goat"].plan(problem, GoatOptions(**options))  # type: ignore[arg-type]
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


def test_without_memory_all_goes_to_the_ps() -> None:
    plan = planned(goat_problem(slots=FRAGMENTS // 8 - 1))
    assert unaggregated(plan) == pytest.approx(8)
    assert not any(each.tree.aggregators for each in plan.trees)


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
