"""`TableEntry` of P4Runtime: an entry or a default with its counts, rates, idle timeout, and notes of its controller.

`DirectCounterEntry` and `DirectMeterEntry` are the counts and the rates of table entries, without the entries.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from inakit.switch.control.action_profiles import ProfileStore
from inakit.switch.control.actions import ActionData, ActionSchema, Runs, action_fields, read_data
from inakit.switch.control.codecs import (
    ById,
    Code,
    Codec,
    Fault,
    Fields,
    Message,
    UpdateKind,
    fault_of,
    invalid,
    not_found,
    within,
)
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.counters import count_fields, counts_of
from inakit.switch.control.entry_check import by_priority
from inakit.switch.control.match_keys import Key, MatchField, matches_of, read_key, read_match_field
from inakit.switch.control.meters import MeterSchema, check_no_color_counts, config_fields, rates_of
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.control.tables import HeldEntry
from inakit.switch.entries import TableEntry
from inakit.switch.program.program import Program, Table

TABLE_ONLY, DEFAULT_ONLY = 1, 2
"""Scopes of an action in a table."""

MOST = (1 << 31) - 1
"""P4Runtime's and BMv2's priorities of an entry sum up to this number: P4Runtime's greatest and BMv2's least win."""


@dataclass(frozen=True)
class TableSchema:
    """A table; its fields are in the order of the program's key. `profile` is the id of its action profile."""

    id: int
    name: str
    table: Table
    fields: tuple[MatchField, ...]
    actions: dict[int, ActionSchema]
    scopes: dict[int, int]
    profile: int | None
    meter: MeterSchema | None

    @cached_property
    def prioritised(self) -> bool:
        """Whether entries have priorities."""
        return by_priority(self.table)

    @property
    def is_const(self) -> bool:
        """Whether the program gives the entries."""
        return self.table.entries is not None

    def inverted(self, priority: int) -> int:
        """BMv2's priority for P4Runtime's, and vice versa. The last const entry has priority 1."""
        return max((each.priority for each in self.table.entries or ()), default=MOST - 1) + 1 - priority

    def key(self, message: Message) -> Key:
        """The key of a `TableEntry`."""
        return read_key(f"table '{self.name}'", self.fields, message.match)

    def priority(self, given: int) -> int | None:
        """BMv2's priority of an entry; a fault if a required one is missing or a superfluous one is given."""
        if self.prioritised:
            within(given, 1, MOST, f"the priority of an entry of table '{self.name}', whose keys can overlap")
            return self.inverted(given)
        if given:
            raise invalid(f"table '{self.name}': its keys cannot overlap: the priority of an entry is 0")
        return None

    def named(self, key: Key, priority: int | None) -> Fields:
        """The fields that identify an entry."""
        found = {"table_id": self.id, "match": matches_of(self.fields, key)}
        return found if priority is None else found | {"priority": self.inverted(priority)}

    def data(self, message: Message) -> ActionData:
        """The action with its parameters in a `TableAction`."""
        return read_data(self.actions, message.action, f"table '{self.name}'")

    def meter_type(self) -> int:
        """The type of the table's direct meter; a fault if it has none."""
        if self.meter is None:
            raise invalid(f"table '{self.name}' has no direct meter")
        return self.meter.type


def read_tables(
    p4info: Message, program: Program, actions: Mapping[int, ActionSchema], meters: Mapping[int, MeterSchema]
) -> ById[TableSchema]:
    """The tables of a P4Info; a fault if the program lacks one with the same name, key and actions."""
    found: ById[TableSchema] = ById("table")
    for each in p4info.tables:
        number, name = each.preamble.id, each.preamble.name
        if name not in program.tables:
            known = ", ".join(program.tables) or "none"
            raise invalid(f"P4Info: table '{name}' is not in the program, which has {known}")
        table = program.tables[name]
        if len(each.match_fields) != len(table.key):
            given = len(each.match_fields)
            raise invalid(f"P4Info: table '{name}' has {given} match fields, in the program {len(table.key)}")
        pairs = zip(each.match_fields, table.key, strict=True)
        found[number] = TableSchema(
            id=number,
            name=name,
            table=table,
            fields=tuple(read_match_field(name, described, p4info.type_info, part) for described, part in pairs),
            actions={ref.id: known_action(actions, ref.id, table) for ref in each.action_refs},
            scopes={ref.id: ref.scope for ref in each.action_refs},
            profile=each.implementation_id or None,
            meter=meters.get(number) if table.meter is not None else None,
        )
    return found


