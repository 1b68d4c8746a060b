"""PARING and SPAR: which aggregators their trees pass, where they place things, and what their detours are worth."""

from __future__ import annotations

from math import inf

import pytest
from planner_cases import job, single

from inakit.planner.core.check import check
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods import paring, spar
from inakit.planner.methods.paring import ParingOptions
from inakit.planner.methods.spar import SparOptions
from inakit.planner.registry import METHODS
from inakit.planner.trees.overlay import OverlayOptions
from inakit.topo.errors import InputError, PlanError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina

UNIT = 20e6


def network(*ina: str) -> Fabric:
    """Four leaves with four hosts each, h1 to h4 under leaf1 and so on, and two spines."""
    return with_ina(leaf_spine(4, 2, 4, capacity_bps=UNIT), ina)


def hosts(first: int, last: int) -> list[str]:
    return [f"h{i}" for i in range(first, last + 1)]


def sums(plan: Plan) -> dict[str, int]:
    """The number of flows into every aggregator's switch."""
    return {aggregator.switch: len(aggregator.children) for aggregator in plan.trees[0].tree.aggregators}


def busiest(plan: Plan) -> int:
    return max(flow_counts([plan.trees[0].tree]).values())


def test_paring_passes_only_aggregators_that_save_hops() -> None:
    """Either spine serves the racks of leaf2 and leaf3; the second one would cost two hops and save none."""
    problem = single(network("leaf2", "spine1", "spine2"), hosts(5, 12), "h1")
    plan = METHODS["paring"].plan(problem)
    assert sums(plan) == {"leaf2": 4, "spine1": 5}
    assert busiest(plan) == 4


def test_paring_fills_the_racks_that_are_nearest_to_its_tree() -> None:
    designed = paring.design(single(network("leaf3"), hosts(1, 5), "h16"), ParingOptions())
    (placed,) = designed.problem.jobs
    rack = {host for host in (*placed.servers, *placed.workers) if designed.fabric.tor_of(host) == "leaf3"}
    assert len(rack) == 4
    assert len(placed.workers) == 5
    check(designed.problem, designed.plan)


def test_paring_keeps_to_its_most_aggregators() -> None:
    problem = single(network("leaf2", "leaf3", "spine1"), hosts(5, 12), "h1")
    plan = METHODS["paring"].plan(problem, ParingOptions(aggregators=1))
    assert len(sums(plan)) == 1


def test_detours_are_what_the_papers_count_and_what_check_refuses() -> None:
    """The detour goes from leaf4 to the aggregator at leaf2, and from there up again to the PS."""
    problem = single(network("leaf2"), hosts(5, 16), "h1")
    published = spar.plan(problem, OverlayOptions(detours=True))
    assert sums(published) == {"leaf2": 12}
    with pytest.raises(PlanError, match=r"up-down|forwarding"):
        check(problem, published)
    installable = METHODS["spar"].plan(problem)
    assert sums(installable) == {"leaf2": 4}
    assert busiest(installable) == 9


def test_spar_places_aggregators_one_by_one_where_the_rate_becomes_highest() -> None:
    """Of ten workers four are under leaf3, whose flows go one way, and three under leaf1, as is the PS."""
    problem = single(network("spine1", "spine2"), [*hosts(2, 6), *hosts(9, 13)], "h1")
    first = spar.place(single(network("spine1"), [*hosts(2, 6), *hosts(9, 13)], "h1"), SparOptions(detours=True))
    assert [switch.name for switch in first.fabric.switches if switch.ina] == ["leaf3"]
    designed = spar.design(problem, SparOptions(detours=True, degree=inf))
    assert [switch.name for switch in designed.fabric.switches if switch.ina] == ["leaf1", "leaf3"]
    assert sum(sums(designed.plan).values()) == 10


@pytest.mark.parametrize("method", ["paring", "spar"])
@pytest.mark.parametrize("fabric", [fat_tree(4), leaf_spine(3, 2, 5), with_ina(fat_tree(4), share=0.3, seed=2)])
def test_what_has_no_detours_passes_the_check(method: str, fabric: Fabric) -> None:
    names = [host.name for host in fabric.hosts]
    assert METHODS[method].plan(single(fabric, names[1:], names[0])).trees[0].rate_bps > 0


@pytest.mark.parametrize("method", ["paring", "spar"])
def test_an_aggregator_sums_no_more_than_its_degree(method: str) -> None:
    """Of 70 workers under one leaf that sums, 64 fit a slot's bitmap, and the others go on to the PS."""
    fabric = with_ina(leaf_spine(2, 1, 71), ("leaf2",))
    problem = single(fabric, hosts(72, 141), "h1")
    assert sums(METHODS[method].plan(problem)) == {"leaf2": 64}


def test_two_jobs_are_planned_but_not_placed() -> None:
    two = single(network("leaf1", "leaf2", "spine1"), hosts(5, 8), "h1")
    two = Problem(two.fabric, (*two.jobs, job(hosts(9, 12), "h2", "h3", number=2)), two.fragment)
    for method in ("paring", "spar"):
        assert [planned.share for planned in METHODS[method].plan(two).trees] == [1, 0.5, 0.5]
    with pytest.raises(InputError, match="places one job"):
        paring.design(two, ParingOptions())
    with pytest.raises(InputError, match="places one job"):
        spar.design(two, SparOptions())
