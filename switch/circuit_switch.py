"""The circuit switch of an all-optical interconnect, running: its cross-connects change while packets pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from switch.entries import SwitchEntries, TableEntry
from switch.running_switch import PROGRAM, RunningSwitch
from switch.targets import Target
from topo.fabric.circuits import INTERCONNECT, Circuit, Interconnect, Port, circuit

CIRCUIT_PROGRAM = PROGRAM.with_name("circuit.json")
TABLE = "CircuitIngress.cross_connect"


def circuit_class(target: Target, program: Path = CIRCUIT_PROGRAM) -> Callable[..., Any]:
    """The Mininet class, running `program`, of which `topo.live.network.Network` makes its circuit switch."""
    node_class: Callable[..., Any] = target.node_class()
    return partial(node_class, program=program)


@dataclass(frozen=True)
class Carried:
    """Packets that arrived at an optical port: `passed` on through a circuit, or `lost` while the port was dark."""

    passed: int
    lost: int


class CircuitSwitch:
    """Sets the cross-connects of `interconnect` on `switch`, which runs p4/circuit.p4.

    The interconnect's first circuits are set when the object is made.
    """

    def __init__(self, interconnect: Interconnect, switch: RunningSwitch) -> None:
        self.interconnect, self.switch = interconnect, switch
        self.circuits: frozenset[Circuit] = frozenset()
        self._turn = threading.Lock()
        dark = tuple(TableEntry(TABLE, (port,), "CircuitIngress.darken") for port in interconnect.port_of.values())
        switch.install(SwitchEntries(INTERCONNECT, dark))
        self._light(interconnect.circuits)

    def connect(self, circuits: Collection[Circuit]) -> int:
        """Set up these circuits and take down all others; returns how many are new, once they carry packets.

        Circuits that stay carry on; the ports of the others are dark for the time of a reconfiguration. Raises
        `FabricError`, and changes nothing, for circuits that cannot exist at once. May be called by any thread.
        """
        wanted = frozenset(circuit(*each) for each in circuits)
        self.interconnect.check(wanted)
        with self._turn:
            old, new = self.circuits - wanted, wanted - self.circuits
            self._set(TableEntry(TABLE, (port,), "CircuitIngress.darken") for port in self._ports(old))
            self.circuits -= old
            if new:
                time.sleep(self.interconnect.reconfiguration_s)
                self._light(new)
        return len(new)

    def carried(self) -> dict[Port, Carried]:
        """What arrived at each optical port so far."""
        passed, lost = (self.switch.read_counter(f"CircuitIngress.{name}")[0] for name in ("passed", "lost"))
        numbers = self.interconnect.port_of.items()
        return {end: Carried(int(passed[number]), int(lost[number])) for end, number in numbers}

    def _light(self, circuits: Iterable[Circuit]) -> None:
        new = frozenset(circuits)
        port_of = self.interconnect.port_of
        ends = [end for a, b in new for end in ((a, b), (b, a))]
        self._set(TableEntry(TABLE, (port_of[a],), "CircuitIngress.connect", (port_of[b],)) for a, b in ends)
        self.circuits |= new

    def _set(self, entries: Iterable[TableEntry]) -> None:
        self.switch.change(list(entries))

    def _ports(self, circuits: Iterable[Circuit]) -> Iterator[int]:
        return (self.interconnect.port_of[end] for each in circuits for end in each)
