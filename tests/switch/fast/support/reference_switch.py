"""A `simple_switch` whose entries change while it runs, by its own protocol: what other switches are held against."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from small_programs import Packets

from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.control.data_plane import Rates
from inakit.switch.control.entry_check import identity_of
from inakit.switch.entries import DefaultAction, Entry, ProfileEntry, TableEntry, ValueSetMember
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import BMV2_GAP_S, Wires, open_wires

LONG_MS = 100_000
PATIENCE_S, QUIET_S = 10.0, 0.3


class ReferenceState:
    """The part of `DataPlane` that tests of entries need, asked of a `simple_switch` on `port`."""

    def __init__(self, program: Program, port: int) -> None:
        from bm_runtime.standard import Standard  # noqa: PLC0415, only where BMv2 is
        from thrift.protocol import TBinaryProtocol, TMultiplexedProtocol  # noqa: PLC0415
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415

        transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", port))
        protocol = TMultiplexedProtocol.TMultiplexedProtocol(TBinaryProtocol.TBinaryProtocol(transport), "standard")
        transport.open()
        self.program, self.client = program, Standard.Client(protocol)
        self.handles: dict[object, int] = {}

    def identity(self, entry: Entry) -> object:
        """What identifies an entry among those of all tables."""
        return entry.table, identity_of(self.program.tables[entry.table], entry.key, entry.priority)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries, those of action profiles with members and groups of their own."""
        from bm_runtime.standard.ttypes import BmAddEntryOptions  # noqa: PLC0415

        from inakit.switch.bmv2.thrift_client import match  # noqa: PLC0415

        for entry in entries:
            table = self.program.tables[entry.table]
            key = [match(value, part) for value, part in zip(entry.key, table.key, strict=True)]
            options = BmAddEntryOptions(entry.priority)
            if isinstance(entry, TableEntry):
                handle = self.client.bm_mt_add_entry(0, table.name, key, entry.action, self.params(entry), options)
                self.handles[self.identity(entry)] = handle
                if table.idle_timeout:  # else BMv2 does not tell how long an entry has been idle
                    self.client.bm_mt_set_entry_ttl(0, table.name, handle, LONG_MS)
            elif self.selects(entry):
                group = self.group(entry)
                handle = self.client.bm_mt_indirect_ws_add_entry(0, table.name, key, group, options)
                self.handles[self.identity(entry)] = handle
            else:
                (member,) = self.members(entry)
                handle = self.client.bm_mt_indirect_add_entry(0, table.name, key, member, options)
                self.handles[self.identity(entry)] = handle

    def change(self, entries: Sequence[Entry]) -> None:
        """Give entries other actions."""
        for entry in entries:
            handle = self.handles[self.identity(entry)]
            if isinstance(entry, TableEntry):
                self.client.bm_mt_modify_entry(0, entry.table, handle, entry.action, self.params(entry))
            elif self.selects(entry):
                group = self.group(entry)
                self.client.bm_mt_indirect_ws_modify_entry(0, entry.table, handle, group)
            else:
                self.client.bm_mt_indirect_modify_entry(0, entry.table, handle, self.members(entry)[0])

    def remove(self, entries: Sequence[Entry]) -> None:
        """Remove entries."""
        for entry in entries:
            handle = self.handles.pop(self.identity(entry))
            profiled = isinstance(entry, ProfileEntry)
            delete = self.client.bm_mt_indirect_delete_entry if profiled else self.client.bm_mt_delete_entry
            delete(0, entry.table, handle)

    def set_default(self, default: DefaultAction) -> None:
        """Let a table run another action on a miss."""
        self.client.bm_mt_set_default_action(0, default.table, default.action, self.params(default))

    def reset_default(self, table: str) -> None:
        """Let a table run its own default action again."""
        self.client.bm_mt_reset_default_entry(0, table)

    def add_value(self, member: ValueSetMember) -> None:
        """Add a value to a parser value set."""
        self.client.bm_parse_vset_add(0, member.value_set, self.value(member))

    def remove_value(self, member: ValueSetMember) -> None:
        """Remove a value from a parser value set."""
        self.client.bm_parse_vset_remove(0, member.value_set, self.value(member))

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        """Packets and bytes of an entry."""
        found = self.client.bm_mt_read_counter(0, entry.table, self.handles[self.identity(entry)])
        return found.packets, found.bytes

    def idle_s(self, entry: Entry) -> float:
        """Seconds since an entry last matched a packet."""
        found = self.client.bm_mt_get_entry(0, entry.table, self.handles[self.identity(entry)])
        return float(found.life.time_since_hit_ms) / 1000

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        """Give the meter of an entry these rates."""
        from bm_runtime.standard.ttypes import BmMeterRateConfig  # noqa: PLC0415

        given = [BmMeterRateConfig(rate, burst) for rate, burst in rates]
        self.client.bm_mt_set_meter_rates(0, entry.table, self.handles[self.identity(entry)], given)

    def members(self, entry: ProfileEntry) -> list[int]:
        """New members of the entry's profile, for its actions."""
        add, table = self.client.bm_mt_act_prof_add_member, self.program.tables[entry.table]
        found = []
        for action, values in entry.actions:
            data = packed(values, [parameter.bits for parameter in table.action(action).parameters])
            found.append(add(0, entry.profile, action, data))
        return found

    def group(self, entry: ProfileEntry) -> int:
        """A new group of such members."""
        group: int = self.client.bm_mt_act_prof_create_group(0, entry.profile)
        for member in self.members(entry):
            self.client.bm_mt_act_prof_add_member_to_group(0, entry.profile, member, group)
        return group

    def selects(self, entry: ProfileEntry) -> bool:
        """Whether the entry's profile has a selector."""
        return self.program.profiles[entry.profile].selector is not None

    def params(self, entry: TableEntry | DefaultAction) -> list[bytes]:
        """The parameters of an action."""
        action = self.program.tables[entry.table].action(entry.action)
        return packed(entry.params, [parameter.bits for parameter in action.parameters])

    def value(self, member: ValueSetMember) -> bytes:
        """A value of a value set."""
        return packed((member.value,), [self.program.value_sets[member.value_set].bits])[0]


