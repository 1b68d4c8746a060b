"""Requests of the Thrift services: tables, action profiles, arrays, parser value sets, multicast and learning lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import Rates
from inakit.switch.control.requests import HeldDefault, HeldEntry, HeldGroup, HeldMember, RefusalKind, Refused
from inakit.switch.entries import DefaultAction, KeyPart, TableEntry
from inakit.switch.program.program import Table
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.thrift.values import (
    GREATEST_I64,
    description,
    key_of,
    message_key,
    message_params,
    params_of,
    signed,
    unsigned,
)


@dataclass(frozen=True)
class SwitchIdentity:
    """What a switch says of itself: its number, its Thrift port, where its notifications can be subscribed to."""

    device_id: int
    thrift_port: int
    notifications: str


class Handler:
    """A part of a service. Its functions bear the names of the description, and take the arguments in its order.

    The dispatcher gives them no context, and 0 or nothing for what the client left out.
    """

    def __init__(self, switch: ServedSwitch, identity: SwitchIdentity) -> None:
        self.switch = switch
        self.identity = identity

    @property
    def control(self) -> ControlPlane:
        """What carries requests out: that of the program that was loaded last, also before it runs."""
        return self.switch.newest.control

    def table(self, name: str) -> Table:
        """The table of this name, or a refusal."""
        return self.control.table(name).table


NO_PRIORITY = -1
"""The priority that BMv2 tells of entries whose keys cannot overlap."""


class TableRequests(Handler):
    """Entries that run an action, or a member or a group of an action profile; and what runs on a miss."""

    def bm_mt_get_num_entries(self, table: str) -> int:
        return self.control.entry_count(table)

    def bm_mt_clear_entries(self, table: str, reset_default: bool) -> None:
        """Remove all entries."""
        self.control.clear_table(table, reset_default)

    # entries

    def bm_mt_add_entry(
        self, table: str, key: Sequence[Any], action: str, params: Sequence[bytes], options: Any
    ) -> int:
        call = action, self.params(table, action, params)
        return signed(self.control.add_entry(TableEntry(table, self.key(table, key), *call, options.priority or 0)))

    def bm_mt_indirect_add_entry(self, table: str, key: Sequence[Any], member: int, options: Any) -> int:
        parts = self.key(table, key)
        return signed(self.control.add_indirect(table, parts, member, options.priority or 0))

    def bm_mt_indirect_ws_add_entry(self, table: str, key: Sequence[Any], group: int, options: Any) -> int:
        parts = self.key(table, key)
        return signed(self.control.add_indirect_group(table, parts, group, options.priority or 0))

    def bm_mt_modify_entry(self, table: str, handle: int, action: str, params: Sequence[bytes]) -> None:
        self.control.modify_entry(table, unsigned(handle), action, self.params(table, action, params))

    def bm_mt_indirect_modify_entry(self, table: str, handle: int, member: int) -> None:
        self.control.modify_indirect(table, unsigned(handle), member)

    def bm_mt_indirect_ws_modify_entry(self, table: str, handle: int, group: int) -> None:
        self.control.modify_indirect_group(table, unsigned(handle), group)

    def bm_mt_delete_entry(self, table: str, handle: int) -> None:
        """Remove an entry of a table without an action profile."""
        self.control.direct(table)
        self.control.delete_entry(table, unsigned(handle))

    def bm_mt_indirect_delete_entry(self, table: str, handle: int) -> None:
        """Remove an entry of a table with an action profile."""
        self.control.indirect(table)
        self.control.delete_entry(table, unsigned(handle))

    def bm_mt_set_entry_ttl(self, table: str, handle: int, timeout_ms: int) -> None:
        """Let an entry expire after this time without packets."""
        self.control.set_timeout(table, unsigned(handle), unsigned(timeout_ms))

    bm_mt_indirect_set_entry_ttl = bm_mt_set_entry_ttl

    # what runs on a miss

    def bm_mt_set_default_action(self, table: str, action: str, params: Sequence[bytes]) -> None:
        """Let a table run an action on a miss."""
        self.control.set_default(DefaultAction(table, action, self.params(table, action, params)))

    def bm_mt_reset_default_entry(self, table: str) -> None:
        """Let a table run on a miss what the program says."""
        self.control.direct(table)
        self.control.reset_default(table)

    def bm_mt_indirect_set_default_member(self, table: str, member: int) -> None:
        """Let a table run a member on a miss."""
        self.control.set_indirect_default(table, member)

    def bm_mt_indirect_ws_set_default_group(self, table: str, group: int) -> None:
        """Let a table choose from a group on a miss."""
        self.control.set_indirect_group_default(table, group)

    def bm_mt_indirect_reset_default_entry(self, table: str) -> None:
        """Let a table with an action profile run on a miss what the program says."""
        self.control.indirect(table)
        self.control.reset_default(table)

    # what there is

    def bm_mt_get_entries(self, table: str) -> list[Any]:
        """All entries of a table; none of a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return []
        return [self.told(table, held) for held in self.control.entries(table)]

    def bm_mt_get_entry(self, table: str, handle: int) -> Any:
        """One entry; an empty one of a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return empty_entry()
        return self.told(table, self.control.entry(table, unsigned(handle)))

    def bm_mt_get_entry_from_key(self, table: str, key: Sequence[Any], options: Any) -> Any:
        """The entry of a key; without one, the default."""
        if table not in self.control.program.tables or not key:
            found = empty_entry()
            found.action_entry = self.bm_mt_get_default_entry(table)
            return found
        handle = self.control.find(table, self.key(table, key), options.priority or 0)
        return self.told(table, self.control.entry(table, handle))

    def bm_mt_get_default_entry(self, table: str) -> Any:
        """What a table runs on a miss; nothing for a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return no_action()
        try:
            return action_of(self.control.default(table))
        except Refused as refused:
            if refused.kind is not RefusalKind.NO_DEFAULT_ENTRY:
                raise
            return no_action()

    # parts of requests

    def key(self, table: str, parts: Sequence[Any]) -> tuple[KeyPart, ...]:
        return key_of(self.table(table), parts)

    def params(self, table: str, action: str, params: Sequence[bytes]) -> tuple[int, ...]:
        """The parameters that a message gives for an action of a table."""
        return params_of(self.table(table).actions, action, params)

    def told(self, table: str, held: HeldEntry) -> Any:
        """An entry as a message has it."""
        types, entry = description(), held.entry
        priority = NO_PRIORITY if entry.priority is None else entry.priority
        named = HeldDefault(member=held.member, group=held.group)
        idle_ms = round((held.idle_s or 0.0) * 1000)
        return types.HeldEntry(
            match_key=message_key(self.table(table), entry.key),
            options=types.Options(priority),
            entry_handle=signed(held.handle),
            action_entry=action_of(HeldDefault(entry.action, entry.params) if isinstance(entry, TableEntry) else named),
            life=(description().Life(signed(held.timeout_ms), signed(idle_ms)) if held.timeout_ms else None),
        )


