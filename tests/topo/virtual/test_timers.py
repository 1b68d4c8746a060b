"""Machines on events: nodes in C that get packets, have a timer, and send."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inakit.topo.c_library import LIBRARY, build
from inakit.topo.virtual import engine as engine_module
from inakit.topo.virtual.engine import PS_PER_S, Engine, Following, Hops
from inakit.topo.virtual.virtual_network import Source, as_rows

pytestmark = pytest.mark.compiler

MACHINE = """
#include <stdint.h>
typedef uint8_t u8; typedef uint32_t u32; typedef int64_t s64;
#include "node.h"

/* Sends `left` packets of 100 bytes, one each `interval`, numbered by the length of its queue; answers each packet that
 * comes with the same bytes. A packet with the number 9 moves its timer to `moved`. */
struct machine { u32 left, calls, turn, waiting; s64 interval, moved, called[8]; };
static u32 turns; /* how often any machine was called by its timer */

void wake(struct machine *machine, s64 now, emit_fn *emit, void *context) {
    machine->called[machine->calls++] = now, machine->turn = ++turns;
    if (!machine->left)
        return;
    u8 packet[100] = {machine->waiting = waiting_at(context, 0)};
    emit(context, 0, packet, sizeof packet);
    if (--machine->left)
        wake_at(context, now + machine->interval);
}

void receive(struct machine *machine, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *emit, void *context) {
    bytes[1] = 1;
    if (bytes[0] == 9)
        wake_at(context, machine->moved);
    else
        emit(context, port, bytes, length);
}
"""
FRAME = np.dtype([("number", np.uint8), ("answered", np.uint8), ("rest", np.uint8, 98)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9
NEVER = (1 << 63) - 1
OUT, BACK = 0, 1
MACHINE_NODE, HOST = 0, 1


class Machine(ctypes.Structure):
    """`struct machine` of the C above."""

    _fields_ = [
        ("left", ctypes.c_uint32),
        ("calls", ctypes.c_uint32),
        ("turn", ctypes.c_uint32),
        ("waiting", ctypes.c_uint32),
        ("interval", ctypes.c_int64),
        ("moved", ctypes.c_int64),
        ("called", ctypes.c_int64 * 8),
    ]

    @property
    def times(self) -> list[int]:
        """When it was called by its timer, in ns."""
        return [at // NS for at in self.called[: self.calls]]


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A machine and a host, joined by a link of 1 Gbit/s without a delay, and two machines without links."""
    with Engine(2, [1, 1, 0, 0], FRAME) as made:
        made.connect(OUT, (MACHINE_NODE, 0), (HOST, 0), rate_bps=1e9, delay_ps=0, limit=0)
        made.connect(BACK, (HOST, 0), (MACHINE_NODE, 0), rate_bps=1e9, delay_ps=0, limit=0)
        yield made


def run_machine(
    engine: Engine, node: int = MACHINE_NODE, *, left: int = 0, interval: int = 0, moved: int = 0
) -> Machine:
    """A machine that runs on a node. Times are in ns."""
    library = ctypes.CDLL(str(build(MACHINE, replace(LIBRARY, headers=Path(engine_module.__file__).parent))))
    machine = Machine(left, 0, 0, 0, interval * NS, moved * NS)
    receive, wake = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (library.receive, library.wake))
    engine.run_on(node, receive, ctypes.addressof(machine), library, machine, wake=wake)
    return machine


def send(engine: Engine, *numbers: int) -> None:
    frames = np.zeros(len(numbers), FRAME)
    frames["number"] = numbers
    engine.send(np.full(len(numbers), BACK, np.uint32), np.full(len(numbers), 100, np.uint32), frames)


