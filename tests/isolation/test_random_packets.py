"""Random packets: none that a switch takes for other IPv4 is heard, and none of a stranger's changes a sum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from attacked_network import AttackedNetwork, exact_by_job, passes, run
from hypothesis import given, settings
from hypothesis import strategies as st
from two_jobs import AT, SERVERS, SLOTS, SUMS, WORKERS, two_jobs

from inakit.planner.core.plan import ROOT_LABEL
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.install.ina_program import IPV4_ROUTE, SEND
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.fabric.fabric import addresses
from inakit.traffic.faults.attacks import on_wire
from inakit.traffic.sockets.packet_sockets import INA_FILTER
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, PROGRAM, Frames, Kind, new_frames, offset_of

pytestmark = pytest.mark.compiler


PS_IPV4 = "10.0.0.9"
HEADERS_END = offset_of("ina")
FREE = [at for at in range(HEADERS_END) if not offset_of("ipv4", "dst") <= at < offset_of("udp")]


@cache
def plain_router() -> InProcessSwitch:
    """A switch that knows the way to one address and admits nothing."""
    switch = InProcessSwitch(read_program(PROGRAM))
    route = TableEntry(IPV4_ROUTE, (int.from_bytes(bytes([10, 0, 0, 9]), "big"),), SEND, (2,))
    switch.install(SwitchEntries("switch", tables=(route,)))
    return switch


def gradient(kind: Kind = Kind.GRADIENT) -> Frames:
    frame = new_frames(1, src_mac="02:00:00:00:00:01", dst_mac="02:00:00:00:00:02", src_ip="10.0.0.1", dst_ip=PS_IPV4)
    frame["ina"]["kind"] = kind
    return frame


NOTABLE = st.one_of(
    st.sampled_from((0x00, 0x01, 0x06, 0x11, 0x20, 0x40, 0x45, 0x46, 0x81, 0x86, 0xDD)), st.integers(0, 255)
)


@settings(max_examples=400, deadline=None)
@given(
    kind=st.sampled_from(list(Kind)),
    changes=st.lists(st.tuples(st.sampled_from(FREE), NOTABLE), max_size=3),
    inserted=st.tuples(st.sampled_from((12, 14, 34, 42)), st.binary(max_size=8)),
    length=st.sampled_from((None, BARE_FRAME.itemsize, FRAME.itemsize, 60, 400)),
)
def test_no_socket_hears_what_a_switch_lets_pass_without_admission(
    kind: Kind, changes: list[tuple[int, int]], inserted: tuple[int, bytes], length: int | None
) -> None:
    frame = bytearray(on_wire(gradient(kind)))
    for at, value in changes:
        frame[at] = value
    frame[inserted[0] : inserted[0]] = inserted[1]
    frame = frame[:length].ljust(length or 0, b"\0")
    for _, packet in plain_router().inject(1, bytes(frame)):
        assert not passes(INA_FILTER, packet)


def test_the_filter_hears_what_the_endpoints_send() -> None:
    assert all(passes(INA_FILTER, on_wire(gradient(kind))) for kind in Kind)
    assert plain_router().inject(1, on_wire(gradient())) == []


JOBS, TREES, KINDS = st.sampled_from((1, 2, 3)), st.sampled_from((1, 1, 1, 2)), st.sampled_from((1, 1, 2, 3, 4))
LABELS = st.sampled_from((0, *range(1, 5), *SUMS.values()))
SEQS = st.one_of(st.integers(0, 30), st.integers(0, (1 << 32) - 1))
SLOT = st.one_of(st.integers(0, SLOTS), st.integers(0, (1 << 32) - 1))
HOSTS = tuple(host for hosts in AT.values() for host in hosts)


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """An INA packet of nearly any header, from any to any host."""
    found = addresses(two_jobs("goat")[0].fabric)
    source, destination = (found[draw(st.sampled_from(HOSTS))] for _ in range(2))
    frame = new_frames(
        1, src_mac=source.mac_text, dst_mac=destination.mac_text, src_ip=source.ipv4_text, dst_ip=destination.ipv4_text
    )
    ina = frame["ina"]
    ina["kind"], ina["job"], ina["tree"], ina["label"] = draw(st.tuples(KINDS, JOBS, TREES, LABELS))
    ina["seq"], ina["slot"], ina["bitmap"] = draw(SEQS), draw(SLOT), draw(st.integers(0, 15))
    ina["flags"] = draw(st.sampled_from((0, 0, 0x08, 0x10, 0x20, 0x30, 0x04, 0x14, 0xFF)))
    ina["priority"], ina["workers"] = draw(st.sampled_from((0, 255))), 1
    frame["values"] = np.arange(1, 65)
    return on_wire(frame)


def may_send(host: str, packet: bytes) -> bool:
    """Whether a host of job 2 is to send this: what it says under its own label may spoil its own job's sums."""
    ina = np.frombuffer(packet[: BARE_FRAME.itemsize], BARE_FRAME)["ina"][0]
    own = WORKERS[2].index(host) + 1 if host in WORKERS[2] else ROOT_LABEL if host in SERVERS[2] else None
    return not (ina["job"] == 2 and ina["label"] == own and ina["seq"] <= 30)


@settings(max_examples=12, deadline=None)
@given(policy=st.sampled_from(list(POLICIES)), sent=st.lists(packets(), min_size=20, max_size=50))
def test_no_packet_changes_a_sum_of_others(policy: str, sent: list[bytes]) -> None:
    problem, plan = two_jobs(policy, fragments=16, iterations=1)
    network = AttackedNetwork(problem, plan)
    for host in ("outsider", "stranger", "b1", "ps3"):
        network.attackers[host] = [packet for packet in sent if may_send(host, packet)] or [bytes(60)]
    assert exact_by_job(run(network, problem, plan)) == {1: True, 2: True}
