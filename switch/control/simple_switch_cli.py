"""The commands of `simple_switch_CLI`, as entries: the reverse of `SwitchEntries.cli`.

Read are those that fill a switch: `table_add`, `table_set_default`, `mc_*`, `mirroring_add*`, `meter_*set_rates`,
`register_write`. Every other command is an `InputError`, for nothing is left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from switch.entries import (
    DefaultAction,
    KeyPart,
    Lpm,
    MeterRates,
    MirrorSession,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
    group_of_nodes,
)
from switch.program.pipelines import MatchKey
from switch.program.program import Program
from topo.errors import InputError, unknown_name

MAC_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


def read_commands(path: Path, program: Program) -> SwitchEntries:
    """What the file of commands installs in a switch that runs `program`; `InputError` with file and line."""
    filler = Filler(program)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; expected a text file of simple_switch_CLI's commands") from error
    for number, line in enumerate(lines, start=1):
        try:
            filler.add(line.partition("#")[0].split())
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
    return filler.take()


@dataclass
class Filler:
    """Collects commands. Groups and their nodes are complete only when all commands are there."""

    program: Program
    tables: list[TableEntry] = field(default_factory=list)
    defaults: list[DefaultAction] = field(default_factory=list)
    mirrors: list[MirrorSession] = field(default_factory=list)
    meters: list[MeterRates] = field(default_factory=list)
    registers: list[RegisterPreset] = field(default_factory=list)
    nodes: list[list[tuple[int, int]]] = field(default_factory=list)
    groups: dict[int, list[int]] = field(default_factory=dict)
    changed: dict[int, None] = field(default_factory=dict)

    def add(self, words: Sequence[str]) -> None:
        """Take one command, as words; an empty line is none."""
        if not words:
            return
        command, *rest = words
        if command not in COMMANDS:
            raise unknown_name("command", command, COMMANDS)
        try:
            COMMANDS[command](self, rest)
        except ValueError as error:
            raise InputError(f"'{' '.join(words)}': {error}; expected {USAGE[command]}") from error

    def take(self) -> SwitchEntries:
        """Everything that was added since the last call."""
        groups = tuple(
            group_of_nodes(group, (replica for node in self.groups[group] for replica in self.nodes[node]))
            for group in self.changed
        )
        taken = SwitchEntries(
            "switch",
            tuple(self.tables),
            groups,
            tuple(self.registers),
            tuple(self.defaults),
            tuple(self.mirrors),
            tuple(self.meters),
        )
        for each in (self.tables, self.registers, self.defaults, self.mirrors, self.meters, self.changed):
            each.clear()
        return taken

    def table_add(self, words: Sequence[str]) -> None:
        table_name, action, *rest = words
        table = self.program.table(table_name)
        key, given = split_at_arrow(rest)
        if len(key) != len(table.key):
            raise ValueError(f"table '{table_name}' has a key of {len(table.key)}, {len(key)} given")
        count = len(table.action(action).parameters)
        if not count <= len(given) <= count + 1:
            raise ValueError(f"action '{action}' has {count} parameters, {len(given)} values given")
        parts = tuple(key_part(part, word) for part, word in zip(table.key, key, strict=True))
        params, priority = tuple(map(number, given[:count])), [int(word) for word in given[count:]]
        self.tables.append(TableEntry(table_name, parts, action, params, *priority))

    def table_set_default(self, words: Sequence[str]) -> None:
        table, action, *params = words
        self.defaults.append(DefaultAction(table, action, tuple(map(number, params))))

    def create_group(self, words: Sequence[str]) -> None:
        (group,) = words
        self.groups[number(group)] = []
        self.changed[number(group)] = None

    def create_node(self, words: Sequence[str]) -> None:
        if "|" in words:
            raise ValueError("link aggregation groups are not supported: list the ports themselves")
        replica, *ports = map(number, words)
        self.nodes.append([(replica, port) for port in ports])

    def associate(self, words: Sequence[str]) -> None:
        group, node = map(number, words)
        if group not in self.groups or not 0 <= node < len(self.nodes):
            raise ValueError(f"there is no group {group} with a node {node} yet: create both first")
        self.groups[group].append(node)
        self.changed[group] = None

    def mirror_to_port(self, words: Sequence[str]) -> None:
        session, port = map(number, words)
        self.mirrors.append(MirrorSession(session, port))

    def mirror_to_group(self, words: Sequence[str]) -> None:
        session, group = map(number, words)
        self.mirrors.append(MirrorSession(session, group=group))

    def meter_set_rates(self, words: Sequence[str]) -> None:
        meter, index, *rates = words
        self.meters.append(MeterRates(meter, number(index), tuple(map(rate, rates))))

    def meter_array_set_rates(self, words: Sequence[str]) -> None:
        meter, *rates = words
        self.meters.append(MeterRates(meter, None, tuple(map(rate, rates))))

    def register_reset(self, words: Sequence[str]) -> None:
        (register,) = words
        elements = range(self.program.register(register).size)
        self.registers += [RegisterPreset(register, index, 0) for index in elements]

    def register_write(self, words: Sequence[str]) -> None:
        register, index, value = words
        self.registers.append(RegisterPreset(register, number(index), number(value)))


COMMANDS: dict[str, Callable[[Filler, Sequence[str]], None]] = {
    "table_add": Filler.table_add,
    "table_set_default": Filler.table_set_default,
    "mc_mgrp_create": Filler.create_group,
    "mc_node_create": Filler.create_node,
    "mc_node_associate": Filler.associate,
    "mirroring_add": Filler.mirror_to_port,
    "mirroring_add_mc": Filler.mirror_to_group,
    "meter_set_rates": Filler.meter_set_rates,
    "meter_array_set_rates": Filler.meter_array_set_rates,
    "register_reset": Filler.register_reset,
    "register_write": Filler.register_write,
}

USAGE = {
    "table_add": "table_add TABLE ACTION KEY... => PARAMETER... [PRIORITY]",
    "table_set_default": "table_set_default TABLE ACTION PARAMETER...",
    "mc_mgrp_create": "mc_mgrp_create GROUP",
    "mc_node_create": "mc_node_create REPLICA PORT...",
    "mc_node_associate": "mc_node_associate GROUP NODE, the nodes counted from 0",
    "mirroring_add": "mirroring_add SESSION PORT",
    "mirroring_add_mc": "mirroring_add_mc SESSION GROUP",
    "meter_set_rates": "meter_set_rates METER INDEX RATE:BURST...",
    "meter_array_set_rates": "meter_array_set_rates METER RATE:BURST...",
    "register_reset": "register_reset REGISTER",
    "register_write": "register_write REGISTER INDEX VALUE",
}


def split_at_arrow(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before and after `=>`, which may be left out where nothing follows."""
    if "=>" not in words:
        return words, ()
    at = words.index("=>")
    return words[:at], words[at + 1 :]


def key_part(part: MatchKey, word: str) -> KeyPart:
    """One part of a key, as its table matches it: `V`, `V/PREFIX`, `V&&&MASK`, `LOW->HIGH`."""
    match part.match:
        case "lpm":
            value, prefix = word.split("/")
            return Lpm(number(value), int(prefix))
        case "ternary" if "&&&" in word:
            value, mask = word.split("&&&")
            return Ternary(number(value), number(mask))
        case "ternary":
            return Ternary(number(word), (1 << part.bits) - 1)
        case "range":
            low, high = word.split("->")
            return Range(number(low), number(high))
    return number(word)


def number(word: str) -> int:
    """A number in decimal, 0x, 0b or 0o; or an IPv4, IPv6 or MAC address."""
    if MAC_ADDRESS.fullmatch(word):
        return int(word.replace(":", ""), 16)
    if "." in word or ":" in word:
        return int(ip_address(word))
    return int(word) if word.isdecimal() else int(word, 0)


def rate(word: str) -> tuple[float, int]:
    """RATE:BURST, the rate in units per microsecond."""
    per_microsecond, burst = word.split(":")
    return float(per_microsecond), int(burst)
