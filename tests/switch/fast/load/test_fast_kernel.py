"""Target fast in the kernel: as in a process, one packet at a time, and nothing is left behind."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from unittest.mock import patch

import pytest
from ina_by_hand import CONTROL, GRADIENT, PS, entry, ina_packet, ina_program, ipv4_packet, received, small_tree
from same_switches import by_port, same_state, shown_when_wrong, wait_for
from small_programs import PROGRAM_NAMES, PROGRAM_PORTS, PROGRAMS, packets_for, program_entries
from veth_wires import Wires, in_kernel, remove

from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.fast.load.switch_cpu import steer
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.targets import choose_target
from inakit.topo.errors import InputError, MachineError, RunError
from inakit.topo.fabric.generators import named_fabric
from inakit.topo.live.network import Network
from inakit.topo.live.priority import cpu_mask, switch_processors

FORK = multiprocessing.get_context("fork")


@pytest.mark.root
@pytest.mark.parametrize("name", [*PROGRAM_NAMES, "zero_width"])
def test_small_programs_do_the_same_in_the_kernel(name: str) -> None:
    program = read_program(PROGRAMS / f"{name}.json")
    model, switch = InProcessSwitch(program), KernelSwitch(compile_program(program))
    packets = packets_for(name, program, indexes=(0, 7, 8, 2**32 - 1))
    with Wires(PROGRAM_PORTS) as wires, shown_when_wrong(switch.source):
        wires.attach(switch)
        for each in (model, switch):
            each.install(program_entries(name))
        expected = model.inject_all(packets)
        assert in_kernel(wires, packets, expected) == by_port(expected, PROGRAM_PORTS)
        wait_for(partial(same_state, model, switch, program), "the same registers and counters")


@pytest.mark.root
def test_no_update_is_lost_when_all_ports_send_at_once() -> None:
    """Workers on every CPU hit the same slots: each packet adds to a sum, and none may overwrite another's."""
    each, rounds = 4, 20 * 256
    labels = range(2, 2 + each)
    tree = [entry("pipeline", (port,), "set_pipeline", 0) for port in range(1, each + 1)]
    tree += [entry("admission", (label - 1, GRADIENT, 1, 1, label), "admit") for label in labels]
    tree += [
        entry("aggregation", (0, 1, 1, label), "aggregate", 1 << label, 1 << 40, 0, 256, 9, 256, 0) for label in labels
    ]
    with Wires(range(1, each + 1)) as wires:
        switch = KernelSwitch(compile_program(ina_program()))
        switch.install(SwitchEntries("s", tuple(tree)))
        wires.attach(switch)
        start = FORK.Barrier(each)
        senders = [FORK.Process(target=send_rounds, args=(wires, start, label, rounds)) for label in labels]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        wait_for(lambda: received(switch) == each * rounds, "all packets in the switch")
        events = switch.read_counter(f"{CONTROL}.events")[0]
        assert int(events[3] + events[4]) == each * rounds  # absorbed, or a duplicate
        assert int(events[7]) == int(events[3]) == each * 256  # every label once in every slot
        assert set(switch.read_register(f"{CONTROL}.slot_workers")[:256].tolist()) == {each}
        for column in (0, 63):
            assert set(switch.read_register(f"{CONTROL}.sum{column}")[:256].tolist()) == {sum(labels)}


def send_rounds(wires: Wires, start: Barrier, label: int, rounds: int) -> None:
    """Send to slot after slot, on one CPU; the kernel's send buffer holds back what is too fast."""
    cpus, port = sorted(os.sched_getaffinity(0)), label - 1
    os.sched_setaffinity(0, {cpus[port % len(cpus)]})
    sender = wires.sockets[port]
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    packets = [ina_packet(label, seq=slot, slot=slot, values=[label] * 64) for slot in range(256)]
    start.wait()
    for number in range(rounds):
        sender.send(packets[number % 256])


@pytest.mark.root
def test_all_ports_of_a_switch_are_on_one_cpu_and_switches_take_turns() -> None:
    compiled = compile_program(ina_program())
    cpus = switch_processors()
    with Wires((1, 2, 3)) as wires:
        switches = [KernelSwitch(compiled) for _ in range(2 * len(cpus))]
        wires.attach(switches[0])
        masks = {Path(f"/sys/class/net/{n}/queues/rx-0/rps_cpus").read_text() for n in wires.names.values()}
        assert len(masks) == 1
        assert int(masks.pop().replace(",", ""), 16) == 1 << switches[0].cpu
        assert sorted(switch.cpu for switch in switches) == sorted(cpus * 2)
        for switch in switches[1:]:
            switch.close()


@pytest.mark.root
def test_interfaces_are_steered_as_before_when_they_are_given_back() -> None:
    with Wires((1, 2)) as wires:
        files = [Path(f"/sys/class/net/{name}/queues/rx-0/rps_cpus") for name in wires.names.values()]
        files[0].write_text("1")
        before = [file.read_text() for file in files]
        switch = KernelSwitch(compile_program(ina_program()), cpu=switch_processors()[-1])
        wires.attach(switch)
        assert all(file.read_text() != text for file, text in zip(files[1:], before[1:], strict=True))
        switch.remove_port(1)
        assert files[0].read_text() == before[0]
        switch.close()
        assert [file.read_text() for file in files] == before


