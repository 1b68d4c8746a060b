"""A circuit switch in a running network: circuits that change are dark for a while, those that stay carry on."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from inakit.planner.install.circuit_entries import CircuitEntries
from inakit.switch.circuit_switch import CIRCUIT_PROGRAM, TABLE, CircuitSwitch, circuit_class
from inakit.switch.entries import Entries, SwitchEntries, TableEntry
from inakit.switch.targets import choose_target
from inakit.switch.testing.target_comparison import compare
from inakit.topo.errors import FabricError
from inakit.topo.fabric.circuits import Circuit, circuit, optical_ports
from inakit.topo.fabric.generators import units
from inakit.topo.live.netlink import inside
from inakit.topo.live.network import Network

pytestmark = pytest.mark.root

FABRIC = units(4, servers=1)
DARK_S = 0.3
SETTLED_S = 1.0
FLOWS = {"u1h1": "u2h1", "u3h1": "u4h1"}
BEFORE = frozenset({circuit(("u1", 2), ("u2", 2)), circuit(("u3", 2), ("u4", 2))})
AFTER = frozenset({circuit(("u1", 3), ("u2", 3)), circuit(("u3", 2), ("u4", 2))})
"""The circuit of the first flow moves to other ports."""


class Numbered:
    """Packets from host to host, each with its number."""

    def __init__(self, network: Network, source: str, destination: str) -> None:
        self.address = network.hosts[destination].address.ipv4_text, 9999
        with inside(network.hosts[source].pid):
            self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(network.hosts[destination].pid):
            self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.bind(("0.0.0.0", self.address[1]))
        self.receiver.settimeout(SETTLED_S)
        self.sent = 0

    def send(self) -> None:
        self.sender.sendto(self.sent.to_bytes(4, "big"), self.address)
        self.sent += 1

    def received(self) -> Iterator[int]:
        """The numbers that came, until nothing more comes."""
        while True:
            try:
                yield int.from_bytes(self.receiver.recv(64), "big")
            except TimeoutError:
                return

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


def routes(network: Network) -> Entries:
    """Every unit sends to the host of every other unit."""
    found = []
    for unit in FABRIC.switch_by_name:
        ports = {peer: FABRIC.port_numbers[unit, peer] for peer in FABRIC.neighbors[unit]}
        rows = [
            TableEntry(
                "InaIngress.ipv4_route",
                (network.addresses[host].ipv4,),
                "InaIngress.send",
                (ports[host if FABRIC.tor_of(host) == unit else FABRIC.tor_of(host)],),
            )
            for host in sorted(FABRIC.host_names)
        ]
        found.append(SwitchEntries(unit, tuple(rows)))
    return Entries(tuple(found))


def connect(circuits: CircuitSwitch, wanted: Collection[Circuit]) -> int:
    """Set up these circuits in the time of a reconfiguration; returns how many are new."""
    new = circuits.darken(wanted)
    time.sleep(circuits.interconnect.reconfiguration_s)
    circuits.light(wanted)
    return new


@contextmanager
def running(target: str) -> Iterator[tuple[Network, CircuitSwitch, CircuitEntries]]:
    panel = optical_ports(FABRIC, dict.fromkeys(FABRIC.switch_by_name, 2), 20e6, DARK_S)
    chosen = choose_target(target)
    with Network(FABRIC, chosen.node_class(), interconnect=panel, circuit_class=circuit_class(chosen)) as network:
        tables = CircuitEntries(FABRIC, panel, routes(network))
        for unit in tables.first(BEFORE).switches:
            network.switches[unit.switch].install(unit)
        circuits = CircuitSwitch(panel, network.circuit_switch)
        assert connect(circuits, BEFORE) == 2
        yield network, circuits, tables


@pytest.mark.parametrize("target", ["fast", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_only_what_changes_is_dark_and_what_is_lost_is_counted(target: str) -> None:
    with running(target) as (network, circuits, tables), ExitStack() as stack:
        moved, stays = (Numbered(network, *flow) for flow in FLOWS.items())
        stack.callback(moved.close)
        stack.callback(stays.close)

        def send(count: int) -> None:
            for _ in range(count):
                moved.send()
                stays.send()
                time.sleep(0.002)

        def reconfigure() -> None:
            for unit in tables.changes(AFTER):
                network.switches[unit.switch].install(SwitchEntries(unit.switch, groups=unit.groups))
                network.switches[unit.switch].change(unit.tables)
            assert connect(circuits, AFTER) == 1

        send(20)
        change = threading.Thread(target=reconfigure)
        change.start()
        while change.is_alive():
            send(1)
        change.join()
        send(20)
        came, all_came = list(moved.received()), list(stays.received())
        carried = circuits.carried()

    assert all_came == list(range(stays.sent))
    missing = sorted(set(range(moved.sent)) - set(came))
    assert came == sorted(came)
    assert missing == list(range(missing[0], missing[-1] + 1)), "one blackout"
    assert missing[0] > 0
    assert missing[-1] < moved.sent - 1
    lost = {end: count.lost for end, count in carried.items() if count.lost}
    assert sum(lost.values()) == len(missing)
    assert set(lost) <= {("u1", 2), ("u1", 3)}
    assert sum(carried["u1", port].passed for port in (2, 3)) == len(came)
    assert carried["u3", 2].passed == stays.sent


def test_what_cannot_be_connected_changes_nothing() -> None:
    with running("fast") as (_, circuits, _tables):
        with pytest.raises(FabricError, match="optical port 3 of 'u1' is in 2 circuits"):
            circuits.darken([(("u1", 3), ("u2", 3)), (("u3", 3), ("u1", 3))])
        assert circuits.circuits == BEFORE
        assert circuits.darken(BEFORE) == 0
        assert circuits.circuits == BEFORE
        assert circuits.darken([]) == 0
        assert circuits.circuits == frozenset()


@pytest.mark.bmv2
@pytest.mark.parametrize("target", ["fast", "kernel"])
def test_bmv2_does_the_same(target: str, tmp_path: Path) -> None:
    commands = tmp_path / "commands.txt"
    rows = ("connect 0 => 1", "connect 1 => 0", "darken 2 =>")
    commands.write_text("".join(f"table_add {TABLE} CircuitIngress.{row}\n" for row in rows))
    found = compare(CIRCUIT_PROGRAM, (target, "bmv2"), 300, commands=commands)
    assert found.difference is None
    assert 0 < found.left < found.packets == 300
