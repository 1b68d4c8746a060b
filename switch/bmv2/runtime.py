"""The control plane of one `simple_switch`: entries in, registers and counters out, over one connection.

The calls of BMv2's own command line print what goes wrong and go on, and wait for each answer; here an error is an
exception, and calls of one kind are sent together before their answers are read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bm_runtime.simple_pre_lag import SimplePreLAG
from bm_runtime.standard import Standard
from bm_runtime.standard.ttypes import (
    BmAddEntryOptions,
    BmMatchParam,
    BmMatchParamExact,
    BmMatchParamLPM,
    BmMatchParamRange,
    BmMatchParamTernary,
    BmMatchParamType,
    BmMatchParamValid,
    BmMeterRateConfig,
    BmMtEntry,
    InvalidTableOperation,
    TableOperationErrorCode,
)
from bmpy_utils import thrift_connect
from numpy.typing import NDArray
from sswitch_runtime import SimpleSwitch
from sswitch_runtime.ttypes import MirroringSessionConfig
from thrift.Thrift import TApplicationException

from inakit.switch.control.entry_check import action_call, check_entries, default_call, profile_calls
from inakit.switch.entries import (
    DefaultAction,
    KeyPart,
    Lpm,
    MeterRates,
    MulticastGroup,
    ProfileEntry,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
    group_of_nodes,
)
from inakit.switch.handle import Handle
from inakit.switch.program.program import ActionCall, MatchKey, Program
from inakit.switch.program.read import read_program
from inakit.topo.errors import InputError, RunError, UnsupportedError


def key_of(program: Program, entry: TableEntry | ProfileEntry) -> list[BmMatchParam]:
    """The key of an entry that was checked."""
    return [match(value, part) for value, part in zip(entry.key, program.table(entry.table).key, strict=True)]


def values(call: ActionCall) -> list[bytes]:
    """The values of an action's parameters as BMv2 takes them: big-endian, in whole bytes."""
    return [
        in_bytes(value, parameter.bits) for value, parameter in zip(call.values, call.action.parameters, strict=True)
    ]


def match(value: KeyPart, part: MatchKey) -> BmMatchParam:
    """One part of an entry's key as BMv2 takes it."""
    bits, kinds = part.bits, BmMatchParamType
    match value:
        case Lpm():
            return BmMatchParam(kinds.LPM, lpm=BmMatchParamLPM(in_bytes(value.value, bits), value.prefix))
        case Ternary():
            ternary = BmMatchParamTernary(in_bytes(value.value, bits), in_bytes(value.mask, bits))
            return BmMatchParam(kinds.TERNARY, ternary=ternary)
        case Range():
            return BmMatchParam(
                kinds.RANGE, range=BmMatchParamRange(in_bytes(value.low, bits), in_bytes(value.high, bits))
            )
    if part.match == "valid":
        return BmMatchParam(kinds.VALID, valid=BmMatchParamValid(bool(value)))
    return BmMatchParam(kinds.EXACT, exact=BmMatchParamExact(in_bytes(value, bits)))


