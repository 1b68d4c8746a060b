"""What entries run: an action, a member or a group of an action profile, or a set of actions written at one shot."""

from __future__ import annotations

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.held import HeldEntry
from inakit.switch.entries import TableEntry
from inakit.switch.server.p4runtime.entities.profile_store import Choice, Group, ProfileStore, watched
from inakit.switch.server.p4runtime.entities.profiles import Stores
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.calls import Call, call_message, check_scope, read_call
from inakit.switch.server.p4runtime.schema.matches import Key
from inakit.switch.server.p4runtime.schema.schema import TableSchema


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
        """Remove the group of an action set with its members."""
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