@pytest.mark.root
def test_a_switch_that_lost_its_program_is_noticed() -> None:
    with Wires((1, 2)) as wires:
        switch = KernelSwitch(compile_program(ina_program()), "leaf1")
        wires.attach(switch)
        switch.check()
        wires.send(1, ina_packet(2))
        wait_for(lambda: received(switch) == 1, "a packet in the switch")
        switch.attached[2].remove()
        with pytest.raises(RunError, match=r"switch 'leaf1': another process removed the program from .* \(port 2\)"):
            switch.check()


@pytest.mark.root
def test_a_switch_whose_interface_is_gone_is_noticed() -> None:
    with Wires((1, 2)) as wires:
        switch = KernelSwitch(compile_program(ina_program()), "leaf1")
        wires.attach(switch)
        remove(wires.names[2])
        with pytest.raises(RunError, match=r"switch 'leaf1': interface 'ikt.*p2' of port 2 is gone"):
            switch.check()


@pytest.mark.root
def test_a_closed_switch_leaves_nothing_in_the_kernel() -> None:
    with Wires((1, 2)) as wires:
        switch = KernelSwitch(compile_program(ina_program()))
        wires.attach(switch)
        switch.install(small_tree())
        switch.close()
        shown = subprocess.run(
            ["tc", "qdisc", "show", "dev", wires.names[1]], check=True, capture_output=True, text=True
        ).stdout
        assert "clsact" not in shown


@pytest.mark.root
def test_where_the_kernel_has_no_links_a_filter_that_a_killed_switch_left_is_replaced() -> None:
    with patch("inakit.switch.fast.load.kernel_switch.linked", return_value=None), Wires((1, 2)) as wires:
        left, program = KernelSwitch(compile_program(ina_program()), "left"), compile_program(ina_program())
        wires.attach(left)
        switch = KernelSwitch(program)
        wires.attach(switch)
        switch.install(small_tree())
        switch.check()
        wires.send(1, ina_packet(2))
        wait_for(lambda: received(switch) == 1, "a packet in the switch")
        with pytest.raises(RunError, match="switch 'left': another process removed the program"):
            left.check()


@pytest.mark.root
def test_an_interface_is_the_port_of_one_switch_only() -> None:
    with Wires((1, 2)) as wires:
        wires.attach(KernelSwitch(compile_program(ina_program())))
        with pytest.raises(InputError, match=f"interface '{wires.names[1]}' is the port of another switch"):
            KernelSwitch(compile_program(ina_program())).add_port(1, wires.names[1])


@pytest.mark.root
def test_the_verifier_has_little_to_do() -> None:
    """What runs for each copy is verified only once, for which the kernel must accept the debug information."""
    switch = KernelSwitch(compile_program(ina_program()))
    assert 0 < switch.instructions < 180_000
    switch.close()


@pytest.mark.root
def test_a_packet_that_the_kernel_cannot_shorten_is_noticed() -> None:
    """Linux does not cut off what its sender knew to be headers of IPv4 and UDP."""
    with Wires((9,)) as wires:
        switch = KernelSwitch(compile_program(read_program(PROGRAMS / "headers.json")), "leaf1")
        wires.attach(switch)
        wires.send(9, ipv4_packet(bytes(8), PS))
        wait_for(switch.state.read_lost, "a lost packet")
        with pytest.raises(RunError, match="switch 'leaf1' lost 1 packets"):
            switch.check()


@pytest.mark.root
def test_ports_have_one_interface_and_a_number_in_range() -> None:
    with Wires((1,)) as wires:
        switch = KernelSwitch(compile_program(ina_program()), "leaf1")
        wires.attach(switch)
        with pytest.raises(InputError, match=r"'leaf1': port 1 is already 'ikt.*'"):
            switch.add_port(1, wires.names[1])
        with pytest.raises(InputError, match="port 511; ports are 0 to 510"):
            switch.add_port(511, wires.names[1])


@pytest.mark.root
def test_an_interface_that_cannot_be_steered_is_named() -> None:
    with pytest.raises(MachineError, match=r"rps_cpus: No such file.*CONFIG_RPS.*SWITCH=bmv2"):
        steer("no-such-interface", 0)


@pytest.mark.root
def test_a_network_of_fast_switches_runs_and_ends() -> None:
    fabric = named_fabric("aro-figure1")
    with Network(fabric, choose_target("fast").node_class()) as network:
        for name, switch in network.switches.items():
            switch.install(SwitchEntries(name, (entry("pipeline", (1,), "set_pipeline", 2),)))
            switch.check()
            assert not switch.read_register(f"{CONTROL}.sum0").any()
            assert len(switch.kernel.interfaces) == len(fabric.neighbors[name])
        one, other = (network.hosts[host.name] for host in fabric.hosts[:2])
        leaf = network.switches[fabric.tor_of(one.name)]
        one.node.cmd(f"echo hello > /dev/udp/{other.address.ipv4_text}/9")
        wait_for(lambda: received(leaf.kernel) == 1, "the host's datagram in its switch")
        assert leaf.read_counter(f"{CONTROL}.events")[0].tolist()[2] == 1  # unroutable
    with pytest.raises(RunError, match="is not running"):
        leaf.read_register(f"{CONTROL}.sum0")


def test_the_mask_of_a_cpu() -> None:
    masks = {0: "00000001", 31: "80000000", 32: "00000001,00000000", 65: "00000002,00000000,00000000"}
    assert {cpu: cpu_mask(cpu) for cpu in masks} == masks
