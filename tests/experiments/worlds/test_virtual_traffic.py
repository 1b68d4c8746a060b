"""In virtual time, too: captures, background traffic, hostile hosts and replays, without root, tcpdump or tcpreplay."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command import inakit
from other_entries import OtherEntries
from scapy.packet import Packet
from scapy.utils import RawPcapReader
from tolerance import assert_within

from inakit.experiments.inspect.capture import Counts, Place, capture_places, file_of
from inakit.experiments.run.faults import OtherTraffic, Span, When
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import leaf_spine
from inakit.traffic.faults.attacks import Attack, possible_attacks
from inakit.traffic.wire import scapy_layers
from inakit.traffic.wire.packet_format import FRAGMENT
from inakit.traffic.wire.scapy_layers import INA, gradient_packet

pytestmark = pytest.mark.compiler

FRAGMENTS = 100
WORKERS, SERVER, IDLE, NEAR, SINK = ("h1", "h5"), "h4", "h3", "h2", "h6"
"""Of hosts h1 to h3 at leaf1 and h4 to h6 at leaf2, which one spine joins. The idle one can send to the last two."""


def planned(
    planner: str = "aro", *, capacity_bps: float = 20e6, iterations: int = 1, fragments: int = FRAGMENTS
) -> Run:
    """A plan for a job of two workers."""
    job = Job(1, WORKERS, (SERVER,), fragments * 4 * FRAGMENT.values, iterations=iterations)
    problem = Problem(leaf_spine(2, 1, 3, capacity_bps=capacity_bps), (job,), FRAGMENT)
    return Run(with_headroom(problem, METHODS[planner].plan(problem)))


def replayed(run: Run) -> Run:
    """The same plan as a replay."""
    return replace(run, prepared=replace(run.prepared, mode="replay"))


def ran(run: Run) -> Outcome:
    return run_plan(run, find_world("virtual"))


def port_to(run: Run, host: str) -> Place:
    """The port of a switch that leads to a host."""
    switch = run.problem.fabric.tor_of(host)
    return switch, run.problem.fabric.port_numbers[switch, host]


def packets(place: Place, folder: Path) -> list[tuple[int, bytes]]:
    """When each packet of a captured port passed, in nanoseconds, and its bytes."""
    with RawPcapReader(str(file_of(place, folder))) as reader:
        return [(10**9 * head.sec + head.usec, data) for data, head in reader]


# -- captures


def test_a_file_has_what_the_port_counts(tmp_path: Path) -> None:
    run = planned(iterations=2)
    places = capture_places(run.problem.fabric, "leaf1,spine1:2")
    outcome = ran(replace(run, captures=places, folder=tmp_path))
    assert outcome.captured.keys() == {path.stem for path in (tmp_path / "pcap").iterdir()}
    assert outcome.captured.keys() == {f"{switch}-{port}" for switch, port in places}
    for place in places:
        found = packets(place, tmp_path)
        name = "{}-{}".format(*place)
        port = outcome.monitor.after.interfaces[name]
        assert outcome.captured[name] == Counts(captured=len(found), received=len(found), dropped=0)
        assert len(found) == port.received_packets + port.sent_packets
        assert sum(len(data) for _, data in found) == port.received_bytes + port.sent_bytes
        assert [at for at, _ in found] == sorted(at for at, _ in found)
    # The gradients of the worker, and the results that it gets.
    assert outcome.captured["{}-{}".format(*port_to(run, "h1"))].captured == 2 * 2 * FRAGMENTS


def test_packets_of_a_replay_follow_one_another_at_the_planned_interval(tmp_path: Path) -> None:
    """To the nanosecond, which real time would not show."""
    run = planned(capacity_bps=10e9)
    place = port_to(run, "h1")
    ran(replace(replayed(run), captures=(place,), folder=tmp_path))
    times = [at for at, _ in packets(place, tmp_path)]
    interval_ns = 1e9 * 8 * FRAGMENT.wire_bytes / evaluate(run.problem, run.plan).sending_rate_bps
    assert len(times) == FRAGMENTS
    assert all(abs(later - before - interval_ns) <= 1 for before, later in pairwise(times))


# -- replay


@pytest.mark.parametrize("planner", ["aro", "lbmm"])
@pytest.mark.parametrize("capacity_bps", [20e6, 100e9])
def test_a_replay_has_the_planned_rate_and_time(planner: str, capacity_bps: float) -> None:
    run = planned(planner, capacity_bps=capacity_bps, iterations=2)
    outcome, prediction = ran(replayed(run)), evaluate(run.problem, run.plan)
    assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)
    assert_within(outcome.measured.sending_rate_bps, prediction.sending_rate_bps, 0.005, "sending rate", "bit/s")
    longer_s = outcome.measured.communication_time_s - prediction.communication_time_s
    assert 0 <= longer_s <= prediction.jobs[1].way_s + 0.005 * prediction.communication_time_s
    assert outcome.measured.ps_ingress_bytes == prediction.ps_ingress_bytes
    assert outcome.measured.sent_bytes == prediction.sent_bytes


def test_scapy_builds_one_template_for_each_stream_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many packets a worker sends: NumPy fills them in."""
    made: list[Packet] = []

    def counted(**given: Any) -> Packet:
        made.append(gradient_packet(**given))
        return made[-1]

    monkeypatch.setattr(scapy_layers, "gradient_packet", counted)
    outcome = ran(replayed(planned("lbmm", iterations=2)))
    told = outcome.measured.replayed
    assert outcome.measured.exact
    assert len(made) == len(told) < sum(each.frames for each in told)
    assert [packet[INA].workers for packet in made] == [1, 1]
    assert [each.command for each in told] == [None, None]


