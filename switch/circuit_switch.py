"""The circuit switch of an all-optical interconnect, running: its cross-connects change while packets pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.running_switch import PROGRAM, RunningSwitch
from inakit.switch.targets import Target
from inakit.topo.fabric.circuits import INTERCONNECT, Circuit, Interconnect, Port, circuit

CIRCUIT_PROGRAM = PROGRAM.with_name("circuit.json")
TABLE = "CircuitIngress.cross_connect"


def circuit_class(target: Target, program: Path = CIRCUIT_PROGRAM) -> Callable[..., Any]:
    """The Mininet class that runs `program`; `inakit.topo.live.network.Network` makes its circuit switch of it."""
    node_class: Callable[..., Any] = target.node_class()
    return partial(node_class, program=program)


@dataclass(frozen=True)
class Carried:
    """Packets that arrived at an optical port: `passed` through a circuit, or `lost` while the port was dark."""

    passed: int
    lost: int


class CircuitSwitch:
    """Sets the cross-connects of `interconnect` on `switch`, which runs p4/circuit.p4.

    The interconnect's first circuits are set when the object is made. To reconfigure, call `darken`, let the time of a
    reconfiguration pass, and call `light`.
    """

    def __init__(self, interconnect: Interconnect, switch: RunningSwitch) -> None:
        self.interconnect, self.switch = interconnect, switch
        self.circuits: frozenset[Circuit] = frozenset()
        dark = tuple(TableEntry(TABLE, (port,), "CircuitIngress.darken") for port in interconnect.port_of.values())
        switch.install(SwitchEntries(INTERCONNECT, dark))
        self.light(interconnect.circuits)

    def darken(self, wanted: Collection[Circuit]) -> int:
        """Begin to set up these circuits: take down all others, and return how many of them are new.

        Circuits that stay keep carrying packets; the ports of the others are dark. Raises `FabricError` and changes
        nothing if these circuits cannot exist at the same time.
        """
        asked = frozenset(circuit(*each) for each in wanted)
        self.interconnect.check(asked)
        self._set(TableEntry(TABLE, (port,), "CircuitIngress.darken") for port in self._ports(self.circuits - asked))
        self.circuits &= asked
        return len(asked - self.circuits)

    def light(self, wanted: Collection[Circuit]) -> None:
        """Activate those of these circuits that do not carry packets yet. `darken` has taken down all others."""
        new = frozenset(circuit(*each) for each in wanted) - self.circuits
        port_of = self.interconnect.port_of
        ends = [end for a, b in new for end in ((a, b), (b, a))]
        self._set(TableEntry(TABLE, (port_of[a],), "CircuitIngress.connect", (port_of[b],)) for a, b in ends)
        self.circuits |= new

    def carried(self) -> dict[Port, Carried]:
        """The packets that arrived at each optical port so far."""
        passed, lost = (self.switch.read_counter(f"CircuitIngress.{name}")[0] for name in ("passed", "lost"))
        numbers = self.interconnect.port_of.items()
        return {end: Carried(int(passed[number]), int(lost[number])) for end, number in numbers}

    def _set(self, entries: Iterable[TableEntry]) -> None:
        self.switch.change(list(entries))

    def _ports(self, circuits: Iterable[Circuit]) -> Iterator[int]:
        return (self.interconnect.port_of[end] for each in circuits for end in each)
