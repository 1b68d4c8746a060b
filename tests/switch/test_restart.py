"""Links that are taken down and up again, and registers that are wiped, on every target."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from errno import ENOBUFS

import pytest
from ina_by_hand import ina_program, small_tree

from inakit.switch.entries import RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.targets import choose_target
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.netlink import network_namespace
from inakit.topo.live.network import Network, RunningHost
from inakit.traffic.wire.packet_format import BARE_FRAME, new_frames

PRESETS = (RegisterPreset("InaIngress.sum7", 4095, 9), RegisterPreset("InaIngress.arrival.draws", 3, 5))
PATIENCE_S, QUIET_S = 10.0, 0.3
NETWORK_TARGETS = (
    pytest.param("fast", marks=pytest.mark.root),
    pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
)


def raw(host: RunningHost) -> socket.socket:
    with network_namespace(host.pid):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.bind((host.interface, 0x0800))
    return opened


def datagram(source: RunningHost, destination: RunningHost, number: int) -> bytes:
    """A packet that is not INA's, and is routed by its address."""
    a, b = source.address, destination.address
    frame = new_frames(1, src_mac=a.mac_text, dst_mac=b.mac_text, src_ip=a.ipv4_text, dst_ip=b.ipv4_text,
                       dtype=BARE_FRAME)  # fmt: skip
    frame["udp"]["dst_port"], frame["ina"]["seq"] = 9, number
    return frame.tobytes()


@pytest.mark.parametrize("target", NETWORK_TARGETS)
def test_a_link_that_is_down_carries_nothing_either_way(target: str) -> None:
    fabric = named_fabric("aro-figure1")
    with Network(fabric, choose_target(target).node_class()) as network, ExitStack() as stack:
        one, other = network.hosts["w0"], network.hosts["w1"]
        ports = {host.name: fabric.port_numbers["l1", host.name] for host in (one, other)}
        switch = network.switches["l1"]
        switch.install(SwitchEntries("l1", tuple(
            TableEntry("InaIngress.ipv4_route", (host.address.ipv4,), "InaIngress.send", (ports[host.name],))
            for host in (one, other)
        )))  # fmt: skip
        ends = {host.name: stack.enter_context(raw(host)) for host in (one, other)}

        def passes(source: RunningHost, destination: RunningHost, number: int, patience_s: float) -> bool:
            content = datagram(source, destination, number)
            try:
                ends[source.name].send(content)
            except OSError as error:
                assert error.errno == ENOBUFS
                return False
            ends[destination.name].settimeout(patience_s)
            try:
                while ends[destination.name].recv(65536) != content:
                    pass
            except TimeoutError:
                return False
            return True

        for number, up in enumerate((True, False, True)):
            if number:
                network.set_link("w0", "l1", up=up)
            patience_s = PATIENCE_S if up else QUIET_S
            assert passes(one, other, 10 * number, patience_s) is up
            assert passes(other, one, 10 * number + 1, patience_s) is up
        switch.check()


@pytest.mark.parametrize("target", NETWORK_TARGETS)
def test_wiped_registers_are_0_and_entries_stay(target: str) -> None:
    with Network(named_fabric("aro-figure1"), choose_target(target).node_class()) as network:
        switch = network.switches["l1"]
        tables = small_tree().tables
        switch.install(SwitchEntries("l1", tables, registers=PRESETS))
        assert [int(switch.read_register(p.register)[p.index]) for p in PRESETS] == [9, 5]
        switch.wipe()
        assert not any(switch.read_register(preset.register).any() for preset in PRESETS)
        names = {entry.table for entry in tables}
        assert sum(len(switch.read_table(name)) for name in names) == len(tables)


def test_wiping_in_the_process() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(SwitchEntries("s", registers=PRESETS))
    switch.wipe()
    assert not any(switch.read_register(name).any() for name in ina_program().registers)
