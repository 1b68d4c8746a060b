"""A switch in virtual time: what it forwards arrives after both links, their delays, and its latency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, TABLE
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.fabric.circuits import INTERCONNECT
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.virtual.engine import PS_PER_NS
from inakit.topo.virtual.virtual_network import VirtualNetwork

pytestmark = pytest.mark.compiler
TIMES = Path(__file__).parents[2] / "switch" / "programs" / "times.json"

FRAME = np.dtype((np.void, 100))
"""800 ns at 1 Gbit/s, 400 ns at 2 Gbit/s."""
TO_H2 = SwitchEntries("s1", (TableEntry(TABLE, (1,), "CircuitIngress.connect", (2,)),))


@pytest.mark.parametrize(("name", "latency_ns"), [("s1", 0), ("s1", 300), (INTERCONNECT, 0)])
def test_a_packet_takes_the_time_of_its_links_and_of_its_switch(name: str, latency_ns: int) -> None:
    """Also a switch that has the name of the circuit switch of other networks."""
    switch = Switch(name, 1, ((1, 2),), latency_s=latency_ns * 1e-9)
    links = (Link("h1", name, 0, 1, 1e9, 1e9, 50e-9), Link(name, "h2", 2, 0, 2e9, 2e9))
    fabric = Fabric("line", (Host("h1"), Host("h2")), (switch,), links)
    running = InProcessSwitch(read_program(CIRCUIT_PROGRAM))
    running.install(TO_H2)
    network = VirtualNetwork(fabric, {name: running}, FRAME, queue_packets=2)
    with network.engine as engine:
        uplink = np.array([network.link_of["h1", name]], np.uint32)
        engine.send(uplink, np.array([100], np.uint32), np.zeros(1, FRAME))
        engine.run(10_000_000)
        (arrived,) = engine.take()
        assert (arrived["at"], arrived["node"]) == ((850 + latency_ns + 400) * 1000, network.number_of["h2"])


def test_a_program_is_told_the_time_of_the_engine() -> None:
    """Not that of the machine, so that two runs are the same."""
    fabric = Fabric("pair", (Host("h1"),), (Switch("s1", 1, ((1,),)),), (Link("h1", "s1", 0, 1, 1e9, 1e9, 7e-6),))
    running = InProcessSwitch(read_program(TIMES), clock=lambda: 0)
    network = VirtualNetwork(fabric, {"s1": running}, FRAME, queue_packets=2)
    with network.engine as engine:
        engine.run(10**6 * PS_PER_NS)
        engine.send(np.array([network.link_of["h1", "s1"]], np.uint32), np.array([100], np.uint32), np.zeros(1, FRAME))
        engine.run(2 * 10**6 * PS_PER_NS)
        (arrived,) = engine.take()
        came, left = (int.from_bytes(arrived["frame"].tobytes()[at : at + 6]) for at in (14, 20))
        assert (came, left) == (1007, 1007), "1 ms, 800 ns to send, 7 us on the way: whole microseconds"
