"""ina.p4 on target fast: what happens to each kind of packet, in this process and in the kernel alike."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from ina_by_hand import (
    COLLISION,
    CONTROL,
    GRADIENT,
    NOTICE,
    OVERFLOW,
    PARTIAL,
    PS,
    RESULT,
    RETRANSMITTED,
    entry,
    ethernet_packet,
    ina_header,
    ina_packet,
    ina_program,
    ina_values,
    ipv4_packet,
    small_tree,
)
from same_switches import by_port, same_state, shown_when_wrong, wait_for
from small_programs import Packets
from veth_wires import Wires, in_kernel

from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.layout.layout import FRONT_BITS
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.traffic.wire.packet_format import Event

PIPELINES = 8
ONES, TENS = [1] * 64, [10] * 64
TWO, THREE = ina_packet(2, values=ONES), ina_packet(3, values=TENS)
HIGH = [2**31 - 1, -(2**31)] * 32


def with_header(packet: bytes, **fields: int) -> bytes:
    """`packet` with fields of its INA header replaced."""
    header = ina_header(packet) | fields
    return packet[:42] + struct.pack(">BBHHHIIQHBB", *header.values()) + packet[70:]


def with_values(packet: bytes, values: list[int]) -> bytes:
    return packet[:70] + struct.pack(">64i", *values) + packet[326:]


SUM = with_values(with_header(TWO, label=9, workers=2), [11] * 64)

# Name, packets in (port, bytes), what leaves, and the events counted. Ports and labels are those of `small_tree`.
SEQUENCES: dict[str, tuple[Packets, Packets, dict[str, int]]] = {
    "two children complete a sum": (
        [(1, TWO), (2, THREE)],
        [(3, SUM)],
        {"absorbed": 1, "added": 2, "completed": 1, "sent_unicast": 1},
    ),
    "a duplicate is dropped": (
        [(1, TWO), (1, TWO), (2, THREE)],
        [(3, SUM)],
        {"absorbed": 1, "duplicate": 1, "added": 2, "completed": 1, "sent_unicast": 1},
    ),
    "a retransmission flushes the slot as a partial sum": (
        [(1, TWO), (1, with_header(TWO, flags=RETRANSMITTED))],
        [(3, with_header(TWO, label=9, flags=RETRANSMITTED | PARTIAL, bitmap=1))],
        {"absorbed": 1, "added": 1, "flushed": 1, "sent_unicast": 1},
    ),
    "a retransmission that meets no slot goes on alone": (
        [(1, with_header(TWO, flags=RETRANSMITTED))],
        [(3, with_header(TWO, flags=RETRANSMITTED))],
        {"sent_unicast": 1},
    ),
    "a descendant's retransmission flushes the slot": (
        [(1, TWO), (2, ina_packet(5, flags=RETRANSMITTED, values=TENS))],
        [(3, with_header(TWO, label=9, flags=RETRANSMITTED | PARTIAL, bitmap=1))],
        {"absorbed": 1, "added": 1, "flushed": 1, "sent_unicast": 1},
    ),
    "an older fragment finds the slot busy": (
        [(1, ina_packet(2, seq=16)), (2, THREE)],
        [(3, with_header(THREE, flags=COLLISION))],
        {"absorbed": 1, "added": 1, "collision": 1, "sent_unicast": 1},
    ),
    "a newer fragment reclaims the slot": (
        [(1, TWO), (1, with_header(TWO, seq=16)), (2, with_header(THREE, seq=16))],
        [(3, with_header(SUM, seq=16))],
        {"absorbed": 2, "added": 3, "reclaimed": 1, "completed": 1, "sent_unicast": 1},
    ),
    "an overflow is flagged": (
        [(1, ina_packet(2, values=HIGH)), (2, ina_packet(3, values=HIGH))],
        [(3, with_values(with_header(SUM, flags=OVERFLOW), [-2, 0] * 32))],
        {"absorbed": 1, "added": 2, "completed": 1, "sent_unicast": 1},
    ),
    "partial and overflown sums are never added": (
        [(1, with_header(TWO, flags=PARTIAL)), (1, with_header(TWO, flags=OVERFLOW))],
        [(3, with_header(TWO, flags=PARTIAL)), (3, with_header(TWO, flags=OVERFLOW))],
        {"sent_unicast": 2},
    ),
    "a slot beyond the window is rejected": ([(1, with_header(TWO, slot=16))], [], {"rejected": 1}),
    "a label that is not admitted is rejected": ([(2, TWO), (1, THREE), (3, TWO)], [], {"rejected": 3}),
    "a label without an aggregator passes": (
        [(4, ina_packet(4))],
        [(3, ina_packet(4))],
        {"sent_unicast": 1},
    ),
    "a result goes to every port of the group": (
        [(3, ina_packet(0, kind=RESULT))],
        [(port, ina_packet(0, kind=RESULT)) for port in (1, 2, 4)],
        {"sent_multicast": 1},
    ),
    "a notice has no values": (
        [(3, ina_packet(0, kind=NOTICE, flags=OVERFLOW))],
        [(port, ina_packet(0, kind=NOTICE, flags=OVERFLOW)) for port in (1, 2, 4)],
        {"sent_multicast": 1},
    ),
    "a result that was asked for again goes to its address": (
        [(3, ina_packet(0, kind=RESULT, flags=RETRANSMITTED))],
        [(3, ina_packet(0, kind=RESULT, flags=RETRANSMITTED))],
        {"sent_unicast": 1},
    ),
    "a packet that ends too early is malformed": (
        [(1, TWO[:length]) for length in (14, 20, 33, 34, 41, 42, 69, 70, 200, 325)],
        [],
        {"malformed": 10},
    ),
    "bytes after the values are kept": (
        [(1, TWO + b"tail"), (2, THREE + b"more")],
        [(3, SUM + b"more")],
        {"absorbed": 1, "added": 2, "completed": 1, "sent_unicast": 1},
    ),
    "other protocols are routed by address or dropped": (
        [
            (1, ethernet_packet(b"\0\1\x08\0" + bytes(30), 0x0806)),
            (1, ethernet_packet(struct.pack(">HH", 5, 0x0800) + TWO[14:], 0x8100)),
            (1, ethernet_packet(struct.pack(">HHHH", 5, 0x8100, 6, 0x0800) + TWO[14:], 0x88A8)),
            (1, ethernet_packet(struct.pack(">HHH", 5, 0x8100, 6), 0x8100)),
            (1, ipv4_packet(b"ping" * 10, PS, protocol=1)),
            (1, ipv4_packet(b"ping" * 10, PS + 1, protocol=1)),
            (1, ina_packet(2, udp_port=80)),
        ],
        [(3, ipv4_packet(b"ping" * 10, PS, protocol=1)), (3, ina_packet(2, udp_port=80))],
        {"malformed": 4, "unroutable": 1, "sent_unicast": 2},
    ),
}  # fmt: skip

EVENTS = [event.name.lower() for event in Event]


@pytest.mark.parametrize("name", SEQUENCES)
def test_in_this_process(name: str) -> None:
    packets, expected, events = SEQUENCES[name]
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree())
    with shown_when_wrong(switch.source):
        assert switch.inject_all(packets) == expected
        counted = dict(zip(EVENTS, switch.read_counter(f"{CONTROL}.events")[0].tolist(), strict=True))
        assert {event: number for event, number in counted.items() if number} == events


@pytest.mark.root
def test_in_the_kernel_all_is_the_same() -> None:
    program = ina_program()
    with Wires((1, 2, 3, 4)) as wires:
        compiled = compile_program(program)
        for name, (packets, expected, _) in SEQUENCES.items():
            model, switch = InProcessSwitch(program), KernelSwitch(compiled)
            model.install(small_tree())
            switch.install(small_tree())
            wires.attach(switch)
            with shown_when_wrong(switch.source):
                assert model.inject_all(packets) == expected
                assert in_kernel(wires, packets, expected) == by_port(expected, (1, 2, 3, 4)), name
                wait_for(partial(same_state, model, switch, program), "the same registers and counters")
            switch.close()


def test_a_root_in_the_network_answers_with_the_result() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree(policy=1))
    out = switch.inject_all([(1, TWO), (2, THREE)])
    assert [port for port, _ in out] == [1, 2, 4]
    assert ina_header(out[0][1])["kind"] == RESULT
    assert ina_values(out[0][1]) == [11] * 64


def test_pipelines_do_not_share_slots() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree(pipelines=(0, 7, 0, 1)))  # worker 3 now arrives in a pipeline without an aggregator
    assert switch.inject_all([(1, TWO), (2, THREE)]) == [(3, THREE)]
    bitmaps = switch.read_register(f"{CONTROL}.slot_bitmap")
    assert np.flatnonzero(bitmaps).tolist() == [5]


@pytest.mark.parametrize("pipeline", [0, 3, 7])
def test_a_slot_is_where_its_pipeline_has_it(pipeline: int) -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree(pipelines=(pipeline, pipeline, 0, 1)))
    switch.inject(1, with_header(TWO, slot=7, seq=7))
    bitmaps = switch.read_register(f"{CONTROL}.slot_bitmap")
    place = pipeline * (len(bitmaps) // PIPELINES) + 5 + 7
    assert np.flatnonzero(bitmaps).tolist() == [place]
    assert switch.read_register(f"{CONTROL}.sum63")[place] == 1
    assert switch.read_register(f"{CONTROL}.slot_seq")[place] == 7


def test_sequence_numbers_wrap() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree())
    last, first = with_header(TWO, seq=2**32 - 16), with_header(TWO, seq=0)
    assert switch.inject_all([(1, last), (1, first), (2, THREE)]) == [(3, SUM)]


def test_counters_count_packets_and_bytes() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree())
    switch.inject_all([(1, TWO), (2, THREE + b"more"), (3, ina_packet(0, kind=RESULT))])
    expected: dict[str, Callable[[int], tuple[int, int]]] = {
        f"{CONTROL}.received": lambda port: {1: (1, 326), 2: (1, 330), 3: (1, 326)}.get(port, (0, 0)),
        "InaEgress.sent": lambda port: {3: (1, 330), 1: (1, 326), 2: (1, 326), 4: (1, 326)}.get(port, (0, 0)),
        "InaEgress.replicated": lambda port: (1, 326) if port in (1, 2, 4) else (0, 0),
    }
    for name, of in expected.items():
        counted = zip(*(part[:6].tolist() for part in switch.read_counter(name)), strict=True)
        assert list(counted) == [of(port) for port in range(6)], name


def test_more_entries_than_stand_in_front_of_a_table_are_all_found() -> None:
    """Half of these keys share their place in the array with another; those that came second are in the hash table."""
    switch, labels = InProcessSwitch(ina_program()), range(1, 2 << FRONT_BITS)
    tables = [entry("admission", (1, GRADIENT, 1, 1, label), "admit") for label in labels]
    tables += [entry("forward", (1, 1, label), "send", label % 400) for label in labels]
    switch.install(SwitchEntries("s1", tuple(tables)))
    left = [switch.inject(1, ina_packet(label)) for label in labels]
    assert [port for packets in left for port, _ in packets] == [label % 400 for label in labels]
    assert switch.inject(1, ina_packet(labels.stop)) == []


def test_registers_beyond_their_end_are_skipped_and_the_rest_of_the_action_runs() -> None:
    """Pipeline 9 has no slots: the sum of one child leaves as it came, and no register holds anything."""
    switch, tree = InProcessSwitch(ina_program()), small_tree(pipelines=(9, 9, 0, 9))
    alone = (
        entry("aggregation", (9, 1, 2, 2), "aggregate", 1, 1, 0, 16, 9, 16, 0),
        entry("forward", (1, 2, 9), "send", 3),
    )
    admitted = entry("admission", (1, GRADIENT, 1, 2, 2), "admit")
    switch.install(SwitchEntries("s1", (*tree.tables, *alone, admitted), tree.groups))
    ((port, left),) = switch.inject(1, ina_packet(2, tree=2, values=range(5, 69)))
    assert (port, ina_header(left)["label"], ina_values(left)) == (3, 9, list(range(5, 69)))
    assert switch.inject(1, ina_packet(2)) == []
    assert not any(switch.read_register(name).any() for name in ina_program().registers)
    assert switch.read_counter(f"{CONTROL}.events")[0][[3, 7, 8]].tolist() == [1, 2, 1]  # absorbed, added, completed
