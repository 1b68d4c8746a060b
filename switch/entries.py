"""Table entries, multicast groups and register presets of switches, the same for every target.

Keys and parameters are unsigned integers in the order in which the P4 program names them, so that the same entries
serve BMv2, the embedded switch, and a file for `simple_switch_CLI`. A key part that does not match exactly is an `Lpm`,
`Ternary` or `Range`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from inakit.topo.errors import InputError

REPLICA = 1
"""The `egress_rid` of replicas, unless a group sets another."""


@dataclass(frozen=True)
class Lpm:
    """Matches numbers whose first `prefix` bits are those of `value`; the longest matching prefix wins."""

    value: int
    prefix: int

    def __str__(self) -> str:
        return f"{self.value}/{self.prefix}"


@dataclass(frozen=True)
class Ternary:
    """Matches fields where field & mask == value & mask; a mask of 0 matches everything."""

    value: int
    mask: int

    def __str__(self) -> str:
        return f"{self.value}&&&{self.mask}"


@dataclass(frozen=True)
class Range:
    """Matches numbers from `low` to `high`, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}->{self.high}"


KeyPart = int | Lpm | Ternary | Range
"""An integer matches exactly. (P4's optional match is ternary in BMv2.)"""


@dataclass(frozen=True)
class TableEntry:
    """One entry: `table` and `action` are the full names in the P4 program.

    Where keys can overlap (ternary, range), the entry with the lowest `priority` wins; such entries need one.
    """

    table: str
    key: tuple[KeyPart, ...]
    action: str
    params: tuple[int, ...] = ()
    priority: int | None = None

    @property
    def exact_key(self) -> tuple[int, ...]:
        """The key of an entry whose parts all match exactly; `InputError` for any other."""
        exact = tuple(part for part in self.key if isinstance(part, int))
        if len(exact) < len(self.key):
            raise InputError(f"entry '{self.cli()}': all parts of its key must match exactly, as numbers")
        return exact

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads."""
        words = ["table_add", self.table, self.action, *map(str, self.key), "=>", *map(str, self.params)]
        return " ".join(words if self.priority is None else [*words, str(self.priority)])


@dataclass(frozen=True)
class ProfileEntry:
    """One entry of a table with an action `profile`: it runs one of `actions`, each with its parameters.

    The profile's selector chooses among several by a hash modulo their number.
    """

    table: str
    key: tuple[KeyPart, ...]
    profile: str
    actions: tuple[tuple[str, tuple[int, ...]], ...]
    priority: int | None = None

    def cli(self, first_member: int, group: int) -> list[str]:
        """The lines that `simple_switch_CLI` reads.

        `first_member` and `group` are the numbers of the profile's next member and next group.
        """
        names = [" ".join([self.profile, action, *map(str, params)]) for action, params in self.actions]
        lines = [f"act_prof_create_member {name}" for name in names]
        key, last = " ".join(map(str, self.key)), "" if self.priority is None else f" {self.priority}"
        if len(self.actions) == 1:
            return [*lines, f"table_indirect_add {self.table} {key} => {first_member}{last}"]
        members = range(first_member, first_member + len(self.actions))
        lines.append(f"act_prof_create_group {self.profile}")
        lines += [f"act_prof_add_member_to_group {self.profile} {member} {group}" for member in members]
        return [*lines, f"table_indirect_add_with_group {self.table} {key} => {group}{last}"]


Entry = TableEntry | ProfileEntry


def grouped(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries of each table, in order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.table, []).append(entry)
    return found


@dataclass(frozen=True)
class ValueSetMember:
    """A value that the control plane adds to the parser's value set `value_set`."""

    value_set: str
    value: int

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads."""
        return f"pvs_add {self.value_set} {self.value}"


@dataclass(frozen=True)
class DefaultAction:
    """The action that `table` runs on a miss in place of its program's default."""

    table: str
    action: str
    params: tuple[int, ...] = ()

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads."""
        return " ".join(["table_set_default", self.table, self.action, *map(str, self.params)])


@dataclass(frozen=True)
class ProfileDefault:
    """The default of `table`: on a miss it runs one of `actions`, chosen as for a `ProfileEntry`."""

    table: str
    profile: str
    actions: tuple[tuple[str, tuple[int, ...]], ...]


def actions_of(entry: Entry | DefaultAction | ProfileDefault) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The actions, with parameters, among which an entry or a default chooses."""
    if isinstance(entry, TableEntry | DefaultAction):
        return ((entry.action, entry.params),)
    return entry.actions


