"""The state of a switch whose generated C runs here or in the kernel: entries go in, registers and counters come out.

Memory is one array of bytes that Python and the running program share. Hash tables are behind `Tables`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from switch.control.entry_check import action_call, check_entries
from switch.control.match_rules import by_priority, rank, test_of
from switch.entries import (
    KeyPart,
    Lpm,
    MirrorSession,
    MulticastGroup,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
    group_of_nodes,
)
from switch.fast.layout.digest_rings import Digest
from switch.fast.layout.layout import (
    FAILED,
    GROUP_BYTES,
    GROUP_KEY_BYTES,
    GROUPS,
    LOST,
    MAX_REPLICAS,
    MIRRORS,
    STARTED,
    ProgramLayout,
)
from switch.fast.layout.records import MemoryRecord
from switch.fast.layout.table_layout import TableLayout
from switch.fast.load.digests import DigestReader
from switch.program.pipelines import ConstEntry, MatchKey, Table
from topo.errors import InputError, RunError, UnsupportedError

Memory = NDArray[np.uint8]


class ReadableTables(Protocol):
    """The hash tables of a loaded program, by their symbol in C."""

    def items(self, symbol: str) -> Iterable[tuple[bytes, bytes]]:
        """All (key, entry) pairs, in any order."""
        ...


class Tables(ReadableTables, Protocol):
    """Hash tables that entries can be added to."""

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs, all of one size."""
        ...