def known_action(actions: Mapping[int, ActionSchema], number: int, table: Table) -> ActionSchema:
    """The action that a table refers to; a fault if its parameters differ from the program's."""
    action = actions.get(number)
    if action is None:
        raise invalid(f"P4Info: table '{table.name}' refers to an action {number:#x} that is not described")
    for known in table.actions:
        if known.name == action.name and len(known.parameters) != len(action.parameters):
            raise invalid(
                f"P4Info: action '{action.name}' does not have the program's {len(known.parameters)} parameters"
            )
    return action


def entry_fields(table: TableSchema, entry: TableEntry) -> Fields:
    """The `TableEntry` of an entry that runs an action."""
    action = action_fields(table.actions, (entry.action, entry.params))
    return table.named(entry.key, entry.priority) | {"action": {"action": action}}


def entry_of_message(table: TableSchema, message: Message) -> TableEntry:
    """The entry in a `TableEntry` with an action; a fault for ids that the P4Info lacks."""
    priority = table.inverted(message.priority) if table.prioritised else None
    return TableEntry(table.name, table.key(message), *table.data(message.action), priority)


def unexpected(table: TableSchema, message: Message) -> Fault:
    """The fault of a `TableAction` of a kind that the table's entries do not take."""
    kind = message.WhichOneof("type")
    taken = "an action" if table.profile is None else "a member, a group or a set of actions of its action profile"
    given = f"'{kind}'" if kind else "nothing"
    return invalid(f"table '{table.name}' takes {taken}, not {given}")


@dataclass
class Note:
    """Attributes of an entry that its controller has set; `told_ns` is its idle time at the last notification."""

    key: Key
    priority: int | None
    controller_metadata: int
    metadata: bytes
    idle_timeout_ns: int
    meter_config: Message | None
    told_ns: int = 0

    def fields(self) -> Fields:
        """The fields of a `TableEntry` that the note holds."""
        return {
            "controller_metadata": self.controller_metadata,
            "metadata": self.metadata,
            "idle_timeout_ns": self.idle_timeout_ns,
        }


def note_of(key: Key, priority: int | None, message: Message) -> Note | None:
    """The note in a message; None if it holds none."""
    config = message.meter_config if message.HasField("meter_config") else None
    if not (message.controller_metadata or message.metadata or message.idle_timeout_ns or config):
        return None
    return Note(key, priority, message.controller_metadata, message.metadata, message.idle_timeout_ns, config)


@dataclass(frozen=True)
class Prepared:
    """An entry that is ready to be added."""

    table: TableSchema
    key: Key
    priority: int | None
    message: Message


@dataclass(frozen=True)
class Wanted:
    """The parts of entries that are read in addition to keys and actions."""

    counts: bool = False
    rates: bool = False
    idle: bool = False


def wanted_by(message: Message) -> Wanted:
    places = ("counter_data", "meter_config", "time_since_last_hit")
    return Wanted(*(message.HasField(place) for place in places))


