"""Table entries, multicast groups and register presets of switches, neutral of any target.

Keys and parameters are unsigned integers in the order in which the P4 program names them, so that
the same entries go to BMv2, to the embedded switch, and into a file that `simple_switch_CLI` reads.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableEntry:
    """One exact-match entry: `table` and `action` are the full names in the P4 program."""

    table: str
    key: tuple[int, ...]
    action: str
    params: tuple[int, ...] = ()

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads."""
        key = " ".join(map(str, self.key))
        params = " ".join(map(str, self.params))
        return f"table_add {self.table} {self.action} {key} => {params}".rstrip()


@dataclass(frozen=True)
class MulticastGroup:
    """Packets sent to `group` leave once by each of `ports`, as replicas with `egress_rid` 1."""

    group: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class RegisterPreset:
    """The value that a register element has before the first packet."""

    register: str
    index: int
    value: int


@dataclass(frozen=True)
class SwitchEntries:
    """Everything that is installed in one switch."""

    switch: str
    tables: tuple[TableEntry, ...] = ()
    groups: tuple[MulticastGroup, ...] = ()
    registers: tuple[RegisterPreset, ...] = ()

    def cli(self) -> str:
        """A command file for `simple_switch_CLI`, one command a line."""
        lines = [entry.cli() for entry in self.tables]
        for handle, group in enumerate(self.groups):
            lines.append(f"mc_mgrp_create {group.group}")
            lines.append(f"mc_node_create 1 {' '.join(map(str, group.ports))}")
            lines.append(f"mc_node_associate {group.group} {handle}")
        lines += [f"register_write {r.register} {r.index} {r.value}" for r in self.registers]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Entries:
    """The entries of every switch of a network; a switch that needs none is absent."""

    switches: tuple[SwitchEntries, ...]

    def of(self, switch: str) -> SwitchEntries:
        """The entries of `switch`; empty when it needs none."""
        for entries in self.switches:
            if entries.switch == switch:
                return entries
        return SwitchEntries(switch)