def packed(values: Sequence[int], bits: Sequence[int]) -> list[bytes]:
    """Numbers of so many bits, in bytes."""
    return [value.to_bytes(-(-size // 8), "big") for value, size in zip(values, bits, strict=True)]


class Reference:
    """A running `simple_switch`: its state, and the wires at its ports."""

    def __init__(self, state: Any, wires: Wires) -> None:
        self.state, self.wires = state, wires

    def inject_all(self, packets: Packets, expected: int) -> Packets:
        """What leaves for packets that are sent one after the other: `expected` of them, if they come in time."""
        for port, each in packets:
            self.wires.send(port, each)
            time.sleep(BMV2_GAP_S)
        came = list(islice(self.wires.received(PATIENCE_S), expected))
        return [*came, *self.wires.received(QUIET_S)]


@contextmanager
def reference_switch(path: Path, ports: Iterable[int]) -> Iterator[Reference]:
    """A `simple_switch` that runs the BMv2 JSON in a file, until the context ends."""
    port = free_port()
    with open_wires(ports) as wires, tempfile.TemporaryDirectory() as folder:
        attached = [part for number, name in wires.interfaces.items() for part in ("-i", f"{number}@{name}")]
        command = ["simple_switch", *attached, "--thrift-port", str(port), "--log-console", "-L", "warn", str(path)]
        process = SimpleSwitchProcess("reference", command, port, Path(folder, "log"))
        try:
            process.wait_until_ready()
            yield Reference(ReferenceState(read_program(path), port), wires)
            process.check()
        finally:
            process.stop()
