"""One switch on its own, by the name of its target: packets in, packets out, without a network.

`fast` runs in this process and needs no root: compiled, or `interpreted` where the compiler refuses the program.
`traced` is interpreted too, and keeps a trace of each packet. `kernel` is the compiled switch in the kernel, `bmv2` is
`simple_switch`; both need root. Each of their ports is a TUN interface, which carries any bytes, even frames shorter
than an Ethernet header. It vanishes with this process or when closed.
"""

from __future__ import annotations

import os
import select
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import DataPlane
from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.running_tables import Clock
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch, clock_from_now
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.server.packet_sockets import MAX_PACKET, open_tun
from inakit.switch.targets import choose_target
from inakit.switch.testing.either_switch import EitherSwitch
from inakit.topo.errors import unknown_name
from inakit.topo.live.netlink import index_of, inside, set_up, switch_off_ipv6

HEAD = struct.pack("!HH", 0, 0x88B5)
"""The flags and the protocol number, an experimental one, that the device requires before each packet.

Neither reaches the switch. With IPv4's number, Linux would look for headers and prevent the switch from removing them.
"""
MOST_BYTES_LEAVING = 9216
"""The greatest size of a packet that leaves by a wire; packets can grow in the switch."""


class Wires:
    """One TUN interface per port; `interfaces` holds their names, `descriptors` the other ends."""

    def __init__(self, descriptors: dict[int, int], interfaces: dict[int, str]) -> None:
        self.interfaces = interfaces
        self.descriptors = descriptors
        self._ports = {descriptor: port for port, descriptor in descriptors.items()}

    def send(self, port: int, packet: bytes) -> None:
        """Send `packet` to the switch's `port`."""
        os.write(self.descriptors[port], HEAD + packet)

    def received(self, quiet_s: float) -> Iterator[tuple[int, bytes]]:
        """The packets that leave the switch, as (port, packet) in any port order, until `quiet_s` pass without one."""
        deadline = time.monotonic() + quiet_s
        while (left := deadline - time.monotonic()) > 0:
            for descriptor in select.select(self.descriptors.values(), (), (), left)[0]:
                yield self._ports[descriptor], os.read(descriptor, MAX_PACKET)[len(HEAD) :]
                deadline = time.monotonic() + quiet_s


@contextmanager
def open_wires(ports: Iterable[int]) -> Iterator[Wires]:
    """A wire to each of `ports`; needs root. All are removed at the end."""
    descriptors, interfaces = {}, {}
    with ExitStack() as stack:
        for port in ports:
            descriptors[port], interfaces[port] = open_tun()
            stack.callback(os.close, descriptors[port])
        with inside(None) as netlink:
            for name in interfaces.values():
                switch_off_ipv6(name)
                set_up(netlink, index_of(name), mtu=MOST_BYTES_LEAVING)
        yield Wires(descriptors, interfaces)


QUIET_S = 0.05
"""A switch on interfaces has finished if nothing has left it for this time."""
BMV2_GAP_S = 0.002
"""The time between packets to BMv2: on waking up it reads one packet and leaves others in its buffer."""
DROPPED_S = 0.02
"""The time that a switch gets for a packet that another one drops."""
PATIENCE_S = 2.0
"""The time to wait for a missing packet."""


class Filled(Protocol):
    """A switch that takes entries and can be read."""

    def install(self, entries: SwitchEntries) -> None:
        """Add entries; `InputError` if the program lacks one of their objects."""

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array."""

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of an indirect counter."""


class Device(Filled, Protocol):
    """A switch whose ports accept packets.

    `at_once` says that all packets have left when `inject` returns. `control` knows only what it has put into the
    switch itself: fill a switch by it or by `install`, not by both.
    """

    at_once: bool

    @property
    def control(self) -> ControlPlane:
        """The control plane of the switch."""

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Return the packets that leave, as (port, packet), when `packet` arrives at `port`; in order for each port."""

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Return the packets that leave when all `packets` arrive at `port`; they must be few enough to wait there."""

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """Return the packets that leave when `packet` arrives at `port`: `count` of them, if they come in time."""

    def late(self) -> list[tuple[int, bytes]]:
        """The packets that leave later than `inject` waits."""

    def trace_lines(self) -> list[str]:
        """The trace of packets since the last call, by lines; empty if no trace is kept."""


class InProcessDevice:
    """A switch in this process as a device. It has all ports."""

    at_once = True

    def __init__(self, switch: EitherSwitch | InterpretedSwitch) -> None:
        self.in_process = switch
        self.install = switch.install
        self.inject = switch.inject
        self.read_register = switch.read_register
        self.read_counter = switch.read_counter

    @cached_property
    def control(self) -> ControlPlane:
        switch = self.in_process
        return switch.control if isinstance(switch, EitherSwitch) else ControlPlane(switch.state)

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """The packets that leave, packet after packet."""
        return [left for packet in packets for left in self.inject(port, packet)]

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """The packets that leave, for any `count`."""
        return self.inject(port, packet)

    def late(self) -> list[tuple[int, bytes]]:
        """No packets: the switch has finished when `inject` returns."""
        return []

    def trace_lines(self) -> list[str]:
        return []


