"""Predictions on plans that can be counted by hand, and the fragments and slots behind them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from planner_cases import FRAGMENT, first_is_server, job, single

from inakit.planner.core.evaluate import SwitchAggregation, evaluate
from inakit.planner.core.loads import equal_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, fragment_ranges, split
from inakit.planner.core.problem import FragmentFormat, Problem
from inakit.planner.core.slots import assign_slots
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import aro_figure1, inart_testbed, leaf_spine
from inakit.topo.fabric.variations import with_aggregators

UNIT = 20e6
WORKERS = [f"w{i}" for i in range(5)]
FIGURE1 = single(aro_figure1(UNIT), WORKERS, "ps")
FRAGMENTS = 379
"""97000 bytes are 24250 integers: 378 fragments of 64 integers and one of 58."""


def test_figure_1_with_aggregation_by_hand() -> None:
    seen = evaluate(FIGURE1, METHODS["aro"].plan(FIGURE1))
    packet_bytes = FRAGMENTS * 326
    assert seen.sending_rate_bps == UNIT
    assert seen.worker_rates_bps == {(1, worker): UNIT for worker in WORKERS}
    assert seen.ps_ingress_bytes == packet_bytes
    assert seen.ps_ingress_bps == {"ps": UNIT}
    assert seen.communication_time_s == pytest.approx(packet_bytes * 8 / UNIT)
    assert seen.aggregated_bytes == 4 * packet_bytes
    # Links with gradients: five of hosts, l1-s1, l2-s1, l3-s1 (which has w4's), s1-l0, and l0-ps.
    assert len(seen.link_loads_bps) == 5 + 3 + 2
    assert set(seen.link_loads_bps.values()) == {UNIT}
    assert seen.overhead_bytes == 10 * packet_bytes
    assert seen.network_throughput_bps == pytest.approx(seen.overhead_bytes * 8 / seen.communication_time_s)
    assert seen.result_loads_bps == {(b, a): load for (a, b), load in seen.link_loads_bps.items()}
    assert seen.switches == {
        "l0": SwitchAggregation(FRAGMENTS, FRAGMENTS),
        "l1": SwitchAggregation(2 * FRAGMENTS, FRAGMENTS),
        "l2": SwitchAggregation(2 * FRAGMENTS, FRAGMENTS),
        "l3": SwitchAggregation(FRAGMENTS, FRAGMENTS),
        "s1": SwitchAggregation(3 * FRAGMENTS, FRAGMENTS),
    }
    assert seen.switches["s1"].ratio == 3


def test_the_way_of_the_last_fragment_is_a_frame_of_every_flow_on_each_link_the_delays_and_the_latencies() -> None:
    """The way goes up by four links and back by four. Without aggregation five flows share the PS's link."""
    frame_s = 326 * 8 / UNIT
    summed = evaluate(FIGURE1, METHODS["aro"].plan(FIGURE1)).jobs[1]
    assert summed.way_s == pytest.approx(8 * frame_s)
    single_flows = evaluate(FIGURE1, METHODS["lbmm"].plan(FIGURE1)).jobs[1]
    assert single_flows.way_s >= (8 + 4) * frame_s
    delayed = replace(FIGURE1.fabric, links=tuple(replace(link, delay_s=0.01) for link in FIGURE1.fabric.links))
    far = replace(FIGURE1, fabric=delayed)
    assert evaluate(far, METHODS["aro"].plan(far)).jobs[1].way_s == pytest.approx(8 * (frame_s + 0.01))
    latent = replace(delayed, switches=tuple(replace(switch, latency_s=0.001) for switch in delayed.switches))
    slow = replace(FIGURE1, fabric=latent)
    assert evaluate(slow, METHODS["aro"].plan(slow)).jobs[1].way_s == pytest.approx(8 * (frame_s + 0.01) + 6 * 0.001)


def test_figure_1_without_aggregation_by_hand() -> None:
    seen = evaluate(FIGURE1, METHODS["lbmm"].plan(FIGURE1))
    packet_bytes = FRAGMENTS * 326
    assert seen.sending_rate_bps == pytest.approx(UNIT / 5)
    assert seen.ps_ingress_bytes == 5 * packet_bytes
    assert seen.ps_ingress_bps["ps"] == pytest.approx(UNIT)
    assert seen.communication_time_s == pytest.approx(5 * packet_bytes * 8 / UNIT)
    assert seen.aggregated_bytes == 0
    assert seen.overhead_bytes == 5 * 4 * packet_bytes
    assert {aggregation.ratio for aggregation in seen.switches.values()} == {1.0}
    assert seen.result_loads_bps["ps", "l0"] == pytest.approx(UNIT / 5)