def in_bytes(value: int, bits: int) -> bytes:
    """A number as BMv2 takes it: big-endian, in whole bytes."""
    return value.to_bytes((bits + 7) // 8, "big")


CONTEXT = 0
CALLS_IN_FLIGHT = 128
"""Calls whose answers are not read yet: few enough that calls and answers fit into the sockets' buffers."""

EGRESS_QUEUE_PACKETS = 1024
"""The packets that can wait for one egress port. With BMv2's own 64, packets of a burst are lost silently."""

SERVICES_TIMEOUT_S, SERVICES_POLL_S = 5.0, 0.02

SERVICES = (
    ("standard", Standard.Client),
    ("simple_pre_lag", SimplePreLAG.Client),
    ("simple_switch", SimpleSwitch.Client),
)

read_program_once = cache(read_program)


class RuntimeView:
    """A connection to the `simple_switch` that listens on local `port` and runs `program`, for reading."""

    def __init__(self, port: int, program: Path) -> None:
        self.port = port
        self.connect()
        self.program = read_program_once(program)

    def connect(self) -> None:
        """Connect to the control plane, in place of any connection before. Raises `ConnectionError`."""
        try:
            self.standard, self.replication, self.switch = thrift_connect("127.0.0.1", self.port, SERVICES)
        except SystemExit as error:  # how BMv2's Python says that nobody answers
            raise ConnectionError(f"no control plane answers on port {self.port}") from error

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, ordered by key."""
        table = self.program.table(name)
        found = self.standard.bm_mt_get_entries(CONTEXT, table.name)
        return sorted((table_entry(table.name, each) for each in found), key=lambda entry: entry.key)

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        return sorted(groups(json.loads(self.replication.bm_mc_get_entries(CONTEXT))), key=lambda group: group.group)

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array. BMv2 reports 64-bit values from 2^63 on as 2^63 - 1."""
        register = self.program.register(name)
        return np.array(self.standard.bm_register_read_all(CONTEXT, register.name), np.int64).view(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""
        size = self.program.counter(name).size
        calls = [(CONTEXT, name, index) for index in range(size if count is None else min(count, size))]
        values = pipeline(self.standard, "bm_counter_read", calls)
        packets, octets = [value.packets for value in values], [value.bytes for value in values]
        return np.array(packets, np.uint64), np.array(octets, np.uint64)

    def read_counter_at(self, name: str, index: int) -> tuple[int, int]:
        """Packets and bytes of one element of an indirect counter."""
        value = self.standard.bm_counter_read(CONTEXT, name, index)
        return value.packets, value.bytes


class Runtime(RuntimeView):
    """The connection of the process that runs the switch: entries go in as well."""

    def __init__(self, port: int, program: Path) -> None:
        super().__init__(port, program)
        self._set_queues()

    def _set_queues(self) -> None:
        """BMv2 takes connections a moment before it knows all of its services, and ends one that asks too soon."""
        deadline = time.monotonic() + SERVICES_TIMEOUT_S
        while True:
            try:
                self.switch.set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
            except TApplicationException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(SERVICES_POLL_S)
                self.connect()
            else:
                return

    def install(self, entries: SwitchEntries) -> None:
        """Add everything in `entries`. What the program cannot take is an `InputError`, before anything is added."""
        check_entries(self.program, entries)
        answers = pipeline(self.standard, "bm_mt_add_entry", map(self.entry_call, entries.tables))
        for entry, answer in zip(entries.tables, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise refused(f"switch '{entries.switch}': BMv2 refuses the entry '{entry.cli()}'", answer)
        for profiled in entries.profiled:
            self.add_profiled(profiled)
        pipeline(self.standard, "bm_register_write", map(write_call, entries.registers))
        for member in entries.value_sets:
            bits = self.program.value_sets[member.value_set].bits
            self.standard.bm_parse_vset_add(CONTEXT, member.value_set, in_bytes(member.value, bits))
        for default in entries.defaults:
            self.set_default(default)
        for group in entries.groups:
            self.add_group(group)
        for mirror in entries.mirrors:
            if mirror.size_bytes:
                raise UnsupportedError(f"mirror session {mirror.session}: BMv2 does not cut clones")
            config = MirroringSessionConfig(port=mirror.port, mgid=mirror.group)
            self.switch.mirroring_session_add(mirror.session, config)
        for meter in entries.meters:
            self.set_rates(meter)

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there other actions and parameters. One that is not there is an `InputError`."""
        calls = [self.entry_call(entry) for entry in entries]
        found = pipeline(self.standard, "bm_mt_get_entry_from_key", ((*call[:3], call[5]) for call in calls))
        for entry, answer in zip(entries, found, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise InputError(f"table '{entry.table}' has no entry for the key {entry.key}: install it first")
        changes = [
            (CONTEXT, entry.table, old.entry_handle, entry.action, call[4])
            for entry, old, call in zip(entries, found, calls, strict=True)
        ]
        pipeline(self.standard, "bm_mt_modify_entry", changes)

    def wipe(self) -> None:
        pipeline(self.standard, "bm_register_reset", ((CONTEXT, name) for name in self.program.registers))

    def reset(self) -> None:
        """Delete all entries and groups, and set registers and counters to 0, as after a fresh start."""
        self.standard.bm_reset_state()

    def entry_call(self, entry: TableEntry) -> tuple[Any, ...]:
        call = action_call(self.program, entry)
        key = key_of(self.program, entry)
        return CONTEXT, entry.table, key, entry.action, values(call), BmAddEntryOptions(entry.priority)

    def add_profiled(self, entry: ProfileEntry) -> None:
        """Make the members that `entry` runs, a group if they are not one, and the entry that names it."""
        key, options = key_of(self.program, entry), BmAddEntryOptions(entry.priority)
        members = [self.add_member(entry.profile, call) for call in profile_calls(self.program, entry)]
        try:
            if len(members) == 1:
                self.standard.bm_mt_indirect_add_entry(CONTEXT, entry.table, key, members[0], options)
            else:
                group = self.add_member_group(entry.profile, members)
                self.standard.bm_mt_indirect_ws_add_entry(CONTEXT, entry.table, key, group, options)
        except InvalidTableOperation as error:
            raise refused(f"BMv2 refuses the entry of table '{entry.table}' for the key {entry.key}", error) from error

    def add_member(self, profile: str, call: ActionCall) -> int:
        handle: int = self.standard.bm_mt_act_prof_add_member(CONTEXT, profile, call.action.name, values(call))
        return handle

    def add_member_group(self, profile: str, members: Sequence[int]) -> int:
        group: int = self.standard.bm_mt_act_prof_create_group(CONTEXT, profile)
        for member in members:
            self.standard.bm_mt_act_prof_add_member_to_group(CONTEXT, profile, member, group)
        return group

    def set_default(self, default: DefaultAction) -> None:
        """Set a default action; in a table with an action profile it is a new member of that."""
        call, profile = default_call(self.program, default), self.program.table(default.table).profile
        if profile is None:
            self.standard.bm_mt_set_default_action(CONTEXT, default.table, default.action, values(call))
        else:
            member = self.add_member(profile, call)
            self.standard.bm_mt_indirect_set_default_member(CONTEXT, default.table, member)

    def set_rates(self, meter: MeterRates) -> None:
        """Set the rates of a meter's cell or of all; the cells of a direct meter are entries, by their handles."""
        rates = [BmMeterRateConfig(rate, burst) for rate, burst in meter.rates]
        if meter.index is None:
            self.standard.bm_meter_array_set_rates(CONTEXT, meter.meter, rates)
        elif meter.meter in self.program.meters:
            self.standard.bm_meter_set_rates(CONTEXT, meter.meter, meter.index, rates)
        else:
            table = next(table.name for table in self.program.tables.values() if table.meter == meter.meter)
            self.standard.bm_mt_set_meter_rates(CONTEXT, table, meter.index, rates)

    def add_group(self, group: MulticastGroup) -> list[int]:
        handle = self.replication.bm_mc_mgrp_create(CONTEXT, group.group)
        nodes = [self.add_node(replica, ports) for replica, ports in group.runs()]
        for node in nodes:
            self.replication.bm_mc_node_associate(CONTEXT, handle, node)
        return nodes

    def add_node(self, replica: int, ports: Iterable[int]) -> int:
        """Add a multicast node, and return its handle."""
        bitmap = format(sum(1 << port for port in ports), "b")
        node: int = self.replication.bm_mc_node_create(CONTEXT, replica, bitmap, "")
        return node


def view(handle: Handle, program: Program) -> RuntimeView:  # noqa: ARG001, p4-utils reads it from its file
    """The switch that gave `handle`, for reading; `RunError` if it has ended."""
    try:
        return RuntimeView(handle["control_port"], Path(handle["program"]))
    except ConnectionError as error:
        raise RunError(f"{error}: the switch, or its network, has ended") from error


def table_entry(table: str, entry: BmMtEntry) -> TableEntry:
    """The entry that BMv2's description means, whose key has only exact matches."""
    key = tuple(int.from_bytes(part.exact.key, "big") for part in entry.match_key)
    action = entry.action_entry
    return TableEntry(table, key, action.action_name, tuple(int.from_bytes(p, "big") for p in action.action_data))


def groups(tree: Mapping[str, Any]) -> Iterator[MulticastGroup]:
    """The groups in BMv2's description of its replication engine: a group has nodes, a node has ports."""
    ports_of = {node["handle"]: node["ports"] for node in tree["l2_handles"]}
    nodes = {node["handle"]: node for node in tree["l1_handles"]}
    for group in tree["mgrps"]:
        own = [nodes[handle] for handle in group["l1_handles"]]
        yield group_of_nodes(group["id"], ((each["rid"], p) for each in own for p in ports_of[each["l2_handle"]]))


def refused(what: str, error: InvalidTableOperation) -> InputError:
    """The error that says what BMv2 refuses, with its name for the reason."""
    return InputError(f"{what}: {TableOperationErrorCode._VALUES_TO_NAMES[error.code]}")


def write_call(preset: RegisterPreset) -> tuple[Any, ...]:
    """The arguments of the call that writes a register's element; numbers from 2^63 on are sent as negative ones."""
    return CONTEXT, preset.register, preset.index, int(np.uint64(preset.value).view(np.int64))


def pipeline(client: Any, method: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The answers to `calls` of one method, in order; a table's refusal is an answer too."""
    send: Callable[..., None] = getattr(client, f"send_{method}")
    receive: Callable[[], Any] = getattr(client, f"recv_{method}")
    answers: list[Any] = []
    for batch in batches(calls, CALLS_IN_FLIGHT):
        for call in batch:
            send(*call)
        answers += [answer(receive) for _ in batch]
    return answers


def answer(receive: Callable[[], Any]) -> Any:
    """What `receive` returns, or the refusal that it raises."""
    try:
        return receive()
    except InvalidTableOperation as refusal:
        return refusal


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """`items` in lists of at most `size`."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch
