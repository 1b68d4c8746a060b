"""Collectives by real packets in virtual time: theory's times, exact sums, losses, overflow."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import pytest
from tiers import long_unless
from tolerance import assert_within

from inakit.experiments.run.faults import LossyLinks, OtherTraffic, SlowWorkers
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import Flow, LinkFaults
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_delay
from inakit.traffic.collectives.ranks import Ranks
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.wire.packet_format import FRAGMENT

pytestmark = pytest.mark.compiler

SCHEMES = ("ring", "halving-doubling", "double-tree", "hierarchical", "ps-sharded")
SHORT = ("halving-doubling", "double-tree", "hierarchical")
"""The schemes of the short form."""
LINK_BPS = 20e6
STAR = leaf_spine(1, 1, 9)
"""Nine hosts at one switch: no two connections share a link."""
RATE_BPS = LINK_BPS / (1 + 70 / 326 / 32)
"""What acknowledgements leave of a link that carries chunks one way and their acknowledgements the other way."""
FRAME_S = 8 * 326 / RATE_BPS
HOP_S = 8 * 326 / LINK_BPS


def problem_of(fabric: Fabric, workers: int, gradient_bytes: int, iterations: int = 1) -> Problem:
    """The first host is the PS, which has nothing to do."""
    server, *others = (host.name for host in fabric.hosts)
    job = Job(1, tuple(others[:workers]), (server,), gradient_bytes, iterations=iterations)
    return Problem(fabric, (job,), FRAGMENT)


def ran(problem: Problem, planner: str, **more: object) -> Outcome:
    return run_plan(Run(Prepared(problem, METHODS[planner].plan(problem)), **more), find_world("virtual"))  # type: ignore[arg-type]


def time_of(fabric: Fabric, workers: int, fragments: int, planner: str) -> float:
    """The measured communication time, in seconds."""
    outcome = ran(problem_of(fabric, workers, 256 * fragments), planner)
    assert outcome.measured.exact
    assert outcome.reasons == ()
    return outcome.measured.communication_time_s


@pytest.mark.parametrize("planner", ["ring", "halving-doubling", "ps-sharded", "hierarchical"])
def test_bandwidth_is_that_of_theory(planner: str) -> None:
    """2 (n - 1) / n of the gradient at the rate of a link: n = 8, 800 fragments."""
    measured = time_of(STAR, 8, 800, planner)
    assert_within(measured, 2 * 7 / 8 * 800 * FRAME_S, 0.03, f"time of {planner}", "s")


def test_latency_of_a_ring_is_that_of_theory() -> None:
    """2 (n - 1) steps, each as long as a fragment's way: n = 8, a fragment for each chunk, 10 ms a link."""
    measured = time_of(with_delay(STAR, 0.01), 8, 8, "ring")
    assert_within(measured, 14 * (2 * HOP_S + 0.02), 0.03, "time", "s")


def test_latency_of_recursive_doubling_is_that_of_theory() -> None:
    """log2 n steps: n = 8, one fragment, 10 ms a link."""
    measured = time_of(with_delay(STAR, 0.01), 8, 1, "halving-doubling")
    assert_within(measured, log2(8) * (2 * HOP_S + 0.02), 0.03, "time", "s")


def test_latency_of_sharded_servers_is_that_of_theory() -> None:
    """Two ways, and n - 2 frames more before each last one: n = 8, a fragment for each share, 10 ms a link."""
    measured = time_of(with_delay(STAR, 0.01), 8, 8, "ps-sharded")
    assert_within(measured, 2 * (2 * HOP_S + 0.02 + 6 * FRAME_S), 0.03, "time", "s")


def test_the_longest_ways_are_kept_full() -> None:
    """600 fragments between pods, 0.6 s there and back: with windows for half of that they took 62 % longer."""
    fabric = with_delay(fat_tree(4, capacity_bps=2e6), 0.05)
    problem = Problem(fabric, (Job(1, ("h5", "h16"), ("h1",), 256 * 600),), FRAGMENT)
    planned = evaluate(problem, METHODS["halving-doubling"].plan(problem)).communication_time_s
    assert_within(ran(problem, "halving-doubling").measured.communication_time_s, planned, 0.05, "time", "s")


@pytest.mark.parametrize("planner", [long_unless(scheme in SHORT, scheme) for scheme in SCHEMES])
def test_a_fat_tree_keeps_to_the_plan(planner: str) -> None:
    problem = problem_of(fat_tree(4), 8, 64_000, iterations=2)
    outcome, planned = ran(problem, planner), evaluate(problem, METHODS[planner].plan(problem))
    assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)
    assert_within(outcome.measured.communication_time_s, planned.communication_time_s, 0.05, "time", "s")
    assert_within(outcome.measured.sending_rate_bps, planned.sending_rate_bps, 0.05, "sending rate", "bit/s")
    assert outcome.measured.sent_bytes == planned.sent_bytes


