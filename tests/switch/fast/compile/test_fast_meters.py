"""Direct meters of the compiled switch: the colours that BMv2's arithmetic on doubles gives, at any time."""

from __future__ import annotations

import ctypes
from fractions import Fraction
from random import Random

import pytest
from model_programs import MODEL, Ticks
from reference_switch import reference_switch
from same_switches import by_port, shown_when_wrong
from small_programs import PROGRAM_PORTS, Packets, packet
from veth_wires import Wires, in_kernel

from inakit.switch.entries import MeterRates, SwitchEntries, TableEntry
from inakit.switch.fast.compile.generate import LIBRARY
from inakit.switch.fast.layout.table_layout import BUCKET, METER_RATES
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.fast.load.running_tables import packed_bucket
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.topo.c_library import build

KINDS = range(4)
LAST = 1 << 31
"""In the port of a packet that leaves last (process.h)."""
EMIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32)
Rates = tuple[tuple[float, int], tuple[float, int]]


def metered(kind: int) -> TableEntry:
    """An entry with a meter, for packets of this kind."""
    return TableEntry("TestIngress.metered", (kind,), "TestIngress.coloured")


def inject_at(switch: InProcessSwitch, now_us: int, port: int, data: bytes) -> Packets:
    """What leaves the switch for a packet that comes so many microseconds after it started."""
    sent: Packets = []
    to = EMIT(lambda _, out, at, length: sent.append((out & ~LAST, ctypes.string_at(at, length))))
    packet_of = ctypes.create_string_buffer(data, len(data))
    take = switch.library.c.take_packet
    take(*map(ctypes.c_void_p, (switch.address,)), ctypes.c_int64(now_us * 10**6), port, packet_of, len(data), to, None)
    return sent


def random_rates(draw: Random) -> Rates:
    """Two rates, the lower one first: whole ones, shares that no double has exactly, and tiny ones."""
    low, high = sorted(draw.choice((0.0, 1e-6, 0.001, 1 / 3, 0.1, 1.0, 7.3, 1e4, draw.random())) for _ in range(2))
    return (low, draw.randrange(200)), (high, draw.randrange(400))


def packet_of_kind(program: Program, draw: Random) -> bytes:
    """A packet of one of the kinds, of any length."""
    return packet(program, kind=draw.choice(KINDS)) + draw.randbytes(draw.randrange(60))


@pytest.mark.parametrize("seed", range(8))
def test_every_packet_has_the_colour_that_it_has_interpreted(seed: int) -> None:
    program, draw, clock = read_program(MODEL / "matching.json"), Random(seed), Ticks()
    switch, model = InProcessSwitch(program, clock=lambda: 0), InterpretedSwitch(program, clock=clock)
    for each in (switch, model):
        each.install(SwitchEntries("s", tuple(map(metered, KINDS))))
    with shown_when_wrong(switch.source):
        for _ in range(300):
            clock.now += draw.choice((0, 1, 17, 999, 10**6, 10**10)) * draw.randrange(2)
            if draw.random() < 0.1:
                entry, rates = metered(draw.choice(KINDS)), random_rates(draw)
                for state in (switch.state, model.state):
                    state.set_entry_rates(entry, rates)
                    assert state.entry_rates(entry) == rates
            data = packet_of_kind(program, draw)
            assert inject_at(switch, clock.now, 1, data) == model.inject(1, data)


def test_tokens_are_rounded_as_a_double_is() -> None:
    """Where the product is next to a whole number, the double decides: 10 * 0.7 is 7.0, though 0.7 is a bit less."""
    sizes = f"#define PORTS 1\n#define MAX_REPLICAS 1\n#define METER_RATES {METER_RATES}\n"
    call = "u64 tokens(u64 micros, u64 mantissa, u64 shift) { return tokens_in(micros, mantissa, shift); }"
    library, draw = ctypes.CDLL(str(build(f'{sizes}#include "runtime.h"\n{call}', LIBRARY))), Random(5)
    library.tokens.restype = ctypes.c_uint64
    library.tokens.argtypes = [ctypes.c_uint64] * 3
    for _ in range(20_000):
        micros = draw.choice((draw.randrange(1000) * 10, draw.getrandbits(draw.randrange(1, 50))))
        rate = draw.choice((0.7, 0.1, 0.3, 7.3, draw.random(), draw.random() * 1e4, 1.0, 1e-9))
        mantissa, shift, *_ = BUCKET.unpack(packed_bucket(rate, 0))
        assert library.tokens(micros, mantissa, shift) == int(micros * rate)
    assert int(10 * 0.7) == 7 > 10 * Fraction(0.7)


def test_a_new_entry_has_no_rates() -> None:
    switch = InProcessSwitch(read_program(MODEL / "matching.json"))
    switch.install(SwitchEntries("s", (metered(1),), meters=(MeterRates("TestIngress.rate", None, ((0, 0), (0, 0))),)))
    switch.state.remove([metered(1)])
    switch.state.add([metered(2)])
    assert switch.state.entry_rates(metered(2)) == ()
    assert switch.state.read_rates("TestIngress.rate", 1) == ((0.0, 0), (0.0, 0))


def test_a_meter_that_an_action_executes_gives_the_same_colours() -> None:
    program, draw, clock = read_program(MODEL / "meter.json"), Random(4), Ticks()
    switch, model = InProcessSwitch(program, clock=lambda: 0), InterpretedSwitch(program, clock=clock)
    for turn in range(400):
        if turn % 40 == 0:
            rates = MeterRates("TestIngress.rate", draw.choice((0, 1, None)), random_rates(draw))
            for state in (switch.state, model.state):
                state.set_rates(rates)
        clock.now += draw.randrange(3)
        data = packet(program, a=7)
        assert inject_at(switch, clock.now, 1, data) == model.inject(1, data)


@pytest.mark.root
@pytest.mark.bmv2
def test_bmv2_gives_the_same_colours() -> None:
    """With rates of next to nothing, the time does not matter."""
    path, draw = MODEL / "matching.json", Random(6)
    program = read_program(path)
    switch = InProcessSwitch(program)
    packets = [(1, packet_of_kind(program, draw)) for _ in range(40)]
    with reference_switch(path, PROGRAM_PORTS) as reference:
        for state in (reference.state, switch.state):
            state.add([metered(kind) for kind in KINDS])
            for kind, bursts in ((1, (100, 300)), (2, (0, 90)), (3, (500, 500))):
                state.set_entry_rates(metered(kind), ((1e-12, bursts[0]), (1e-12, bursts[1])))
        expected = switch.inject_all(packets)
        assert reference.inject_all(packets, len(expected)) == expected


@pytest.mark.root
def test_the_kernel_gives_the_same_colours() -> None:
    """With rates of next to nothing, the time does not matter."""
    program, draw = read_program(MODEL / "matching.json"), Random(3)
    model, switch = InterpretedSwitch(program, clock=Ticks()), KernelSwitch(compile_program(program))
    packets = [(1, packet_of_kind(program, draw)) for _ in range(40)]
    with Wires(PROGRAM_PORTS) as wires, shown_when_wrong(switch.source):
        wires.attach(switch)
        for state in (model.state, switch.state):
            state.add([metered(kind) for kind in KINDS])
            state.set_entry_rates(metered(1), ((1e-12, 2), (1e-12, 4)))
            state.set_entry_rates(metered(2), ((1e-12, 0), (1e-12, 3)))
        expected = model.inject_all(packets)
        assert in_kernel(wires, packets, expected) == by_port(expected, PROGRAM_PORTS)
