"""The commands of `simple_switch_CLI` read as entries: the reverse of `SwitchEntries.cli`.

Read are the commands that fill a switch: `table_add`, `table_set_default`, `mc_*`, `mirroring_add*`,
`meter_*set_rates`, `register_reset`, `register_write`. Every other command is an `InputError`: none is skipped.
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
    """The entries that a file of commands installs in a switch that runs `program`.

    `InputError` names file and line.
    """
    reader = CommandReader(program)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; expected a text file of simple_switch_CLI's commands") from error
    for number, line in enumerate(lines, start=1):
        try:
            reader.add(line.partition("#")[0].split())
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
    return reader.take()


@dataclass
class CommandReader:
    """Turns commands into entries, one after the other. A group is complete only when all commands are read.

    `nodes` are the (replica, port) pairs of each multicast node, in the order in which nodes were created; `groups` has
    the numbers of a group's nodes, `changed` the groups that `take` has not given yet.
    """

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
        """Read one command, given as words; without words, do nothing."""
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
        """All entries read since the last call."""
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
        """Read an entry: its key, the action's parameters, and a priority where the table needs one."""
        table_name, action, *rest = words
        table = self.program.table(table_name)
        key, given = split_at_arrow(rest)
        if len(key) != len(table.key):
            raise ValueError(f"table '{table_name}' has a key of {len(table.key)}, {len(key)} given")
        count = len(table.action(action).parameters)
        if not count <= len(given) <= count + 1:
            raise ValueError(f"action '{action}' has {count} parameters, {len(given)} values given")
        parts = tuple(parse_key_part(part, word) for part, word in zip(table.key, key, strict=True))
        params, priority = tuple(map(parse_number, given[:count])), [int(word) for word in given[count:]]
        self.tables.append(TableEntry(table_name, parts, action, params, *priority))

    def table_set_default(self, words: Sequence[str]) -> None:
        """Read the action that a table runs on a miss."""
        table, action, *params = words
        self.defaults.append(DefaultAction(table, action, tuple(map(parse_number, params))))

    def create_group(self, words: Sequence[str]) -> None:
        """Read a new multicast group, which has no nodes yet."""
        (group,) = words
        self.groups[parse_number(group)] = []
        self.changed[parse_number(group)] = None

    def create_node(self, words: Sequence[str]) -> None:
        """Read a multicast node: the `egress_rid` of its replicas and their ports."""
        if "|" in words:
            raise ValueError("link aggregation groups are not supported: list the ports themselves")
        replica, *ports = map(parse_number, words)
        self.nodes.append([(replica, port) for port in ports])

    def associate(self, words: Sequence[str]) -> None:
        """Read that a node belongs to a group; both must have been created."""
        group, node = map(parse_number, words)
        if group not in self.groups or not 0 <= node < len(self.nodes):
            raise ValueError(f"there is no group {group} with a node {node} yet: create both first")
        self.groups[group].append(node)
        self.changed[group] = None

    def mirror_to_port(self, words: Sequence[str]) -> None:
        """Read a mirror session whose clones leave by one port."""
        session, port = map(parse_number, words)
        self.mirrors.append(MirrorSession(session, port))

    def mirror_to_group(self, words: Sequence[str]) -> None:
        """Read a mirror session whose clones leave by a multicast group."""
        session, group = map(parse_number, words)
        self.mirrors.append(MirrorSession(session, group=group))

    def meter_set_rates(self, words: Sequence[str]) -> None:
        """Read the rates of one cell of a meter."""
        meter, index, *rates = words
        self.meters.append(MeterRates(meter, parse_number(index), tuple(map(parse_rate, rates))))

    def meter_array_set_rates(self, words: Sequence[str]) -> None:
        """Read the rates of all cells of a meter."""
        meter, *rates = words
        self.meters.append(MeterRates(meter, None, tuple(map(parse_rate, rates))))

    def register_reset(self, words: Sequence[str]) -> None:
        """Read that all elements of a register become 0."""
        (register,) = words
        elements = range(self.program.register(register).size)
        self.registers += [RegisterPreset(register, index, 0) for index in elements]

    def register_write(self, words: Sequence[str]) -> None:
        """Read the value of one element of a register."""
        register, index, value = words
        self.registers.append(RegisterPreset(register, parse_number(index), parse_number(value)))


COMMANDS: dict[str, Callable[[CommandReader, Sequence[str]], None]] = {
    "table_add": CommandReader.table_add,
    "table_set_default": CommandReader.table_set_default,
    "mc_mgrp_create": CommandReader.create_group,
    "mc_node_create": CommandReader.create_node,
    "mc_node_associate": CommandReader.associate,
    "mirroring_add": CommandReader.mirror_to_port,
    "mirroring_add_mc": CommandReader.mirror_to_group,
    "meter_set_rates": CommandReader.meter_set_rates,
    "meter_array_set_rates": CommandReader.meter_array_set_rates,
    "register_reset": CommandReader.register_reset,
    "register_write": CommandReader.register_write,
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
    """The words before and after `=>`; without an arrow all words are before it."""
    if "=>" not in words:
        return words, ()
    at = words.index("=>")
    return words[:at], words[at + 1 :]


def parse_key_part(part: MatchKey, word: str) -> KeyPart:
    """One part of a key, written as its table matches it: `V`, `V/PREFIX`, `V&&&MASK` or `LOW->HIGH`."""
    match part.match:
        case "lpm":
            value, prefix = word.split("/")
            return Lpm(parse_number(value), int(prefix))
        case "ternary" if "&&&" in word:
            value, mask = word.split("&&&")
            return Ternary(parse_number(value), parse_number(mask))
        case "ternary":
            return Ternary(parse_number(word), (1 << part.bits) - 1)
        case "range":
            low, high = word.split("->")
            return Range(parse_number(low), parse_number(high))
    return parse_number(word)


def parse_number(word: str) -> int:
    """A number in decimal, 0x, 0b or 0o; or an IPv4, IPv6 or MAC address."""
    if MAC_ADDRESS.fullmatch(word):
        return int(word.replace(":", ""), 16)
    if "." in word or ":" in word:
        return int(ip_address(word))
    return int(word) if word.isdecimal() else int(word, 0)


def parse_rate(word: str) -> tuple[float, int]:
    """RATE:BURST, the rate in units per microsecond."""
    per_microsecond, burst = word.split(":")
    return float(per_microsecond), int(burst)
