"""One switch on its own, by the name of its target: packets in, packets out, without a network.

`fast` runs in this process and needs no root: compiled, or `interpreted` where the compiler refuses the program.
`traced` is interpreted too, and says what happens to each packet. `kernel` is the compiled switch in the kernel,
`bmv2` is `simple_switch`; both need root. Each of their ports is a TUN interface, which carries any bytes at all: also
frames that are shorter than an Ethernet header. It vanishes with this process, or when closed.
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
"""Flags and a protocol number, one for experiments, which the device wants before each packet.

Neither reaches the switch. With the number of IPv4, Linux would look for headers and not let the switch remove them.
"""
MOST_BYTES_LEAVING = 9216
"""Packets may grow in the switch: so many bytes leave it by a wire."""


class Wires:
    """One TUN interface per port; `interfaces` has their names, `descriptors` the other ends."""

    def __init__(self, descriptors: dict[int, int], interfaces: dict[int, str]) -> None:
        self.interfaces = interfaces
        self.descriptors = descriptors
        self._ports = {descriptor: port for port, descriptor in descriptors.items()}

    def send(self, port: int, packet: bytes) -> None:
        """Let `packet` arrive at the switch's `port`."""
        os.write(self.descriptors[port], HEAD + packet)

    def received(self, quiet_s: float) -> Iterator[tuple[int, bytes]]:
        """The packets that leave the switch, as (port, packet), until none has for `quiet_s`. Ports are in no order."""
        deadline = time.monotonic() + quiet_s
        while (left := deadline - time.monotonic()) > 0:
            for descriptor in select.select(self.descriptors.values(), (), (), left)[0]:
                yield self._ports[descriptor], os.read(descriptor, MAX_PACKET)[len(HEAD) :]
                deadline = time.monotonic() + quiet_s


@contextmanager
def open_wires(ports: Iterable[int]) -> Iterator[Wires]:
    """A wire to each of `ports`; needs root. None of them is left behind."""
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
"""A switch on interfaces has done everything when nothing has left it for so long."""
BMV2_GAP_S = 0.002
"""The time between packets to BMv2: when it wakes up it reads one packet, and leaves others in its buffer."""
DROPPED_S = 0.02
"""How long a switch is given for a packet that another one drops."""
PATIENCE_S = 2.0
"""How long a missing packet is waited for."""


class Filled(Protocol):
    """A switch that takes entries and can be read."""

    def install(self, entries: SwitchEntries) -> None:
        """Add entries; `InputError` if the program has no such thing."""

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array."""

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of an indirect counter."""


class Device(Filled, Protocol):
    """A switch with ports that packets can be given to.

    `at_once` says that everything has left when `inject` returns. `control` knows what it has put into the switch
    itself: it or `install` fills a switch, not both.
    """

    at_once: bool

    @property
    def control(self) -> ControlPlane:
        """The control plane of the switch."""

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """The packets that leave, as (port, packet), when `packet` arrives at `port`; in order for each port."""

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """The packets that leave when all of `packets` arrive at `port`, which must be few enough to wait there."""

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """The packets that leave when `packet` arrives at `port`: `count` packets, if they come in time."""

    def late(self) -> list[tuple[int, bytes]]:
        """The packets that leave later than `inject` waited for."""

    def trace_lines(self) -> list[str]:
        """The trace of packets since the last call, line by line; nothing, if no trace is kept."""


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
        """The packets that leave, whatever is expected."""
        return self.inject(port, packet)

    def late(self) -> list[tuple[int, bytes]]:
        """Nothing: the switch has done everything when `inject` returns."""
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
        """The packets that leave until nothing has for `QUIET_S`."""
        return self.inject_all(port, [packet])

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """The packets that leave until nothing has for `QUIET_S` after the last packet."""
        for packet in packets:
            self.wires.send(port, packet)
            time.sleep(self.gap_s)
        return list(self.wires.received(QUIET_S))

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """The packets that leave: `count` packets, waited for up to `PATIENCE_S`; with 0, those of `DROPPED_S`."""
        self.wires.send(port, packet)
        if count == 0:
            return list(self.wires.received(DROPPED_S))
        return list(islice(self.wires.received(PATIENCE_S), count))

    def late(self) -> list[tuple[int, bytes]]:
        """The packets that leave until nothing has for `PATIENCE_S`."""
        return list(self.wires.received(PATIENCE_S))

    def trace_lines(self) -> list[str]:
        return []


Opener = Callable[[Path, Iterable[int], Clock], AbstractContextManager[Device]]


def in_process(made: Callable[[Program, Clock], Device]) -> Opener:
    """How a switch in this process, which has all ports, is opened: `made` makes it of its program and its clock."""
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
    """A `simple_switch` of its own, on interfaces; needs root."""
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