def test_a_replay_that_loses_packets_ends_and_says_which_sums_lack_them() -> None:
    """Workers send a quarter more than the link to the PS carries."""
    run = planned("lbmm")
    faster = Prepared(run.problem, run.plan.with_rates_times(1.25), "replay")
    outcome = ran(replace(run, prepared=faster, interferences=(OtherEntries(run.prepared.entries),), queue_packets=5))
    assert outcome.measured.exact is False
    assert any("incomplete fragments" in problem for problem in outcome.measured.problems)
    assert any("dropped" in reason for reason in outcome.reasons)


# -- background traffic and hostile hosts


@pytest.mark.parametrize("capacity_bps", [20e6, 100e9])
def test_a_background_flow_has_its_rate_and_every_packet_is_accounted_for(capacity_bps: float, tmp_path: Path) -> None:
    """It takes a quarter of links that the plan leaves free for it, beside the job."""
    run = planned("lbmm", capacity_bps=capacity_bps)
    flow = Flow(IDLE, SINK, 0.25 * capacity_bps, frame_bytes=500)
    outcome = ran(replace(run, interferences=(OtherTraffic((flow,)),), captures=(port_to(run, SINK),), folder=tmp_path))
    assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)
    found = packets(port_to(run, SINK), tmp_path)
    rate_bps = 8 * 500 * (len(found) - 1) / (found[-1][0] - found[0][0]) * 1e9
    assert_within(rate_bps, flow.rate_bps, 0.02, "background", "bit/s")
    after = outcome.monitor.after.interfaces
    assert after[f"{IDLE}-0"].sent_packets == after[f"{SINK}-0"].received_packets == len(found) > 30
    assert outcome.interferences[0].counts["dropped_by_queues"] == 0


def test_a_host_whose_link_is_full_sends_what_fits() -> None:
    """Its flow is asked to be twice as fast as its link; no queue grows, and none of the host's own drops."""
    run = planned(iterations=3)
    outcome = ran(replace(run, interferences=(OtherTraffic((Flow(IDLE, NEAR, 40e6),)),)))
    assert outcome.measured.exact
    after, seconds = outcome.monitor.after, outcome.monitor.after.at_s
    assert_within(8 * after.interfaces[f"{IDLE}-0"].sent_bytes / seconds, 20e6, 0.01, "what the host sent", "bit/s")
    assert after.queues[f"{IDLE}-0"] == 0


def test_a_background_flow_sends_in_its_time_only() -> None:
    """It begins with the second iteration and ends with the fourth, which begins behind the packets of a full queue."""
    run, flow = planned("inart-equal", fragments=1000, iterations=6), Flow(IDLE, SINK, 15e6)
    span = Span(When(iteration=1), When(iteration=3))
    outcome = ran(replace(run, interferences=(OtherTraffic((flow,), spans=(span,)),)))
    assert (outcome.verdict, outcome.measured.exact) == ("VALID", True)
    times = [iteration.communication_time_s for iteration in outcome.measured.iterations]
    assert min(times[1:3]) > 2 * times[0]
    assert times[0] == pytest.approx(times[4], rel=0.01) == pytest.approx(times[5], rel=0.01)
    assert outcome.interferences[0].said[0].endswith("from iteration 1 to iteration 3")


def test_of_two_equal_background_flows_one_sends_always_and_the_other_is_not_reached() -> None:
    """The first one alone has the host's link; the report says that the second one never began."""
    flow, spans = Flow(IDLE, NEAR, 5e6), (Span(), Span(When(iteration=50)))
    run = replace(planned(), interferences=(OtherTraffic((flow, flow), spans=spans),))
    outcome = ran(run)
    after = outcome.monitor.after
    assert_within(8 * after.interfaces[f"{IDLE}-0"].sent_bytes / after.at_s, 5e6, 0.05, "what the host sent", "bit/s")
    said = outcome.interferences[0].said
    assert said[0].startswith(f"{IDLE} sends 5 Mbit/s")
    assert said[1].startswith(f"not reached: {IDLE} sends 5 Mbit/s") and said[1].endswith("from iteration 50")


def test_the_same_attack_is_the_same_again() -> None:
    run = planned()
    attack = Attack(IDLE, 1, possible_attacks(run.problem, IDLE, 1), 5e6)
    attacked = replace(run, interferences=(OtherTraffic(hostile=(attack,)),))
    first, second = (ran(attacked).results.repeatable() for _ in range(2))
    assert first == second
    assert first["measured"]["exact"]
    assert {away["sender"] for away in first["turned_away"]} == {IDLE}


@pytest.mark.parametrize("planner", ["ring", "hierarchical"])
def test_ranks_which_send_more_than_their_gradients_can_be_attacked(planner: str) -> None:
    run = planned(planner)
    attack = Attack(IDLE, 1, possible_attacks(run.problem, IDLE, 1), 5e6)
    assert ran(replace(run, interferences=(OtherTraffic(hostile=(attack,)),))).measured.exact


# -- what is not needed


def test_neither_tcpdump_nor_tcpreplay_is_asked_for(tmp_path: Path) -> None:
    """A PATH with nothing but the C compiler's, which has done its work before."""
    planned()
    ran(planned())
    answer = inakit(
        "emulate", "--topo", "aro-figure1", "--switch", "virtual", "--mode", "replay", "--pcap", "l1:1",
        "--iterations", "1", "--planners", "aro", at=tmp_path, environment={"PATH": str(tmp_path)},
    )  # fmt: skip
    assert answer.code == 0, answer
    assert (tmp_path / "results" / "latest" / "aro" / "pcap" / "l1-1.pcap").stat().st_size > 24
