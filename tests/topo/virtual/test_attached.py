"""Machines on events that are attached to an engine: in C, called at their time, and sending by `engine_give`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from inakit.topo.c_library import LIBRARY, build
from inakit.topo.virtual.engine import PS_PER_S, Engine

pytestmark = pytest.mark.compiler

MACHINE = """
#include <stdint.h>
/* Sends `left` packets of 100 bytes, one each `interval`; then it halts the run. */
struct machine {
    int64_t due, interval; uint32_t left, halted; void *engine;
    void (*give)(void *, uint32_t, const uint8_t *, uint32_t);
};

void wake(struct machine *machine, int64_t now) {
    uint8_t packet[100] = {machine->left};
    machine->give(machine->engine, 0, packet, sizeof packet);
    machine->due = --machine->left ? now + machine->interval : INT64_MAX;
    machine->halted = !machine->left;
}
"""
FRAME = np.dtype([("number", np.uint8), ("rest", np.uint8, 99)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9


class Machine(ctypes.Structure):
    """`struct machine` of the C above."""

    _fields_ = [
        ("due", ctypes.c_int64),
        ("interval", ctypes.c_int64),
        ("left", ctypes.c_uint32),
        ("halted", ctypes.c_uint32),
        ("engine", ctypes.c_void_p),
        ("give", ctypes.c_void_p),
    ]


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Two hosts, joined by a link of 1 Gbit/s without a delay."""
    with Engine(1, [1, 1], FRAME) as made:
        made.connect(0, (0, 0), (1, 0), rate_bps=1e9, delay_ps=0, limit=0)
        yield made


@pytest.fixture
def machine(engine: Engine) -> Machine:
    """A machine that sends from 1 µs on, every 2 µs."""
    library = ctypes.CDLL(str(build(MACHINE, LIBRARY)))
    give, wake = (ctypes.cast(each, ctypes.c_void_p).value for each in (engine.library.engine_give, library.wake))
    assert wake is not None
    made = Machine(1000 * NS, 2000 * NS, 4, 0, engine.handle, give)
    at = ctypes.addressof(made)
    engine.attach(at + Machine.due.offset, at + Machine.halted.offset, wake, at)
    engine.kept += [library, made]
    return made


def arrivals(engine: Engine) -> list[tuple[int, int]]:
    """Time in ns and number of what the other host got."""
    return [(int(each["at"]) // NS, int(each["frame"]["number"])) for each in engine.take()]


def test_a_machine_sends_when_it_wants_and_halts_the_run(engine: Engine, machine: Machine) -> None:
    engine.run(20_000 * NS)
    assert engine.now_ps == 7000 * NS
    assert arrivals(engine) == [(1800, 4), (3800, 3), (5800, 2)]
    machine.halted = 0
    engine.run(20_000 * NS)
    assert engine.now_ps == 20_000 * NS
    assert arrivals(engine) == [(7800, 1)]


def test_packets_come_before_machines_act_at_the_same_time(engine: Engine, machine: Machine) -> None:
    machine.interval = 800 * NS
    engine.run(1800 * NS)
    assert arrivals(engine) == [(1800, 4)]
    assert machine.left == 2


def test_a_run_ends_after_some_packets(engine: Engine, machine: Machine) -> None:
    engine.run(20_000 * NS, most=2)
    assert machine.left == 2
    assert engine.hops == 2
