"""A served switch on real interfaces, interpreted and in the kernel; needs root."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from unittest.mock import patch

import pytest
from pyroute2 import IPRoute
from scapy.utils import rdpcap
from small_programs import PROGRAMS, packet
from veth_wires import Wires, raw_socket, remove

from inakit.switch.control.requests import Refused
from inakit.switch.entries import TableEntry
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.server.engines import VARIABLE
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Options

CONTROL = PROGRAMS / "control.json"
TO_PORT, BY_KEY = "TestIngress.to_port", "TestIngress.by_key"
ENGINES = ("interpreted", "kernel")

pytestmark = pytest.mark.root


@contextmanager
def served(engine: str, wires: Wires, options: Options = Options()) -> Iterator[ServedSwitch]:  # noqa: B008
    """A switch that runs control.p4 in this engine on all wires; packets with key 7 from port 1 leave by port 2."""
    with patch.dict("os.environ", {VARIABLE: engine}):
        switch = ServedSwitch(options)
        try:
            switch.load(CONTROL.read_text())
            switch.swap()
            for port, interface in wires.names.items():
                switch.ports.add(port, interface)
            switch.control.tables.add_entry(TableEntry(BY_KEY, (7, 1), TO_PORT, (2, 3)))
            yield switch
        finally:
            switch.close()


def asking(key: int = 7) -> bytes:
    """A packet with this key."""
    return packet(read_program(CONTROL), key=key)


@pytest.mark.parametrize("engine", ENGINES)
def test_packets_pass_from_port_to_port(engine: str) -> None:
    with Wires((1, 2)) as wires, served(engine, wires) as switch:
        wires.send(1, asking())
        assert len(wires.receive(2, 1)) == 1
        assert switch.control.counters.read("TestIngress.packets", 0) == (1, len(asking()))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_host_sends_by_a_port_comes_in_by_it(engine: str) -> None:
    """As in simple_switch: to the switch it has arrived, and at the other end of the link it arrives as well."""
    with Wires((1, 2)) as wires, served(engine, wires) as switch:
        with closing(raw_socket(wires.names[1])) as host:
            host.send(asking())
            assert len(wires.receive(2, 1)) == 1
        assert wires.receive(1, 1) == [asking()]
        assert wires.receive(2, 1, patience_s=0.2) == []
        assert switch.control.counters.read("TestIngress.packets", 0) == (1, len(asking()))


def test_what_the_host_sends_where_the_kernel_has_no_links() -> None:
    """There it is a filter of clsact, which goes with the port."""
    none = patch("inakit.switch.fast.load.kernel_switch.linked", return_value=None)
    with none, Wires((1, 2)) as wires, served("kernel", wires) as switch, closing(raw_socket(wires.names[1])) as host:
        host.send(asking())
        assert len(wires.receive(2, 1)) == 1
        switch.ports.remove(1)
        host.send(asking())
        assert wires.receive(2, 1, patience_s=0.2) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_ports_come_and_go_while_packets_pass(engine: str) -> None:
    with Wires((1, 2)) as wires, served(engine, wires) as switch:
        switch.ports.remove(2)
        wires.send(1, asking())
        assert wires.receive(2, 1, patience_s=0.2) == []
        switch.ports.add(5, wires.names[2])
        switch.control.tables.modify(BY_KEY, 0, TO_PORT, (5, 3))
        assert switch.ports.all() == {1: wires.names[1], 5: wires.names[2]}
        wires.send(1, asking())
        assert wires.receive(2, 1, patience_s=0.2) == []  # the program drops what leaves by port 5
        with pytest.raises(Refused, match=r"port 5 is already ikt"):
            switch.ports.add(5, wires.names[2])


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interface_that_is_lost_is_taken_in_again_when_it_is_back(engine: str) -> None:
    with Wires((1, 2)) as wires, served(engine, wires) as switch:
        remove(wires.names[2])
        switch.ports.look_after()
        assert (switch.ports.is_up(1), switch.ports.is_up(2)) == (True, False)
        with IPRoute() as netlink:
            netlink.link("add", ifname=wires.names[2], kind="veth", peer={"ifname": f"{wires.names[2]}h"})
            for end in (wires.names[2], f"{wires.names[2]}h"):
                netlink.link("set", index=netlink.link_lookup(ifname=end)[0], state="up")
        switch.ports.look_after()
        assert switch.ports.is_up(2)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as host:
            host.bind((f"{wires.names[2]}h", 3))
            host.settimeout(2)
            wires.send(1, asking())
            while host.recv(2048)[:12] != asking()[:12]:  # the new interface sends packets of its own
                pass


@pytest.mark.parametrize("engine", ENGINES)
def test_pcaps_have_what_arrives_and_what_leaves(engine: str, tmp_path: Path) -> None:
    with Wires((1, 2)) as wires:
        with served(engine, wires, Options(pcap=tmp_path)):
            wires.send(1, asking())
            left = wires.receive(2, 1)
        written = {path.name: [bytes(each) for each in rdpcap(str(path))] for path in tmp_path.iterdir()}
        one, two = wires.names[1], wires.names[2]
        expected: dict[str, list[bytes]] = {f"{one}_in.pcap": [asking()], f"{one}_out.pcap": [], f"{two}_in.pcap": []}
        assert written == expected | {f"{two}_out.pcap": left}


def test_a_vlan_tag_that_the_kernel_took_out_is_seen_by_the_program() -> None:
    """A packet socket shows no tag: the kernel keeps it beside the packet."""
    tagged = asking()[:12] + b"\x81\x00\x00\x05" + asking()[12:]
    with Wires((1, 2)) as wires, served("interpreted", wires, Options()) as switch:
        seen: list[bytes] = []
        switch.ports.engine.arrive = lambda _port, data: seen.append(data)  # type: ignore[union-attr]
        wires.send(1, tagged)
        wires.send(1, asking())
        wires.receive(2, 1, patience_s=0.3)  # nothing leaves
        assert seen == [tagged, asking()]


def test_a_rate_moves_a_program_out_of_the_kernel_with_all_its_state() -> None:
    with Wires((1, 2)) as wires, served("kernel", wires) as switch:
        wires.send(1, asking())
        wires.receive(2, 1)
        switch.queues.set_rate(1000)
        assert switch.ports.engine is not None
        assert switch.ports.engine.what.startswith("interpreted")
        wires.send(1, asking())
        assert len(wires.receive(2, 1)) == 1
        assert switch.control.counters.read("TestIngress.packets", 0) == (2, 2 * len(asking()))


def test_another_program_runs_on_the_same_ports_after_a_swap() -> None:
    with Wires((1, 2)) as wires, served("kernel", wires, Options(swap=True)) as switch:
        told: list[str] = []
        switch.swap_subscribers.append(lambda: told.append(switch.json))
        switch.load(CONTROL.read_text())
        with pytest.raises(Refused, match="already loaded"):
            switch.load(CONTROL.read_text())
        switch.swap()
        assert told == [CONTROL.read_text()]
        assert switch.control.tables.entries(BY_KEY) == []
        switch.control.tables.add_entry(TableEntry(BY_KEY, (8, 1), TO_PORT, (2, 3)))
        wires.send(1, asking(8))
        assert len(wires.receive(2, 1)) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_the_cpu_port_beside_interfaces(engine: str) -> None:
    with Wires((1, 2)) as wires, served(engine, wires, Options(cpu_port=9)) as switch:
        packets: SimpleQueue[bytes] = SimpleQueue()
        switch.ports.controllers.append(packets.put)
        wires.send(1, asking(99))  # without an entry, the program sends it to port 9
        assert packets.get(timeout=5)[:14] == asking(99)[:14]
        switch.control.tables.add_entry(TableEntry(BY_KEY, (7, 9), TO_PORT, (2, 3)))
        switch.ports.inject(9, asking())
        assert len(wires.receive(2, 1)) == 1
