"""A program in virtual time: one compiled switch with a host at each port, joined by links that take their time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inakit.experiments.labs.grading.finding import Packets
from inakit.experiments.labs.runners.entry_format import with_whole_names
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.read import read_program
from inakit.topo.virtual.engine import PS_PER_S, Engine

PORTS = 128
RATE_BPS, DELAY_PS = 1e9, PS_PER_S // 10**6
FRAME = np.dtype([("bytes", np.uint8, 1536)])
QUIET_PS = PS_PER_S // 100
"""After so long everything that a packet causes has arrived."""


class VirtualSwitch:
    """A switch in virtual time. It starts anew by being made again; a packet goes in when the one before has left."""

    def __init__(self, path: Path) -> None:
        self.program = read_program(path)
        self.engine: Engine | None = None
        self.switch: InProcessSwitch | None = None

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        self.close()
        self.switch = InProcessSwitch(self.program)
        self.engine = Engine(2 * PORTS, [*[1] * PORTS, PORTS], FRAME)
        for port in range(PORTS):
            host, inner = (port, 0), (PORTS, port)
            self.engine.connect(2 * port, host, inner, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
            self.engine.connect(2 * port + 1, inner, host, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
        self.engine.run_on(PORTS, self.switch.take_packet, self.switch.address, self.switch)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        assert self.switch is not None
        self.switch.install(with_whole_names(self.program, entries))

    def inject(self, port: int, packet: bytes) -> Packets:
        """What arrives at hosts when the host at `port` sends a packet, in the order of arrival."""
        assert self.engine is not None
        frames = np.zeros(1, FRAME)
        frames["bytes"][0, : len(packet)] = np.frombuffer(packet, np.uint8)
        self.engine.send(np.array([2 * port], np.uint32), np.array([len(packet)], np.uint32), frames)
        self.engine.run(self.engine.now_ps + QUIET_PS)
        return [(int(each["node"]), each["frame"]["bytes"][: each["length"]].tobytes()) for each in self.engine.take()]

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        assert self.switch is not None
        packets, octets = self.switch.read_counter(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def close(self) -> None:
        """Free everything."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None
