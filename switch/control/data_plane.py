"""The interface of a running switch to its control plane, the same for everything that runs programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import (
    DefaultAction,
    Entry,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    ValueSetMember,
)
from inakit.switch.program.program import CrcParameters, Program

Rates = tuple[tuple[float, int], ...]
"""(units per microsecond, burst) of a meter's cell, lowest rate first; if empty, every packet is green."""

Digest = tuple[str, tuple[int, ...]]
"""The name of a digest and the values of its fields."""


class DataPlane(Protocol):
    """A running switch. Each call is atomic: a packet sees the state before it or after it.

    The caller has checked entries against the program. Entries to change, remove or read are found by table, key and
    priority. `UnsupportedError` names what a target cannot do.
    """

    program: Program

    def add(self, entries: Sequence[Entry]) -> None:
        """Add new entries."""

    def change(self, entries: Sequence[Entry]) -> None:
        """Replace the actions and parameters of existing entries; their counts and idle times stay.

        A `ProfileEntry` without actions has an empty group: its packets run no action.
        """

    def remove(self, entries: Sequence[Entry]) -> None:
        """Remove existing entries."""

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        """Set the action that a table runs on a miss."""

    def reset_default(self, table: str) -> None:
        """Set the action that a table runs on a miss to the one of its program."""

    def put_group(self, group: MulticastGroup) -> None:
        """Add a multicast group, or replace the one with this number."""

    def remove_group(self, number: int) -> None:
        """Remove a multicast group; do nothing if there is none."""

    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or replace the one with this number."""

    def remove_session(self, number: int) -> None:
        """Remove a mirror session; do nothing if there is none."""

    def add_value(self, member: ValueSetMember) -> None:
        """Add a value to a parser value set."""

    def remove_value(self, member: ValueSetMember) -> None:
        """Remove a value from a parser value set; do nothing if the set does not contain it."""

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All cells of a register, as Python integers if they have more than 64 bits."""

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """Write one cell of a register, or all (`index` None)."""

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of all cells of an indirect counter."""

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        """Write one cell of an indirect counter, or all (`index` None)."""

    def set_rates(self, rates: MeterRates) -> None:
        """Set the rates of one meter cell, or of all, and fill its buckets; without rates, packets are green."""

    def read_rates(self, name: str, index: int) -> Rates:
        """The rates of one cell of a meter."""

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        """Packets and bytes of an entry of a table with a direct counter."""

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        """Set packets and bytes of an entry of a table with a direct counter."""

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        """Set the rates of an entry of a table with a direct meter, and fill its buckets; without rates it is green."""

    def entry_rates(self, entry: Entry) -> Rates:
        """The rates of an entry of a table with a direct meter."""

    def idle_s(self, entry: Entry) -> float:
        """Seconds since the entry last matched a packet, or since it was added."""

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        """Set the parameters of a calculation whose algorithm is one of `CRC_CUSTOM`; `reset` keeps them."""

    def read_digests(self) -> list[Digest]:
        """The digests that packets have produced since the last call, oldest first."""

    def now_us(self) -> int:
        """Microseconds since the switch started."""

    def reset(self) -> None:
        """Restore the state after the start: const entries, default actions, and zeros."""