@pytest.mark.parametrize("planner", ["halving-doubling", "hierarchical", "ps-sharded"])
def test_uneven_racks_keep_to_the_plan(planner: str) -> None:
    """7 workers: racks of different sizes, and no power of two. Queues overflowed where ranks folded.

    Steps that cross racks have lower rates than others. Ranks that went on to the next step meanwhile doubled the load
    of uplinks: halves took 17 % longer than planned.
    """
    problem = problem_of(leaf_spine(3, 2, 3), 7, 128_000)
    outcome, planned = ran(problem, planner), evaluate(problem, METHODS[planner].plan(problem))
    assert (outcome.verdict, outcome.reasons, outcome.measured.retransmissions) == ("VALID", (), 0)
    assert_within(outcome.measured.communication_time_s, planned.communication_time_s, 0.05, "time", "s")


@pytest.mark.parametrize(("planner", "size"), [("halving-doubling", 2048), ("ps-sharded", 8192)])
def test_short_messages_wait_at_shared_links(planner: str, size: int) -> None:
    """Two racks of four with one uplink each: four frames of a step cross it one after another."""
    problem = problem_of(leaf_spine(2, 1, 5), 8, size)
    planned = evaluate(problem, METHODS[planner].plan(problem))
    assert_within(ran(problem, planner).measured.communication_time_s, planned.communication_time_s, 0.05, "time", "s")


def test_slow_connections_are_acknowledged_as_rarely_as_fast_ones() -> None:
    """A rank of 16 sends each other one a fragment in 15: acknowledgements after a time would fill 2 % of its link."""
    problem = problem_of(leaf_spine(1, 1, 17), 16, 16 * 64 * 256)
    measured = ran(problem, "ps-sharded").measured.communication_time_s
    assert_within(
        measured, evaluate(problem, METHODS["ps-sharded"].plan(problem)).communication_time_s, 0.01, "time", "s"
    )


@pytest.mark.parametrize("planner", [long_unless(scheme in SHORT, scheme) for scheme in SCHEMES])
def test_losses_and_overflow_leave_sums_exact(planner: str) -> None:
    """Every link loses 2 % either way, and values have all 32 bits, so that many sums need more."""
    fabric = leaf_spine(2, 2, 4)
    ways = [way for link in fabric.links for way in ((link.a, link.b), (link.b, link.a))]
    lossy = {way: LinkFaults(drop=0.02, duplicate=0.01) for way in ways if way[0] in fabric.switch_by_name}
    problem, gradients = problem_of(fabric, 4, 6_400), RandomGradients(2, 1 << 31)
    outcome = ran(problem, planner, interferences=(LossyLinks(lossy, seed=5),), gradients=gradients)
    assert (outcome.verdict, outcome.measured.exact) == ("VALID", True)
    assert outcome.measured.retransmissions > 0


def test_stragglers_and_background_traffic_slow_a_ring_down() -> None:
    problem = problem_of(leaf_spine(2, 2, 4), 6, 12_800)
    alone = ran(problem, "ring").measured.communication_time_s
    slow = ran(problem, "ring", interferences=(SlowWorkers(Stragglers(0.0, mean=0.5)),))
    beside = ran(problem, "ring", interferences=(OtherTraffic((Flow("h8", "h2", 10e6),)),))
    assert slow.measured.exact
    assert beside.measured.exact
    assert_within(slow.measured.communication_time_s, 2 * alone, 0.05, "time at half the rate", "s")
    assert beside.measured.communication_time_s > 1.3 * alone


def test_two_jobs_share_links_evenly() -> None:
    """Both rings go through both leaves; each has half of what both use."""
    fabric = leaf_spine(2, 1, 5)
    jobs = (Job(1, ("h2", "h3", "h7", "h8"), ("h1",), 25_600), Job(2, ("h4", "h5", "h9", "h10"), ("h6",), 25_600))
    outcome = ran(Problem(fabric, jobs, FRAGMENT), "ring")
    assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)


def test_replay_has_no_collectives() -> None:
    problem = problem_of(STAR, 4, 4000)
    with pytest.raises(PlanError, match="planner 'ring' in mode replay: ranks wait for each other's chunks"):
        run_plan(Run(Prepared(problem, METHODS["ring"].plan(problem), "replay")), find_world("virtual"))


def test_a_wrong_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that adds a term twice is told by name."""
    sums = Ranks.sums_at
    monkeypatch.setattr(Ranks, "sums_at", lambda *args: sums(*args) + (args[2] == 1))
    outcome = ran(problem_of(STAR, 4, 4000), "ring")
    assert outcome.verdict == "WRONG"
    assert "wrong at 1 host (h3)" in outcome.reasons[0]


def test_plans_of_collectives_follow_their_rates() -> None:
    """A plan at half its rates takes twice as long."""
    problem = problem_of(STAR, 4, 64_000)
    plan = METHODS["ring"].plan(problem)
    whole, half = (evaluate(problem, each).communication_time_s for each in (plan, plan.with_rates_times(0.5)))
    assert_within(half, 2 * whole, 0.01, "time", "s")
    assert replace(plan, outcome=plan.outcome) == plan
