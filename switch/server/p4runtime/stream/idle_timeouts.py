"""Entries that no packet has matched for their idle timeout are told to the primaries, once for each timeout."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count

from inakit.switch.control.refusals import Refused
from inakit.switch.server.p4runtime.entities.direct_resources import Note
from inakit.switch.server.p4runtime.entities.tables import Tables, inverted
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.matches import matches_of
from inakit.switch.server.p4runtime.schema.schema import TableSchema

SOONEST_NS = 1_000_000
"""An entry is looked at no more often than once in this time."""


class IdleTimeouts:
    """The entries of a pipeline that have timeouts; `send` gets the id of a table and its entries that ran out.

    `due` has (when an entry may run out, a number, table, handle); `known` has the note and the number of each entry.
    """

    def __init__(self, tables: Tables, send: Callable[[int, Message], None]) -> None:
        self.tables, self.send = tables, send
        self.by_name = {table.name: table for table in tables.schema.tables.values()}
        self.due: list[tuple[int, int, str, int]] = []
        self.known: dict[tuple[str, int], tuple[Note, int]] = {}
        self.numbers = count()

    def poll(self) -> None:
        """Tell of the entries that have run out by now."""
        now_ns = time.monotonic_ns()
        self.take_new(now_ns)
        late: dict[str, list[Message]] = {}
        while self.due and self.due[0][0] <= now_ns:
            _, number, name, handle = heapq.heappop(self.due)
            note = self.current(number, name, handle)
            if note is not None and self.look(note, name, handle, now_ns):
                late.setdefault(name, []).append(expired_message(self.by_name[name], note))
        for name, entries in late.items():
            self.send(self.by_name[name].id, v1.IdleTimeoutNotification(table_entry=entries, timestamp=time.time_ns()))

    def take_new(self, now_ns: int) -> None:
        """Look at the entries that have got a timeout since the last call."""
        for key, note in self.tables.notes.items():
            if note.idle_timeout_ns and (key not in self.known or self.known[key][0] is not note):
                self.put_off(note, *key, now_ns)

    def put_off(self, note: Note, name: str, handle: int, until_ns: int) -> None:
        """Look at an entry again at this time."""
        number = next(self.numbers)
        self.known[name, handle] = (note, number)
        heapq.heappush(self.due, (until_ns, number, name, handle))

    def current(self, number: int, name: str, handle: int) -> Note | None:
        """The note of an entry, if it is still there and was not put off by another number."""
        known = self.known.get((name, handle))
        if known is None or known[1] != number:
            return None
        if self.tables.notes.get((name, handle)) is not known[0]:
            del self.known[name, handle]
            return None
        return known[0]

    def look(self, note: Note, name: str, handle: int, now_ns: int) -> bool:
        """Whether the time of an entry has run out; it is looked at again when it may run out next."""
        try:
            idle_ns = int((self.tables.control.entry(name, handle).idle_s or 0.0) * 1e9)
        except Refused:
            del self.known[name, handle]
            return False
        if idle_ns < note.told_ns:
            note.told_ns = 0
        ran_out = idle_ns - note.told_ns >= note.idle_timeout_ns
        if ran_out:
            note.told_ns = idle_ns
        wait_ns = max(note.idle_timeout_ns - (idle_ns - note.told_ns), SOONEST_NS)
        self.put_off(note, name, handle, now_ns + wait_ns)
        return ran_out


def expired_message(table: TableSchema, note: Note) -> Message:
    """The key and the notes of an entry."""
    entry = v1.TableEntry(table_id=table.id, controller_metadata=note.controller_metadata, metadata=note.metadata)
    entry.idle_timeout_ns = note.idle_timeout_ns
    entry.match.extend(matches_of(table, note.key))
    if note.priority is not None:
        entry.priority = inverted(table, note.priority)
    return entry
