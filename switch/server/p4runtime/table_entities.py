"""`TableEntry`: entries of tables, what they run, what tables run on a miss, and idle timeouts."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.requests import HeldDefault, HeldEntry, RefusalKind, Refused
from inakit.switch.entries import DefaultAction, TableEntry
from inakit.switch.server.p4runtime.container import Container, Kind, expect_id, within
from inakit.switch.server.p4runtime.direct_resources import (
    Note,
    add_resources,
    bring,
    bring_anew,
    check_resources,
    note_of,
)
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, fault_of, invalid, not_found, v1
from inakit.switch.server.p4runtime.profile_entities import Choice, Group, ProfileStore, Stores, watched
from inakit.switch.server.p4runtime.schema import (
    Call,
    Key,
    Schema,
    TableSchema,
    call_message,
    check_scope,
    matches_of,
    read_call,
    read_key,
)


class TableActions:
    """Puts entries of tables with action profiles into the control plane, and tells what any entry runs."""

    def __init__(self, control: ControlPlane, stores: Stores) -> None:
        self.control, self.stores = control, stores

    def call(self, table: TableSchema, message: Message, default: bool = False) -> Call:
        """The action of an entry of a table without an action profile; a fault if the message names another thing."""
        if message.WhichOneof("type") != "action" or table.profile is not None:
            raise invalid(f"table '{table.name}' takes {EXPECTED[table.profile is None]}, not {kind_of(message)}")
        call = read_call(table.actions, message.action, f"table '{table.name}'")
        check_scope(table, message.action.action_id, default)
        return call

    def insert(self, table: TableSchema, key: Key, priority: int | None, message: Message) -> int:
        """Add an entry of a table with an action profile, and return its handle."""
        store = self.store(table, message)
        match message.WhichOneof("type"):
            case "action_profile_member_id":
                member = store.member(message.action_profile_member_id)
                return self.control.add_indirect(table.name, key, member.handles[0], priority)
            case "action_profile_group_id":
                group = store.group(message.action_profile_group_id)
                return self.control.add_indirect_group(table.name, key, group.handle, priority)
        group = self.one_shot(table, store, message)
        try:
            return self.control.add_indirect_group(table.name, key, group.handle, priority)
        except Exception:
            self.drop(store, group.handle)
            raise

    def change(self, table: TableSchema, held: HeldEntry, message: Message) -> None:
        """Let an entry run something else."""
        name, handle = table.name, held.handle
        if table.profile is None:
            self.control.modify_entry(name, handle, *self.call(table, message))
            return
        store = self.store(table, message)
        match message.WhichOneof("type"):
            case "action_profile_member_id":
                member = store.member(message.action_profile_member_id)
                self.control.modify_indirect(name, handle, member.handles[0])
            case "action_profile_group_id":
                group = store.group(message.action_profile_group_id)
                self.control.modify_indirect_group(name, handle, group.handle)
            case _:
                self.control.modify_indirect_group(name, handle, self.one_shot(table, store, message).handle)
        self.released(table, held)

    def released(self, table: TableSchema, held: HeldEntry) -> None:
        """Remove the members and the group of an action set that an entry named, if it named one."""
        if table.profile is not None and held.group in self.stores[table.profile].one_shots:
            self.drop(self.stores[table.profile], held.group)

    def store(self, table: TableSchema, message: Message) -> ProfileStore:
        """The action profile of a table; a fault if the message names what the table does not take."""
        kind = message.WhichOneof("type")
        if table.profile is None or kind is None or kind == "action":
            raise invalid(f"table '{table.name}' takes {EXPECTED[table.profile is None]}, not {kind_of(message)}")
        store = self.stores[table.profile]
        if kind != "action_profile_member_id" and not store.schema.with_selector:
            raise invalid(f"action profile '{store.name}' has no selector: entries name its members")
        return store

    def one_shot(self, table: TableSchema, store: ProfileStore, message: Message) -> Group:
        """A group of new members, one for each action of a set."""
        wanted = message.action_profile_action_set
        store.check_style(one_shot=True)
        check_set(store, wanted)
        where = f"table '{table.name}'"
        calls = [read_call(table.actions, each.action, where) for each in wanted.action_profile_actions]
        ports = [watched(each) for each in wanted.action_profile_actions]
        weights = [each.weight or 1 for each in wanted.action_profile_actions]
        members = [store.add_member(call) for call in calls]
        choices = [Choice(*each) for each in zip(members, weights, ports, strict=True)]
        kept = v1.ActionProfileActionSet()
        kept.CopyFrom(wanted)
        group = store.add_group(kept, choices)
        store.one_shots[group.handle] = group
        return group

    def drop(self, store: ProfileStore, handle: int | None) -> None:
        group = store.one_shots.pop(handle or 0)
        members = [choice.member for choice in group.choices]
        store.remove_group(group)
        for member in members:
            store.remove_member(member)

    def message_of(self, table: TableSchema, held: HeldEntry) -> Message:
        """The `TableAction` of an entry."""
        if isinstance(held.entry, TableEntry):
            call = (held.entry.action, held.entry.params)
            return v1.TableAction(action=call_message(table.actions, table.ids, call))
        store = self.stores[table.profile or 0]
        if held.group in store.one_shots:
            return v1.TableAction(action_profile_action_set=store.one_shots[held.group].message)
        for number, group in store.groups.items():
            if group.handle == held.group:
                return v1.TableAction(action_profile_group_id=number)
        for number, member in store.members.items():
            if member.handles[0] == held.member:
                return v1.TableAction(action_profile_member_id=number)
        return v1.TableAction()


EXPECTED = {True: "an action", False: "a member, a group or a set of actions of its action profile"}
"""What entries of a table take, by whether it has no action profile."""


def kind_of(message: Message) -> str:
    """What a `TableAction` names, in words."""
    kind = message.WhichOneof("type")
    return f"'{kind}'" if kind else "nothing"


def check_set(store: ProfileStore, wanted: Message) -> None:
    """Raise a fault for a set of actions that the profile does not take."""
    if not wanted.action_profile_actions:
        raise invalid("a set of actions is empty: it needs one or more")
    if wanted.HasField("group_action"):
        raise Fault(Code.UNIMPLEMENTED, "BMv2 runs no group_action before the action that is chosen")
    if wanted.action_selection_mode == RANDOM:
        raise Fault(Code.UNIMPLEMENTED, "the action is chosen by the selector's hash, not at random")
    try:
        store.check_weights([each.weight for each in wanted.action_profile_actions], store.schema.max_group_size)
    except Fault as fault:
        raise invalid(str(fault)) from fault


RANDOM = 2
"""The number of `ActionSelectionMode.RANDOM`."""


MOST = (1 << 31) - 1
"""The greatest priority. Of P4Runtime's the greatest wins, of BMv2's the least: they sum up to this number."""


@dataclass(frozen=True)
class Prepared:
    """An entry that is ready to be added."""

    table: TableSchema
    key: Key
    priority: int | None
    message: Message


class Tables(Container):
    """Entries are the control plane's; `notes` has what controllers have noted on them, by table and handle."""

    member = "table_entry"

    def __init__(self, schema: Schema, control: ControlPlane, stores: Stores) -> None:
        super().__init__(schema, control)
        self.actions = TableActions(control, stores)
        self.notes: dict[tuple[str, int], Note] = {}
        self.default_notes: dict[str, Note] = {}

    def scope(self, message: Message) -> int:
        return int(message.table_id)

    def table(self, number: int) -> TableSchema:
        """The table of this id, or a fault."""
        expect_id(number, "table")
        return self.schema.find(self.schema.tables, number, "table")

    # INSERT

    def insert(self, message: Message) -> None:
        (fault,) = self.insert_all([message])
        if fault is not None:
            raise fault

    def insert_all(self, messages: Sequence[Message]) -> list[Fault | None]:
        """Add entries, those with plain actions all at once, and return why each is not taken."""
        faults: list[Fault | None] = [None] * len(messages)
        plain: list[tuple[int, Prepared, TableEntry]] = []
        for position, message in enumerate(messages):
            try:
                prepared = self.prepare(message)
                if prepared.table.profile is None:
                    plain.append((position, prepared, self.plain(prepared)))
                else:
                    self.insert_indirect(prepared)
            except Exception as error:
                faults[position] = fault_of(error)
        for position, fault in self.insert_plain(plain):
            faults[position] = fault
        return faults

    def insert_atomically(self, messages: Sequence[Message]) -> None:
        """Add entries with plain actions and nothing else, all in one step of the data plane, or none."""
        prepared = [self.prepare(message) for message in messages]
        if any(each.table.profile is not None or not is_bare(each.message) for each in prepared):
            raise Fault(Code.UNIMPLEMENTED, "DATAPLANE_ATOMIC: only entries that have no more than a key and an action")
        handles = self.control.add_entries([self.plain(each) for each in prepared])
        for each, handle in zip(prepared, handles, strict=True):
            self.note(each.table, handle, note_of(each.key, each.priority, each.message))

    def prepare(self, message: Message) -> Prepared:
        """An entry that the table may take."""
        table = self.table(message.table_id)
        if message.is_default_action:
            raise invalid(f"table '{table.name}' always has a default: it can only be modified")
        if table.is_const:
            raise Fault(Code.PERMISSION_DENIED, f"the entries of table '{table.name}' are const in the program")
        if not table.fields:
            raise invalid(f"table '{table.name}' has no key: it takes no entries")
        if not message.HasField("action"):
            raise invalid(f"table '{table.name}': the action of the new entry is missing")
        check_resources(table, message)
        return Prepared(table, read_key(table, message.match), priority_of(table, message.priority), message)

    def plain(self, prepared: Prepared) -> TableEntry:
        """An entry of a table without an action profile."""
        action, params = self.actions.call(prepared.table, prepared.message.action)
        return TableEntry(prepared.table.name, prepared.key, action, params, prepared.priority)

    def insert_plain(self, entries: list[tuple[int, Prepared, TableEntry]]) -> Iterator[tuple[int, Fault]]:
        """Add entries, and return the positions of those that are not taken, each with the reason."""
        try:
            answers = self.control.add_each([entry for _, _, entry in entries])
        except Exception as error:
            yield from ((position, fault_of(error)) for position, _, _ in entries)
            return
        for (position, prepared, _), answer in zip(entries, answers, strict=True):
            if isinstance(answer, Refused):
                yield position, fault_of(answer)
            elif (fault := self.settle(prepared, answer)) is not None:
                yield position, fault

    def insert_indirect(self, prepared: Prepared) -> None:
        """Add an entry of a table with an action profile."""
        table, message = prepared.table, prepared.message
        handle = self.actions.insert(table, prepared.key, prepared.priority, message.action)
        if (fault := self.settle(prepared, handle)) is not None:
            raise fault

    def settle(self, prepared: Prepared, handle: int) -> Fault | None:
        """Give a new entry what it brings with it; if that fails it is removed again."""
        table, message = prepared.table, prepared.message
        try:
            bring(self.control, table, handle, message)
        except Exception as error:
            self.remove(table, self.control.entry(table.name, handle))
            return fault_of(error)
        self.note(table, handle, note_of(prepared.key, prepared.priority, message))
        return None

    def note(self, table: TableSchema, handle: int, note: Note | None) -> None:
        """Keep what is noted on an entry, or nothing."""
        if note is not None:
            self.notes[table.name, handle] = note
        elif self.notes:
            self.notes.pop((table.name, handle), None)

    # MODIFY

    def modify(self, message: Message) -> None:
        """Let an entry run something else, and give it what it brings with it."""
        table = self.table(message.table_id)
        if message.is_default_action:
            self.modify_default(table, message)
            return
        held = self.locate(table, message)
        if table.is_const and message.HasField("action"):
            raise Fault(Code.PERMISSION_DENIED, f"the actions of table '{table.name}' are const in the program")
        check_resources(table, message)
        if message.HasField("action"):
            self.actions.change(table, held, message.action)
        bring_anew(self.control, table, held.handle, message, self.noted(table, held))
        self.note(table, held.handle, note_of(held.entry.key, held.entry.priority, message))

    def modify_default(self, table: TableSchema, message: Message) -> None:
        """Let a table run something else on a miss; without an action, what its program says."""
        if message.match or message.priority:
            raise invalid(f"table '{table.name}': its default has neither a match nor a priority")
        if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
            raise invalid(f"table '{table.name}': its default has no idle timeout")
        if table.table.default_is_const:
            raise Fault(Code.PERMISSION_DENIED, f"the default of table '{table.name}' is const in the program")
        check_resources(table, message)
        if message.HasField("meter_config") or message.HasField("counter_data"):
            raise Fault(Code.UNIMPLEMENTED, f"BMv2 counts and meters no misses of table '{table.name}'")
        if message.HasField("action"):
            self.control.set_default(DefaultAction(table.name, *self.actions.call(table, message.action, default=True)))
            self.note_default(table, note_of((), None, message))
        else:
            self.control.reset_default(table.name)
            self.note_default(table, None)

    def note_default(self, table: TableSchema, note: Note | None) -> None:
        """Keep what is noted on a default, or nothing."""
        self.default_notes.pop(table.name, None)
        if note is not None:
            self.default_notes[table.name] = note

    # DELETE

    def delete(self, message: Message) -> None:
        table = self.table(message.table_id)
        if message.is_default_action:
            raise invalid(f"the default of table '{table.name}' cannot be deleted: modify it")
        if table.is_const:
            raise Fault(Code.PERMISSION_DENIED, f"the entries of table '{table.name}' are const in the program")
        self.remove(table, self.locate(table, message))

    def remove(self, table: TableSchema, held: HeldEntry) -> None:
        self.control.delete_entry(table.name, held.handle)
        self.actions.released(table, held)
        self.note(table, held.handle, None)

    def locate(self, table: TableSchema, message: Message) -> HeldEntry:
        """The entry with the key and the priority of a message, or a fault."""
        key, priority = read_key(table, message.match), priority_of(table, message.priority)
        try:
            return self.control.entry(table.name, self.control.find(table.name, key, priority))
        except Refused as refused:
            if refused.kind != RefusalKind.BAD_MATCH_KEY:
                raise
            raise not_found(f"table '{table.name}' has no entry for the key {key}") from refused

    def noted(self, table: TableSchema, held: HeldEntry) -> Note | None:
        """What is noted on an entry; None for one that came by another way than this server."""
        note = self.notes.get((table.name, held.handle)) if self.notes else None
        if note is None or (note.key, note.priority) != (held.entry.key, held.entry.priority):
            return None
        return note

    # reading

    def read(self, message: Message) -> Iterator[Message]:
        """The entries that a message selects, or the defaults."""
        tables = [self.table(message.table_id)] if message.table_id else list(self.schema.tables.values())
        if message.is_default_action:
            found = [self.default_message(table, self.held_default(table)) for table in tables]
        else:
            found = [entry for table in tables for entry in self.selected(table, message)]
        return iter([entry for entry in found if selects(message, entry)])

    def selected(self, table: TableSchema, message: Message) -> list[Message]:
        """The entries of a table of which a message gives the key, or all."""
        if message.HasField("time_since_last_hit") and message.table_id and not table.idle_timeout:
            raise invalid(f"table '{table.name}' has no `support_timeout` in the program")
        if not message.match:
            return [self.message_of(table, held, message) for held in self.control.entries(table.name)]
        if message.priority or not table.prioritised:
            try:
                return [self.message_of(table, self.locate(table, message), message)]
            except Fault as fault:
                if fault.code != Code.NOT_FOUND:
                    raise
                return []
        key = read_key(table, message.match)
        found = (held for held in self.control.entries(table.name) if held.entry.key == key)
        return [self.message_of(table, held, message) for held in found]

    def message_of(self, table: TableSchema, held: HeldEntry, wanted: Message) -> Message:
        """An entry as clients read it, with the resources that `wanted` has."""
        entry = v1.TableEntry(table_id=table.id, action=self.actions.message_of(table, held), is_const=table.is_const)
        entry.match.extend(matches_of(table, held.entry.key))
        if held.entry.priority is not None:
            entry.priority = inverted(table, held.entry.priority)
        note = self.noted(table, held)
        if note is not None:
            write_note(entry, note)
        add_resources(self.control, table, held.handle, wanted, note, entry)
        return entry

    def default_message(self, table: TableSchema, held: HeldDefault | None) -> Message:
        """What a table runs on a miss, as clients read it."""
        entry = v1.TableEntry(table_id=table.id, is_default_action=True, is_const=table.table.default_is_const)
        if held is not None and held.action is not None:
            entry.action.action.CopyFrom(call_message(table.actions, table.ids, (held.action, held.params)))
        if table.name in self.default_notes:
            write_note(entry, self.default_notes[table.name])
        return entry

    def held_default(self, table: TableSchema) -> HeldDefault | None:
        """What a table runs on a miss; None if its program says nothing and nothing was set."""
        try:
            return self.control.default(table.name)
        except Refused:
            return None

    def snapshot(self, kind: Kind, message: Message) -> list[Message]:
        """The entry of a message, with its counts if they are about to be lost."""
        table = self.table(message.table_id)
        if message.is_default_action:
            return [self.default_message(table, self.held_default(table))]
        wanted = v1.TableEntry(meter_config=v1.MeterConfig())
        if kind == Kind.DELETE or message.HasField("counter_data"):
            wanted.counter_data.SetInParent()
        entry = self.message_of(table, self.locate(table, message), wanted)
        if table.is_const:
            entry.ClearField("action")
        entry.ClearField("is_const")
        return [entry]