class StateReader:
    """Reads memory and hash tables as target-neutral entries, registers and counters."""

    def __init__(self, layout: ProgramLayout, memory: Memory, tables: ReadableTables) -> None:
        self.layout = layout
        self.program = layout.program
        self.memory = memory
        self.readable = tables

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of the table `name`, ordered by key; those of a list, in the order in which they win."""
        if not self.program.table(name).key:
            return []
        table = self.layout.tables[name]
        if table.rule is not None:
            return list(self.listed_entries(table, table.rule))
        found = self.direct_items(table) if table.direct else self.hashed_items(table)
        return sorted((table.unpack_entry(key, data) for key, data in found), key=lambda entry: entry.exact_key)

    def direct_items(self, table: TableLayout) -> Iterator[tuple[tuple[int, ...], bytes]]:
        """The key and the bytes of each entry of a direct table."""
        view = self.layout.view(self.memory, table.table.name).view(np.uint8).reshape(-1, table.entry_bytes)
        for index in np.flatnonzero(view[:, 0]):
            yield (int(index),), view[index].tobytes()

    def hashed_items(self, table: TableLayout) -> Iterator[tuple[tuple[int, ...], bytes]]:
        """The key and the bytes of each entry of a hash table, in any order."""
        for key, data in self.readable.items(table.symbol):
            yield table.key.unpack(key), data

    def listed_entries(self, table: TableLayout, rule: MemoryRecord) -> Iterator[TableEntry]:
        """The entries of a list, in the order in which they win."""
        view = self.layout.view(self.memory, table.table.name).view(np.uint8)
        for place in view.reshape(table.table.size, -1):
            data = place[rule.size :].tobytes()
            if not data[0]:
                return
            *ends, priority = rule.unpack(place[: rule.size].tobytes())
            key = tuple(key_part(part, *ends[3 * index : 3 * index + 3]) for index, part in enumerate(table.table.key))
            found = table.unpack_entry((), data)
            yield replace(found, key=key, priority=priority if by_priority(table.table) else None)

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        found = (unpack_group(key, data) for key, data in self.readable.items(GROUPS))
        return sorted(found, key=lambda group: group.group)

    def read_lost(self) -> int:
        """How many packets the kernel could not make as their headers say."""
        return int(self.layout.view(self.memory, LOST)["packets"][0]) if self.layout.losing else 0

    def read_failed(self) -> int:
        """How many assertions of the program did not hold."""
        return int(self.layout.view(self.memory, FAILED)["claims"][0]) if self.layout.claims else 0

    def column(self, register: str) -> NDArray[np.uint64]:
        """The elements of a register, in the shared memory itself and in the register's own integer type."""
        array = self.program.register(register)
        view: NDArray[np.uint64] = self.layout.view(self.memory, f"rows_{array.size}")[register]
        return view

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """A copy of all elements of the register `name`."""
        return self.column(name).astype(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Copies of the packets and bytes of the first `count` elements of the counter `name`, by default of all."""
        view = self.layout.view(self.memory, self.program.counter(name).name)
        return view["packets"][:count].copy(), view["bytes"][:count].copy()


class SwitchState(StateReader):
    """The state of a switch that this process runs: entries can be added as well.

    `keys` has what identifies each entry of a table; `lists` has the entries of tables that are lists, as they win.
    """

    def __init__(self, layout: ProgramLayout, memory: Memory, tables: Tables) -> None:
        super().__init__(layout, memory, tables)
        self.tables = tables
        self.digests = DigestReader(layout, memory)
        self.keys: dict[str, set[object]] = {name: set() for name in layout.tables}
        self.lists: dict[str, list[TableEntry]] = {name: [] for name in layout.tables}
        if STARTED in layout.arrays:
            layout.view(memory, STARTED)["ns"][0] = time.monotonic_ns()
        for name, table in layout.tables.items():
            self.install_table(name, [const_entry(table.table, entry) for entry in table.table.entries or ()])

    def identity(self, entry: TableEntry) -> object:
        """A value that no two entries of a table have in common."""
        table = self.layout.tables[entry.table]
        if table.rule is None:
            return entry.exact_key
        tests = (test_of(part, value) for part, value in zip(table.table.key, entry.key, strict=True))
        return tuple(tests), entry.priority

    def install(self, entries: SwitchEntries) -> None:
        """Add entries, groups and presets; when one of them is wrong, none is added."""
        check_entries(self.program, entries)
        check_kinds(entries)
        for group in entries.groups:
            check_size(group)
        self.check_new(entries.tables)
        for name in dict.fromkeys(entry.table for entry in entries.tables):
            self.install_table(name, [entry for entry in entries.tables if entry.table == name])
        self.put(GROUPS, [pack_group(group) for group in entries.groups])
        for session in entries.mirrors:
            self.put_session(session)
        for preset in entries.registers:
            self.column(preset.register)[preset.index] = preset.value

    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or give it another group and port. A program that clones nothing needs none."""
        if self.layout.copying:
            place = self.layout.view(self.memory, MIRRORS)[session.session : session.session + 1].view(np.uint64)
            place[0] = mirror_word(session)

    def remove_session(self, number: int) -> None:
        """Remove a mirror session: nothing is cloned to it any more."""
        self.put_session(MirrorSession(number))

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there other actions and parameters; when one of them is wrong, none is changed."""
        for entry in entries:
            action_call(self.program, entry)
            self.check_not_const(entry.table)
            if entry.table not in self.keys or self.identity(entry) not in self.keys[entry.table]:
                raise InputError(f"table '{entry.table}' has no entry for the key {entry.key}: install it first")
        for name in dict.fromkeys(entry.table for entry in entries):
            self.install_table(name, [entry for entry in entries if entry.table == name])

    def wipe(self) -> None:
        """Set all registers to 0."""
        for length in self.layout.rows:
            self.layout.view(self.memory, f"rows_{length}").view(np.uint8)[:] = 0

    def check_new(self, entries: Sequence[TableEntry]) -> None:
        """No key may be there already, and no table may grow beyond its size in the program."""
        seen: dict[str, set[object]] = {}
        for entry in entries:
            keys = seen.setdefault(entry.table, set())
            if entry.table not in self.keys:
                raise InputError(f"table '{entry.table}' has no key: it takes no entries")
            self.check_not_const(entry.table)
            if self.identity(entry) in self.keys[entry.table] | keys:
                raise InputError(f"table '{entry.table}' already has an entry for the key {entry.key}")
            keys.add(self.identity(entry))
        for name, keys in seen.items():
            size = self.program.table(name).size
            if len(keys) + len(self.keys[name]) > size:
                raise InputError(f"table '{name}' is full: the program gives it {size} entries; raise its size there")

    def check_not_const(self, table: str) -> None:
        """Raise `InputError` if the program gives the table's entries."""
        if self.program.table(table).entries is not None:
            raise InputError(f"the entries of table '{table}' are const in the program: it takes no others")

    def install_table(self, name: str, entries: list[TableEntry]) -> None:
        """Write entries of one table, new ones or others for keys that are there."""
        table = self.layout.tables[name]
        calls = [action_call(self.program, entry) for entry in entries]
        packed = [table.pack_entry(call.action, call.values) for call in calls]
        if table.direct:
            view = self.layout.view(self.memory, name).view(np.uint8).reshape(-1, table.entry_bytes)
            for entry, data in zip(entries, packed, strict=True):
                write_entry(view[entry.exact_key[0]], data)
        elif table.rule is not None:
            self.list_entries(table, table.rule, entries)
        else:
            self.put(table.symbol, [(table.key.pack(e.exact_key), d) for e, d in zip(entries, packed, strict=True)])
        self.keys[name] |= {self.identity(entry) for entry in entries}

    def list_entries(self, table: TableLayout, rule: MemoryRecord, entries: Sequence[TableEntry]) -> None:
        """Write entries of a list at the places where they win.

        The last place is written first, so that a packet that comes meanwhile finds all entries that were there.
        """
        listed = {self.identity(entry): entry for entry in (*self.lists[table.table.name], *entries)}
        ordered = sorted(listed.values(), key=lambda entry: rank(entry.key, entry.priority))
        view = self.layout.view(self.memory, table.table.name).view(np.uint8).reshape(table.table.size, -1)
        for place, entry in reversed(list(enumerate(ordered))):
            call = action_call(self.program, entry)
            tests = (test_of(part, value) for part, value in zip(table.table.key, entry.key, strict=True))
            packed = rule.pack([*(number for test in tests for number in test), entry.priority or 0])
            view[place] = np.frombuffer(packed + table.pack_entry(call.action, call.values), np.uint8)
        self.lists[table.table.name] = ordered

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs to a hash table and to the array in front of it."""
        front = self.layout.fronts[symbol]
        self.tables.put(symbol, entries)
        front.add(self.layout.view(self.memory, front.record.name), entries)


class StatefulSwitch:
    """What a switch that runs compiled code offers by its `state` alone: entries in, registers and counters out."""

    name: str
    state: SwitchState

    def check_claims(self) -> None:
        """Raise `RunError` if an assertion of the program did not hold."""
        if failed := self.state.read_failed():
            what = f"{failed} assertions of '{self.state.program.name}' did not hold"
            raise RunError(f"switch '{self.name}': {what}: BMv2 ends at the first")

    def install(self, entries: SwitchEntries) -> None:
        """Add table entries, multicast groups and register presets."""
        self.state.install(entries)

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there, by their tables and keys, other actions and parameters, while packets pass."""
        self.state.change(entries)

    def wipe(self) -> None:
        """Set all registers to 0."""
        self.state.wipe()

    def read_digests(self) -> list[Digest]:
        """The digests since the last call, as (name, values)."""
        return self.state.digests.read()

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, by its full name in the P4 program, ordered by key."""
        return self.state.read_table(name)

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        return self.state.read_groups()

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array, by its full name in the P4 program."""
        return self.state.read_register(name)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""
        return self.state.read_counter(name, count)


def const_entry(table: Table, entry: ConstEntry) -> TableEntry:
    """An entry that the program gives, as one that is installed."""
    priority = entry.priority if by_priority(table) else None
    return TableEntry(table.name, entry.key, entry.call.action.name, entry.call.values, priority)


def key_part(part: MatchKey, mask: int, least: int, most: int) -> KeyPart:
    """The part of a key for which `test_of` gave this mask, least and greatest value."""
    match part.match:
        case "lpm":
            return Lpm(least, mask.bit_count())
        case "ternary":
            return Ternary(least, mask)
        case "range":
            return Range(least, most)
    return least if mask else Ternary(0, 0)


def write_entry(place: Memory, data: bytes) -> None:
    """Write an entry's bytes, its parameters first: a packet that comes meanwhile finds no action without them."""
    place[TableLayout.HEAD_BYTES :] = np.frombuffer(data, np.uint8, offset=TableLayout.HEAD_BYTES)
    place[: TableLayout.HEAD_BYTES] = np.frombuffer(data, np.uint8, count=TableLayout.HEAD_BYTES)


def check_kinds(entries: SwitchEntries) -> None:
    """Raise `UnsupportedError` for entries of a kind that compiled code has no place for."""
    for kind in ("defaults", "meters", "profiled", "value_sets"):
        if getattr(entries, kind):
            raise UnsupportedError(f"target 'fast' takes no {kind} for a program that is compiled: run it on BMv2")


def mirror_word(session: MirrorSession) -> int:
    """The place of a mirror session, written at once: group and port, plus one."""
    group, port = (0 if number is None else number + 1 for number in (session.group, session.port))
    return port << 32 | group


def check_size(group: MulticastGroup) -> None:
    """Raise `InputError` for a multicast group with more replicas than generated C can copy."""
    count = sum(len(ports) for ports in group.nodes.values())
    if count > MAX_REPLICAS:
        raise InputError(f"multicast group {group.group} has {count} ports: target 'fast' takes {MAX_REPLICAS}")


def pack_group(group: MulticastGroup) -> tuple[bytes, bytes]:
    """A group's key and entry. Like BMv2, each node sends by each of its ports once, the lowest port first."""
    replicas = [(port, replica) for replica, ports in group.nodes.items() for port in ports]
    numbers = np.zeros((MAX_REPLICAS, 2), np.uint16)
    numbers[: len(replicas)] = np.array(replicas).reshape(-1, 2)
    data = len(replicas).to_bytes(4, "little") + numbers.tobytes()
    return group.group.to_bytes(GROUP_KEY_BYTES, "little"), data.ljust(GROUP_BYTES, b"\0")


def unpack_group(key: bytes, data: bytes) -> MulticastGroup:
    """The group that `pack_group` packed into these bytes."""
    count = int.from_bytes(data[:4], "little")
    replicas = np.frombuffer(data, np.uint16, 2 * count, offset=4).reshape(-1, 2)
    return group_of_nodes(int.from_bytes(key, "little"), ((replica, port) for port, replica in replicas.tolist()))
