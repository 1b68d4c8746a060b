"""A switch in a sandbox: it interprets an untrusted program.

The answer for an error is its kind (`refused`, `input`, `run` or `memory`) and its message. Table entries come from the
grader as a pickle; this process never sends a pickle.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inakit.switch.control.entry_files import ProgramNames
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch, Packets
from inakit.switch.program.bmv2_json import parse_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InakitError, InputError, UnsupportedError

MOST_LINES = 2000
Registers = tuple[tuple[str, tuple[int, ...]], ...]


def with_whole_names(program: Program, entries: SwitchEntries) -> SwitchEntries:
    """The entries with the program's full names of tables and actions; a given name can be any unique suffix."""
    names, tables = ProgramNames(program), []
    for entry in entries.tables:
        table = names.table(entry.table)
        actions = [action.name for action in table.actions]
        action = whole_name(f"action of table '{table.name}'", entry.action, actions)
        tables.append(replace(entry, table=table.name, action=action))
    return replace(entries, tables=tuple(tables))


class SwitchRunner:
    """One program, and the switches that run it, by name. Their clocks stand still, so that runs are repeatable."""

    def __init__(self) -> None:
        asked: tuple[Callable[..., Any], ...] = (
            self.load, self.fresh, self.choose, self.install, self.inject, self.trace, self.counter, self.state,
            self.step,
        )  # fmt: skip
        self.calls = {each.__name__: each for each in asked}
        self.program: Program | None = None
        self.switches: dict[str, InterpretedSwitch] = {}
        self.chosen = ""
        self.contents: list[Registers] = []
        self.numbers: dict[Registers, int] = {}

    @property
    def running(self) -> InterpretedSwitch:
        """The chosen switch."""
        return self.switches[self.chosen]

    def load(self, text: str, name: str) -> None:
        """Read a program."""
        self.program = parse_program(text.encode(), name)
        self.fresh()

    def fresh(self) -> None:
        """Restart the switch without entries."""
        assert self.program is not None
        self.switches[self.chosen] = InterpretedSwitch(self.program, clock=lambda: 0)

    def choose(self, name: str) -> None:
        """Select the switch of this name for all later calls; a new name makes a new switch."""
        self.chosen = name
        if name not in self.switches:
            self.fresh()

    def install(self, entries: str) -> None:
        """Add entries, a pickle in hexadecimal digits."""
        self.running.install(with_whole_names(self.running.program, pickle.loads(bytes.fromhex(entries))))

    def inject(self, port: int, packet: str) -> list[list[Any]]:
        """Send a packet to a port; return the packets that leave."""
        return as_json(self.running.inject(port, bytes.fromhex(packet)))

    def trace(self, port: int, packet: str) -> list[Any]:
        """Send a packet to a port; return the packets that leave and the last lines of the trace."""
        traced = self.running.trace(port, bytes.fromhex(packet))
        return [as_json(traced.sent), list(traced.lines[-MOST_LINES:])]

    def counter(self, name: str) -> list[list[int]]:
        """Packets and bytes of all cells of a counter."""
        found = self.running.read_counter(whole_name("counter", name, self.running.program.counters))
        return [each.tolist() for each in found]

    def state(self) -> int:
        """The number that identifies the contents of all registers; new contents get the next number."""
        found = tuple((name, tuple(cells)) for name, cells in self.running.state.registers.items())
        if found not in self.numbers:
            self.numbers[found] = len(self.contents)
            self.contents.append(found)
        return self.numbers[found]

    def step(self, number: int, port: int, packet: str) -> list[Any]:
        """Send a packet to the switch in a state; return the next state and the packets that leave."""
        for name, cells in self.contents[number]:
            self.running.state.registers[name][:] = cells
        sent = self.inject(port, packet)
        return [self.state(), sent]

    def explain(self, error: Exception) -> list[str]:
        """The answer for an error of the program."""
        if isinstance(error, MemoryError) or (
            isinstance(error, InakitError) and isinstance(error.__cause__, MemoryError)
        ):
            return ["memory", "the program needs more memory than it may use"]
        if not isinstance(error, InakitError):
            raise error
        kinds: dict[type[InakitError], str] = {UnsupportedError: "refused", InputError: "input"}
        return [next((kind for of, kind in kinds.items() if isinstance(error, of)), "run"), str(error)]


def as_json(packets: Packets) -> list[list[Any]]:
    """Packets as JSON."""
    return [[port, packet.hex()] for port, packet in packets]


runner = SwitchRunner
