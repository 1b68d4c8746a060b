"""Table entries, multicast groups and register presets of switches, neutral of any target.

Keys and parameters are unsigned integers in the order in which the P4 program names them, so that
the same entries go to BMv2, to the embedded switch, and into a file that `simple_switch_CLI` reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

REPLICA = 1
"""The `egress_rid` of replicas, unless a group says otherwise."""


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
    """Packets sent to `group` leave once by each of `ports`, as replicas with `egress_rid` 1.

    They leave once more for each (egress_rid, port) in `more`.
    """

    group: int
    ports: tuple[int, ...]
    more: tuple[tuple[int, int], ...] = ()

    @property
    def nodes(self) -> dict[int, tuple[int, ...]]:
        """The ports by `egress_rid`, as replication engines keep them, which is the order in which replicas leave."""
        ports = {REPLICA: set(self.ports)}
        for replica, port in self.more:
            ports.setdefault(replica, set()).add(port)
        return {replica: tuple(sorted(found)) for replica, found in ports.items()}


def group_of_nodes(group: int, nodes: Iterable[tuple[int, int]]) -> MulticastGroup:
    """The group whose replicas are these (egress_rid, port), ordered."""
    found = sorted(nodes)
    ports = tuple(port for replica, port in found if replica == REPLICA)
    return MulticastGroup(group, ports, tuple(node for node in found if node[0] != REPLICA))


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
        handles = count()
        for group in self.groups:
            lines.append(f"mc_mgrp_create {group.group}")
            for replica, ports in group.nodes.items():
                lines.append(f"mc_node_create {replica} {' '.join(map(str, ports))}")
                lines.append(f"mc_node_associate {group.group} {next(handles)}")
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