@dataclass(frozen=True)
class MirrorSession:
    """Clones of `session` leave by `port`, or as the replicas of the multicast `group`.

    Clones are cut after `size_bytes`, unless that is 0. BMv2 does not cut clones.
    """

    session: int
    port: int | None = None
    group: int | None = None
    size_bytes: int = 0

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads; it does not contain the clones' length."""
        if self.group is None:
            return f"mirroring_add {self.session} {self.port}"
        return f"mirroring_add_mc {self.session} {self.group}"


@dataclass(frozen=True)
class MeterRates:
    """The rates of one cell of a meter, or of all cells (`index` None).

    A rate is (units per microsecond, burst); the lowest comes first.
    """

    meter: str
    index: int | None
    rates: tuple[tuple[float, int], ...]

    def cli(self) -> str:
        """The line that `simple_switch_CLI` reads."""
        rates = " ".join(f"{rate}:{burst}" for rate, burst in self.rates)
        command = "meter_array_set_rates" if self.index is None else "meter_set_rates"
        return " ".join([command, self.meter, *([] if self.index is None else [str(self.index)]), rates])


@dataclass(frozen=True)
class MulticastGroup:
    """A group of ports: a packet sent to `group` leaves once by each of `ports`, with `egress_rid` 1.

    It leaves once more for each (egress_rid, port) in `more`. The copies of an `ordered` group, whose `ports` are
    empty, leave exactly as `more` lists them, duplicates included.
    """

    group: int
    ports: tuple[int, ...]
    more: tuple[tuple[int, int], ...] = ()
    ordered: bool = False

    @property
    def nodes(self) -> dict[int, tuple[int, ...]]:
        """The ports by `egress_rid`, in the order in which replicas leave."""
        ports = {REPLICA: set(self.ports)}
        for replica, port in self.more:
            ports.setdefault(replica, set()).add(port)
        return {replica: tuple(sorted(found)) for replica, found in ports.items()}

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """The (egress_rid, port) of every copy, in the order in which they leave."""
        if self.ordered:
            return self.more
        return tuple((replica, port) for replica, ports in self.nodes.items() for port in ports)

    def runs(self) -> list[tuple[int, tuple[int, ...]]]:
        """The (egress_rid, ports) of nodes that make these copies: BMv2 sends a node's copies by ascending ports."""
        found: list[tuple[int, tuple[int, ...]]] = []
        for replica, port in self.replicas:
            if found and found[-1][0] == replica and found[-1][1][-1] < port:
                found[-1] = replica, (*found[-1][1], port)
            else:
                found.append((replica, (port,)))
        return found


def group_of_nodes(group: int, nodes: Iterable[tuple[int, int]]) -> MulticastGroup:
    """The group with these (egress_rid, port) replicas, in any order."""
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
    """Everything to install in one switch."""

    switch: str
    tables: tuple[TableEntry, ...] = ()
    groups: tuple[MulticastGroup, ...] = ()
    registers: tuple[RegisterPreset, ...] = ()
    defaults: tuple[DefaultAction, ...] = ()
    mirrors: tuple[MirrorSession, ...] = ()
    meters: tuple[MeterRates, ...] = ()
    profiled: tuple[ProfileEntry, ...] = ()
    value_sets: tuple[ValueSetMember, ...] = ()

    def cli(self) -> str:
        """A command file for `simple_switch_CLI`, one command per line."""
        lines = [*(entry.cli() for entry in self.tables), *(default.cli() for default in self.defaults)]
        handles = count()
        for group in self.groups:
            lines.append(f"mc_mgrp_create {group.group}")
            for replica, ports in group.runs():
                lines.append(f"mc_node_create {replica} {' '.join(map(str, ports))}")
                lines.append(f"mc_node_associate {group.group} {next(handles)}")
        lines += [mirror.cli() for mirror in self.mirrors]
        lines += [meter.cli() for meter in self.meters]
        lines += [*self.profile_lines(), *(member.cli() for member in self.value_sets)]
        lines += [f"register_write {r.register} {r.index} {r.value}" for r in self.registers]
        return "\n".join(lines) + "\n"

    def profile_lines(self) -> Iterable[str]:
        """The commands for tables with action profiles; BMv2 numbers members and groups in order of creation."""
        members: Counter[str] = Counter()
        groups: Counter[str] = Counter()
        for entry in self.profiled:
            yield from entry.cli(members[entry.profile], groups[entry.profile])
            members[entry.profile] += len(entry.actions)
            groups[entry.profile] += len(entry.actions) > 1


@dataclass(frozen=True)
class Entries:
    """The entries of every switch of a network; a switch without entries is absent."""

    switches: tuple[SwitchEntries, ...]

    def of(self, switch: str) -> SwitchEntries:
        """The entries of `switch`; empty if it needs none."""
        for entries in self.switches:
            if entries.switch == switch:
                return entries
        return SwitchEntries(switch)
