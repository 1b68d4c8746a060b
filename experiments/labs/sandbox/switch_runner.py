"""A switch that answers questions: it interprets a program that nobody trusts, inside a sandbox.

A question is a list whose first item says what is asked. An answer is `["ok", value]`, or the kind of an error and its
message. Table entries cross the border as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from inakit.experiments.labs.sandbox.frames import answer_all
from inakit.switch.control.entry_files import ProgramNames
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import (
    KeyPart,
    Lpm,
    MulticastGroup,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch, Packets
from inakit.switch.program.program import Program
from inakit.switch.program.read import parse_program
from inakit.topo.errors import InakitError, InputError, RunError, UnsupportedError

MATCHES: dict[str, type[Lpm] | type[Ternary] | type[Range]] = {"lpm": Lpm, "ternary": Ternary, "range": Range}


def entries_to(entries: SwitchEntries) -> dict[str, Any]:
    """Entries of tables, multicast groups and register values as JSON."""
    return {
        "tables": [
            [e.table, [part_to(p) for p in e.key], e.action, list(e.params), e.priority] for e in entries.tables
        ],
        "groups": [[group.group, list(group.ports)] for group in entries.groups],
        "registers": [[each.register, each.index, each.value] for each in entries.registers],
    }


def part_to(part: KeyPart) -> Any:
    """A part of a key as JSON."""
    match part:
        case Lpm():
            return ["lpm", part.value, part.prefix]
        case Ternary():
            return ["ternary", part.value, part.mask]
        case Range():
            return ["range", part.low, part.high]
    return part


def entries_from(document: dict[str, Any]) -> SwitchEntries:
    """The entries that `entries_to` wrote."""
    tables = tuple(
        TableEntry(table, tuple(map(part_from, key)), action, tuple(params), priority)
        for table, key, action, params, priority in document["tables"]
    )
    groups = tuple(MulticastGroup(group, tuple(ports)) for group, ports in document["groups"])
    return SwitchEntries("switch", tables, groups, tuple(RegisterPreset(*each) for each in document["registers"]))


def with_whole_names(program: Program, entries: SwitchEntries) -> SwitchEntries:
    """The entries with tables and actions as the program calls them: names may be any ends of these that are unique."""
    names, tables = ProgramNames(program), []
    for entry in entries.tables:
        table = names.table(entry.table)
        actions = [action.name for action in table.actions]
        action = whole_name(f"action of table '{table.name}'", entry.action, actions)
        tables.append(replace(entry, table=table.name, action=action))
    return replace(entries, tables=tuple(tables))


def part_from(document: Any) -> KeyPart:
    """The part of a key that `part_to` wrote."""
    if isinstance(document, int):
        return document
    kind, one, two = document
    return MATCHES[kind](one, two)


Registers = tuple[tuple[str, tuple[int, ...]], ...]

KINDS: dict[type[InakitError], str] = {UnsupportedError: "refused", InputError: "input", RunError: "run"}


class SwitchRunner:
    """One program, and the switches that run it, by name. Their clocks stand still: they do the same twice."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.switches: dict[str, InterpretedSwitch] = {}
        self.chosen = ""
        self.contents: list[Registers] = []
        self.numbers: dict[Registers, int] = {}

    def load(self, text: str, name: str) -> None:
        """Read a program."""
        self.program = parse_program(text.encode(), name)
        self.fresh()

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        assert self.program is not None
        self.switches[self.chosen] = InterpretedSwitch(self.program, clock=lambda: 0)

    def choose(self, name: str) -> None:
        """Let all questions be about the switch of this name from now on; a new name is a new switch."""
        self.chosen = name
        if name not in self.switches:
            self.fresh()

    def install(self, entries: Any) -> None:
        """Add entries."""
        self.running.install(with_whole_names(self.running.program, entries_from(entries)))

    def inject(self, port: int, packet: str) -> list[list[Any]]:
        """What leaves for a packet."""
        return written(self.running.inject(port, bytes.fromhex(packet)))

    def trace(self, port: int, packet: str) -> list[Any]:
        traced = self.running.trace(port, bytes.fromhex(packet))
        return [written(traced.sent), list(traced.lines[-MOST_LINES:])]

    def counter(self, name: str) -> list[list[int]]:
        """Packets and bytes of all cells of a counter."""
        counters = self.running.program.counters
        packets, octets = self.running.read_counter(whole_name("counter", name, counters))
        return [[int(each) for each in packets], [int(each) for each in octets]]

    def state(self) -> int:
        """The number of what all registers hold; new contents get the next one."""
        found = tuple((name, tuple(cells)) for name, cells in self.running.state.registers.items())
        if found not in self.numbers:
            self.numbers[found] = len(self.contents)
            self.contents.append(found)
        return self.numbers[found]

    def step(self, number: int, port: int, packet: str) -> list[Any]:
        """What a packet makes of a state: the next one, and what leaves."""
        for name, cells in self.contents[number]:
            self.running.state.registers[name][:] = cells
        sent = self.inject(port, packet)
        return [self.state(), sent]

    @property
    def running(self) -> InterpretedSwitch:
        return self.switches[self.chosen]


MOST_LINES = 2000
MEMORY = ["memory", "the program needs more memory than it may use"]


def written(packets: Packets) -> list[list[Any]]:
    """Packets as JSON."""
    return [[port, packet.hex()] for port, packet in packets]


def answer_to(runner: SwitchRunner, question: list[Any]) -> list[Any]:
    calls: dict[str, Callable[..., Any]] = {
        each.__name__: each
        for each in (
            runner.load, runner.fresh, runner.choose, runner.install, runner.inject, runner.trace, runner.counter,
            runner.state, runner.step
        )
    }  # fmt: skip
    try:
        return ["ok", calls[question[0]](*question[1:])]
    except InakitError as error:
        if isinstance(error.__cause__, MemoryError):
            return MEMORY
        return [next((kind for of, kind in KINDS.items() if isinstance(error, of)), "run"), str(error)]
    except MemoryError:
        return MEMORY


def main(questions: int, answers: int) -> None:
    """Answer questions until there are no more."""
    answer_all(questions, answers, partial(answer_to, SwitchRunner()))
