"""Packets that pass a switch several times in virtual time wait for its recirculation bandwidth; others do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, TABLE
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.fabric.fabric import Chip, Fabric, Host, Link, Switch
from inakit.topo.virtual.engine import Recirculation
from inakit.topo.virtual.virtual_network import VirtualNetwork

pytestmark = pytest.mark.compiler

FRAME = np.dtype((np.void, 100))
"""800 ns at 1 Gbit/s; 1600 ns at the recirculation port's 500 Mbit/s."""
EVERYTHING = [(0x06, 0, 0, 1)]
CHIP = Chip("slow", 32, 512, 64, 1, 512, 512, recirculation_bps=500e6)
SUMMED, FORWARDED = 7, 8
TO_H2 = SwitchEntries("s1", (TableEntry(TABLE, (1,), "CircuitIngress.connect", (2,)),))


def arrivals_ns(
    numbers: Sequence[int], times: int = 1, queue: int = 10, ports: tuple[int, ...] = (1, 2)
) -> list[tuple[int, int]]:
    """When frames with these numbers, sent one after the other, come to h2, and the number of each."""
    links = (Link("h1", "s1", 0, 1, 1e9, 1e9), Link("s1", "h2", 2, 0, 1e9, 1e9))
    fabric = Fabric("line", (Host("h1"), Host("h2")), (Switch("s1", 1, (ports,), chip=CHIP),), links)
    running = InProcessSwitch(read_program(CIRCUIT_PROGRAM))
    running.install(TO_H2)
    chosen = Recirculation(EVERYTHING, 20, 0xFF, {SUMMED}, times)
    network = VirtualNetwork(fabric, {"s1": running}, FRAME, queue, recirculations={("s1", 0): chosen})
    frames = np.zeros((len(numbers), 100), np.uint8)
    frames[:, 27] = numbers
    with network.engine as engine:
        uplink = np.full(len(numbers), network.link_of["h1", "s1"], np.uint32)
        engine.send(uplink, np.full(len(numbers), 100, np.uint32), frames.view(FRAME)[:, 0])
        engine.run(10**9)
        arrived = [(int(each["at"]) // 1000, each["frame"].tobytes()[27]) for each in engine.take()]
    assert len(arrived) == len(numbers) - network.loop_drops()["s1", 0]
    assert network.ends[-1] == ("s1", "s1")
    return arrived


def test_a_packet_waits_until_all_its_bits_have_come_in_again() -> None:
    assert arrivals_ns([SUMMED]) == [(800 + 1600 + 800, SUMMED)]
    assert arrivals_ns([FORWARDED]) == [(800 + 800, FORWARDED)]


def test_each_pass_takes_the_packets_bytes_of_the_bandwidth() -> None:
    assert arrivals_ns([SUMMED], times=3) == [(800 + 3 * 1600 + 800, SUMMED)]


def test_packets_queue_for_it_and_others_overtake() -> None:
    """Two come in at 800 and 1600 ns and again at 2400 and 4000; the third is there at 2400, and goes on at once."""
    found = arrivals_ns([SUMMED, SUMMED, FORWARDED])
    assert found == [(2400 + 800, FORWARDED), (2400 + 2 * 800, SUMMED), (4000 + 800, SUMMED)]


def test_many_packets_come_at_the_rate_of_the_port() -> None:
    times = [at for at, _ in arrivals_ns([SUMMED] * 10, times=2)]
    assert times[-1] == 800 + 20 * 1600 + 800, "each takes twice its bytes of 500 Mbit/s"


def test_a_full_queue_drops() -> None:
    assert len(arrivals_ns([SUMMED] * 10, queue=1)) < 10


def test_a_port_whose_link_has_failed_sends_nothing_through_it() -> None:
    """A pipeline can have ports without links: failures of a site take links away and leave switches alone."""
    assert arrivals_ns([SUMMED], ports=(1, 2, 3)) == arrivals_ns([SUMMED])
