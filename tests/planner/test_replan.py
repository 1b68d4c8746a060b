"""What background traffic leaves, new routes for the same split when it leaves too little, and when they are taken."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

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
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.planner.replan import (
    CALM,
    FILLED,
    PARTS,
    SLOW,
    Reading,
    Replanner,
    fitted,
    iteration_bytes,
    other_traffic,
    rate_left_bps,
    replan,
    shares_of,
)
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Chip
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_chip

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


def test_a_method_without_phases_is_refused() -> None:
    problem = drawn(3)
    with pytest.raises(InputError, match="planner 'lbmm' has no second phase: plan with one of inart"):
        replan(problem, METHODS["lbmm"].plan(problem), Options())


def test_a_plan_of_other_servers_is_refused() -> None:
    problem = drawn(3)
    other = replace(problem, jobs=(replace(problem.jobs[0], servers=problem.jobs[0].servers[:1]),))
    with pytest.raises(InputError, match="which is not one of its PSs"):
        replan(other, planned(problem), QUICK)


# -- what links carried, and what of it is others' traffic

IDLE_S = 0.1
"""The time between two iterations in the readings that these tests make up."""


NONE = Background()


def reading(
    prepared: Prepared,
    background: Background = NONE,
    *,
    sent_again: float = 0.0,
    noise: Callable[[], float] = lambda: 0.0,
) -> Reading:
    """The counters after an iteration beside this traffic, which takes as long as the fullest link needs for it.

    `sent_again`: the share of its packets that each worker sends again, all the way to the PS. `noise`: bit/s that each
    link carries beyond that.
    """
    problem, plan = prepared.problem, prepared.plan
    own, left = iteration_bytes(problem, plan), residual(problem.fabric, background)
    sending_s = max(8 * count / left.capacities_bps[link] for link, count in own.items())
    sending_s = max(sending_s, prepared.prediction.communication_time_s)
    time_s = sending_s + IDLE_S
    carried = {
        link: own[link] + (background.links.get(link, 0.0) + noise()) * time_s / 8 for link in left.capacities_bps
    }
    (job,), once = problem.jobs, prepared.prediction.sent_bytes / len(problem.jobs[0].workers)
    sent = dict.fromkeys(job.workers, (1 + sent_again) * once)
    for planned in plan.trees:
        for link in (link for label in planned.tree.workers for link in pairwise(planned.tree.way(label))):
            carried[link] += sent_again * planned.share * once
            own[link] += round(sent_again * planned.share * once)
    received = {server: own[problem.fabric.tor_of(server), server] for server in job.servers}
    return Reading(carried, sent, received, time_s, sending_s)


def prepared(seed: int, method: str = "inart-forest") -> Prepared:
    problem = drawn(seed)
    return with_headroom(problem, METHODS[method].plan(problem, QUICK if method == "inart" else None))


def spine_traffic(own: Prepared, rate_bps: float = 15e6) -> Background:
    """Traffic on the link between switches that the plan uses most."""
    loads, hosts = own.prediction.loads_with_results_bps, own.problem.fabric.host_names
    busiest = max((link for link in loads if not hosts & set(link)), key=loads.__getitem__)
    return Background({busiest: rate_bps})


def test_an_iteration_without_others_leaves_nothing_unexplained() -> None:
    own = prepared(7)
    assert other_traffic(own, reading(own)) == Background()


def test_what_others_send_is_what_links_carried_beyond_the_plan() -> None:
    own = prepared(7)
    background = spine_traffic(own, 3e6)
    (rate,) = other_traffic(own, reading(own, background)).links.values()
    assert rate == pytest.approx(3e6)


def test_packets_that_workers_send_again_are_not_others_traffic() -> None:
    own = prepared(7)
    slow = Prepared(own.problem, own.plan.with_rates_times(0.5))
    assert other_traffic(slow, reading(slow, sent_again=0.3)) == Background()


# -- when another plan is taken


@pytest.mark.parametrize("method", ["inart", "inart-forest"])
def test_a_congested_plan_is_left_at_once_and_taken_again_when_the_traffic_is_over(method: str) -> None:
    first = prepared(8, method)
    replanner, background = Replanner(first, Options()), spine_traffic(first)
    assert replanner.decide(reading(first)) is None
    after = replanner.decide(reading(first, background))
    assert after is not None
    check(on(first.problem, background), after.plan)
    assert not {p.tree.number for p in after.plan.trees} & {p.tree.number for p in first.plan.trees}
    assert shares_of(after) == shares_of(first)
    optimum = fitted(on(first.problem, background), replan(on(first.problem, background), first.plan, Options()))
    assert after.prediction.sending_rate_bps >= FILLED * optimum.prediction.sending_rate_bps * (1 - 1e-6)
    assert replanner.decide(reading(after, background)) is None
    later = [replanner.decide(reading(after, noise=lambda: 0.01 * 20e6)) for _ in range(CALM)]
    assert later == [None] * (CALM - 1) + [first]
    assert replanner.decide(reading(first)) is None


def test_the_same_traffic_again_takes_the_plan_that_switches_already_have() -> None:
    first = prepared(8)
    replanner, background = Replanner(first, Options()), spine_traffic(first)
    taken = []
    for _ in range(2):
        taken.append(replanner.decide(reading(first, background)))
        for _ in range(CALM):
            replanner.decide(reading(replanner.current))
        assert replanner.current is first
    assert taken[0] is not None
    assert taken[0] == taken[1]
    assert len(replanner.known) == 2


def test_noise_changes_no_plan() -> None:
    """Other traffic of up to 4 % of every link comes and goes."""
    first, draw = prepared(9), random.Random(9)
    replanner = Replanner(first, Options())
    assert not any(replanner.decide(reading(first, noise=lambda: draw.uniform(0, 0.8e6))) for _ in range(30))


def test_traffic_that_ends_and_comes_back_in_every_other_iteration_is_not_followed() -> None:
    first = prepared(8)
    replanner, background = Replanner(first, Options()), spine_traffic(first)
    replanner.decide(reading(first, background))
    beside = replanner.current
    assert beside is not first
    for _ in range(10):
        assert replanner.decide(reading(beside)) is None
        assert replanner.decide(reading(beside, background)) is None


def uneven(seed: int) -> tuple[Prepared, Background]:
    """A plan of which the first of two PSs has four fifths of the gradient, and traffic into that PS."""
    problem = drawn(seed)
    whole = METHODS["inart-equal"].plan(problem, QUICK)
    trees = (replace(own, share=share) for own, share in zip(whole.trees, (0.8, 0.2), strict=True))
    server = whole.trees[0].tree.root
    background = Background({(problem.fabric.tor_of(server), server): random.Random(seed).uniform(14e6, 18e6)})
    return fitted(problem, replace(whole, method="inart", trees=tuple(trees))), background


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_no_plan_that_is_taken_is_below_the_equal_split(seed: int) -> None:
    first, background = uneven(seed)
    after, left = Replanner(first, QUICK).decide(reading(first, background)), on(first.problem, background)
    if after is None:
        rate_bps = fitted(left, first.plan).prediction.sending_rate_bps
        assert first.prediction.sending_rate_bps <= SLOW * rate_bps
    else:
        equal = fitted(left, METHODS["inart-equal"].plan(left, QUICK))
        assert after.prediction.sending_rate_bps >= FILLED / (1 + PARTS) * equal.prediction.sending_rate_bps * (
            1 - 1e-9
        )


def test_parts_move_only_where_an_equal_split_is_faster() -> None:
    first, background = uneven(0)
    after = Replanner(first, QUICK).decide(reading(first, background))
    assert after is not None
    assert shares_of(after) != shares_of(first)


def test_jobs_that_end_at_other_times_are_refused() -> None:
    problem = drawn(3)
    two = replace(problem, jobs=(problem.jobs[0], replace(problem.jobs[0], number=2)))
    with pytest.raises(InputError, match="2 jobs: routes are planned anew between iterations of one job"):
        Replanner(Prepared(two, planned(problem)), Options())


def test_chips_that_recirculate_are_refused() -> None:
    problem = drawn(3)
    chip = Chip("mine", 32, 100, 8, 2, 1000, 100, recirculation_bps=100e9, ports_per_pipeline=((100e9, 16),))
    fabric = with_chip(problem.fabric, chip)
    with pytest.raises(InputError, match="chips that recirculate are set up for the first plan's trees: leave out the"):
        Replanner(Prepared(replace(problem, fabric=fabric), planned(problem)), Options())


def test_entries_of_a_later_plan_leave_those_of_the_first() -> None:
    """They have other tree numbers and groups, and no other route to a host."""
    first = prepared(8)
    after = Replanner(first, Options()).decide(reading(first, spine_traffic(first)))
    assert after is not None
    for own in first.entries.switches:
        later = after.entries.of(own.switch)
        keys = {(entry.table, entry.key): entry for entry in own.tables}
        assert all(keys.get((entry.table, entry.key), entry) == entry for entry in later.tables)
        assert not {group.group for group in own.groups} & {group.group for group in later.groups}