class TracedDevice(InProcessDevice):
    """An interpreted switch that keeps a trace of all packets."""

    def __init__(self, switch: InterpretedSwitch) -> None:
        super().__init__(switch)
        self.switch = switch
        self.lines: list[str] = []
        self.inject = self.trace

    def trace(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Like `inject`; the trace is kept for `trace_lines`."""
        traced = self.switch.trace(port, packet)
        self.lines += traced.lines
        return traced.sent

    def trace_lines(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


class DeviceOnInterfaces:
    """A switch whose ports are interfaces at the end of `wires`; `gap_s` passes after each packet."""

    at_once = False

    def __init__(self, switch: Filled, wires: Wires, data_plane: DataPlane, gap_s: float = 0) -> None:
        self.wires = wires
        self.gap_s = gap_s
        self.control = ControlPlane(data_plane)
        self.install = switch.install
        self.read_register = switch.read_register
        self.read_counter = switch.read_counter

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Return the packets that leave until `QUIET_S` pass without one."""
        return self.inject_all(port, [packet])

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Return the packets that leave until `QUIET_S` pass without one after the last packet."""
        for packet in packets:
            self.wires.send(port, packet)
            time.sleep(self.gap_s)
        return list(self.wires.received(QUIET_S))

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """Return the packets that leave: wait up to `PATIENCE_S` for `count`, or `DROPPED_S` if it is 0."""
        self.wires.send(port, packet)
        if count == 0:
            return list(self.wires.received(DROPPED_S))
        return list(islice(self.wires.received(PATIENCE_S), count))

    def late(self) -> list[tuple[int, bytes]]:
        """The packets that leave until `PATIENCE_S` pass without one."""
        return list(self.wires.received(PATIENCE_S))

    def trace_lines(self) -> list[str]:
        return []


Opener = Callable[[Path, Iterable[int], Clock], AbstractContextManager[Device]]


def in_process(made: Callable[[Program, Clock], Device]) -> Opener:
    """The opener of a switch in this process, which has all ports; `made` creates it from its program and its clock."""
    return lambda program, _ports, clock: nullcontext(made(read_program(program), clock))


@contextmanager
def in_kernel(program: Path, ports: Iterable[int], clock: Clock) -> Iterator[Device]:  # noqa: ARG001, the kernel has one
    """The compiled program in the kernel, on interfaces; needs root."""
    from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program  # noqa: PLC0415, needs libbpf

    choose_target("fast")
    compiled = compile_program(read_program(program))
    with open_wires(ports) as wires:
        switch = KernelSwitch(compiled)
        try:
            for port, interface in wires.interfaces.items():
                switch.add_port(port, interface)
            yield DeviceOnInterfaces(switch, wires, cast("DataPlane", switch.state))
        finally:
            switch.close()


@contextmanager
def in_bmv2(program: Path, ports: Iterable[int], clock: Clock) -> Iterator[Device]:  # noqa: ARG001, BMv2 has its own
    """A separate `simple_switch`, on interfaces; needs root."""
    choose_target("bmv2", program)
    read_program(program)  # its errors say what is wrong with a file; simple_switch would only refuse it
    from thrift.Thrift import TException  # noqa: PLC0415, only where BMv2 is

    from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port  # noqa: PLC0415
    from inakit.switch.bmv2.thrift_client import Runtime  # noqa: PLC0415

    with open_wires(ports) as wires, tempfile.TemporaryDirectory(prefix="inakit-") as folder:
        control_port = free_port()
        attached = [part for port, name in wires.interfaces.items() for part in ("-i", f"{port}@{name}")]
        command = ["simple_switch", *attached, "--thrift-port", str(control_port), "--log-console", "-L", "warn"]
        process = SimpleSwitchProcess("switch", [*command, str(program)], control_port, Path(folder, "log"))
        try:
            process.wait_until_ready()
            runtime = Runtime(control_port, program)
            yield DeviceOnInterfaces(runtime, wires, runtime, BMV2_GAP_S)
            process.check()
        except (TException, OSError) as error:
            raise process.failure(error) from error
        finally:
            process.stop()


DEVICES: dict[str, Opener] = {
    "fast": in_process(lambda program, clock: InProcessDevice(EitherSwitch(program, clock=clock))),
    "interpreted": in_process(
        lambda program, clock: InProcessDevice(InterpretedSwitch(program, clock=clock_from_now(clock)))
    ),
    "traced": in_process(lambda program, clock: TracedDevice(InterpretedSwitch(program, clock=clock_from_now(clock)))),
    "kernel": in_kernel,
    "bmv2": in_bmv2,
}


def open_device(
    target: str, program: Path, ports: Iterable[int], clock: Clock = time.monotonic_ns
) -> AbstractContextManager[Device]:
    """A switch that runs the BMv2 JSON `program` and has these `ports`; it ends with the context.

    `clock` gives nanoseconds to a switch in this process; `kernel` and `bmv2` have the machine's time.
    """
    if target not in DEVICES:
        raise unknown_name("target of a single switch", target, DEVICES)
    return DEVICES[target](program, ports, clock)
