"""`DirectCounterEntry` and `DirectMeterEntry`: the counts and the rates of table entries, without the entries."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.server.p4runtime.entities.container import Container, Kind
from inakit.switch.server.p4runtime.entities.direct_resources import (
    Note,
    expect_meter,
    no_color_counts,
    write_counts,
)
from inakit.switch.server.p4runtime.entities.rates import rates_of
from inakit.switch.server.p4runtime.entities.tables import Tables
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import TableSchema


class DirectArray(Container):
    """What is kept for each entry of a table; `tables` has the entries. `place` is its field in a `TableEntry`."""

    place = ""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables.schema, tables.control)
        self.tables = tables

    def has(self, table: TableSchema) -> bool:
        """Whether the table has what this container keeps."""
        raise NotImplementedError

    def made(self, entry: Message) -> Message:
        """The message for an entry that was read with its resources."""
        raise NotImplementedError

    def scope(self, message: Message) -> int:
        """The id of the table."""
        return int(message.table_entry.table_id)

    def expect(self, table: TableSchema) -> None:
        """Raise a fault if the table does not have what this container keeps."""
        if not self.has(table):
            raise invalid(f"table '{table.name}' has no {self.member.replace('_entry', '').replace('_', ' ')}")

    def updated(self, message: Message) -> TableSchema:
        """The table of an update, which must be for an entry and not for a default."""
        if not message.HasField("table_entry"):
            raise invalid(f"{self.member}: its table_entry is missing")
        table = self.tables.table(message.table_entry.table_id)
        self.expect(table)
        if message.table_entry.is_default_action:
            raise Fault(Code.UNIMPLEMENTED, f"BMv2 counts and meters no misses of table '{table.name}'")
        return table

    def read(self, message: Message) -> Iterator[Message]:
        """What is kept of one entry, of all of a table, or of all of all; a fault if the one entry is not there."""
        wanted = v1.TableEntry(table_id=message.table_entry.table_id)
        wanted.match.extend(message.table_entry.match)
        wanted.priority = message.table_entry.priority
        getattr(wanted, self.place).SetInParent()
        if wanted.table_id:
            table = self.tables.table(wanted.table_id)
            self.expect(table)
            if wanted.match and (wanted.priority or not table.prioritised):
                self.tables.locate(table, wanted)
        tables = self.schema.tables
        entries = (each for each in self.tables.read(wanted) if self.has(tables[each.table_id]))
        return iter([self.made(entry) for entry in entries])

    def snapshot(self, kind: Kind, message: Message) -> list[Message]:  # noqa: ARG002
        """What is kept of the entry of a message."""
        table = self.updated(message)
        wanted = v1.TableEntry()
        getattr(wanted, self.place).SetInParent()
        entry = self.tables.message_of(table, self.tables.locate(table, message.table_entry), wanted)
        return [self.made(entry)]


class DirectCounters(DirectArray):
    """`DirectCounterEntry`."""

    member, place = "direct_counter_entry", "counter_data"

    def has(self, table: TableSchema) -> bool:
        """Whether the table counts what its entries match."""
        return table.has_counter

    def made(self, entry: Message) -> Message:
        """The counts of an entry."""
        return v1.DirectCounterEntry(table_entry=key_message(entry), data=entry.counter_data)

    def modify(self, message: Message) -> None:
        """Write the counts of an entry; without data, do nothing."""
        table = self.updated(message)
        held = self.tables.locate(table, message.table_entry)
        if message.HasField("data"):
            write_counts(self.control, table, held.handle, message.data)


class DirectMeters(DirectArray):
    """`DirectMeterEntry`."""

    member, place = "direct_meter_entry", "meter_config"

    def has(self, table: TableSchema) -> bool:
        """Whether the table meters what its entries match."""
        return table.meter is not None

    def made(self, entry: Message) -> Message:
        """The rates of an entry."""
        found = v1.DirectMeterEntry(table_entry=key_message(entry))
        if entry.HasField("meter_config"):
            found.config.CopyFrom(entry.meter_config)
        return found

    def read(self, message: Message) -> Iterator[Message]:
        """The rates of one entry, of all of a table, or of all of all."""
        if message.HasField("counter_data"):
            raise no_color_counts()
        return super().read(message)

    def modify(self, message: Message) -> None:
        """Give an entry rates; without a config, let it give green to every packet."""
        table = self.updated(message)
        if message.HasField("counter_data"):
            raise no_color_counts()
        rates = rates_of(message.config, expect_meter(table)) if message.HasField("config") else None
        held = self.tables.locate(table, message.table_entry)
        if rates is None:
            self.control.reset_entry_meter(table.name, held.handle)
        else:
            self.control.set_entry_meter(table.name, held.handle, rates)
        note = self.tables.noted(table, held) or Note(held.entry.key, held.entry.priority, 0, b"", 0, None)
        note.meter_config = message.config if rates is not None else None
        self.tables.note(table, held.handle, note)


def key_message(entry: Message) -> Message:
    """The key of an entry."""
    key = v1.TableEntry(table_id=entry.table_id, priority=entry.priority)
    key.match.extend(entry.match)
    return key
