"""Every invariant of a run has a reason that names what broke and where, and an undisturbed run has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from traffic_cases import one_job

from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, SwitchCounters, Watched
from inakit.traffic.measure.fidelity import Excuses, dropped_by_queues, judge, planned_rates, turned_away
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.measure.processors import Consumer, Second
from inakit.traffic.measure.verdict import Limits
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import Event

PROBLEM, PLAN = one_job(workers=2)
WORKERS = PROBLEM.jobs[0].workers
QUIET = InterfaceCounters(0, 0, 0, 0, 0, 0)
BEFORE = Snapshot(
    0.0, (0, 0), {"s1-1": QUIET, "w0:eth0": QUIET}, {"s1-1": 3, "w0:eth0": 0},
    {"s1": SwitchCounters({int(event): 0 for event in Event}, {1: 0}, {1: 0}, {1: 0})},
)  # fmt: skip
EVENTS = {int(event): 0 for event in Event} | {Event.ABSORBED: 4, Event.SENT_UNICAST: 5, Event.SENT_MULTICAST: 1}
AFTER = replace(
    BEFORE,
    at_s=3.0,
    interfaces={"s1-1": replace(QUIET, received_packets=10), "w0:eth0": QUIET},
    switches={"s1": SwitchCounters(EVENTS, {1: 10}, {1: 8}, {1: 3})},
)
QUIET_SECOND = Second(
    start_s=0.0, end_s=1.0, processors=2, free=0.4, spare=0.4, endpoints=0.01, switches=0.0, somebody_waited=0.1
)  # fmt: skip
SECONDS = (QUIET_SECOND, QUIET_SECOND)
ITERATION = Iteration(1, 0, 0.0, 2.0, dict.fromkeys(WORKERS, 20e6), dict.fromkeys(WORKERS, 1), {"ps0": 1})
MEASURED = Measured("reliable", (ITERATION,))


HOST = HostPort("w0", 0, "eth0", "02:00:00:00:00:01", "10.0.0.1")


def monitor_of(after: Snapshot, seconds: Sequence[Second] = SECONDS, peer: str = "w0") -> Any:
    watched = Watched((HOST,), {}, {"s1": {1: "s1-1"}}, {"s1": {1: peer}})
    return SimpleNamespace(before=BEFORE, after=after, seconds=seconds, watched=watched)


def judged(
    after: Snapshot = AFTER, measured: Measured = MEASURED, seconds: Sequence[Second] = SECONDS
) -> tuple[str, ...]:
    return judge(monitor_of(after, seconds), measured, PLAN, Limits())


def test_an_undisturbed_run_is_valid() -> None:
    assert judged() == ()


def with_interface(name: str, **counters: int) -> Snapshot:
    return replace(AFTER, interfaces={**AFTER.interfaces, name: replace(AFTER.interfaces[name], **counters)})


def with_switch(**counters: Any) -> Snapshot:
    return replace(AFTER, switches={"s1": replace(AFTER.switches["s1"], **counters)})


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (with_interface("w0:eth0", receive_drops=2), "interface w0:eth0 dropped 2 packets received"),
        (with_interface("s1-1", send_drops=1), "interface s1-1 dropped 1 packets to be sent"),
        (replace(AFTER, queues={"s1-1": 8, "w0:eth0": 0}), "the queue of interface s1-1 dropped 5 packets"),
        (replace(AFTER, backlog=(0, 7)), "CPU 1 dropped 7 packets: its input queue was full"),
        (with_switch(events=EVENTS | {Event.ABSORBED: 3}), "switch s1 received 10 packets and finished 9"),
        (with_switch(sent={1: 7}), "switch s1 was to send 8 packets and sent 7"),
        (with_interface("s1-1", received_packets=11), "switch s1, port 1: 11 packets arrived, its program saw 10"),
        (with_switch(events=EVENTS | {Event.ABSORBED: 3, Event.UNROUTABLE: 1}), "switch s1: 1 packets unroutable"),
        (
            with_switch(events=EVENTS | {Event.ABSORBED: 3, Event.REJECTED: 1}),
            "switch s1 turned away 1 packets, by its ports 0",
        ),
    ],
)
def test_each_counter_has_its_reason(after: Snapshot, reason: str) -> None:
    assert judged(after) == (reason,)


def test_queues_of_switches_may_overflow_where_congestion_is_excused_and_nothing_else_may() -> None:
    after = replace(with_interface("s1-1", send_drops=1), queues={"s1-1": 8, "w0:eth0": 2})
    found = judge(monitor_of(after), MEASURED, PLAN, excuses=Excuses(congestion=True))
    assert found == (
        "interface s1-1 dropped 1 packets to be sent", "the queue of interface w0:eth0 dropped 2 packets"
    )  # fmt: skip
    assert dropped_by_queues(monitor_of(after)) == 5


def test_what_a_host_sends_and_nobody_admits_is_named_and_breaks_nothing() -> None:
    after = with_switch(events=EVENTS | {Event.ABSORBED: 3, Event.REJECTED: 1}, rejected={1: 1})
    assert judged(after) == ()
    (away,) = turned_away(monitor_of(after))
    assert (away.switch, away.port, away.sender, away.by_host, away.packets) == ("s1", 1, "w0", True, 1)


def test_what_a_switch_lets_through_and_the_next_does_not_admit_is_a_reason() -> None:
    after = with_switch(events=EVENTS | {Event.ABSORBED: 3, Event.REJECTED: 1}, rejected={1: 1})
    found = judge(monitor_of(after, peer="s2"), MEASURED, PLAN)
    assert found == ("switch s1 turned away 1 packets that switch s2 let through (port 1)",)
    assert judge(monitor_of(after, peer="s2"), MEASURED, PLAN, excuses=Excuses(hostile=True)) == ()
    assert judge(monitor_of(after, peer="s2"), MEASURED, PLAN, excuses=Excuses(astray=frozenset({"s2"}))) == ()


def test_a_second_in_which_the_endpoints_had_to_wait_is_a_cause() -> None:
    found = judged(seconds=(*SECONDS, replace(QUIET_SECOND, endpoints=0.5)))
    assert found == (
        "the endpoints had to wait for a processor: 50% of a second at worst, in 1 of 3 s; 20% is the most",
    )


def test_others_are_named_first_where_a_run_is_overloaded_and_not_otherwise() -> None:
    beside = replace(QUIET_SECOND, others=(Consumer("cc1plus", 2, 0.96, low=False),))
    slow = replace(ITERATION, sending_rate_bps={"w0": 20e6, "w1": 18e6})
    assert judged(seconds=(beside, beside)) == ()
    found = judged(seconds=(beside, beside), measured=replace(MEASURED, iterations=(slow,)))
    assert len(found) == 2
    assert found[0] == (
        "cc1plus (2 processes, not of this run) took 96% of the processors in 2 of 2 s: end them, or wait"
    )


def test_a_slow_sender() -> None:
    slow = replace(ITERATION, sending_rate_bps={"w0": 20e6, "w1": 18e6})
    found = judged(measured=replace(MEASURED, iterations=(slow,)))
    assert found == ("worker 'w1' of job 1 sent at 18 Mbit/s, planned were 20 Mbit/s",)


def test_one_packet_has_no_rate_and_so_none_that_is_too_low() -> None:
    one = replace(ITERATION, sending_rate_bps=dict.fromkeys(WORKERS, 0.0))
    none = replace(one, sent_bytes=dict.fromkeys(WORKERS, 0))
    assert judged(measured=replace(MEASURED, iterations=(one,))) == ()
    assert [text[:10] for text in judged(measured=replace(MEASURED, iterations=(none,)))] == [
        "worker 'w0",
        "worker 'w1",
    ]


def test_workers_are_named_in_the_order_of_the_plan() -> None:
    (tree,) = PLAN.trees
    many = {1 + number: f"h{7 * number % 64}" for number in range(64)}
    plan = replace(PLAN, trees=(replace(tree, tree=replace(tree.tree, workers=many)),))
    assert [host for _, host in planned_rates(plan)] == list(many.values())


def test_a_late_sender() -> None:
    found = judged(measured=replace(MEASURED, late_s={"w0": 0.04, "w1": 0.11}))
    assert found == ("worker 'w1' was 110 ms behind its pace in 2 s",)


def test_problems_of_sockets() -> None:
    found = judged(measured=replace(MEASURED, problems={"host 'w0': its socket dropped received frames": 4}))
    assert found == ("host 'w0': its socket dropped received frames: 4",)