def test_several_servers_share_fragments_and_rate() -> None:
    problem = single(inart_testbed(UNIT), [f"w{i}" for i in range(1, 7)], "ps1", "ps2")
    plan = METHODS["lbmm"].plan(problem)
    seen = evaluate(problem, plan)
    assert seen.sending_rate_bps == pytest.approx(UNIT / 6 * 4 / 3)
    assert seen.ps_ingress_bytes == 6 * FRAGMENTS * 326
    assert set(seen.ps_ingress_bps) == {"ps1", "ps2"}
    ranges = fragment_ranges(problem, plan)
    assert sorted(fragment for part in ranges.values() for fragment in part) == list(range(FRAGMENTS))
    assert seen.communication_time_s == pytest.approx(190 * 326 * 8 / (seen.sending_rate_bps / 2))


def test_results_meet_gradients_only_where_there_are_several_servers() -> None:
    one = evaluate(FIGURE1, METHODS["aro"].plan(FIGURE1))
    assert not set(one.link_loads_bps) & set(one.result_loads_bps)
    problem = single(inart_testbed(UNIT), [f"w{i}" for i in range(1, 7)], "ps1", "ps2")
    two = evaluate(problem, METHODS["lbmm"].plan(problem))
    rate = two.sending_rate_bps / 2
    assert two.link_loads_bps["v1", "v2"] == pytest.approx(4 * rate)  # w1..w4 to ps2
    assert two.result_loads_bps["v1", "v2"] == pytest.approx(rate)  # ps1's results to w5 and w6
    assert two.loads_with_results_bps["v1", "v2"] == pytest.approx(5 * rate)


def test_jobs_are_predicted_one_by_one() -> None:
    fabric = leaf_spine(2, 2, 3)
    jobs = (job(["h2"], "h1"), job(["h5", "h6"], "h4", number=2, gradient_bytes=512))
    problem = Problem(fabric, jobs, FRAGMENT)
    seen = evaluate(problem, METHODS["atp"].plan(problem))
    assert seen.jobs[1].ps_ingress_bytes == FRAGMENTS * 326
    assert seen.jobs[2].ps_ingress_bytes == 2 * 326
    assert seen.communication_time_s == seen.jobs[1].communication_time_s > seen.jobs[2].communication_time_s


def test_a_rate_of_zero_takes_forever() -> None:
    plan = METHODS["aro"].plan(FIGURE1)
    idle = replace(plan, trees=(replace(plan.trees[0], rate_bps=0.0),))
    assert evaluate(FIGURE1, idle).communication_time_s == inf


@pytest.mark.parametrize("total", [0, 1, 2, 3, 7, 379, 10_000])
@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.5], [1 / 3] * 3, [0.7, 0.2, 0.1], [1 / 7] * 7])
def test_a_split_covers_everything_once_and_keeps_the_shares(total: int, shares: list[float]) -> None:
    parts = split(total, shares)
    assert [fragment for part in parts for fragment in part] == list(range(total))
    assert all(abs(len(part) - total * share) <= 1 for part, share in zip(parts, shares, strict=True))


def test_a_fragment_counts_whole_integers() -> None:
    fragment = FragmentFormat(64, 326)
    assert [fragment.count(4), fragment.count(256), fragment.count(260), fragment.count(97000)] == [1, 1, 2, FRAGMENTS]


def test_the_equal_rate_is_the_least_capacity_per_flow() -> None:
    trees = (METHODS["lbmm"].plan(FIGURE1).trees[0].tree,)
    assert equal_rate_bps(FIGURE1.fabric, trees) == UNIT / 5
    assert equal_rate_bps(FIGURE1.fabric, (*trees, *trees)) == UNIT / 10
    assert equal_rate_bps(FIGURE1.fabric, ()) == 0


def segments(plan: Plan) -> dict[tuple[str, int], list[tuple[int, int]]]:
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for planned in plan.trees:
        for aggregator in planned.tree.aggregators:
            found.setdefault((aggregator.switch, aggregator.pipeline), []).append(
                (aggregator.first_slot, aggregator.slots)
            )
    return found