def priority_of(table: TableSchema, given: int) -> int | None:
    """BMv2's priority of an entry; a fault if it has none and needs one, or has one and needs none."""
    if table.prioritised:
        within(given, 1, MOST, f"the priority of an entry of table '{table.name}', whose keys can overlap")
        return inverted(table, given)
    if given:
        raise invalid(f"table '{table.name}': its keys never tie, so that its entries have the priority 0")
    return None


def inverted(table: TableSchema, priority: int) -> int:
    """BMv2's priority of P4Runtime's, and the other way round. The last of const entries has 1."""
    return max((each.priority for each in table.table.entries or ()), default=MOST - 1) + 1 - priority


def is_bare(message: Message) -> bool:
    """Whether an entry brings nothing with it that the data plane has beside the entry."""
    brings = message.HasField("counter_data") or message.HasField("meter_config") or message.idle_timeout_ns
    return not brings


def write_note(entry: Message, note: Note) -> None:
    entry.controller_metadata, entry.metadata = note.controller_metadata, note.metadata
    entry.idle_timeout_ns = note.idle_timeout_ns


def selects(wanted: Message, entry: Message) -> bool:
    """Whether an entry has what a request names: priority, action, metadata; what it leaves out fits all."""
    if not wanted.table_id:
        return True
    if wanted.HasField("action") and wanted.action.action.action_id != entry.action.action.action_id:
        return False
    return all(
        not getattr(wanted, name) or getattr(wanted, name) == getattr(entry, name)
        for name in ("priority", "controller_metadata", "metadata")
    )


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
