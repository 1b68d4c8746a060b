"""A circuit switch in virtual time: light passes at once, a dark port loses what comes, all else goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, Carried, CircuitSwitch
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.fabric.circuits import INTERCONNECT, circuit, patch_panel
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.virtual.engine import PS_PER_S
from inakit.topo.virtual.virtual_network import VirtualNetwork

pytestmark = pytest.mark.compiler

FRAME = np.dtype([("number", np.uint32), ("rest", np.uint8, 96)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9
PORTS = {1: "h1", 2: "h2"}
"""The host at each port of the fabric's only switch."""
H1, H2 = ("h1", 0), ("h2", 0)
CIRCUIT = frozenset({circuit(H1, H2)})
RATE_BPS, DELAY_S = 1e9, 50e-9


@dataclass
class Panel:
    """Two hosts, joined by a circuit, with a delay of 50 ns on each fibre."""

    network: VirtualNetwork
    circuits: CircuitSwitch

    def send(self, *numbers: int) -> None:
        frames = np.zeros(len(numbers), FRAME)
        frames["number"] = numbers
        link = self.network.link_at[H1]
        self.network.engine.send(
            np.full(len(numbers), link, np.uint32), np.full(len(numbers), FRAME.itemsize, np.uint32), frames
        )

    def arrivals(self, until_ns: int) -> list[tuple[int, int]]:
        """Number and time in ns of what has arrived until then."""
        self.network.engine.run(until_ns * NS)
        return [(int(each["frame"]["number"]), int(each["at"]) // NS) for each in self.network.engine.take()]


@pytest.fixture
def panel() -> Iterator[Panel]:
    links = (Link(host, "s1", 0, port, RATE_BPS, RATE_BPS, DELAY_S, optical=True) for port, host in PORTS.items())
    fabric = Fabric("two", tuple(map(Host, PORTS.values())), (Switch("s1", 1, (tuple(PORTS),)),), tuple(links))
    interconnect = replace(patch_panel(fabric), circuits=CIRCUIT)
    running = InProcessSwitch(read_program(CIRCUIT_PROGRAM))
    circuits = CircuitSwitch(interconnect, running)
    network = VirtualNetwork(fabric, {INTERCONNECT: running}, FRAME, 2, interconnect)
    with network.engine:
        yield Panel(network, circuits)


def test_a_circuit_has_the_rate_and_the_delay_of_one_fibre(panel: Panel) -> None:
    panel.send(1, 2, 3)
    assert panel.arrivals(10_000) == [(1, 850), (2, 1650), (3, 2450)]
    assert panel.circuits.carried()[H1] == Carried(passed=3, lost=0)


def test_a_dark_port_loses_what_comes_and_counts_it(panel: Panel) -> None:
    panel.send(1, 2)
    assert panel.arrivals(1_000) == [(1, 850)]
    assert panel.circuits.darken([]) == 0
    assert panel.arrivals(2_000) == [], "packet 2 reaches the dark port at 1650 ns"
    assert panel.circuits.darken(CIRCUIT) == 1
    panel.send(3)
    assert panel.arrivals(3_000) == [], "the circuit is new and still dark"
    panel.circuits.light(CIRCUIT)
    panel.send(4)
    assert panel.arrivals(4_000) == [(4, 3_850)]
    assert panel.circuits.carried()[H1] == Carried(passed=2, lost=2)
    assert panel.circuits.circuits == CIRCUIT


def test_a_circuit_that_stays_carries_on(panel: Panel) -> None:
    panel.send(1)
    assert panel.circuits.darken(CIRCUIT) == 0
    assert panel.arrivals(1_000) == [(1, 850)]