def test_slots_are_exclusive_and_as_many_as_the_window() -> None:
    fabric = with_aggregators(leaf_spine(2, 1, 4), slots=100)
    servers = ("h1", "h2", "h3")
    plan = METHODS["atp"].plan(single(fabric, ["h4", "h5", "h6"], *servers), Options(window=64))
    assert segments(plan)["leaf2", 0] == [(0, 32), (32, 32), (64, 32)]
    wide = METHODS["atp"].plan(single(fabric, ["h5", "h6"], "h1"), Options(window=32))
    assert segments(wide) == {("leaf2", 0): [(0, 64)]}


def test_a_trees_aggregators_have_the_same_slots() -> None:
    fabric = leaf_spine(2, 1, 4)
    switches = tuple(replace(s, aggregator_slots=10) if s.name == "leaf2" else s for s in fabric.switches)
    plan = METHODS["aro"].plan(first_is_server(replace(fabric, switches=switches)))
    assert {aggregator.slots for aggregator in plan.trees[0].tree.aggregators} == {10}
    assert plan.trees[0].tree.window == 5
    assert plan.trees[0].tree.reach == 10


def test_too_few_slots_for_the_trees_are_refused() -> None:
    fabric = with_aggregators(leaf_spine(2, 1, 4), slots=2)
    with pytest.raises(InputError, match="switch 'leaf2': 3 trees aggregate in pipeline 0, which has 2"):
        METHODS["atp"].plan(single(fabric, ["h5", "h6"], "h1", "h2", "h3"))
    with pytest.raises(InputError, match=r"its 2 aggregator slots leave tree 1 none, .* 'shadow-copy' needs 2"):
        METHODS["atp"].plan(single(fabric, ["h5", "h6"], "h1", "h2"))
    trees = (METHODS["atp"].plan(single(fabric, ["h5", "h6"], "h1")).trees[0].tree,)
    assert assign_slots(fabric, trees) == trees


def test_flows_of_one_inp_go_on_as_the_first() -> None:
    chosen = [
        ("w0", "l1", "s0", "l0", "ps"),
        ("w1", "l1", "s1", "l0", "ps"),
        *((w, leaf, "s1", "l0", "ps") for w, leaf in (("w2", "l2"), ("w3", "l2"), ("w4", "l3"))),
    ]
    plan = plan_from_paths(FIGURE1, {1: chosen}, {"l1"})
    tree = plan.trees[0].tree
    assert [aggregator.children for aggregator in tree.aggregators] == [(1, 2)]
    assert tree.way(2) == ("w1", "l1", "s0", "l0", "ps")
    assert tree.window == 256
    assert plan_from_paths(FIGURE1, {1: chosen}).trees[0].tree.window is None


def test_a_missing_path_is_named() -> None:
    with pytest.raises(InputError, match="no path from 'w0' to 'ps'"):
        plan_from_paths(FIGURE1, {1: [(), ("w1", "l1", "s0", "l0", "ps")]})


def test_a_path_without_links_is_named() -> None:
    with pytest.raises(InputError, match="w0-s0-l0-ps does not follow the fabric's links"):
        plan_from_paths(FIGURE1, {1: [("w0", "s0", "l0", "ps")]})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"jobs": ()}, "no job"),
        ({"jobs": (job(WORKERS, "ps"), job(WORKERS, "ps"))}, "job 1 is given 2 times"),
        ({"jobs": (job(WORKERS, "w1"),)}, "'w1' is a worker and the parameter server"),
        ({"jobs": (job(WORKERS, "pss"),)}, "'pss' is not a host"),
        ({"jobs": (job([], "ps"),)}, "no worker"),
        ({"jobs": (job(WORKERS),)}, "no parameter server"),
        ({"jobs": (job(["w0", "w0"], "ps"),)}, "a worker is listed twice"),
        ({"jobs": (job(WORKERS, "ps", number=0),)}, "job numbers are 1 to 65535"),
        ({"jobs": (job(WORKERS, "ps", gradient_bytes=6),)}, "gradient of 6 bytes; a positive multiple of 4"),
        ({"jobs": (replace(job(WORKERS, "ps"), weight=float("nan")),)}, "weight must be positive"),
        ({"jobs": (replace(job(WORKERS, "ps"), iterations=0),)}, "0 iterations"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(values: dict[str, tuple[object, ...]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(FIGURE1, **values)  # type: ignore[arg-type]
