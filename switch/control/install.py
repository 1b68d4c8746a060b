"""Installs neutral entries in a running switch by its control plane, so that they have handles there."""

from __future__ import annotations

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import check_entries
from inakit.switch.entries import DefaultAction, MeterRates, MulticastGroup, ProfileEntry, SwitchEntries


def install(control: ControlPlane, entries: SwitchEntries) -> None:
    """Add everything in `entries`. What the program cannot take is an `InputError`, before anything is added."""
    check_entries(control.program, entries)
    control.add_entries(entries.tables)
    for profiled in entries.profiled:
        add_profiled(control, profiled)
    for default in entries.defaults:
        set_default(control, default)
    for group in entries.groups:
        add_group(control, group)
    for mirror in entries.mirrors:
        control.put_session(mirror)
    for rates in entries.meters:
        set_rates(control, rates)
    for member in entries.value_sets:
        control.add_value(member.value_set, member.value)
    for preset in entries.registers:
        control.write_register(preset.register, preset.index, preset.value)


def add_profiled(control: ControlPlane, entry: ProfileEntry) -> int:
    """Add an entry with members of its own, and a group of them if they are not one; return its handle."""
    members = [control.add_member(entry.profile, action, params) for action, params in entry.actions]
    if len(members) == 1:
        return control.add_indirect(entry.table, entry.key, members[0], entry.priority)
    group = control.create_group(entry.profile)
    for member in members:
        control.add_member_to_group(entry.profile, member, group)
    return control.add_indirect_group(entry.table, entry.key, group, entry.priority)


def set_default(control: ControlPlane, default: DefaultAction) -> None:
    """Set what a table runs on a miss; in a table with an action profile it is a member of its own."""
    profile = control.program.table(default.table).profile
    if profile is None:
        control.set_default(default)
    else:
        member = control.add_member(profile, default.action, default.params)
        control.set_indirect_default(default.table, member)


def add_group(control: ControlPlane, group: MulticastGroup) -> None:
    """Add a multicast group with nodes of its own."""
    control.create_mgrp(group.group)
    for replica, ports in group.runs():
        control.associate_node(group.group, control.create_node(replica, ports))


def set_rates(control: ControlPlane, rates: MeterRates) -> None:
    """Set the rates of a cell or of all; the cells of a direct meter are the entries of its table, in order."""
    if rates.index is None or rates.meter in control.program.meters:
        control.set_meter_rates(rates.meter, rates.index, rates.rates)
    else:
        table = next(table.name for table in control.program.tables.values() if table.meter == rates.meter)
        control.set_entry_meter(table, control.entries(table)[rates.index].handle, rates.rates)
