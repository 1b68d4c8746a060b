"""One table of a switch under test: its entries, found by their keys, and its default action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.entries import TableEntry
from inakit.switch.stf.names import StfNames
from inakit.switch.stf.script import Add, SetDefault

Key = Mapping[str, object]


@dataclass(frozen=True)
class TestedTable:
    """The table `name`. Keys are {field: value}, values those of STF; the highest `priority` wins, as in STF."""

    __test__ = False
    control: ControlPlane
    names: StfNames
    name: str

    def add(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        """Add an entry."""
        self.control.add_entry(self._entry(key, priority, action, params))

    def change(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        """Give the entry with this key another action, or other parameters."""
        entry = self._entry(key, priority, action, params)
        self.control.modify_entry(self.name, self._handle(key, priority), entry.action, entry.params)

    def delete(self, key: Key, priority: int | None = None) -> None:
        """Remove the entry with this key."""
        self.control.delete_entry(self.name, self._handle(key, priority))

    def clear(self) -> None:
        """Remove all entries."""
        self.control.clear_table(self.name)

    def entries(self) -> list[TableEntry]:
        """The entries by their handles. Of their priorities the lowest wins, as in BMv2."""
        return [held.entry for held in self.control.entries(self.name) if isinstance(held.entry, TableEntry)]

    def counter(self, key: Key, priority: int | None = None) -> tuple[int, int]:
        """Packets and bytes that the entry with this key has counted: its table has a direct counter."""
        return self.control.entry_counter(self.name, self._handle(key, priority))

    def set_default(self, action: str, **params: object) -> None:
        """Choose the action that the table runs on a miss."""
        self.control.set_default(self.names.default(SetDefault(self.name, action, as_text(params))))

    def reset_default(self) -> None:
        """Let the table run on a miss what its program says."""
        self.control.reset_default(self.name)

    def _entry(self, key: Key, priority: int | None, action: str, params: Key) -> TableEntry:
        return self.names.entry(Add(self.name, priority, as_text(key), action, as_text(params)))

    def _handle(self, key: Key, priority: int | None) -> int:
        found = self.names.matched(Add(self.name, priority, as_text(key), "", ()))
        return self.control.find(self.name, *found)


def as_text(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values as an STF statement has them."""
    return tuple((name, str(value)) for name, value in values.items())
