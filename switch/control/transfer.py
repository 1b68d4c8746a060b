"""Brings what a control plane has put into one data plane into another of the same program, with what packets left."""

from __future__ import annotations

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.table_requests import HeldTable
from inakit.switch.entries import DefaultAction, MeterRates, ValueSetMember


def transfer(control: ControlPlane, to: DataPlane) -> None:
    """Give `control` the data plane `to`, which is as just started, with all that its present one has.

    Meters begin with full buckets, idle times anew. No packet may pass through either meanwhile.
    """
    with control.lock:
        old, control.data_plane = control.data_plane, to
        try:
            bring_all(control, old)
        except BaseException:
            control.data_plane = old
            raise


def brought(prepared: ControlPlane | None, program_before: ControlPlane | None, to: DataPlane) -> ControlPlane:
    """The control plane of a program that begins on the data plane `to`: the one that was `prepared`, or a new one.

    Multicast groups and mirror sessions go on from the program before, as in BMv2, if that is given.
    """
    control = prepared or ControlPlane(to)
    if program_before is not None:
        control.inherit(program_before)
    if prepared is None:
        control.install_replication()
    else:
        transfer(control, to)
    return control


def bring_all(control: ControlPlane, old: DataPlane) -> None:
    """Bring what is in the data plane `old` into the new one."""
    for table in control.tables.values():
        bring_table(control, table, old)
    control.install_replication()
    for name, values in control.value_sets.items():
        for value in values:
            control.data_plane.add_value(ValueSetMember(name, value))
    for calculation, parameters in control.crcs.items():
        control.data_plane.set_crc(calculation, parameters)
    bring_arrays(control, old)


def bring_table(control: ControlPlane, table: HeldTable, old: DataPlane) -> None:
    """Bring a table's entries with what they have counted, and its default."""
    to, entries = control.data_plane, [held.entry for _, held in table.items()]
    if table.table.entries is None:
        to.add(entries)
    for entry in entries if table.table.counted else ():
        to.write_entry_counts(entry, *old.entry_counts(entry))
    for entry in entries if table.table.meter else ():
        to.set_entry_rates(entry, old.entry_rates(entry))
    default = table.default if table.default != table.programs_default() else None
    if default is not None and default.action is not None:
        to.set_default(DefaultAction(table.table.name, default.action, default.params))
    elif default is not None:
        to.set_default(control.profile_default(table, default))


def bring_arrays(control: ControlPlane, old: DataPlane) -> None:
    """Bring registers, counters and the rates of meters."""
    to, program = control.data_plane, control.program
    for name in program.registers:
        for index, value in enumerate(old.read_register(name).tolist()):
            if value:
                to.write_register(name, index, value)
    for name in program.counters:
        packets, octets = old.read_counter(name)
        for index in range(len(packets)):
            if packets[index]:
                to.write_counter(name, index, int(packets[index]), int(octets[index]))
    for name, meter in program.meters.items():
        for index in range(meter.size):
            if rates := old.read_rates(name, index):
                to.set_rates(MeterRates(name, index, rates))
