"""The control plane of one `simple_switch`: entries in, registers and counters out, over one connection.

p4-utils makes the connection. Its own calls print what goes wrong and go on, and wait for each answer; here an error
is an exception, and calls of one kind are sent together before their answers are read.
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
from numpy.typing import NDArray
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI
from sswitch_runtime.ttypes import MirroringSessionConfig
from thrift.Thrift import TApplicationException

from switch.control.entry_check import action_call, check_entries, default_call
from switch.entries import (
    DefaultAction,
    KeyPart,
    Lpm,
    MeterRates,
    MulticastGroup,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
    group_of_nodes,
)
from switch.handle import Handle
from switch.program.actions import ActionCall
from switch.program.pipelines import MatchKey
from switch.program.program import Program
from switch.program.read import read_program
from topo.errors import InputError, RunError, UnsupportedError

CONTEXT = 0
CALLS_IN_FLIGHT = 128
"""Calls whose answers are not read yet: few enough that calls and answers fit into the sockets' buffers."""

EGRESS_QUEUE_PACKETS = 1024
"""The packets that can wait for one egress port. With BMv2's own 64, packets of a burst are lost silently."""

SERVICES_TIMEOUT_S, SERVICES_POLL_S = 5.0, 0.02

read_program_once = cache(read_program)


class RuntimeView:
    """A connection to the `simple_switch` that listens on local `port` and runs `program`, for reading."""

    def __init__(self, port: int, program: Path) -> None:
        try:
            self._api = SimpleSwitchThriftAPI(port, "127.0.0.1", str(program))
        except SystemExit as error:  # how p4-utils says that nobody answers
            raise ConnectionError(f"no control plane answers on port {port}") from error
        self._standard = self._api.client
        self._replication = self._api.mc_client
        self._program = read_program_once(program)

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, ordered by key."""
        table = self._program.table(name)
        found = self._standard.bm_mt_get_entries(CONTEXT, table.name)
        return sorted((table_entry(table.name, each) for each in found), key=lambda entry: entry.key)

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        return sorted(groups(json.loads(self._replication.bm_mc_get_entries(CONTEXT))), key=lambda group: group.group)

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array. BMv2 reports 64-bit values from 2^63 on as 2^63 - 1."""
        register = self._program.register(name)
        return np.array(self._standard.bm_register_read_all(CONTEXT, register.name), np.int64).view(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""
        size = self._program.counter(name).size
        calls = [(CONTEXT, name, index) for index in range(size if count is None else min(count, size))]
        values = pipeline(self._standard, "bm_counter_read", calls)
        packets, octets = [value.packets for value in values], [value.bytes for value in values]
        return np.array(packets, np.uint64), np.array(octets, np.uint64)

    def read_counter_at(self, name: str, index: int) -> tuple[int, int]:
        """Packets and bytes of one element of an indirect counter."""
        value = self._standard.bm_counter_read(CONTEXT, name, index)
        return value.packets, value.bytes


class Runtime(RuntimeView):
    """The connection of the process that runs the switch: entries go in as well."""

    def __init__(self, port: int, program: Path) -> None:
        super().__init__(port, program)
        self._set_queues()

    def _set_queues(self) -> None:
        """BMv2 takes connections a moment before it knows all of its services."""
        deadline = time.monotonic() + SERVICES_TIMEOUT_S
        while True:
            try:
                self._api.sswitch_client.set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
            except TApplicationException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(SERVICES_POLL_S)
            else:
                return

    def install(self, entries: SwitchEntries) -> None:
        """Add everything in `entries`. What the program cannot take is an `InputError`, before anything is added."""
        check_entries(self._program, entries)
        answers = pipeline(self._standard, "bm_mt_add_entry", map(self._entry_call, entries.tables))
        for entry, answer in zip(entries.tables, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                reason = TableOperationErrorCode._VALUES_TO_NAMES[answer.code]
                raise InputError(f"switch '{entries.switch}': BMv2 refuses the entry '{entry.cli()}': {reason}")
        pipeline(self._standard, "bm_register_write", map(write_call, entries.registers))
        for member in entries.value_sets:
            bits = self._program.value_sets[member.value_set].bits
            self._standard.bm_parse_vset_add(CONTEXT, member.value_set, in_bytes(member.value, bits))
        for default in entries.defaults:
            self._set_default(default)
        for group in entries.groups:
            self._add_group(group)
        for mirror in entries.mirrors:
            if mirror.size_bytes:
                raise UnsupportedError(f"mirror session {mirror.session}: BMv2 does not cut clones")
            config = MirroringSessionConfig(port=mirror.port, mgid=mirror.group)
            self._api.sswitch_client.mirroring_session_add(mirror.session, config)
        for meter in entries.meters:
            self._set_rates(meter)

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there other actions and parameters. One that is not there is an `InputError`."""
        calls = [self._entry_call(entry) for entry in entries]
        found = pipeline(self._standard, "bm_mt_get_entry_from_key", ((*call[:3], call[5]) for call in calls))
        for entry, answer in zip(entries, found, strict=True):
            if isinstance(answer, InvalidTableOperation):
                raise InputError(f"table '{entry.table}' has no entry for the key {entry.key}: install it first")
        changes = [
            (CONTEXT, entry.table, old.entry_handle, entry.action, call[4])
            for entry, old, call in zip(entries, found, calls, strict=True)
        ]
        pipeline(self._standard, "bm_mt_modify_entry", changes)

    def wipe(self) -> None:
        """Set all registers to 0."""
        pipeline(self._standard, "bm_register_reset", ((CONTEXT, name) for name in self._program.registers))

    def reset(self) -> None:
        """Delete all entries and groups, and set registers and counters to 0, as after a fresh start."""
        self._standard.bm_reset_state()

    def _entry_call(self, entry: TableEntry) -> tuple[Any, ...]:
        table, call = self._program.table(entry.table), action_call(self._program, entry)
        key = [match(value, part) for value, part in zip(entry.key, table.key, strict=True)]
        return CONTEXT, entry.table, key, entry.action, values(call), BmAddEntryOptions(entry.priority)

    def _set_default(self, default: DefaultAction) -> None:
        given = values(default_call(self._program, default))
        self._standard.bm_mt_set_default_action(CONTEXT, default.table, default.action, given)

    def _set_rates(self, meter: MeterRates) -> None:
        rates = [BmMeterRateConfig(rate, burst) for rate, burst in meter.rates]
        if meter.index is None:
            self._standard.bm_meter_array_set_rates(CONTEXT, meter.meter, rates)
        else:
            self._standard.bm_meter_set_rates(CONTEXT, meter.meter, meter.index, rates)

    def _add_group(self, group: MulticastGroup) -> None:
        handle = self._replication.bm_mc_mgrp_create(CONTEXT, group.group)
        for replica, ports in group.nodes.items():
            bitmap = format(sum(1 << port for port in ports), "b")
            node = self._replication.bm_mc_node_create(CONTEXT, replica, bitmap, "")
            self._replication.bm_mc_node_associate(CONTEXT, handle, node)


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


def write_call(preset: RegisterPreset) -> tuple[Any, ...]:
    """The arguments of the call that writes a register's element; numbers from 2^63 on are sent as negative ones."""
    return CONTEXT, preset.register, preset.index, int(np.uint64(preset.value).view(np.int64))


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