class TableCodec(Codec):
    """Table entries of the control plane; `notes` holds the controllers' notes, by table and handle."""

    member, id_field = "table_entry", "table_id"

    def __init__(self, tables: ById[TableSchema], control: ControlPlane, stores: ById[ProfileStore]) -> None:
        self.tables, self.control, self.stores = tables, control, stores
        self.notes: dict[tuple[str, int], Note] = {}
        self.default_notes: dict[str, Note] = {}

    # INSERT

    def insert(self, message: Message) -> None:
        (fault,) = self.insert_all([message])
        if fault is not None:
            raise fault

    def insert_all(self, messages: Sequence[Message]) -> list[Fault | None]:
        """Add entries, those with plain actions together, and return the reason for each that is refused."""
        faults: list[Fault | None] = [None] * len(messages)
        plain: list[tuple[int, Prepared, TableEntry]] = []
        for position, message in enumerate(messages):
            try:
                prepared = self.prepare(message)
                if prepared.table.profile is None:
                    plain.append((position, prepared, self.plain(prepared)))
                else:
                    table, key, priority = prepared.table, prepared.key, prepared.priority
                    handle = self.insert_indirect(table, key, priority, message.action)
                    faults[position] = self.settle(prepared, handle)
            except Exception as error:
                faults[position] = fault_of(error)
        for position, fault in self.insert_plain(plain):
            faults[position] = fault
        return faults

    def insert_atomically(self, messages: Sequence[Message]) -> None:
        """Add entries with plain actions only, all in one step of the data plane, or none."""
        prepared = [self.prepare(message) for message in messages]
        for each in prepared:
            brings = each.message.HasField("counter_data") or each.message.HasField("meter_config")
            if each.table.profile is not None or brings or each.message.idle_timeout_ns:
                why = "DATAPLANE_ATOMIC: only entries that have no more than a key and an action"
                raise Fault(Code.UNIMPLEMENTED, why)
        handles = self.control.tables.add_entries([self.plain(each) for each in prepared])
        for each, handle in zip(prepared, handles, strict=True):
            self.note(each.table, handle, note_of(each.key, each.priority, each.message))

    def prepare(self, message: Message) -> Prepared:
        """An entry, checked and ready to be added."""
        table = self.tables.expect(message.table_id)
        if message.is_default_action:
            raise invalid(f"table '{table.name}' always has a default: it can only be modified")
        check_not_const(table)
        if not table.fields:
            raise invalid(f"table '{table.name}' has no key: it takes no entries")
        if not message.HasField("action"):
            raise invalid(f"table '{table.name}': the action of the new entry is missing")
        check_resources(table, message)
        return Prepared(table, table.key(message), table.priority(message.priority), message)

    def plain(self, prepared: Prepared) -> TableEntry:
        """An entry of a table without an action profile."""
        action, params = self.data(prepared.table, prepared.message.action)
        return TableEntry(prepared.table.name, prepared.key, action, params, prepared.priority)

    def insert_plain(self, entries: list[tuple[int, Prepared, TableEntry]]) -> Iterator[tuple[int, Fault]]:
        """Add entries, and yield the position and the reason of each one that is refused."""
        try:
            answers = self.control.tables.add_each([entry for _, _, entry in entries])
        except Exception as error:
            yield from ((position, fault_of(error)) for position, _, _ in entries)
            return
        for (position, prepared, _), answer in zip(entries, answers, strict=True):
            if isinstance(answer, Refused):
                yield position, fault_of(answer)
            elif (fault := self.settle(prepared, answer)) is not None:
                yield position, fault

    def settle(self, prepared: Prepared, handle: int) -> Fault | None:
        """Set counts, rates and timeout of a new entry; if that fails, remove the entry."""
        table, message = prepared.table, prepared.message
        try:
            self.bring(table, handle, message, idle_timeout_ns=0)
        except Exception as error:
            self.remove(table, self.control.tables.entry(table.name, handle))
            return fault_of(error)
        self.note(table, handle, note_of(prepared.key, prepared.priority, message))
        return None

    def bring(self, table: TableSchema, handle: int, message: Message, idle_timeout_ns: int) -> None:
        """Set the counts, rates and timeout from a message; `idle_timeout_ns` is the present timeout.

        An omitted counter stays unchanged; an omitted meter is reset.
        """
        if message.HasField("counter_data"):
            self.control.counters.write_entry(table.name, handle, *counts_of(message.counter_data))
        if message.HasField("meter_config"):
            rates = rates_of(message.meter_config, table.meter_type())
            self.control.meters.set_entry_rates(table.name, handle, rates)
        elif table.meter is not None:
            self.control.meters.reset_entry_rates(table.name, handle)
        if message.idle_timeout_ns != idle_timeout_ns:
            rounded_up_ms = -(-message.idle_timeout_ns // 1_000_000)
            self.control.tables.set_timeout(table.name, handle, rounded_up_ms)

    def note(self, table: TableSchema, handle: int, note: Note | None) -> None:
        """Set or remove the note of an entry."""
        if note is not None:
            self.notes[table.name, handle] = note
        elif self.notes:
            self.notes.pop((table.name, handle), None)

    # MODIFY

    def modify(self, message: Message) -> None:
        """Change the action of an entry, and its counts, rates and timeout."""
        table = self.tables.expect(message.table_id)
        if message.is_default_action:
            self.modify_default(table, message)
            return
        held = self.locate(table, message)
        if table.is_const and message.HasField("action"):
            raise Fault(Code.PERMISSION_DENIED, f"the actions of table '{table.name}' are const in the program")
        check_resources(table, message)
        if message.HasField("action"):
            self.change(table, held, message.action)
        before = self.noted(table, held)
        self.bring(table, held.handle, message, before.idle_timeout_ns if before else 0)
        self.note(table, held.handle, note_of(held.entry.key, held.entry.priority, message))

    def modify_default(self, table: TableSchema, message: Message) -> None:
        """Set the default of a table; without an action, restore the program's."""
        if message.match or message.priority:
            raise invalid(f"table '{table.name}': its default has neither a match nor a priority")
        if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
            raise invalid(f"table '{table.name}': its default has no idle timeout")
        if table.table.default_is_const:
            raise Fault(Code.PERMISSION_DENIED, f"the default of table '{table.name}' is const in the program")
        check_resources(table, message)
        if message.HasField("meter_config") or message.HasField("counter_data"):
            raise counts_no_misses(table)
        note = None
        if message.HasField("action"):
            self.control.tables.set_default(table.name, *self.data(table, message.action, default=True))
            note = note_of((), None, message)
        else:
            self.control.tables.reset_default(table.name)
        self.default_notes.pop(table.name, None)
        if note is not None:
            self.default_notes[table.name] = note

    # DELETE

    def delete(self, message: Message) -> None:
        table = self.tables.expect(message.table_id)
        if message.is_default_action:
            raise invalid(f"the default of table '{table.name}' cannot be deleted: modify it")
        check_not_const(table)
        self.remove(table, self.locate(table, message))

    def remove(self, table: TableSchema, held: HeldEntry) -> None:
        self.control.tables.delete(table.name, held.handle)
        self.released(table, held)
        self.note(table, held.handle, None)

    def locate(self, table: TableSchema, message: Message) -> HeldEntry:
        """The entry with the key and the priority of a message; a fault if it does not exist."""
        key, priority = table.key(message), table.priority(message.priority)
        try:
            return self.control.tables.entry(table.name, self.control.tables.find(table.name, key, priority))
        except Refused as refused:
            if refused.kind != RefusalKind.BAD_MATCH_KEY:
                raise
            raise not_found(f"table '{table.name}' has no entry for the key {key}") from refused

    def noted(self, table: TableSchema, held: HeldEntry) -> Note | None:
        """The note of an entry; None if P4Runtime did not write the entry."""
        note = self.notes.get((table.name, held.handle)) if self.notes else None
        if note is None or (note.key, note.priority) != (held.entry.key, held.entry.priority):
            return None
        return note

    # actions of entries

    def data(self, table: TableSchema, message: Message, default: bool = False) -> ActionData:
        """The action of an entry in a table without an action profile; a fault if the message has none."""
        if message.WhichOneof("type") != "action" or table.profile is not None:
            raise unexpected(table, message)
        data, number = table.data(message), message.action.action_id
        if table.scopes.get(number) == (TABLE_ONLY if default else DEFAULT_ONLY):
            place = "entries of" if default else "the default of"
            raise Fault(Code.PERMISSION_DENIED, f"action {number:#010x} is only for {place} table '{table.name}'")
        return data

    def insert_indirect(self, table: TableSchema, key: Key, priority: int | None, message: Message) -> int:
        """Add an entry of a table with an action profile, and return its handle."""
        store, named = self.named(table, message)
        try:
            return self.control.tables.add(table.name, key, priority=priority, **named)
        except Exception:
            store.drop_one_shot(named.get("group"))
            raise

    def change(self, table: TableSchema, held: HeldEntry, message: Message) -> None:
        """Change the action, member or group of an entry."""
        if table.profile is None:
            self.control.tables.modify(table.name, held.handle, *self.data(table, message))
            return
        _, named = self.named(table, message)
        self.control.tables.modify(table.name, held.handle, **named)
        self.released(table, held)

    def released(self, table: TableSchema, held: HeldEntry) -> None:
        """Remove the members and the group of the action set that an entry named, if any."""
        if table.profile is not None:
            self.stores[table.profile].drop_one_shot(held.group)

    def named(self, table: TableSchema, message: Message) -> tuple[ProfileStore, dict[str, Any]]:
        """The profile of a table, and the member or the group that an entry will run, by its handle.

        An action set gets a new group. Raises a fault if the message names something that the table does not take.
        """
        kind = message.WhichOneof("type")
        if table.profile is None or kind is None or kind == "action":
            raise unexpected(table, message)
        store = self.stores[table.profile]
        if kind == "action_profile_member_id":
            return store, {"member": store.member(message.action_profile_member_id).handles[0]}
        if not store.schema.with_selector:
            raise invalid(f"action profile '{store.name}' has no selector: entries name its members")
        if kind == "action_profile_group_id":
            return store, {"group": store.group(message.action_profile_group_id).handle}
        group = store.add_one_shot(message.action_profile_action_set, table.actions, f"table '{table.name}'")
        return store, {"group": group.handle}

    def action_fields(self, table: TableSchema, held: HeldEntry) -> Fields:
        """The `TableAction` of an entry."""
        if isinstance(held.entry, TableEntry):
            return {"action": action_fields(table.actions, (held.entry.action, held.entry.params))}
        store = self.stores[table.profile or 0]
        if held.group in store.one_shots:
            return {"action_profile_action_set": store.one_shots[held.group].message}
        for number, group in store.groups.items():
            if group.handle == held.group:
                return {"action_profile_group_id": number}
        for number, member in store.members.items():
            if member.handles[0] == held.member:
                return {"action_profile_member_id": number}
        return {}

    # reading

    def read(self, message: Message) -> Iterator[Fields]:
        """The entries that a message selects, or the defaults."""
        tables = self.tables.selected(message.table_id)
        if message.is_default_action:
            found = [self.default_fields(table) for table in tables]
        else:
            wanted = wanted_by(message)
            found = [self.fields(table, held, wanted) for table in tables for held in self.selected(table, message)]
        return iter([entry for entry in found if selects(message, entry)])

    def selected(self, table: TableSchema, message: Message) -> Iterable[HeldEntry]:
        """The entries of a table with the key in a message, or all of them."""
        if message.HasField("time_since_last_hit") and message.table_id:
            check_idle_timeout(table)
        if not message.match:
            return self.control.tables.entries(table.name)
        if message.priority or not table.prioritised:
            try:
                return [self.locate(table, message)]
            except Fault as fault:
                if fault.code != Code.NOT_FOUND:
                    raise
                return []
        key = table.key(message)
        return [held for held in self.control.tables.entries(table.name) if held.entry.key == key]

    def fields(self, table: TableSchema, held: HeldEntry, wanted: Wanted) -> Fields:
        """An entry in the form that clients read."""
        entry = table.named(held.entry.key, held.entry.priority)
        entry |= {"action": self.action_fields(table, held), "is_const": table.is_const}
        note = self.noted(table, held)
        if note is not None:
            entry |= note.fields()
        if table.table.counted and wanted.counts:
            entry["counter_data"] = count_fields(*self.control.counters.read_entry(table.name, held.handle))
        if table.meter is not None and wanted.rates:
            rates = self.control.meters.entry_rates(table.name, held.handle)
            config = config_fields(rates, note.meter_config if note else None)
            entry |= {f"meter_{place}": each for place, each in config.items()}
        if wanted.idle:
            entry["time_since_last_hit"] = {"elapsed_ns": int((held.idle_s or 0) * 1e9)}
        return entry

    def default_fields(self, table: TableSchema) -> Fields:
        """The default of a table in the form that clients read."""
        entry: Fields = {"table_id": table.id, "is_default_action": True, "is_const": table.table.default_is_const}
        held = self.held_default(table)
        if held is not None and held.action is not None:
            entry["action"] = {"action": action_fields(table.actions, (held.action, held.params))}
        note = self.default_notes.get(table.name)
        return entry if note is None else entry | note.fields()

    def held_default(self, table: TableSchema) -> Runs | None:
        """The default of a table; None if it has none."""
        return self.control.tables.tables[table.name].default

    def snapshot(self, kind: UpdateKind, message: Message) -> list[Fields]:
        """The entry of a message, with its counts if the update would lose them."""
        table = self.tables.expect(message.table_id)
        if message.is_default_action:
            return [self.default_fields(table)]
        wanted = Wanted(counts=kind == UpdateKind.DELETE or message.HasField("counter_data"), rates=True)
        entry = self.fields(table, self.locate(table, message), wanted)
        if table.is_const:
            del entry["action"]
        del entry["is_const"]
        return [entry]


def check_resources(table: TableSchema, message: Message) -> None:
    """Raise a fault if an update sets a resource that the table does not have."""
    where = f"table '{table.name}'"
    if message.is_const:
        raise invalid(f"{where}: is_const is only for reading")
    if message.HasField("counter_data") and not table.table.counted:
        raise invalid(f"{where} has no direct counter")
    if message.HasField("meter_config"):
        rates_of(message.meter_config, table.meter_type())
    if message.HasField("meter_counter_data"):
        table.meter_type()
        check_no_color_counts(message, "meter_counter_data")
    if message.idle_timeout_ns < 0:
        raise invalid(f"{where}: an idle timeout of {message.idle_timeout_ns} ns is negative")
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        check_idle_timeout(table)


def check_idle_timeout(table: TableSchema) -> None:
    """Raise a fault if entries of the table have no idle timeouts."""
    if not table.table.idle_timeout:
        raise invalid(f"table '{table.name}' has no `support_timeout` in the program: its entries have no idle timeout")


def check_not_const(table: TableSchema) -> None:
    """Raise a fault if the table's entries are const in the program."""
    if table.is_const:
        raise Fault(Code.PERMISSION_DENIED, f"the entries of table '{table.name}' are const in the program")


def counts_no_misses(table: TableSchema) -> Fault:
    """The fault of an update that sets counts or rates of a default."""
    return Fault(Code.UNIMPLEMENTED, f"BMv2 counts and meters no misses of table '{table.name}'")


def selects(wanted: Message, entry: Fields) -> bool:
    """Whether an entry has the priority, action and metadata of a request; omitted ones match all."""
    if not wanted.table_id:
        return True
    if wanted.HasField("action"):
        action = entry.get("action", {}).get("action", {})
        if wanted.action.action.action_id != action.get("action_id", 0):
            return False
    return all(
        not getattr(wanted, name) or getattr(wanted, name) == entry.get(name)
        for name in ("priority", "controller_metadata", "metadata")
    )


class DirectCodec(Codec):
    """A resource of each table entry: a counter or a meter; `wanted` selects it when entries are read."""

    wanted = Wanted()

    def __init__(self, entries: TableCodec) -> None:
        self.entries = entries

    def has(self, table: TableSchema) -> bool:
        """Whether the table has the resource."""
        raise NotImplementedError

    def made(self, entry: Fields) -> Fields:
        """The fields of the resource, taken from those of the entry."""
        raise NotImplementedError

    def scope(self, message: Message) -> int:
        return int(message.table_entry.table_id)

    def expect(self, table: TableSchema) -> None:
        if not self.has(table):
            raise invalid(f"table '{table.name}' has no {self.member.replace('_entry', '').replace('_', ' ')}")

    def updated(self, message: Message) -> tuple[TableSchema, HeldEntry]:
        """The table and the entry of an update, which must not be for a default."""
        if not message.HasField("table_entry"):
            raise invalid(f"{self.member}: its table_entry is missing")
        table = self.entries.tables.expect(message.table_entry.table_id)
        self.expect(table)
        if message.table_entry.is_default_action:
            raise counts_no_misses(table)
        return table, self.entries.locate(table, message.table_entry)

    def read(self, message: Message) -> Iterator[Fields]:
        """The resource of one entry, of a table's entries, or of all; a fault if the one entry does not exist."""
        named = message.table_entry
        if named.table_id:
            table = self.entries.tables.find(named.table_id)
            self.expect(table)
            if named.match and (named.priority or not table.prioritised):
                self.entries.locate(table, named)
        found = [
            self.fields(table, held)
            for table in self.entries.tables.selected(named.table_id)
            if self.has(table)
            for held in self.entries.selected(table, named)
            if not (named.table_id and named.priority) or held.entry.priority == table.inverted(named.priority)
        ]
        return iter(found)

    def fields(self, table: TableSchema, held: HeldEntry) -> Fields:
        entry = self.entries.fields(table, held, self.wanted)
        return {"table_entry": table.named(held.entry.key, held.entry.priority)} | self.made(entry)

    def snapshot(self, kind: UpdateKind, message: Message) -> list[Fields]:  # noqa: ARG002
        return [self.fields(*self.updated(message))]


class DirectCounterCodec(DirectCodec):
    """`DirectCounterEntry`."""

    member, wanted = "direct_counter_entry", Wanted(counts=True)

    def has(self, table: TableSchema) -> bool:
        return table.table.counted

    def made(self, entry: Fields) -> Fields:
        return {"data": entry["counter_data"]}

    def modify(self, message: Message) -> None:
        """Write the counts of an entry; do nothing without data."""
        table, held = self.updated(message)
        if message.HasField("data"):
            self.entries.control.counters.write_entry(table.name, held.handle, *counts_of(message.data))


class DirectMeterCodec(DirectCodec):
    """`DirectMeterEntry`."""

    member, wanted = "direct_meter_entry", Wanted(rates=True)

    def has(self, table: TableSchema) -> bool:
        return table.meter is not None

    def made(self, entry: Fields) -> Fields:
        return {"config": entry["meter_config"]} if "meter_config" in entry else {}

    def read(self, message: Message) -> Iterator[Fields]:
        check_no_color_counts(message)
        return super().read(message)

    def modify(self, message: Message) -> None:
        """Set the rates of an entry; without a config, remove them."""
        table, held = self.updated(message)
        check_no_color_counts(message)
        meters, config = self.entries.control.meters, message.config if message.HasField("config") else None
        if config is None:
            meters.reset_entry_rates(table.name, held.handle)
        else:
            meters.set_entry_rates(table.name, held.handle, rates_of(config, table.meter_type()))
        note = self.entries.noted(table, held) or Note(held.entry.key, held.entry.priority, 0, b"", 0, None)
        note.meter_config = config
        self.entries.note(table, held.handle, note)


SOONEST_NS = 1_000_000
"""The least time between two checks of an entry."""


class IdleTimeouts:
    """Watches the entries of a pipeline that have timeouts.

    `send` gets the id of a table and the fields of an `IdleTimeoutNotification` for its idle entries.

    `due` holds (time of a check, its number, table, handle); `known` the note and the next check of each entry.
    """

    def __init__(self, entries: TableCodec, send: Callable[[int, Fields], None]) -> None:
        self.entries, self.send = entries, send
        self.by_name = {table.name: table for table in entries.tables.values()}
        self.due: list[tuple[int, int, str, int]] = []
        self.known: dict[tuple[str, int], tuple[Note, int]] = {}
        self.numbers = count()

    def poll(self) -> None:
        """Send notifications for entries whose timeouts are over."""
        now_ns = time.monotonic_ns()
        self.take_new(now_ns)
        late: dict[str, list[Fields]] = {}
        while self.due and self.due[0][0] <= now_ns:
            _, number, name, handle = heapq.heappop(self.due)
            note = self.current(number, name, handle)
            if note is not None and self.look(note, name, handle, now_ns):
                entry = self.by_name[name].named(note.key, note.priority) | note.fields()
                late.setdefault(name, []).append(entry)
        for name, entries in late.items():
            self.send(self.by_name[name].id, {"table_entry": entries, "timestamp": time.time_ns()})

    def take_new(self, now_ns: int) -> None:
        """Schedule checks of entries that got a timeout since the last call."""
        for key, note in self.entries.notes.items():
            if note.idle_timeout_ns and (key not in self.known or self.known[key][0] is not note):
                self.put_off(note, *key, now_ns)

    def put_off(self, note: Note, name: str, handle: int, until_ns: int) -> None:
        """Schedule a check of an entry at this time."""
        number = next(self.numbers)
        self.known[name, handle] = (note, number)
        heapq.heappush(self.due, (until_ns, number, name, handle))

    def current(self, number: int, name: str, handle: int) -> Note | None:
        """The note of an entry, if the entry still exists and no later check is planned."""
        known = self.known.get((name, handle))
        if known is None or known[1] != number:
            return None
        if self.entries.notes.get((name, handle)) is not known[0]:
            del self.known[name, handle]
            return None
        return known[0]

    def look(self, note: Note, name: str, handle: int, now_ns: int) -> bool:
        """Return whether the timeout of an entry is over, and schedule the next check."""
        try:
            idle_ns = int((self.entries.control.tables.entry(name, handle).idle_s or 0.0) * 1e9)
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
