"""A switch under test: packets in, and what must leave which port. The fixture `p4_switch` gives one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import SupportsBytes

from switch.entries import SwitchEntries
from switch.program.program import Program
from switch.standalone.devices import Device
from switch.stf.differences import mismatch, spaced
from switch.stf.names import ProgramNames, only
from switch.stf.script import Add, SetDefault, parse_expect


class PacketTest:
    """A switch with a program; `waiting` has the packets that left each port and were not expected yet."""

    def __init__(self, program: Program, device: Device) -> None:
        self.device = device
        self.names = ProgramNames(program)
        self.waiting: dict[int, list[bytes]] = {}

    def table(self, name: str) -> TestedTable:
        """The table of this name, or the only one whose name ends with it."""
        return TestedTable(self, self.names.table(name).name)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries, multicast groups, mirror sessions or register values."""
        self.device.install(entries)

    def send(self, port: int, packet: SupportsBytes) -> None:
        """Let a packet, as bytes or of scapy, arrive at `port`."""
        self._keep(self.device.inject(port, bytes(packet)))

    def expect(self, port: int, packet: SupportsBytes | str) -> bytes:
        """The next packet to leave `port`; `AssertionError` if it is not this one.

        As text, `packet` is a pattern of STF: hexadecimal digits, `*` for any; more may follow unless it ends in `$`.
        """
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
        """Fail if any port sent a packet beside those that `expect` has taken."""
        self._keep(self.device.late())
        if any(self.waiting.values()):
            raise AssertionError(f"there are more packets{self._others()}")

    def register(self, name: str) -> list[int]:
        """All elements of a register array, by its name or the end of it."""
        whole = only("register", name, self.names.program.registers)
        return [int(value) for value in self.device.read_register(whole)]

    def _keep(self, packets: list[tuple[int, bytes]]) -> None:
        for port, packet in packets:
            self.waiting.setdefault(port, []).append(packet)

    def _others(self) -> str:
        lines = [f"\n  port {port}: {spaced(p.hex())}" for port, held in self.waiting.items() for p in held]
        return f"; what left and nobody asked for:{''.join(lines)}" if lines else "; nothing else left either"


@dataclass(frozen=True)
class TestedTable:
    """One table of a switch under test."""

    __test__ = False
    switch: PacketTest
    name: str

    def add(self, key: Mapping[str, object], action: str, priority: int | None = None, **params: object) -> None:
        """Add an entry. The highest `priority` wins, as in STF."""
        add = Add(self.name, priority, as_text(key), action, as_text(params))
        self.switch.install(SwitchEntries("switch", (self.switch.names.entry(add),)))

    def set_default(self, action: str, **params: object) -> None:
        """Choose the action that the table runs on a miss."""
        default = self.switch.names.default(SetDefault(self.name, action, as_text(params)))
        self.switch.install(SwitchEntries("switch", defaults=(default,)))


def as_text(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values as an STF statement has them."""
    return tuple((name, str(value)) for name, value in values.items())
