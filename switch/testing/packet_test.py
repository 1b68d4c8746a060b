"""A switch under test: packets in, and expected packets per port. The fixture `p4_switch` gives one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import SupportsBytes

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_files import fill_switch
from inakit.switch.control.recorded_entries import add_group, install, set_rates
from inakit.switch.control.simple_switch_cli import CommandedSwitch, run_command, whole_name
from inakit.switch.entries import MeterRates, MirrorSession, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.program import NEVER_APPLIED, Program
from inakit.switch.testing.devices import Device
from inakit.switch.testing.stf_play import mismatch, spaced
from inakit.switch.testing.stf_script import Add, SetDefault, StfNames, parse_expect
from inakit.topo.errors import InputError, unknown_name

Key = Mapping[str, object]


@dataclass(frozen=True)
class TestedTable:
    """The table `name`. Keys are {field: value}, values those of STF; the highest `priority` wins, as in STF."""

    __test__ = False
    control: ControlPlane
    names: StfNames
    name: str

    def add(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        self.control.tables.add_entry(self._entry(key, priority, action, params))

    def change(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        entry = self._entry(key, priority, action, params)
        self.control.tables.modify(self.name, self._handle(key, priority), entry.action, entry.params)

    def delete(self, key: Key, priority: int | None = None) -> None:
        self.control.tables.delete(self.name, self._handle(key, priority))

    def clear(self) -> None:
        """Remove all entries."""
        self.control.tables.clear(self.name)

    def entries(self) -> list[TableEntry]:
        """The entries by their handles. Of their priorities the lowest wins, as in BMv2."""
        return [held.entry for held in self.control.tables.entries(self.name) if isinstance(held.entry, TableEntry)]

    def counter(self, key: Key, priority: int | None = None) -> tuple[int, int]:
        """The packets and bytes counted by the entry with this key; the table must have a direct counter."""
        return self.control.counters.read_entry(self.name, self._handle(key, priority))

    def set_default(self, action: str, **params: object) -> None:
        """Set the action that the table runs on a miss."""
        default = self.names.default(SetDefault(self.name, action, as_text(params)))
        self.control.tables.set_default(default.table, default.action, default.params)

    def reset_default(self) -> None:
        """Restore the program's action on a miss."""
        self.control.tables.reset_default(self.name)

    def _entry(self, key: Key, priority: int | None, action: str, params: Key) -> TableEntry:
        return self.names.entry(Add(self.name, priority, as_text(key), action, as_text(params)))

    def _handle(self, key: Key, priority: int | None) -> int:
        found = self.names.matched(Add(self.name, priority, as_text(key), "", ()))
        return self.control.tables.find(self.name, *found)


def as_text(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values in the form of an STF statement."""
    return tuple((name, str(value)) for name, value in values.items())


class PacketTest:
    """A switch with a program; `waiting` holds the packets that left each port and have not been expected yet."""

    def __init__(self, program: Program, device: Device) -> None:
        self.program, self.device = program, device
        self.control = device.control
        self.names = StfNames(program)
        self.waiting: dict[int, list[bytes]] = {}

    def table(self, name: str) -> TestedTable:
        """The table of this name, or the only one whose name ends with it."""
        __tracebackhide__ = True
        if not any(each.endswith(name) for each in self.program.tables):
            raise InputError(f"{unknown_name('table', name, self.program.tables)}; {NEVER_APPLIED}")
        return TestedTable(self.control, self.names, self.names.table(name).name)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries, multicast groups, mirror sessions, rates or register values."""
        install(self.control, entries)

    def command(self, line: str) -> None:
        """Carry out a command of simple_switch_CLI that changes the switch."""
        said = run_command(CommandedSwitch(self.control), line.split())
        if said is not None:
            raise AssertionError(said)

    def commands(self, path: str | PathLike[str]) -> None:
        """Carry out the commands in a file of simple_switch_CLI; those that only read are skipped."""
        fill_switch(Path(path), CommandedSwitch(self.control))

    def send(self, port: int, packet: SupportsBytes) -> None:
        """Send a packet, as bytes or from scapy, to `port`."""
        self._keep(self.device.inject(port, bytes(packet)))

    def expect(self, port: int, packet: SupportsBytes | str) -> bytes:
        """Return the next packet to leave `port`; `AssertionError` if it differs from `packet`.

        As text, `packet` is a pattern of STF: hexadecimal digits, `*` for any; more digits can follow unless it ends in
        `$`.
        """
        __tracebackhide__ = True
        pattern = packet if isinstance(packet, str) else bytes(packet).hex() + "$"
        if not self.waiting.get(port):
            self._keep(self.device.late())
        if not self.waiting.get(port):
            raise AssertionError(f"no packet left port {port}{self._others()}")
        got = self.waiting[port].pop(0)
        wrong = mismatch(parse_expect(f"{port} {pattern}"), got.hex().upper())
        if wrong is not None:
            raise AssertionError(f"the next packet of port {port}: {wrong}")
        return got

    def expect_nothing_else(self) -> None:
        """Fail if any port sent a packet that `expect` has not taken."""
        __tracebackhide__ = True
        self._keep(self.device.late())
        if any(self.waiting.values()):
            raise AssertionError(f"there are more packets{self._others()}")

    def register(self, name: str) -> list[int]:
        """All elements of a register array, by its name or an ending of it."""
        return [int(value) for value in self.control.registers.read_all(self._register(name))]

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one element of a register array."""
        self.control.registers.write(self._register(name), index, value)

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter; for table entries, use `table(...).counter(...)`."""
        packets, octets = self.control.counters.read_all(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def multicast(self, group: int, ports: Iterable[int] = (), more: Iterable[tuple[int, int]] = ()) -> None:
        """Make packets to `group` leave by `ports` with `egress_rid` 1, and by each (egress_rid, port) of `more`.

        An existing group is replaced.
        """
        self.control.replication.destroy_group(group)
        add_group(self.control, MulticastGroup(group, tuple(ports), tuple(more)))

    def mirror(self, session: int, port: int | None = None, group: int | None = None) -> None:
        """Make clones of a session leave by a port, or by a multicast group."""
        self.control.replication.put_session(MirrorSession(session, port, group))

    def meter(self, name: str, rates: Sequence[tuple[float, int]], index: int | None = None) -> None:
        """Set the rates of one cell of a meter, or of all: (units per microsecond, burst), the lowest first."""
        meters = self.program.meters | self.program.direct_meters
        set_rates(self.control, MeterRates(whole_name("meter", name, meters), index, tuple(rates)))

    def _register(self, name: str) -> str:
        return whole_name("register", name, self.program.registers)

    def _keep(self, packets: list[tuple[int, bytes]]) -> None:
        for port, packet in packets:
            self.waiting.setdefault(port, []).append(packet)

    def _others(self) -> str:
        lines = [f"\n  port {port}: {spaced(p.hex())}" for port, held in self.waiting.items() for p in held]
        return f"; packets that left and were not expected:{''.join(lines)}" if lines else "; nothing else left either"
