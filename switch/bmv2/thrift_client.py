"""The control plane of one `simple_switch`: entries in, registers and counters out, over one connection.

The calls of BMv2's own command line print errors, go on, and wait for each answer. Here an error raises an exception,
and calls of one kind are sent together before their answers are read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bm_runtime.simple_pre_lag import SimplePreLAG
from bm_runtime.simple_pre_lag.ttypes import InvalidMcOperation
from bm_runtime.standard import Standard
from bm_runtime.standard.ttypes import (
    BmAddEntryOptions,
    BmCounterValue,
    BmCrc16Config,
    BmCrc32Config,
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
from sswitch_runtime.ttypes import InvalidMirroringOperation, MirroringSessionConfig
from thrift.Thrift import TApplicationException

from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import action_call, call, check_entries, profile_calls
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    KeyPart,
    Lpm,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    ProfileEntry,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
    ValueSetMember,
    actions_of,
    group_of_nodes,
)
from inakit.switch.handle import Handle
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import CRC_CUSTOM, ActionCall, CrcParameters, MatchKey, Program
from inakit.topo.errors import InputError, RunError, UnsupportedError


def values(call: ActionCall) -> list[bytes]:
    """The values of an action's parameters in BMv2's format: big-endian, in whole bytes."""
    return [
        in_bytes(value, parameter.bits) for value, parameter in zip(call.values, call.action.parameters, strict=True)
    ]


def match(value: KeyPart, part: MatchKey) -> BmMatchParam:
    """One part of an entry's key in BMv2's format."""
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


def signed(value: int, bits: int) -> int:
    """The signed number with the same `bits` bits: Thrift has no unsigned numbers."""
    return value - (1 << bits) if value >> bits - 1 else value


def in_bytes(value: int, bits: int) -> bytes:
    """A number in BMv2's format: big-endian, in whole bytes."""
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
        """Connect to the control plane; replaces an earlier connection. Raises `ConnectionError`."""
        try:
            self.standard, self.replication, self.switch = thrift_connect("127.0.0.1", self.port, SERVICES)
        except SystemExit as error:  # BMv2's Python exits if no server answers
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
    """The connection of the process that runs the switch: a `DataPlane`, to which entries go in calls sent together.

    Members and groups that entries no longer name stay in BMv2, where they do nothing.
    """

    def __init__(self, port: int, program: Path) -> None:
        super().__init__(port, program)
        self.nodes: dict[int, list[int]] = {}
        self._set_queues()

    def _set_queues(self) -> None:
        """BMv2 accepts connections before it registers all services, and ends a connection that asks too early."""
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
        """Add all `entries`. Raises `InputError` before anything is added if the program cannot take an entry."""
        check_entries(self.program, entries)
        self.add([*entries.tables, *entries.profiled], f"switch '{entries.switch}': ")
        pipeline(self.standard, "bm_register_write", map(write_call, entries.registers))
        for member in entries.value_sets:
            self.add_value(member)
        for default in entries.defaults:
            self.set_default(default)
        for group in entries.groups:
            self.add_group(group)
        for mirror in entries.mirrors:
            self.put_session(mirror)
        for meter in entries.meters:
            self.set_rates(meter)

    def add(self, entries: Sequence[Entry], where: str = "") -> None:
        """Add new entries; `where` begins the error message for an entry that BMv2 refuses."""
        plain = [entry for entry in entries if isinstance(entry, TableEntry)]
        calls = ((CONTEXT, e.table, self.key(e), e.action, self.values(e), self.options(e)) for e in plain)
        answers = pipeline(self.standard, "bm_mt_add_entry", calls)
        for entry, answer in zip(plain, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise refused(f"{where}BMv2 refuses the entry '{entry.cli()}'", answer)
        for profiled in (entry for entry in entries if isinstance(entry, ProfileEntry)):
            kind, number = self.members(profiled.profile, profile_calls(self.program, profiled))
            given = (CONTEXT, profiled.table, self.key(profiled), number, self.options(profiled))
            try:
                getattr(self.standard, f"bm_mt_indirect{kind}_add_entry")(*given)
            except InvalidTableOperation as error:
                what = f"the entry of table '{profiled.table}' for the key {profiled.key}"
                raise refused(f"{where}BMv2 refuses {what}", error) from error

    def change(self, entries: Sequence[Entry]) -> None:
        """Replace actions and parameters of existing entries; `InputError` if one does not exist."""
        found = list(zip(entries, self.found(entries), strict=True))
        plain = [(entry, old) for entry, old in found if isinstance(entry, TableEntry)]
        changes = [(CONTEXT, e.table, old.entry_handle, e.action, self.values(e)) for e, old in plain]
        pipeline(self.standard, "bm_mt_modify_entry", changes)
        for entry, old in found:
            if isinstance(entry, ProfileEntry):
                kind, number = self.members(entry.profile, profile_calls(self.program, entry))
                modify = getattr(self.standard, f"bm_mt_indirect{kind}_modify_entry")
                modify(CONTEXT, entry.table, old.entry_handle, number)

    def remove(self, entries: Sequence[Entry]) -> None:
        for entry, old in zip(entries, self.found(entries), strict=True):
            kind = "" if isinstance(entry, TableEntry) else "_indirect"
            getattr(self.standard, f"bm_mt{kind}_delete_entry")(CONTEXT, entry.table, old.entry_handle)

    def found(self, entries: Sequence[Entry]) -> list[BmMtEntry]:
        """BMv2's own records of these entries; `InputError` if it has no entry with such a key."""
        calls = ((CONTEXT, each.table, self.key(each), self.options(each)) for each in entries)
        answers = pipeline(self.standard, "bm_mt_get_entry_from_key", calls)
        for entry, answer in zip(entries, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise InputError(f"table '{entry.table}' has no entry for the key {entry.key}: install it first")
        return answers

    def place(self, entry: Entry) -> tuple[int, str, int]:
        """The context, table and handle by which calls name an existing entry."""
        return CONTEXT, entry.table, self.found([entry])[0].entry_handle

    def key(self, entry: Entry) -> list[BmMatchParam]:
        """The key of an entry in BMv2's format."""
        return [match(value, part) for value, part in zip(entry.key, self.program.table(entry.table).key, strict=True)]

    def values(self, entry: TableEntry) -> list[bytes]:
        """The parameters of an entry in BMv2's format; `InputError` if they do not fit the program."""
        return values(action_call(self.program, entry))

    def options(self, entry: Entry) -> BmAddEntryOptions:
        return BmAddEntryOptions(entry.priority)

    def members(self, profile: str, calls: Sequence[ActionCall]) -> tuple[str, int]:
        """The member of a profile that runs a call, or a group of members ("_ws" in the names of BMv2's calls)."""
        made = [
            self.standard.bm_mt_act_prof_add_member(CONTEXT, profile, call.action.name, values(call)) for call in calls
        ]
        if len(made) == 1:
            return "", made[0]
        group: int = self.standard.bm_mt_act_prof_create_group(CONTEXT, profile)
        for member in made:
            self.standard.bm_mt_act_prof_add_member_to_group(CONTEXT, profile, member, group)
        return "_ws", group

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        """Set a default action; a table with an action profile gets it as a new member or group of the profile."""
        table = self.program.table(default.table)
        calls = [call(table, action, params) for action, params in actions_of(default)]
        if table.profile is None:
            self.standard.bm_mt_set_default_action(CONTEXT, table.name, calls[0].action.name, values(calls[0]))
            return
        kind, number = self.members(table.profile, calls)
        what = "group" if kind else "member"
        getattr(self.standard, f"bm_mt_indirect{kind}_set_default_{what}")(CONTEXT, table.name, number)

    def reset_default(self, table: str) -> None:
        kind = "" if self.program.table(table).profile is None else "_indirect"
        getattr(self.standard, f"bm_mt{kind}_reset_default_entry")(CONTEXT, table)

    def put_group(self, group: MulticastGroup) -> None:
        self.remove_group(group.group)
        self.add_group(group)

    def add_group(self, group: MulticastGroup) -> None:
        """Add a new multicast group with its nodes."""
        handle = self.replication.bm_mc_mgrp_create(CONTEXT, group.group)
        self.nodes[group.group] = []
        for replica, ports in group.runs():
            bitmap = format(sum(1 << port for port in ports), "b")
            node: int = self.replication.bm_mc_node_create(CONTEXT, replica, bitmap, "")
            self.replication.bm_mc_node_associate(CONTEXT, handle, node)
            self.nodes[group.group].append(node)

    def remove_group(self, number: int) -> None:
        """Remove a multicast group and its nodes; do nothing if there is none."""
        for node in self.nodes.pop(number, ()):
            self.replication.bm_mc_node_destroy(CONTEXT, node)
        with suppress(InvalidMcOperation):
            self.replication.bm_mc_mgrp_destroy(CONTEXT, number)

    def put_session(self, session: MirrorSession) -> None:
        if session.size_bytes:
            raise UnsupportedError(f"mirror session {session.session}: BMv2 does not cut clones")
        config = MirroringSessionConfig(port=session.port, mgid=session.group)
        self.switch.mirroring_session_add(session.session, config)

    def remove_session(self, number: int) -> None:
        with suppress(InvalidMirroringOperation):
            self.switch.mirroring_session_delete(number)

    def add_value(self, member: ValueSetMember) -> None:
        self.standard.bm_parse_vset_add(CONTEXT, member.value_set, self.value_bytes(member))

    def remove_value(self, member: ValueSetMember) -> None:
        self.standard.bm_parse_vset_remove(CONTEXT, member.value_set, self.value_bytes(member))

    def value_bytes(self, member: ValueSetMember) -> bytes:
        """A value in BMv2's format."""
        return in_bytes(member.value, self.program.value_sets[member.value_set].bits)

    def write_register(self, name: str, index: int | None, value: int) -> None:
        if index is not None:
            self.standard.bm_register_write(*write_call(RegisterPreset(name, index, value)))
        else:
            last = self.program.register(name).size
            _, _, _, signed = write_call(RegisterPreset(name, 0, value))
            self.standard.bm_register_write_range(CONTEXT, name, 0, last, signed)

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        cells = range(self.program.counter(name).size) if index is None else (index,)
        value = BmCounterValue(packets=packets, bytes=octets)
        pipeline(self.standard, "bm_counter_write", ((CONTEXT, name, cell, value) for cell in cells))

    def set_rates(self, rates: MeterRates) -> None:
        """Set the rates of one meter cell or of all; the cells of a direct meter are entries, by their handles."""
        given = [BmMeterRateConfig(rate, burst) for rate, burst in rates.rates]
        if rates.index is None:
            self.standard.bm_meter_array_set_rates(CONTEXT, rates.meter, given)
        elif rates.meter in self.program.meters:
            self.standard.bm_meter_set_rates(CONTEXT, rates.meter, rates.index, given)
        else:
            table = next(table.name for table in self.program.tables.values() if table.meter == rates.meter)
            self.standard.bm_mt_set_meter_rates(CONTEXT, table, rates.index, given)

    def read_rates(self, name: str, index: int) -> Rates:
        return rates_of(self.standard.bm_meter_get_rates(CONTEXT, name, index))

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        value = self.standard.bm_mt_read_counter(*self.place(entry))
        return value.packets, value.bytes

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        self.standard.bm_mt_write_counter(*self.place(entry), BmCounterValue(packets=packets, bytes=octets))

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        given = [BmMeterRateConfig(rate, burst) for rate, burst in rates]
        self.standard.bm_mt_set_meter_rates(*self.place(entry), given)

    def entry_rates(self, entry: Entry) -> Rates:
        return rates_of(self.standard.bm_mt_get_meter_rates(*self.place(entry)))

    def idle_s(self, entry: Entry) -> float:
        life = self.found([entry])[0].life
        return 0.0 if life is None else life.time_since_hit_ms / 1000

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
        now: int = self.switch.get_time_elapsed_us()
        return now

    def wipe(self) -> None:
        pipeline(self.standard, "bm_register_reset", ((CONTEXT, name) for name in self.program.registers))

    def reset(self) -> None:
        """Delete all entries and groups, and set registers and counters to 0, as after a fresh start."""
        self.nodes.clear()
        self.standard.bm_reset_state()


def view(handle: Handle, program: Program) -> RuntimeView:  # noqa: ARG001, p4-utils reads it from its file
    """A reading connection to the switch that gave `handle`; `RunError` if it has ended."""
    try:
        return RuntimeView(handle["control_port"], Path(handle["program"]))
    except ConnectionError as error:
        raise RunError(f"{error}: the switch, or its network, has ended") from error


def table_entry(table: str, entry: BmMtEntry) -> TableEntry:
    """The entry that BMv2 describes; its key has only exact matches."""
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


def rates_of(found: Iterable[BmMeterRateConfig]) -> Rates:
    """The rates of a meter's cell as BMv2 reports them."""
    return tuple((each.units_per_micros, each.burst_size) for each in found)


def refused(what: str, error: InvalidTableOperation) -> InputError:
    """The error for a request that BMv2 refuses, with BMv2's name for the reason."""
    return InputError(f"{what}: {TableOperationErrorCode._VALUES_TO_NAMES[error.code]}")


def write_call(preset: RegisterPreset) -> tuple[Any, ...]:
    """The arguments of the call that writes a register's element; numbers from 2^63 on are sent as negative ones."""
    return CONTEXT, preset.register, preset.index, int(np.uint64(preset.value).view(np.int64))


def pipeline(client: Any, method: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Send all `calls` of one method and return their answers in order; a refusal by a table counts as an answer."""
    send: Callable[..., None] = getattr(client, f"send_{method}")
    receive: Callable[[], Any] = getattr(client, f"recv_{method}")
    answers: list[Any] = []
    source = iter(calls)
    while batch := list(islice(source, CALLS_IN_FLIGHT)):
        for arguments in batch:
            send(*arguments)
        for _ in batch:
            try:
                answers.append(receive())
            except InvalidTableOperation as refusal:
                answers.append(refusal)
    return answers
