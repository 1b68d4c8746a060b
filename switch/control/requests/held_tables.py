"""The entries of each table by their handles, and by what no two of them share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.switch.control.held import HeldDefault
from inakit.switch.control.match_rules import Identity, by_priority, identity_of
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.control.requests.direct_rates import DirectRates
from inakit.switch.control.requests.handles import Handles, index_of, version_of, versioned
from inakit.switch.entries import Entry, KeyPart, TableEntry
from inakit.switch.program.pipelines import Table


@dataclass(eq=False)
class Held:
    """One entry as the data plane has it, with the member or the group that it names.

    `timed_us` is when it got its timeout.
    """

    entry: Entry
    timeout_ms: int = 0
    timed_us: int | None = None
    member: int | None = None
    group: int | None = None


class HeldTable:
    """The entries and the default of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.entries: Handles[Held] = Handles()
        self.versions: dict[int, int] = {}
        self.indices: dict[Identity, int] = {}
        self.default: HeldDefault | None = None
        self.overdue: set[int] = set()
        self.rates = DirectRates()
        self.reset()

    def reset(self) -> None:
        """Hold what the program gives, and nothing else."""
        self.clear(reset_default=True)
        self.rates = DirectRates()
        for const in self.table.entries or ():
            priority = const.priority if by_priority(self.table) else None
            call = const.call
            self.take(Held(TableEntry(self.table.name, const.key, call.action.name, call.values, priority)))

    def clear(self, reset_default: bool) -> None:
        """Hold no entries; also those of the program are gone. Handles begin anew."""
        self.entries, self.versions, self.indices = Handles(), {}, {}
        self.overdue.clear()
        if reset_default:
            self.reset_default()

    def reset_default(self) -> None:
        """Hold the default that the program gives."""
        self.default = self.programs_default()

    def programs_default(self) -> HeldDefault | None:
        """The default that the program gives; None in a table with an action profile."""
        call = self.table.default
        known = call is not None and self.table.profile is None
        return HeldDefault(call.action.name, call.values) if call is not None and known else None

    def take(self, held: Held) -> int:
        """Hold an entry that was checked, and return its handle."""
        index = self.entries.take(held)
        self.indices[identity_of(self.table, held.entry.key, held.entry.priority)] = index
        return versioned(index, self.versions.get(index, 0))

    def give_back(self, handle: int) -> None:
        """Forget an entry that has never been in the data plane."""
        index = index_of(handle)
        entry = self.entries[index].entry
        del self.indices[identity_of(self.table, entry.key, entry.priority)]
        self.entries.release(index)

    def release(self, handle: int) -> None:
        """Forget an entry; its handle will not come back, but its index will."""
        self.give_back(handle)
        self.versions[index_of(handle)] = version_of(handle) + 1
        self.overdue.discard(handle)

    def find(self, key: tuple[KeyPart, ...], priority: int | None) -> int | None:
        """The handle of the entry with this key and priority."""
        index = self.indices.get(identity_of(self.table, key, priority))
        return None if index is None else self.handle(index)

    def handle(self, index: int) -> int:
        """The handle of the entry that is at an index."""
        return versioned(index, self.versions.get(index, 0))

    def at(self, handle: int) -> Held:
        """The entry of a handle, or a refusal."""
        held = self.at_any_version(handle)
        if handle != self.handle(index_of(handle)):
            raise Refused(
                RefusalKind.EXPIRED_HANDLE, f"table '{self.table.name}': the entry of handle {handle} is gone"
            )
        return held

    def at_any_version(self, handle: int) -> Held:
        """The entry at the index of a handle, whatever its version; or a refusal."""
        held = self.entries.get(index_of(handle))
        if held is None:
            raise Refused(RefusalKind.INVALID_HANDLE, f"table '{self.table.name}' has no entry of handle {handle}")
        return held

    def items(self) -> Iterator[tuple[int, Held]]:
        """(handle, entry) of all entries, by index."""
        return ((self.handle(index), self.entries[index]) for index in self.entries)