def arrivals(engine: Engine) -> list[tuple[int, int]]:
    """Time in ns and number of what the host got."""
    return [(int(each["at"]) // NS, int(each["frame"]["number"])) for each in engine.take()]


def test_a_machine_sends_each_time_its_timer_ends_and_knows_its_queue(engine: Engine) -> None:
    machine = run_machine(engine, left=4, interval=300)
    engine.set_timer(MACHINE_NODE, 1000 * NS)
    assert engine.next_ps() == 1000 * NS
    engine.run(10_000 * NS)
    assert machine.times == [1000, 1300, 1600, 1900]
    assert arrivals(engine) == [(1800, 0), (2600, 0), (3400, 1), (4200, 1)]
    assert engine.next_ps() is None


def test_a_timer_has_one_time_the_last_that_was_set(engine: Engine) -> None:
    machine = run_machine(engine)
    for at in (500, 200, 700):
        engine.set_timer(MACHINE_NODE, at * NS)
    engine.run(600 * NS)
    assert machine.times == []
    engine.set_timer(MACHINE_NODE, 100 * NS)  # has passed: now
    engine.run(600 * NS)
    engine.set_timer(MACHINE_NODE, 800 * NS)
    engine.set_timer(MACHINE_NODE, NEVER)
    engine.run(1000 * NS)
    assert machine.times == [600]


def test_a_packet_moves_the_timer_and_is_answered(engine: Engine) -> None:
    machine = run_machine(engine, moved=1700)
    engine.set_timer(MACHINE_NODE, 900 * NS)
    send(engine, 9, 3)
    engine.run(5000 * NS)
    assert machine.times == [1700]
    assert [(int(each["at"]) // NS, each["frame"]["answered"]) for each in engine.take()] == [(2400, 1)]


def test_what_the_filter_refuses_does_not_come_to_the_machine(engine: Engine) -> None:
    machine = run_machine(engine, moved=1700)
    engine.set_filter([MACHINE_NODE], [(0x30, 0, 0, 0), (0x15, 0, 1, 3), (0x06, 0, 0, 1), (0x06, 0, 0, 0)])
    send(engine, 9, 3)
    engine.run(5000 * NS)
    assert (machine.times, arrivals(engine)) == ([], [(2400, 3)])
    assert (engine.nodes["refused"][MACHINE_NODE], engine.links["received_packets"][BACK]) == (1, 2)


def test_timers_of_one_instant_end_after_arrivals_and_sources_in_order_of_nodes(engine: Engine) -> None:
    """At 800 ns a packet moves the host's timer away, a source's second frame waits, and then the timers end."""
    sender, host, *others = (run_machine(engine, node, moved=2000) for node in range(4))
    sender.left = 1
    for node in (3, 2, HOST, MACHINE_NODE):
        engine.set_timer(node, 800 * NS)
    engine.send(np.array([OUT], np.uint32), np.array([100], np.uint32), np.full(1, 9, FRAME))
    engine.run(700 * NS)
    Source(engine, OUT, *as_rows([bytes(100)]), rate_fps=1e7, room=9, count=2)
    engine.run(3000 * NS)
    assert [each.times for each in (sender, host, *others)] == [[800], [2000], [800], [800]]
    assert [each.turn - sender.turn for each in (*others, host)] == [1, 2, 3]
    assert sender.waiting == 1


@pytest.mark.parametrize("seed", range(5))
def test_many_timers_that_are_set_anew_end_in_order(seed: int) -> None:
    """200 timers, each set to times among few, so that many end at once."""
    draws = np.random.default_rng(seed)
    with Engine(1, [0] * 200, FRAME) as engine:
        machines = [run_machine(engine, node) for node in range(200)]
        ends = {}
        for node in draws.integers(200, size=2000).tolist():
            ends[node] = int(draws.integers(50))
            engine.set_timer(node, ends[node] * NS)
        for at in sorted(set(ends.values())):
            assert engine.next_ps() == at * NS
            engine.run(at * NS)
        assert engine.next_ps() is None
        assert [each.times for each in machines] == [[ends[node]] if node in ends else [] for node in range(200)]
        turns = {node: each.turn for node, each in enumerate(machines) if node in ends}
        assert sorted(ends, key=lambda node: (ends[node], node)) == sorted(ends, key=turns.__getitem__)


def test_no_hop_is_the_cause_of_what_an_endpoint_sends(engine: Engine) -> None:
    run_machine(engine)
    hops = Hops(Following(np.dtype([("number", np.uint8)]), 0, number_at=2, every=1, room=9))
    engine.observe(hops=hops)
    send(engine, 3)
    engine.run(5000 * NS)
    assert hops.found["link"].tolist() == [BACK, OUT]
    assert set(hops.found["cause"].tolist()) == {0xFFFFFFFF}
