"""Wires to the ports of one switch that runs on network interfaces: packets in, packets out, no network.

Each port is a TUN interface, which carries any bytes at all: also frames that are shorter than an Ethernet header,
which no other interface would take. It vanishes with this process, or when closed.

One switch on its own, by the name of its target: packets in, packets out, without a network.

`fast` runs in this process and needs no root: compiled, or `interpreted` where the compiler refuses the program.
`traced` is interpreted too, and says what happens to each packet. `kernel` is the compiled switch in the kernel,
`bmv2` is `simple_switch`; both need root.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fcntl import ioctl
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
from inakit.switch.program.read import read_program
from inakit.switch.targets import choose_target
from inakit.switch.testing.either_switch import EitherSwitch
from inakit.topo.errors import MachineError, unknown_name
from inakit.topo.live.wires import index_of, inside, set_up, switch_off_ipv6

DEVICE = Path("/dev/net/tun")
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
HEAD = struct.pack("!HH", 0, 0x88B5)
"""Flags and a protocol number, one for experiments, which the device wants before each packet.

Neither reaches the switch. With the number of IPv4, Linux would look for headers and not let the switch remove them.
"""
MAX_PACKET = 65536
LEAST_FRAME, MOST_FRAME = 14, 1514
"""The bytes of a frame that an Ethernet interface carries: its header, and what Linux lets one be behind it."""
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
        """What leaves the switch, as (port, packet), until nothing has for `quiet_s`. Ports are in no order."""
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


def open_tun(kind: int = IFF_TUN) -> tuple[int, str]:
    """A new interface, by default a TUN: its descriptor, and the name that the kernel gave it."""
    try:
        descriptor = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"{DEVICE}: {error.strerror}; a switch on its own needs TUN: modprobe tun") from error
    try:
        answer = ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", b"inakit%d", kind))
    except OSError as error:
        os.close(descriptor)
        way_out = "run as root" if error.errno == errno.EPERM else "is another interface of that name in the way?"
        raise MachineError(f"no TUN interface can be made: {error.strerror}; {way_out}") from error
    return descriptor, answer[:16].rstrip(b"\0").decode()


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
        ...

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array."""
        ...

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of an indirect counter."""
        ...


class Device(Filled, Protocol):
    """A switch with ports that packets can be given to.

    `at_once` says that everything has left when `inject` returns. `control` knows what it has put into the switch
    itself: it or `install` fills a switch, not both.
    """

    at_once: bool

    @property
    def control(self) -> ControlPlane:
        """The control plane of the switch."""
        ...

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """What leaves, as (port, packet), when `packet` arrives at `port`; in order for each port."""
        ...

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """What leaves when all of `packets` arrive at `port`, which must be few enough to wait there."""
        ...

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """What leaves when `packet` arrives at `port`: `count` packets, if they come in time."""
        ...

    def late(self) -> list[tuple[int, bytes]]:
        """What leaves later than `inject` waited for."""
        ...

    def trace_lines(self) -> list[str]:
        """What has happened to packets since the last call, line by line; nothing, if no trace is kept."""
        ...


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
        """The control plane of the switch."""
        switch = self.in_process
        return switch.control if isinstance(switch, EitherSwitch) else ControlPlane(switch.state)

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """What leaves, packet after packet."""
        return [left for packet in packets for left in self.inject(port, packet)]

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:  # noqa: ARG002
        """What leaves, whatever is expected."""
        return self.inject(port, packet)

    def late(self) -> list[tuple[int, bytes]]:
        """Nothing: the switch has done everything when `inject` returns."""
        return []

    def trace_lines(self) -> list[str]:
        """Nothing: no trace is kept."""
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
        """The trace since the last call."""
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
        """What leaves until nothing has for `QUIET_S`."""
        return self.inject_all(port, [packet])

    def inject_all(self, port: int, packets: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """What leaves until nothing has for `QUIET_S` after the last packet."""
        for packet in packets:
            self.wires.send(port, packet)
            time.sleep(self.gap_s)
        return list(self.wires.received(QUIET_S))

    def inject_expecting(self, port: int, packet: bytes, count: int) -> list[tuple[int, bytes]]:
        """What leaves: `count` packets, waited for up to `PATIENCE_S`; with 0, what leaves for `DROPPED_S`."""
        self.wires.send(port, packet)
        if count == 0:
            return list(self.wires.received(DROPPED_S))
        return list(islice(self.wires.received(PATIENCE_S), count))

    def late(self) -> list[tuple[int, bytes]]:
        """What leaves until nothing has for `PATIENCE_S`."""
        return list(self.wires.received(PATIENCE_S))

    def trace_lines(self) -> list[str]:
        """Nothing: no trace is kept."""
        return []


@contextmanager
def in_process(program: Path, ports: Iterable[int], clock: Clock) -> Iterator[Device]:  # noqa: ARG001, it has all ports
    """A switch in this process: compiled, if the compiler can do all that the program says; else interpreted."""
    yield InProcessDevice(EitherSwitch(read_program(program), clock=clock))


@contextmanager
def interpreted(program: Path, ports: Iterable[int], clock: Clock) -> Iterator[Device]:  # noqa: ARG001, it has all
    """An interpreted switch in this process."""
    yield InProcessDevice(InterpretedSwitch(read_program(program), clock=clock_from_now(clock)))


@contextmanager
def traced(program: Path, ports: Iterable[int], clock: Clock) -> Iterator[Device]:  # noqa: ARG001, it has all ports
    """An interpreted switch in this process that keeps a trace."""
    yield TracedDevice(InterpretedSwitch(read_program(program), clock=clock_from_now(clock)))


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

    from inakit.switch.bmv2.bmv2_data_plane import Bmv2DataPlane  # noqa: PLC0415
    from inakit.switch.bmv2.simple_switch import (  # noqa: PLC0415
        Runtime,
        SimpleSwitchProcess,
        free_port,
    )

    with open_wires(ports) as wires, tempfile.TemporaryDirectory(prefix="inakit-") as folder:
        control_port = free_port()
        attached = [part for port, name in wires.interfaces.items() for part in ("-i", f"{port}@{name}")]
        command = ["simple_switch", *attached, "--thrift-port", str(control_port), "--log-console", "-L", "warn"]
        process = SimpleSwitchProcess("switch", [*command, str(program)], control_port, Path(folder, "log"))
        try:
            process.wait_until_ready()
            runtime = Runtime(control_port, program)
            yield DeviceOnInterfaces(runtime, wires, Bmv2DataPlane(runtime), BMV2_GAP_S)
            process.check()
        except (TException, OSError) as error:
            raise process.failure(error) from error
        finally:
            process.stop()


DEVICES: dict[str, Callable[[Path, Iterable[int], Clock], AbstractContextManager[Device]]] = {
    "fast": in_process,
    "interpreted": interpreted,
    "traced": traced,
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