def action_of(held: HeldDefault) -> Any:
    """What an entry or a default runs, as a message has it."""
    types = description()
    if held.member is not None:
        return types.Action(types.ActionKind.MBR_HANDLE, mbr_handle=held.member)
    if held.group is not None:
        return types.Action(types.ActionKind.GRP_HANDLE, grp_handle=held.group)
    return types.Action(types.ActionKind.ACTION_DATA, held.action, message_params(held.params))


def no_action() -> Any:
    """Says that nothing runs."""
    return description().Action(description().ActionKind.NONE)


def empty_entry() -> Any:
    """An entry of which nothing is known."""
    return description().HeldEntry([], description().Options(), 0, no_action())


class ProfileRequests(Handler):
    """Action profiles; those whose groups choose a member have a selector."""

    def bm_mt_act_prof_add_member(self, profile: str, action: str, params: Sequence[bytes]) -> int:
        return self.control.add_member(profile, action, self.member_params(profile, action, params))

    def bm_mt_act_prof_delete_member(self, profile: str, member: int) -> None:
        """Remove a member."""
        self.control.delete_member(profile, member)

    def bm_mt_act_prof_modify_member(self, profile: str, member: int, action: str, params: Sequence[bytes]) -> None:
        self.control.modify_member(profile, member, action, self.member_params(profile, action, params))

    def bm_mt_act_prof_create_group(self, profile: str) -> int:
        """Add a group without members, and return its handle."""
        return self.control.create_group(profile)

    def bm_mt_act_prof_delete_group(self, profile: str, group: int) -> None:
        """Remove a group."""
        self.control.delete_group(profile, group)

    def bm_mt_act_prof_add_member_to_group(self, profile: str, member: int, group: int) -> None:
        """Let a group choose from one member more."""
        self.control.add_member_to_group(profile, member, group)

    def bm_mt_act_prof_remove_member_from_group(self, profile: str, member: int, group: int) -> None:
        """Let a group choose from one member less."""
        self.control.remove_member_from_group(profile, member, group)

    def bm_mt_act_prof_get_members(self, profile: str) -> list[Any]:
        """All members; none of a profile that is not there, as BMv2 answers."""
        known = profile in self.control.program.profiles
        return [told_member(member) for member in self.control.members(profile)] if known else []

    def bm_mt_act_prof_get_member(self, profile: str, member: int) -> Any:
        return told_member(self.control.member(profile, member))

    def bm_mt_act_prof_get_groups(self, profile: str) -> list[Any]:
        """All groups; none of a profile that is not there, as BMv2 answers."""
        known = profile in self.control.program.profiles
        return [told_group(group) for group in self.control.groups(profile)] if known else []

    def bm_mt_act_prof_get_group(self, profile: str, group: int) -> Any:
        return told_group(self.control.group(profile, group))

    def member_params(self, profile: str, action: str, params: Sequence[bytes]) -> tuple[int, ...]:
        """The parameters that a message gives for an action of a profile."""
        tables = self.control.program.tables.values()
        actions = [each for table in tables if table.profile == profile for each in table.actions]
        return params_of(actions, action, params)


