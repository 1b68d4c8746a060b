"""What tests that hold two switches against each other share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import numpy as np
from small_programs import Packets

from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.program import Program
from inakit.switch.testing.random_packets import Draw


def same_packets(one: Program, other: Program, seed: int = 0) -> None:
    """Check that two compilations of a program, interpreted, send the same for random packets and hold the same."""
    draw = Draw(one, Random(seed))
    entries = draw.entries(8)
    draw.know(entries)
    switches = [InterpretedSwitch(program, clock=lambda: 0) for program in (one, other)]
    for switch in switches:
        switch.install(entries)
    for port, packet in draw.packets(100):
        sent, again = (switch.inject(port, packet) for switch in switches)
        assert sent == again, (port, packet.hex())
    for register in one.registers:
        held, other_held = (switch.read_register(register) for switch in switches)
        assert np.array_equal(held, other_held), register


@contextmanager
def shown_when_wrong(source: str) -> Iterator[None]:
    """Print the generated C when a test of it fails."""
    try:
        yield
    except AssertionError:
        print(source)
        raise


def wait_for(condition: object, what: str, patience_s: float = 5.0) -> None:
    """Wait until the condition holds; fail after `patience_s`."""
    end = time.monotonic() + patience_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"waited {patience_s} s for {what}"
        time.sleep(0)


def by_port(packets: Packets, ports: Sequence[int]) -> dict[int, list[bytes]]:
    """The packets of these ports, in order."""
    return {port: [packet for out, packet in packets if out == port] for port in ports}


def same_state(one: KernelSwitch | InProcessSwitch, other: KernelSwitch | InProcessSwitch, program: Program) -> bool:
    """Whether all registers and counters of two switches agree."""
    registers = all(np.array_equal(one.read_register(name), other.read_register(name)) for name in program.registers)
    counters = all(np.array_equal(one.read_counter(name), other.read_counter(name)) for name in program.counters)
    return registers and counters
