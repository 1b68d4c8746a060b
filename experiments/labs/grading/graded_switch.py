"""The switches that run a student's program: in a sandbox, in virtual time, or on a target that runs one switch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np

from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.switch_runner import with_whole_names
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import Device, open_device
from inakit.topo.virtual.engine import PS_PER_S, Engine

SANDBOX, VIRTUAL = "sandbox", "virtual"
LAB_PORTS = (*range(1, 128), *range(256, 264), *range(320, 328))
"""The ports by which packets of the labs come and leave: few, as `simple_switch` opens an interface for each."""


class SentSwitch(Protocol):
    """A switch that takes packets one by one."""

    def fresh(self) -> None:
        """Restart the switch without entries."""
        ...

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        ...

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        ...


class GradedSwitch(SentSwitch, Protocol):
    """A switch that runs a student's program."""

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        ...


@contextmanager
def open_switch(target: str, text: str, name: str, ports: Iterable[int] = LAB_PORTS) -> Iterator[GradedSwitch]:
    """A switch that runs the BMv2 JSON `text` in the sandbox, or unconfined on another target.

    A target on interfaces has these ports; `simple_switch` takes seconds for a hundred ports.
    """
    if target == SANDBOX:
        with closing(SandboxedSwitch(text, name)) as sandboxed:
            yield sandboxed
        return
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as folder:
        path = Path(folder, f"{name}.json")
        path.write_text(text)
        program = read_program(path)

        def opened(stack: ExitStack) -> Device | VirtualSwitch:
            if target == VIRTUAL:
                return stack.enter_context(closing(VirtualSwitch(program)))
            return stack.enter_context(open_device(target, path, tuple(ports)))

        with closing(DeviceSwitch(program, opened)) as switch:
            yield switch


class DeviceSwitch:
    """An unconfined switch. It restarts by being opened again."""

    def __init__(self, program: Program, opened: Callable[[ExitStack], Device | VirtualSwitch]) -> None:
        self.program, self.opened, self.stack = program, opened, ExitStack()
        self.device: Device | VirtualSwitch | None = None

    @property
    def running(self) -> Device | VirtualSwitch:
        """The switch that was opened last."""
        assert self.device is not None
        return self.device

    def fresh(self) -> None:
        """Restart the switch without entries."""
        self.stack.close()
        self.device = self.opened(self.stack)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        self.running.install(with_whole_names(self.program, entries))

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        return self.running.inject(port, packet)

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        packets, octets = self.running.read_counter(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def close(self) -> None:
        """End the switch."""
        self.stack.close()


PORTS = 512
RATE_BPS, DELAY_PS = 1e9, PS_PER_S // 10**6
FRAME = np.dtype([("bytes", np.uint8, 1536)])
QUIET_PS = PS_PER_S // 100
"""The time after which every packet caused by one packet has arrived."""


class VirtualSwitch(InProcessSwitch):
    """A compiled switch in virtual time, with a host at each port; the links have a delay.

    A packet enters after the previous one has left.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.engine = Engine(2 * PORTS, [*[1] * PORTS, PORTS], FRAME)
        for port in range(PORTS):
            host, inner = (port, 0), (PORTS, port)
            self.engine.connect(2 * port, host, inner, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
            self.engine.connect(2 * port + 1, inner, host, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
        self.engine.run_on(PORTS, self.take_packet, self.address)

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet from the host at `port`; return the packets that arrive at hosts, in order."""
        frames = np.zeros(1, FRAME)
        frames["bytes"][0, : len(packet)] = np.frombuffer(packet, np.uint8)
        self.engine.send(np.array([2 * port], np.uint32), np.array([len(packet)], np.uint32), frames)
        self.engine.run(self.engine.now_ps + QUIET_PS)
        return [(int(each["node"]), each["frame"]["bytes"][: each["length"]].tobytes()) for each in self.engine.take()]

    def close(self) -> None:
        """Free the engine."""
        self.engine.close()
