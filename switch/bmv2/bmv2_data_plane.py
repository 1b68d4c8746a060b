"""A running `simple_switch` as a data plane, so that the same control plane asks it as any other target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bm_runtime.simple_pre_lag.ttypes import InvalidMcOperation
from bm_runtime.standard.ttypes import (
    BmAddEntryOptions,
    BmCounterValue,
    BmCrc16Config,
    BmCrc32Config,
    BmMeterRateConfig,
    InvalidTableOperation,
)
from numpy.typing import NDArray
from sswitch_runtime.ttypes import InvalidMirroringOperation, MirroringSessionConfig

from inakit.switch.bmv2.runtime import CONTEXT, Runtime, in_bytes, key_of, pipeline, refused, values, write_call
from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import action_call, default_call, profile_calls
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    ProfileEntry,
    RegisterPreset,
    TableEntry,
    ValueSetMember,
)
from inakit.switch.program.program import CRC_CUSTOM, CrcParameters
from inakit.topo.errors import UnsupportedError


class Bmv2DataPlane:
    """A `DataPlane`. Members and groups that entries no longer name stay in BMv2, where they do nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.program, self.standard = runtime, runtime.program, runtime.standard
        self.nodes: dict[int, list[int]] = {}

    def add(self, entries: Sequence[Entry]) -> None:
        plain = [entry for entry in entries if isinstance(entry, TableEntry)]
        answers = pipeline(self.standard, "bm_mt_add_entry", map(self.runtime.entry_call, plain))
        for added, answer in zip(plain, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise refused(f"BMv2 refuses the entry '{added.cli()}'", answer)
        for entry in entries:
            if isinstance(entry, ProfileEntry):
                self.runtime.add_profiled(entry)

    def change(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, TableEntry):
                call = action_call(self.program, entry)
                handle = self.handle(entry)
                self.standard.bm_mt_modify_entry(CONTEXT, entry.table, handle, entry.action, values(call))
            else:
                self.change_profiled(entry)

    def change_profiled(self, entry: ProfileEntry) -> None:
        """Let an entry name new members."""
        members = [self.runtime.add_member(entry.profile, call) for call in profile_calls(self.program, entry)]
        if len(members) == 1:
            self.standard.bm_mt_indirect_modify_entry(CONTEXT, entry.table, self.handle(entry), members[0])
        else:
            group = self.runtime.add_member_group(entry.profile, members)
            self.standard.bm_mt_indirect_ws_modify_entry(CONTEXT, entry.table, self.handle(entry), group)

    def remove(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            handle = self.handle(entry)
            if isinstance(entry, TableEntry):
                self.standard.bm_mt_delete_entry(CONTEXT, entry.table, handle)
            else:
                self.standard.bm_mt_indirect_delete_entry(CONTEXT, entry.table, handle)

    def handle(self, entry: Entry) -> int:
        """BMv2's handle of an entry that is there."""
        options = BmAddEntryOptions(entry.priority)
        found = self.standard.bm_mt_get_entry_from_key(CONTEXT, entry.table, key_of(self.program, entry), options)
        handle: int = found.entry_handle
        return handle

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        if isinstance(default, DefaultAction):
            self.runtime.set_default(default)
            return
        calls = [default_call(self.program, DefaultAction(default.table, *call)) for call in default.actions]
        members = [self.runtime.add_member(default.profile, call) for call in calls]
        if len(members) == 1:
            self.standard.bm_mt_indirect_set_default_member(CONTEXT, default.table, members[0])
        else:
            group = self.runtime.add_member_group(default.profile, members)
            self.standard.bm_mt_indirect_ws_set_default_group(CONTEXT, default.table, group)

    def reset_default(self, table: str) -> None:
        if self.program.table(table).profile is None:
            self.standard.bm_mt_reset_default_entry(CONTEXT, table)
        else:
            self.standard.bm_mt_indirect_reset_default_entry(CONTEXT, table)

    def put_group(self, group: MulticastGroup) -> None:
        self.remove_group(group.group)
        self.nodes[group.group] = self.runtime.add_group(group)

    def remove_group(self, number: int) -> None:
        """Remove a multicast group and its nodes; do nothing if there is none."""
        for node in self.nodes.pop(number, ()):
            self.runtime.replication.bm_mc_node_destroy(CONTEXT, node)
        try:
            self.runtime.replication.bm_mc_mgrp_destroy(CONTEXT, number)
        except InvalidMcOperation:
            return

    def put_session(self, session: MirrorSession) -> None:
        config = MirroringSessionConfig(port=session.port, mgid=session.group)
        self.runtime.switch.mirroring_session_add(session.session, config)

    def remove_session(self, number: int) -> None:
        try:
            self.runtime.switch.mirroring_session_delete(number)
        except InvalidMirroringOperation:
            return

    def add_value(self, member: ValueSetMember) -> None:
        self.standard.bm_parse_vset_add(CONTEXT, member.value_set, self.value_bytes(member))

    def remove_value(self, member: ValueSetMember) -> None:
        self.standard.bm_parse_vset_remove(CONTEXT, member.value_set, self.value_bytes(member))

    def value_bytes(self, member: ValueSetMember) -> bytes:
        """A value as BMv2 takes it."""
        return in_bytes(member.value, self.program.value_sets[member.value_set].bits)

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All cells of a register. BMv2 reports 64-bit values from 2^63 on as 2^63 - 1."""
        return self.runtime.read_register(name)

    def write_register(self, name: str, index: int | None, value: int) -> None:
        if index is not None:
            self.standard.bm_register_write(*write_call(RegisterPreset(name, index, value)))
        else:
            last = self.program.register(name).size
            _, _, _, signed = write_call(RegisterPreset(name, 0, value))
            self.standard.bm_register_write_range(CONTEXT, name, 0, last, signed)

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self.runtime.read_counter(name)

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        cells = range(self.program.counter(name).size) if index is None else (index,)
        value = BmCounterValue(packets=packets, bytes=octets)
        pipeline(self.standard, "bm_counter_write", ((CONTEXT, name, cell, value) for cell in cells))

    def set_rates(self, rates: MeterRates) -> None:
        self.runtime.set_rates(rates)

    def read_rates(self, name: str, index: int) -> Rates:
        found = self.standard.bm_meter_get_rates(CONTEXT, name, index)
        return tuple((each.units_per_micros, each.burst_size) for each in found)

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        value = self.standard.bm_mt_read_counter(CONTEXT, entry.table, self.handle(entry))
        return value.packets, value.bytes

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        value = BmCounterValue(packets=packets, bytes=octets)
        self.standard.bm_mt_write_counter(CONTEXT, entry.table, self.handle(entry), value)

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        given = [BmMeterRateConfig(rate, burst) for rate, burst in rates]
        self.standard.bm_mt_set_meter_rates(CONTEXT, entry.table, self.handle(entry), given)

    def entry_rates(self, entry: Entry) -> Rates:
        found = self.standard.bm_mt_get_meter_rates(CONTEXT, entry.table, self.handle(entry))
        return tuple((each.units_per_micros, each.burst_size) for each in found)

    def idle_s(self, entry: Entry) -> float:
        options = BmAddEntryOptions(entry.priority)
        found = self.standard.bm_mt_get_entry_from_key(CONTEXT, entry.table, key_of(self.program, entry), options)
        return 0.0 if found.life is None else found.life.time_since_hit_ms / 1000

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        bits = CRC_CUSTOM[self.program.calculations[calculation].algorithm]
        numbers = (signed(each, bits) for each in (parameters.polynomial, parameters.first, parameters.last))
        kind = BmCrc16Config if bits == 16 else BmCrc32Config
        config = kind(*numbers, parameters.reflect_data, parameters.reflect_result)
        getattr(self.standard, f"bm_set_crc{bits}_custom_parameters")(CONTEXT, calculation, config)

    def read_digests(self) -> list[Digest]:
        """Refuse: BMv2 publishes digests by nanomsg."""
        raise UnsupportedError("target 'bmv2' gives no digests here: it publishes them by nanomsg")

    def now_us(self) -> int:
        now: int = self.runtime.switch.get_time_elapsed_us()
        return now

    def reset(self) -> None:
        self.nodes.clear()
        self.standard.bm_reset_state()


def signed(value: int, bits: int) -> int:
    """The signed number of so many bits that has the same bits: Thrift has no other."""
    return value - (1 << bits) if value >> bits - 1 else value
