"""Congestion by real packets in virtual time: windows fall before packets are dropped, and sums stay exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.experiments.run.faults import LossyLinks, OtherTraffic
from inakit.experiments.run.interference import Interference
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import Flow, LinkFaults
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.topo.fabric.generators import leaf_spine
from inakit.traffic.wire.packet_format import FRAGMENT

pytestmark = pytest.mark.compiler

FABRIC = leaf_spine(2, 1, 5)
PROBLEM = Problem(FABRIC, (Job(1, ("h1", "h2", "h3"), ("h6",), 256 * 1400),), FRAGMENT)
PLAN = METHODS["panama"].plan(PROBLEM)
BESIDE = OtherTraffic((Flow("h5", "h10", 15e6),))
"""Three quarters of the only uplink go to other traffic, which the plan does not know of."""


def under(policy: str) -> Plan:
    """The plan with another slot policy."""
    return with_policy(PROBLEM, PLAN, policy)


def ran(policy: str, *interferences: Interference) -> Outcome:
    return run_plan(
        Run(Prepared(PROBLEM, under(policy)), interferences=interferences),
        find_world("virtual"),
    )


def test_windows_follow_marks_before_packets_are_dropped() -> None:
    heeding, planned = ran("panama-timeout", BESIDE), ran("shadow-copy-timeout", BESIDE)
    assert (heeding.measured.exact, planned.measured.exact) == (True, True)
    assert (heeding.measured.retransmissions, planned.measured.retransmissions > 50) == (0, True)
    assert heeding.measured.communication_time_s < planned.measured.communication_time_s


@pytest.mark.parametrize("policy", ["shadow-copy", "switchml", "panama", "shadow-copy+marks"])
def test_windows_follow_queues_where_losses_are_repaired(policy: str) -> None:
    outcome, by_timeouts = ran(policy, BESIDE), ran("shadow-copy-timeout", BESIDE)
    assert (outcome.measured.exact, outcome.measured.retransmissions) == (True, 0)
    assert outcome.measured.communication_time_s < by_timeouts.measured.communication_time_s


def test_a_plan_that_has_its_links_for_itself_runs_at_its_rate() -> None:
    outcome = ran("panama")
    assert (outcome.verdict, outcome.reasons, outcome.measured.retransmissions) == ("VALID", (), 0)


def test_queues_that_overflow_by_what_is_sent_again_beside_other_traffic_are_no_overload() -> None:
    """The background flow takes no link to the PS, whose queue overflows all the same. Virtual time has no overload."""
    job = Job(1, ("h1", "h2", "h3", "h7", "h8"), ("h6",), 256 * 1000)
    problem = Problem(FABRIC, (job,), FRAGMENT)
    run = Run(Prepared(problem, METHODS["lbmm"].plan(problem, Options())), queue_packets=20)
    for others, drops in (((), False), ((OtherTraffic((Flow("h5", "h10", 19e6),)),), True)):
        outcome = run_plan(replace(run, interferences=others), find_world("virtual"))
        watched = outcome.monitor.watched
        (port,) = (port for port, peer in watched.peers["leaf2"].items() if peer == "h6")
        assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)
        assert (outcome.monitor.after.queues[watched.ports["leaf2"][port]] > 0) is drops


def test_losses_leave_sums_exact() -> None:
    ways = [way for link in FABRIC.links for way in ((link.a, link.b), (link.b, link.a))]
    lossy = {way: LinkFaults(drop=0.01) for way in ways if way[0] in FABRIC.switch_by_name}
    outcome = ran("panama", BESIDE, LossyLinks(lossy, seed=3))
    assert outcome.measured.exact
    assert outcome.measured.retransmissions > 0
