"""The interface of every running switch, in every target: entries in; tables, registers and counters out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry

PROGRAM = Path(__file__).resolve().parents[1] / "p4" / "build" / "ina.json"
"""The P4 program of switches that are given no other."""


class SwitchView(Protocol):
    """The readable state of a switch, also for another process than the one that runs it."""

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, by its full name in the P4 program, ordered by key."""

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array, by its full name in the P4 program."""

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""


class Installable(SwitchView, Protocol):
    """A switch, or its state, that can be filled and changed by the process that runs it."""

    def install(self, entries: SwitchEntries) -> None:
        """Add table entries, multicast groups and register presets; `InputError` if the program has no such thing."""

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there, by their tables and keys, other actions and parameters, while packets pass."""

    def wipe(self) -> None:
        """Set all registers to 0, as a restart does. No packet may pass meanwhile: it would see half of the state."""


class RunningSwitch(Installable, Protocol):
    """A switch that processes packets: in the kernel, in BMv2, or inside this process."""

    name: str

    def check(self) -> None:
        """Raise `RunError` if the switch has stopped processing packets."""


State = TypeVar("State", bound=Installable)


class StatefulSwitch(Generic[State]):
    """A switch whose `state` does everything that an `Installable` does."""

    name: str
    state: State

    def install(self, entries: SwitchEntries) -> None:
        self.state.install(entries)

    def change(self, entries: Sequence[TableEntry]) -> None:
        self.state.change(entries)

    def wipe(self) -> None:
        self.state.wipe()

    def read_table(self, name: str) -> list[TableEntry]:
        return self.state.read_table(name)

    def read_groups(self) -> list[MulticastGroup]:
        return self.state.read_groups()

    def read_register(self, name: str) -> NDArray[np.uint64]:
        return self.state.read_register(name)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self.state.read_counter(name, count)
