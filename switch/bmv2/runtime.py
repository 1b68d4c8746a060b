"""The control plane of one `simple_switch`: entries in, registers and counters out, over one connection.

p4-utils connects and knows the program's tables. Its own calls print what goes wrong and go on, and wait
for each answer; here an error is an exception, and calls of one kind travel together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bm_runtime.standard.ttypes import (
    BmAddEntryOptions,
    BmMatchParam,
    BmMatchParamExact,
    BmMatchParamType,
    InvalidCounterOperation,
    InvalidRegisterOperation,
    InvalidTableOperation,
    TableOperationErrorCode,
)
from numpy.typing import NDArray
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI

from switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from topo.errors import InputError, unknown_name

CONTEXT = 0
REPLICA_ID = 1
# Calls whose answers are not yet read; few enough that both directions fit into socket buffers.
CALLS_IN_FLIGHT = 128
# Packets that wait for one egress port. BMv2's 64 are lost silently in a burst; veths carry as many as this.
EGRESS_QUEUE_PACKETS = 1024
# What BMv2 answers to a call that asks for something the program does not have.
REFUSALS = (InvalidTableOperation, InvalidRegisterOperation, InvalidCounterOperation)


class Runtime:
    """A connection to the `simple_switch` that listens on local `port` and runs `program`."""

    def __init__(self, port: int, program: Path) -> None:
        try:
            api = SimpleSwitchThriftAPI(port, "127.0.0.1", str(program))
        except SystemExit as error:  # how p4-utils says that nobody answers
            raise ConnectionError(f"no control plane answers on port {port}") from error
        self._standard = api.client
        self._replication = api.mc_client
        self._program = api.switch_info
        api.sswitch_client.set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)

    def install(self, entries: SwitchEntries) -> None:
        """Add everything in `entries`. What the program cannot take is an `InputError`, before anything is added."""
        calls = [self._entry_call(entry) for entry in entries.tables]
        writes = [self._write_call(preset) for preset in entries.registers]
        answers = pipeline(self._standard, "bm_mt_add_entry", calls)
        for entry, answer in zip(entries.tables, answers, strict=True):
            if isinstance(answer, InvalidTableOperation):
                reason = TableOperationErrorCode._VALUES_TO_NAMES[answer.code]
                raise InputError(f"switch '{entries.switch}': BMv2 refuses the entry '{entry.cli()}': {reason}")
        accepted(pipeline(self._standard, "bm_register_write", writes))
        for group in entries.groups:
            self._add_group(group)

    def reset(self) -> None:
        """Forget all entries, groups, register and counter values, as after a fresh start."""
        self._standard.bm_reset_state()

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array. BMv2 reports 64-bit values from 2^63 on as 2^63 - 1."""
        known("register", name, self._program.register_arrays)
        return np.array(self._standard.bm_register_read_all(CONTEXT, name), np.int64).view(np.uint64)

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of an indirect counter."""
        size = known("counter", name, self._program.counter_arrays).size
        calls = [(CONTEXT, name, index) for index in range(size)]
        values = accepted(pipeline(self._standard, "bm_counter_read", calls))
        packets, octets = [value.packets for value in values], [value.bytes for value in values]
        return np.array(packets, np.uint64), np.array(octets, np.uint64)

    def read_counter_at(self, name: str, index: int) -> tuple[int, int]:
        """Packets and bytes of one element of an indirect counter."""
        value = self._standard.bm_counter_read(CONTEXT, name, index)
        return value.packets, value.bytes

    def _entry_call(self, entry: TableEntry) -> tuple[Any, ...]:
        table = known("table", entry.table, self._program.tables)
        action = known(f"action of table {entry.table}", entry.action, table.actions)
        key = encode(entry, "key", entry.key, [bits for _, _, bits in table.key])
        params = encode(entry, "parameter", entry.params, [bits for _, bits in action.runtime_data])
        match = [BmMatchParam(BmMatchParamType.EXACT, exact=BmMatchParamExact(part)) for part in key]
        return CONTEXT, entry.table, match, entry.action, params, BmAddEntryOptions()

    def _write_call(self, preset: RegisterPreset) -> tuple[Any, ...]:
        array = known("register", preset.register, self._program.register_arrays)
        if not (0 <= preset.index < array.size and 0 <= preset.value < 1 << array.width):
            raise InputError(
                f"register {preset.register}[{preset.index}] = {preset.value}: "
                f"it has {array.size} elements of {array.width} bits"
            )
        return CONTEXT, preset.register, preset.index, int(np.uint64(preset.value).view(np.int64))

    def _add_group(self, group: MulticastGroup) -> None:
        bitmap = format(sum(1 << port for port in set(group.ports)), "b")
        handle = self._replication.bm_mc_mgrp_create(CONTEXT, group.group)
        node = self._replication.bm_mc_node_create(CONTEXT, REPLICA_ID, bitmap, "")
        self._replication.bm_mc_node_associate(CONTEXT, handle, node)


def pipeline(client: Any, method: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The answers to `calls` of one method in order; a call that failed is answered by its exception."""
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
    except REFUSALS as error:
        return error


def accepted(answers: list[Any]) -> list[Any]:
    """`answers` without refusals; the first refusal is raised."""
    for reply in answers:
        if isinstance(reply, REFUSALS):
            raise reply
    return answers


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """`items` in lists of at most `size`."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch


def known(what: str, name: str, names: dict[str, Any]) -> Any:
    """What the program calls `name`."""
    if name not in names:
        raise unknown_name(what, name, names)
    return names[name]


def encode(entry: TableEntry, what: str, values: tuple[int, ...], widths: list[int]) -> list[bytes]:
    """Numbers as BMv2 takes them: big-endian, in whole bytes."""
    if len(values) != len(widths):
        raise InputError(f"entry '{entry.cli()}': {len(values)} {what} values where the program has {len(widths)}")
    for value, bits in zip(values, widths, strict=True):
        if not 0 <= value < 1 << bits:
            raise InputError(f"entry '{entry.cli()}': {what} value {value} is not a number of {bits} bits")
    return [value.to_bytes((bits + 7) // 8, "big") for value, bits in zip(values, widths, strict=True)]
