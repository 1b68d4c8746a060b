"""A plan's entries on optical ports: the port by which a unit sends to another depends on the current circuits.

`inakit.planner.install.plan_entries` makes entries for a fabric with a link between every two units that circuits can
join. Here the ports of those links become optical ports of an interconnect, and change with its circuits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inakit.planner.install.ina_program import (
    ADMISSION,
    AGGREGATION,
    FORWARD,
    PIPELINE,
    RESULTS,
    SEND,
    SLOT_BITMAP,
    SLOTS_PER_PIPELINE,
)
from inakit.switch.entries import Entries, MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.topo.errors import PlanError
from inakit.topo.fabric.circuits import Circuit, Interconnect
from inakit.topo.fabric.fabric import Fabric

Lines = dict[str, list[int]]
"""The ports of a unit with a circuit to each peer."""
Key = tuple[int, ...]
Rates = Mapping[Key, float]
"""The rate at which packets of each (job, tree, label) reach the circuits."""


class CircuitEntries:
    """The entries of a plan on the circuits of `interconnect`. Keys stay as they are; actions follow the circuits.

    `entries` are for `fabric`, whose optical links stand for the possible circuits. Where several circuits join two
    units, labels are assigned in descending order of rate, each to the circuit with the least load. A packet without a
    circuit leaves by an unconnected optical port and is lost; where all ports are connected, it reaches a unit that
    does not admit it.

    Jobs that run one after another can have the same slots: `jobs` are those whose packets are summed. Slots are empty
    when a job gets them.
    """

    def __init__(self, fabric: Fabric, interconnect: Interconnect, entries: Entries) -> None:
        self.units = [Unit(fabric, interconnect, each) for each in entries.switches]
        self.asked: tuple[object, ...] | None = None

    def first(
        self, circuits: Collection[Circuit], rates: Rates | None = None, jobs: Collection[int] | None = None
    ) -> Entries:
        """All entries and groups to install for these circuits.

        Without `rates` all labels have the same rate; without `jobs` all jobs are summed.
        """
        self.asked = None
        return Entries(tuple(unit.first(circuits, rates, jobs) for unit in self.units))

    def changes(
        self, circuits: Collection[Circuit], rates: Rates | None = None, jobs: Collection[int] | None = None
    ) -> Iterator[SwitchEntries]:
        """For each unit that these circuits and jobs affect, its new groups, changed entries and emptied slots."""
        asked = (frozenset(circuits), rates and dict(rates), jobs if jobs is None else frozenset(jobs))
        if asked == self.asked:  # as in slots without jobs, of which a schedule can have thousands
            return
        self.asked = asked
        for unit in self.units:
            changed = unit.change(circuits, rates, jobs)
            if changed.tables or changed.groups:
                yield changed


class Unit:
    """The entries of one switch, and those that were returned last."""

    def __init__(self, fabric: Fabric, interconnect: Interconnect, entries: SwitchEntries) -> None:
        self.name, self.entries = entries.switch, entries
        self.optical = interconnect.ports.get(self.name, ())
        joined = {link.peer_of(self.name) for link in fabric.links if link.optical and self.name in (link.a, link.b)}
        self.peer_at = {fabric.port_numbers[self.name, peer]: peer for peer in joined} if self.optical else {}
        self.ports_of = {group.group: group.ports for group in entries.groups}
        self.forwards = [row for row in entries.tables if row.table == FORWARD and row.params[0] in self.peer_at]
        self.sums = [row for row in entries.tables if row.table == AGGREGATION]
        # the entries returned last, and the ports that they use
        self.used: tuple[Lines, dict[Key, int]] | None = None
        self.numbers: dict[tuple[int, ...], int] = {}
        self.rows: dict[tuple[str, Key], TableEntry] = {}

    def first(self, circuits: Collection[Circuit], rates: Rates | None, jobs: Collection[int] | None) -> SwitchEntries:
        """All entries and groups of the switch for these circuits and jobs."""
        self.numbers, self.rows, self.used = {}, {}, None
        changed = self.change(circuits, rates, jobs)
        return replace(self.entries, tables=changed.tables, groups=changed.groups)

    def change(self, circuits: Collection[Circuit], rates: Rates | None, jobs: Collection[int] | None) -> SwitchEntries:
        """The entries that differ from those returned last, the new groups, and presets that empty slots."""
        lines, known = self.lines(circuits), len(self.numbers)
        dealt = self.deal(lines, rates)
        same = self.used == (lines, dealt)
        self.used = lines, dealt
        tables = self.sums if same else self.entries.tables
        found = (row for each in tables for row in self.on_ports(each, lines, dealt))
        rows = {(row.table, row.exact_key): self.for_jobs(row, jobs) for row in found}
        changed = tuple(row for place, row in rows.items() if self.rows.get(place) != row)
        self.rows = self.rows | rows if same else rows
        groups = tuple(MulticastGroup(number, ports) for ports, number in list(self.numbers.items())[known:])
        return SwitchEntries(self.name, changed, groups, emptied(changed))

    def for_jobs(self, entry: TableEntry, jobs: Collection[int] | None) -> TableEntry:
        """The entry, if `jobs` have the entry's job; else, if it is one of sums, the entry that sums nothing."""
        if entry.table != AGGREGATION or jobs is None or entry.exact_key[1] in jobs:
            return entry
        return replace(entry, params=SUMS_NOTHING)

    def lines(self, circuits: Collection[Circuit]) -> Lines:
        """The unit's ports, by the peer at the other end of their circuits."""
        found: Lines = defaultdict(list)
        for one, other in sorted(circuits):
            for (node, port), (peer, _) in ((one, other), (other, one)):
                if node == self.name:
                    found[peer].append(port)
        return found

    def deal(self, lines: Lines, rates: Rates | None) -> dict[Key, int]:
        """For each label that leaves to another unit, by its key, its port."""
        rows = self.forwards
        rate = {row.exact_key: 1.0 if rates is None else rates.get(row.exact_key, 0.0) for row in rows}
        loads: defaultdict[int, float] = defaultdict(float)
        found = {}
        for row in sorted(rows, key=lambda row: -rate[row.exact_key]):
            ports = lines.get(self.peer_at[row.params[0]]) or [self.dark(lines)]
            found[row.exact_key] = min(ports, key=lambda port: loads[port])
            loads[found[row.exact_key]] += rate[row.exact_key]
        return found

    def dark(self, lines: Lines) -> int:
        """The last optical port without a circuit; the last port if every port has one."""
        lit = {port for ports in lines.values() for port in ports}
        return next((port for port in reversed(self.optical) if port not in lit), self.optical[-1])

    def on_ports(self, entry: TableEntry, lines: Lines, dealt: Mapping[Key, int]) -> Iterator[TableEntry]:
        """The entries that replace one entry of the fabric on these circuits."""
        if entry.table == PIPELINE and entry.exact_key[0] in self.peer_at:
            yield from (replace(entry, key=(port,)) for port in self.checked(entry.params))
        elif entry.table == ADMISSION and entry.exact_key[0] in self.peer_at:
            yield from (replace(entry, key=(port, *entry.exact_key[1:])) for port in self.optical)
        elif entry.table == FORWARD and entry.exact_key in dealt:
            yield replace(entry, params=(dealt[entry.exact_key],))
        elif entry.action == SEND and entry.params[0] in self.peer_at:
            yield replace(entry, params=(self.port(entry.params[0], lines, sum(entry.exact_key)) or self.dark(lines),))
        elif entry.table == RESULTS:
            yield replace(entry, params=(self.group(self.ports_of[entry.params[0]], lines, sum(entry.exact_key)),))
        else:
            yield entry

    def checked(self, pipeline: Sequence[int]) -> tuple[int, ...]:
        """Return the optical ports. Raises `PlanError` unless all of them are in this pipeline."""
        rows = (row for row in self.entries.tables if row.table == PIPELINE and row.exact_key[0] in self.peer_at)
        if any(row.params != pipeline for row in rows):
            raise PlanError(f"the optical ports of '{self.name}' are in several pipelines: put them into one")
        return self.optical

    def port(self, linked: int, lines: Lines, turn: int) -> int | None:
        """A port with a circuit to the unit at the other end of the fabric's port `linked`; None without one.

        `turn` selects one of several.
        """
        ports = lines.get(self.peer_at[linked], [])
        return ports[turn % len(ports)] if ports else None

    def group(self, linked: Sequence[int], lines: Lines, turn: int) -> int:
        """The number of the port group on these circuits; ports to units without a circuit are omitted."""
        found = (self.port(port, lines, turn) if port in self.peer_at else port for port in linked)
        ports = tuple(sorted(port for port in found if port is not None))
        return self.numbers.setdefault(ports, len(self.numbers) + 1)


SUMS_NOTHING = (0,) * 7
"""The parameters of an aggregation entry whose job has no slots."""


def emptied(entries: Sequence[TableEntry]) -> tuple[RegisterPreset, ...]:
    """Presets that empty the slots of aggregation entries, each slot once."""
    segments = {(row.exact_key[0], *row.params[2:4]) for row in entries if row.table == AGGREGATION}
    return tuple(
        RegisterPreset(SLOT_BITMAP, pipeline * SLOTS_PER_PIPELINE + slot, 0)
        for pipeline, first, slots in sorted(segments)
        for slot in range(first, first + slots)
    )
