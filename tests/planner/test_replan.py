"""What background traffic leaves, and new routes for the same split when it leaves too little."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_cases import single

from inakit.planner.core.check import check
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.methods.inart.inart import Background, InartOptions, background_of_flows, residual
from inakit.planner.methods.inart.inart_forest import rate_bps
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS
from inakit.planner.replan import rate_left_bps, replan, replan_beside
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators

QUICK = InartOptions(moves=5000, rounds=1, bisections=0)


def drawn(seed: int, workers: int = 8, servers: int = 2) -> Problem:
    fabric = with_aggregators(fat_tree(4, capacity_bps=20e6), rate_bps=9e6)
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], workers + servers)
    return single(fabric, hosts[servers:], *hosts[:servers])


def planned(problem: Problem) -> Plan:
    return METHODS["inart"].plan(problem, QUICK)


def on(problem: Problem, background: Background) -> Problem:
    return replace(problem, fabric=residual(problem.fabric, background))


def parts(problem: Problem, plan: Plan) -> dict[str, set[int]]:
    """The fragments that each PS has."""
    ranges = fragment_ranges(problem, plan)
    found: dict[str, set[int]] = {}
    for each in plan.trees:
        found.setdefault(each.tree.root, set()).update(ranges[each.job, each.tree.number])
    return found


def busy_links(problem: Problem, draw: random.Random) -> Background:
    """Background on a third of the links between switches, one switch that sums nothing and one that sums less."""
    between = [link for link in problem.fabric.capacities_bps if not problem.fabric.host_names & set(link)]
    names = draw.sample([switch.name for switch in problem.fabric.switches], 2)
    links = {link: draw.uniform(10e6, 19e6) for link in draw.sample(between, len(between) // 3)}
    return Background(links, {names[0]: 9e6, names[1]: 4e6})


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_new_routes_keep_the_split_and_what_is_left_and_are_no_worse(seed: int) -> None:
    problem = drawn(seed)
    before = planned(problem)
    left = on(problem, busy_links(problem, random.Random(seed)))
    after = replan(left, before, QUICK)
    check(left, after)
    assert parts(problem, after) == parts(problem, before)
    assert rate_bps(after) >= rate_left_bps(left.fabric, before) * (1 - 1e-9)
    assert rate_left_bps(left.fabric, after) >= rate_bps(after) * (1 - 1e-9)


def test_flows_leave_a_congested_spine() -> None:
    """Of two spines one has a tenth of its links left, so the other carries the sums, which here costs nothing."""
    problem = single(leaf_spine(2, 2, 3, capacity_bps=20e6), ["h1", "h2", "h3"], "h4")
    before = planned(problem)
    busy = before.trees[0].tree.result_parents["leaf1"]
    background = Background({("leaf1", busy): 18e6, (busy, "leaf2"): 18e6})
    left = on(problem, background)
    assert rate_left_bps(left.fabric, before) <= 2e6
    after = replan(left, before, QUICK)
    assert rate_bps(after) == pytest.approx(rate_bps(before)) == pytest.approx(20e6)
    assert after.trees[0].tree.result_parents["leaf1"] != busy


def test_a_plan_whose_switch_no_longer_sums_is_made_again() -> None:
    problem = drawn(2)
    before = planned(problem)
    switch = next(a.switch for each in before.trees for a in each.tree.aggregators)
    left = on(problem, Background({}, {switch: 9e6}))
    assert rate_left_bps(left.fabric, before) < rate_bps(before)
    after = replan(left, before, QUICK)
    check(left, after)
    assert all(a.switch != switch for each in after.trees for a in each.tree.aggregators)


def test_plain_traffic_takes_its_route_from_the_links() -> None:
    problem = single(leaf_spine(2, 2, 3, capacity_bps=20e6), ["h1", "h2"], "h4")
    background = background_of_flows(problem, planned(problem), [Flow("h3", "h5", 5e6), Flow("h3", "h6", 2e6)])
    assert background.links["h3", "leaf1"] == 7e6
    left = residual(problem.fabric, background)
    assert left.capacities_bps["leaf2", "h5"] == 15e6
    assert left.capacities_bps["h5", "leaf2"] == 20e6


@pytest.mark.parametrize(
    ("background", "message"),
    [
        (Background({("h1", "leaf1"): 20e6}), r"leaves nothing of its 2e\+07"),
        (Background({("h1", "leaf1"): -1.0}), "at least 0"),
        (Background({("h1", "leaf2"): 1.0}), "h1-leaf2: it is not a link"),
        (Background({}, {"leaf9": 1.0}), "unknown switch 'leaf9'"),
        (Background({}, {"leaf1": float("nan")}), "at least 0"),
    ],
)
def test_background_that_cannot_be_is_refused(background: Background, message: str) -> None:
    with pytest.raises(InputError, match=message):
        residual(leaf_spine(2, 2, 3, capacity_bps=20e6), background)


def test_several_trees_are_made_anew_as_several_trees() -> None:
    problem = drawn(5)
    before = METHODS["inart-forest"].plan(problem)
    after = replan(on(problem, busy_links(problem, random.Random(5))), before, Options())
    assert parts(problem, after) == parts(problem, before)
    assert max(Counter(each.tree.root for each in after.trees).values()) > 1


def test_beside_traffic_results_have_room_as_well() -> None:
    problem = drawn(6)
    before = planned(problem)
    idle = sorted(problem.fabric.host_names - {*problem.jobs[0].workers, *problem.jobs[0].servers})
    flow = Flow(idle[0], idle[-1], 15e6)
    after = replan_beside(problem, before, [flow], QUICK)
    left = on(problem, background_of_flows(problem, before, [flow]))
    check(left, after)
    assert with_headroom(left, after).plan is after


def test_traffic_that_would_follow_new_routes_is_refused() -> None:
    """The traffic goes by one spine to the PS, as results of the first plan do; the second plan leaves that spine."""
    problem = single(leaf_spine(2, 2, 4, capacity_bps=20e6), ["h1", "h2", "h3"], "h5")
    before = planned(problem)
    with pytest.raises(InputError, match="follows their routes"):
        replan_beside(problem, before, [Flow("h4", "h5", 15e6)], QUICK)


def test_a_method_without_phases_is_refused() -> None:
    problem = drawn(3)
    with pytest.raises(InputError, match="planner 'lbmm' has no second phase: plan with one of inart"):
        replan(problem, METHODS["lbmm"].plan(problem), Options())


def test_a_plan_of_other_servers_is_refused() -> None:
    problem = drawn(3)
    other = replace(problem, jobs=(replace(problem.jobs[0], servers=problem.jobs[0].servers[:1]),))
    with pytest.raises(InputError, match="which is not one of its PSs"):
        replan(other, planned(problem), QUICK)