def told_member(member: HeldMember) -> Any:
    return description().HeldMember(member.handle, member.action, message_params(member.params))


def told_group(group: HeldGroup) -> Any:
    """A group as a message has it."""
    return description().HeldGroup(group.handle, list(group.members))


class ArrayRequests(Handler):
    """What a program keeps in arrays."""

    # counters

    def bm_counter_read(self, counter: str, index: int) -> Any:
        """One cell of a counter."""
        return count_of(*self.control.read_counter(counter, index))

    def bm_counter_reset_all(self, counter: str) -> None:
        """Set all cells of a counter to 0."""
        self.control.reset_counters(counter)

    def bm_counter_write(self, counter: str, index: int, count: Any) -> None:
        """Set one cell of a counter."""
        self.control.write_counter(counter, index, *counts_of(count))

    def bm_mt_read_counter(self, table: str, handle: int) -> Any:
        return count_of(*self.control.entry_counter(table, unsigned(handle)))

    def bm_mt_reset_counters(self, table: str) -> None:
        """Set the counts of all entries to 0."""
        self.control.reset_entry_counters(table)

    def bm_mt_write_counter(self, table: str, handle: int, count: Any) -> None:
        self.control.write_entry_counter(table, unsigned(handle), *counts_of(count))

    # meters

    def bm_meter_array_set_rates(self, meter: str, rates: Sequence[Any]) -> None:
        self.control.set_meter_rates(meter, None, rates_of(rates))

    def bm_meter_set_rates(self, meter: str, index: int, rates: Sequence[Any]) -> None:
        self.control.set_meter_rates(meter, index, rates_of(rates))

    def bm_meter_get_rates(self, meter: str, index: int) -> list[Any]:
        return message_rates(self.control.meter_rates(meter, index))

    def bm_mt_set_meter_rates(self, table: str, handle: int, rates: Sequence[Any]) -> None:
        self.control.set_entry_meter(table, unsigned(handle), rates_of(rates))

    def bm_mt_get_meter_rates(self, table: str, handle: int) -> list[Any]:
        return message_rates(self.control.entry_meter(table, unsigned(handle)))

    # registers

    def bm_register_read(self, name: str, index: int) -> int:
        return cell_of(self.control.read_register(name, index))

    def bm_register_read_all(self, name: str) -> list[int]:
        return [cell_of(int(value)) for value in self.control.read_registers(name)]

    def bm_register_write(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register; it takes the bits that it has."""
        self.control.write_register(name, index, self.fitting(name, value))

    def bm_register_write_range(self, name: str, first: int, after: int, value: int) -> None:
        """Set the cells from `first` on before `after`."""
        self.control.write_register_range(name, first, after, self.fitting(name, value))

    def bm_register_reset(self, name: str) -> None:
        """Set all cells of a register to 0."""
        self.control.reset_register(name)

    def fitting(self, name: str, value: int) -> int:
        return unsigned(value, self.control.register(name).bits)

    # parser value sets

    def bm_parse_vset_add(self, value_set: str, value: bytes) -> None:
        self.control.add_value(value_set, int.from_bytes(value, "big"))

    def bm_parse_vset_remove(self, value_set: str, value: bytes) -> None:
        self.control.remove_value(value_set, int.from_bytes(value, "big"))

    def bm_parse_vset_get(self, value_set: str) -> list[bytes]:
        """All values, in order."""
        size = (self.control.value_set(value_set).bits + 7) // 8
        return [value.to_bytes(size, "big") for value in sorted(self.control.values(value_set))]

    def bm_parse_vset_clear(self, value_set: str) -> None:
        """Remove all values."""
        self.control.clear_values(value_set)


def count_of(packets: int, octets: int) -> Any:
    return description().Count(bytes=signed(octets, 64), packets=signed(packets, 64))


def counts_of(count: Any) -> tuple[int, int]:
    return unsigned(count.packets or 0, 64), unsigned(count.bytes or 0, 64)


def rates_of(rates: Sequence[Any]) -> Rates:
    """Rates of a message."""
    return tuple((rate.units_per_micros or 0.0, unsigned(rate.burst_size or 0)) for rate in rates)


def message_rates(rates: Rates) -> list[Any]:
    return [description().Rate(rate, signed(burst)) for rate, burst in rates]


def cell_of(value: int) -> int:
    """A register's value as a message has it: BMv2 gives the greatest number for all that are greater."""
    return min(value, GREATEST_I64)


class SimplePreLag(Handler):
    """Requests for multicast, with link aggregation groups (LAGs). They outlast programs."""

    @property
    def control(self) -> ControlPlane:
        """What carries requests out: that of the program that runs."""
        return self.switch.control

    def bm_mc_mgrp_create(self, mgid: int) -> int:
        """Add a group without nodes, and return its handle, which is its number."""
        return self.control.create_mgrp(mgid)

    def bm_mc_mgrp_destroy(self, mgid: int) -> None:
        """Remove a group."""
        self.control.destroy_mgrp(mgid)

    def bm_mc_node_create(self, rid: int, ports: str, lags: str = "") -> int:
        """Add a node that is in no group, and return its handle."""
        return self.control.create_node(rid, numbers_of(ports), numbers_of(lags))

    def bm_mc_node_associate(self, mgid: int, node: int) -> None:
        """Put a node into a group."""
        self.control.associate_node(mgid, node)

    def bm_mc_node_dissociate(self, mgid: int, node: int) -> None:
        """Take a node out of its group."""
        self.control.dissociate_node(mgid, node)

    def bm_mc_node_destroy(self, node: int) -> None:
        """Remove a node."""
        self.control.destroy_node(node)

    def bm_mc_node_update(self, node: int, ports: str, lags: str = "") -> None:
        self.control.update_node(node, numbers_of(ports), numbers_of(lags))

    def bm_mc_set_lag_membership(self, lag: int, ports: str) -> None:
        self.control.set_lag(lag, numbers_of(ports))

    def bm_mc_get_entries(self) -> str:
        """All of it, as JSON."""
        return self.control.replication()


class SimplePre(SimplePreLag):
    """The same without link aggregation groups."""


def numbers_of(bits: str) -> list[int]:
    """The numbers whose characters are 1 in a map whose last character is that of number 0."""
    if bits.strip("01"):
        raise Refused(RefusalKind.MC_ERROR, f"a map of ports is written in 0 and 1, not '{bits}'")
    return [number for number, bit in enumerate(reversed(bits)) if bit == "1"]


class LearningRequests(Handler):
    """A digest is not sent again until it is acknowledged."""

    def bm_learning_ack(self, list_id: int, buffer_id: int, samples: Sequence[int]) -> None:
        self.control.acknowledge(list_id, unsigned(buffer_id, 64), samples)

    def bm_learning_ack_buffer(self, list_id: int, buffer_id: int) -> None:
        """Acknowledge all samples of a batch."""
        self.control.acknowledge_buffer(list_id, unsigned(buffer_id, 64))

    def bm_learning_set_timeout(self, list_id: int, timeout_ms: int) -> None:
        """Send a batch that is not full after this time."""
        self.control.set_learning_timeout(list_id, unsigned(timeout_ms))

    def bm_learning_set_buffer_size(self, list_id: int, samples: int) -> None:
        """Send a batch when it has this many samples."""
        self.control.set_learning_size(list_id, unsigned(samples))
