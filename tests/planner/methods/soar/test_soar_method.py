"""SOAR on fabrics: it uses at most k switches for a task, and more of them never make links busier."""

from __future__ import annotations

import pytest
from planner_cases import FRAGMENT, first_is_server, job

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.soar import SoarOptions, tree_of_paths
from inakit.planner.registry import METHODS
from inakit.planner.trees.unfolding import static_paths, unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina, with_pipelines


def soar(problem: Problem, switches: int = 4, workloads: int | None = None) -> Plan:
    return METHODS["soar"].plan(problem, SoarOptions(switches=switches, workloads=workloads))


def aggregating(plan: Plan, position: int = 0) -> set[str]:
    return {aggregator.switch for aggregator in plan.trees[position].tree.aggregators}


def busy(problem: Problem, plan: Plan) -> float:
    """The flows on links between switches and to the PS, over their capacities: SOAR's utilisation."""
    branches = plan.trees[0].tree.branches
    links = [link for branch in branches for link in branch.links if link[0] not in problem.fabric.host_names]
    return sum(1 / problem.fabric.capacities_bps[link] for link in links)


@pytest.mark.parametrize("pipelines", [1, 2])
def test_more_switches_never_make_links_busier(pipelines: int) -> None:
    problem = first_is_server(with_pipelines(fat_tree(4), pipelines))
    found = [soar(problem, switches=k) for k in (0, 1, 2, 4, 8, 20)]
    assert [len(aggregating(plan)) <= k for plan, k in zip(found, (0, 1, 2, 4, 8, 20), strict=True)] == [True] * 6
    times = [busy(problem, plan) for plan in found]
    assert times == sorted(times, reverse=True)
    assert times[0] > 2 * times[-1]


def test_all_switches_of_one_tree_reach_the_full_rate() -> None:
    plan = soar(first_is_server(fat_tree(4)), switches=20)
    assert plan.trees[0].rate_bps == pytest.approx(20e6)


def test_switches_that_cannot_sum_are_not_chosen() -> None:
    problem = first_is_server(with_ina(fat_tree(4), ("agg2_1", "edge3_1")))
    assert aggregating(soar(problem)) <= {"agg2_1", "edge3_1"}


def test_a_switch_serves_no_more_tasks_than_it_may() -> None:
    fabric = leaf_spine(4, 2, 4)
    jobs = tuple(job([f"h{i}" for i in range(3, 17)], server, number=n) for n, server in ((1, "h1"), (2, "h2")))
    shared = soar(Problem(fabric, jobs, FRAGMENT))
    alone = soar(Problem(fabric, jobs, FRAGMENT), workloads=1)
    assert aggregating(shared, 0) & aggregating(shared, 1)
    assert not aggregating(alone, 0) & aggregating(alone, 1)


def test_the_tree_counts_a_message_for_each_pipeline_that_is_entered() -> None:
    fabric = with_pipelines(leaf_spine(2, 1, 4), 2)
    paths = static_paths(unfold(fabric, "h1"), ["h5", "h6", "h7", "h8"])
    names, tree = tree_of_paths(fabric, paths)
    sums = dict(zip(names, tree.sums.tolist(), strict=True))
    assert sums == {"leaf2": 2, "spine1": 1, "leaf1": 1}


@pytest.mark.parametrize("options", [{"switches": -1}, {"workloads": 0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        SoarOptions(**options)  # type: ignore[arg-type]
