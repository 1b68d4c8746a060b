"""Counters, meters, registers and parser value sets.

Each cell of an array that statements use by index is an entity that is modified. `DirectCounterEntry` and
`DirectMeterEntry` are the counts and the rates of table entries, without the entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.server.p4runtime.container import Container, Kind, cell, expect_id, index_in, indices
from inakit.switch.server.p4runtime.direct_resources import (
    Note,
    checked_counts,
    config_message,
    counts_message,
    expect_meter,
    no_color_counts,
    rates_of,
    write_counts,
)
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, encode, invalid, v1
from inakit.switch.server.p4runtime.schema import (
    CounterSchema,
    MeterSchema,
    RegisterSchema,
    TableSchema,
    ValueSetSchema,
    read_match,
)
from inakit.switch.server.p4runtime.table_entities import Tables


class Counters(Container):
    """`CounterEntry`: packets and bytes."""

    member = "counter_entry"

    def scope(self, message: Message) -> int:
        return int(message.counter_id)

    def modify(self, message: Message) -> None:
        """Write one cell, or all; without data, do nothing."""
        expect_id(message.counter_id, "counter")
        counter = self.schema.find(self.schema.counters, message.counter_id, "counter")
        wanted = indices(index_in(message), counter.counter.size, counter.name)
        if not message.HasField("data"):
            return
        packets, octets = checked_counts(message.data)
        if not message.HasField("index"):
            self.control.write_counters(counter.name, packets, octets)
            return
        for index in wanted:
            self.control.write_counter(counter.name, index, packets, octets)

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one counter, or all of all."""
        if not message.counter_id:
            found = [self.cells(counter, None) for counter in self.schema.counters.values()]
        else:
            counter = self.schema.find(self.schema.counters, message.counter_id, "counter")
            found = [self.cells(counter, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, counter: CounterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a counter that an index selects, as they are now."""
        wanted = indices(index, counter.counter.size, counter.name)
        packets, octets = self.control.read_counters(counter.name)
        return (
            v1.CounterEntry(
                counter_id=counter.id, index=cell(each), data=counts_message(int(packets[each]), int(octets[each]))
            )
            for each in wanted
        )


class Meters(Container):
    """`MeterEntry`: rates. `written` has the configs as clients have written them, by meter and index."""

    member = "meter_entry"

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.written: dict[tuple[int, int], Message] = {}

    def scope(self, message: Message) -> int:
        return int(message.meter_id)

    def modify(self, message: Message) -> None:
        """Give one cell rates, or all; without a config, let it give green to every packet."""
        expect_id(message.meter_id, "meter")
        meter = self.schema.find(self.schema.meters, message.meter_id, "meter")
        if message.HasField("counter_data"):
            raise no_color_counts()
        wanted = indices(index_in(message), meter.meter.size, meter.name)
        rates = rates_of(message.config, meter.type) if message.HasField("config") else None
        for index in wanted:
            if rates is None:
                self.control.reset_meter_rates(meter.name, index)
                self.written.pop((meter.id, index), None)
            else:
                self.control.set_meter_rates(meter.name, index, rates)
                self.written[meter.id, index] = message.config

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one meter, or all of all."""
        if message.HasField("counter_data"):
            raise no_color_counts()
        if not message.meter_id:
            found = [self.cells(meter, None) for meter in self.schema.meters.values()]
        else:
            meter = self.schema.find(self.schema.meters, message.meter_id, "meter")
            found = [self.cells(meter, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, meter: MeterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a meter that an index selects, as they are now."""
        wanted = indices(index, meter.meter.size, meter.name)
        rates = {each: self.control.meter_rates(meter.name, each) for each in wanted}
        written = {each: self.written.get((meter.id, each)) for each in wanted}
        return (
            v1.MeterEntry(meter_id=meter.id, index=cell(each), config=config_message(rates[each], written[each]))
            for each in wanted
        )


class Registers(Container):
    """`RegisterEntry`: what statements keep."""

    member = "register_entry"

    def scope(self, message: Message) -> int:
        return int(message.register_id)

    def modify(self, message: Message) -> None:
        """Write one cell, or all."""
        expect_id(message.register_id, "register")
        register = self.schema.find(self.schema.registers, message.register_id, "register")
        wanted = indices(index_in(message), register.register.size, register.name)
        if not message.HasField("data"):
            raise invalid(f"register '{register.name}': the data to write are missing")
        (value,) = register.layout.decode(message.data, register.name)
        if not message.HasField("index"):
            self.control.write_registers(register.name, value)
            return
        for index in wanted:
            self.control.write_register(register.name, index, value)

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one register, or all of all."""
        if not message.register_id:
            found = [self.cells(register, None) for register in self.schema.registers.values()]
        else:
            register = self.schema.find(self.schema.registers, message.register_id, "register")
            found = [self.cells(register, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, register: RegisterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a register that an index selects, as they are now."""
        wanted = indices(index, register.register.size, register.name)
        values = self.control.read_registers(register.name)
        return (
            v1.RegisterEntry(
                register_id=register.id, index=cell(each), data=register.layout.encode(iter([int(values[each])]))
            )
            for each in wanted
        )


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
    key = v1.TableEntry(table_id=entry.table_id, priority=entry.priority)
    key.match.extend(entry.match)
    return key


class ValueSets(Container):
    """A value of the program is the fields of a member, the first in its highest bits."""

    member = "value_set_entry"

    def scope(self, message: Message) -> int:
        return int(message.value_set_id)

    def modify(self, message: Message) -> None:
        """Let a value set have these members and no others."""
        expect_id(message.value_set_id, "value set")
        schema = self.schema.find(self.schema.value_sets, message.value_set_id, "value set")
        values = [value_of(schema, member) for member in message.members]
        if len(set(values)) < len(values):
            raise Fault(Code.ALREADY_EXISTS, f"value set '{schema.name}': a member is given twice")
        if schema.size and len(values) > schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"value set '{schema.name}' has room for {schema.size} members")
        present = self.control.values(schema.name)
        for value in values:
            self.control.add_value(schema.name, value)
        for value in present:
            if value not in values:
                self.control.remove_value(schema.name, value)

    def read(self, message: Message) -> Iterator[Message]:
        if message.value_set_id:
            found = [self.schema.find(self.schema.value_sets, message.value_set_id, "value set")]
        else:
            found = list(self.schema.value_sets.values())
        return iter([self.message_of(schema) for schema in found])

    def message_of(self, schema: ValueSetSchema) -> Message:
        """A value set as clients read it."""
        members = [member_of(schema, value) for value in self.control.values(schema.name)]
        return v1.ValueSetEntry(value_set_id=schema.id, members=members)


def value_of(schema: ValueSetSchema, member: Message) -> int:
    """The value that a member stands for; a fault unless it has each field once, matched exactly."""
    given = {match.field_id: match for match in member.match}
    if len(given) < len(member.match) or set(given) != {field.id for field in schema.fields}:
        wanted = ", ".join(str(field.id) for field in schema.fields)
        raise invalid(f"value set '{schema.name}': a member has each of the fields {wanted} once")
    value = 0
    for field in schema.fields:
        part = read_match(field, given[field.id])
        if not isinstance(part, int):
            raise Fault(Code.UNIMPLEMENTED, f"value set '{schema.name}': BMv2 matches values exactly, not {field.kind}")
        value = value << field.bits | part
    return value


def member_of(schema: ValueSetSchema, value: int) -> Message:
    """The member that a value stands for."""
    member, below = v1.ValueSetMember(), sum(field.bits for field in schema.fields)
    for field in schema.fields:
        below -= field.bits
        part = value >> below & (1 << field.bits) - 1
        member.match.add(field_id=field.id, exact=v1.FieldMatch.Exact(value=encode(part)))
    return member
