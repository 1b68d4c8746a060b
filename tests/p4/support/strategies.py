"""Entries, packets and orders of arrival for hypothesis: most are sound and make use of one another, each rule is
broken at times, and what fails shrinks to few changed entries and few plain packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from draws import VALUES, anything, rarely
from foreign import CHANGES, FOREIGN_FRAMES, changed
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from scenarios import (
    CHILDREN,
    RESULT_GROUPS,
    ROOT_PORT,
    SERVER_IP,
    SLOTS,
    UNAGGREGATED,
    example_entries,
    packet,
    worker_ip,
)
from sequences import PORTS, Step

from switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from switch.program.pipelines import Table
from switch.program.read import read_program
from traffic.wire.packet_format import PROGRAM, Flag, Kind

# Ports that a program may name: attached ones, none, and the one that BMv2 takes for "drop".
ANY_PORT = (*PORTS, 0, 9, 511)
PIPELINES = 8
EXAMPLE = example_entries()
# Shares of 2^32: of packets that meet with a fault.
SHARES = st.sampled_from((2**29, 2**30, 2**30, 2**31, 0, 2**32 - 1))
SOME_PORTS, MOST_PORTS = (st.sets(st.sampled_from(PORTS), min_size=least).map(sorted) for least in (0, 4))
# By port 8, which leads to the root, twice; and to all workers of job 1, tree 1, twice to one of them.
DOUBLING_GROUPS = (MulticastGroup(9, (8,), ((0, 8),)), MulticastGroup(10, (1, 2, 3, 5, 6), ((2, 2),)))
DOUBLED_WAYS = (((8, 0), 9), ((0, 1), 10))
ESA_JOB, KEEPING_JOBS = 5, (4, 6)
# A burst is five packets on average; after so many bursts the senders go on to the next fragment.
BURSTS, BURSTS_PER_FRAGMENT, BURST_PACKETS = 24, 4, 16
FIRST_FRAGMENTS = (0, 2**31 - 3, 2**32 - 3)


@dataclass(frozen=True)
class Case:
    """What a switch is asked: its entries, and the packets in the order of their arrival."""

    entries: SwitchEntries
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        """What is unlike the example of `scenarios`, and the packets."""
        removed = [f"without {entry.cli()}" for entry in set(EXAMPLE.tables) - set(self.entries.tables)]
        added = [f"with {entry.cli()}" for entry in set(self.entries.tables) - set(EXAMPLE.tables)]
        groups = [str(group) for group in self.entries.groups if group not in EXAMPLE.groups]
        packets = [f"port {port}: {content.hex()}" for port, content in self.steps]
        return "\n".join(["", *removed, *added, *groups, *map(str, self.entries.registers), *packets])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Hypothesis would print all entries."""
        printer.text(repr(self))


# ---- entries -----------------------------------------------------------------------------------


@st.composite
def entries(draw: st.DrawFn) -> SwitchEntries:
    """The example's entries: some of them missing, some different, some more, and slots that are not empty."""
    tables = dict(enumerate((*EXAMPLE.tables, *(draw(faults()) if draw(rarely(60)) else ()))))
    for index in draw(st.lists(st.integers(0, len(EXAMPLE.tables) - 1), max_size=16)):
        tables[index] = draw(other_parameters(EXAMPLE.tables[index]))
    for index in draw(st.lists(st.integers(0, len(tables) - 1), max_size=4)):
        tables.pop(index, None)
    more = draw(st.lists(any_entry(), max_size=8))
    groups = tuple(draw(any_group(group)) for group in (*EXAMPLE.groups, *DOUBLING_GROUPS))
    presets = tuple(draw(st.lists(any_preset(), max_size=3)))
    return SwitchEntries("s1", distinct([*tables.values(), *more]), groups, presets)


def distinct(tables: Iterable[TableEntry]) -> tuple[TableEntry, ...]:
    """The first entry of each key."""
    first: dict[tuple[str, tuple[int, ...]], TableEntry] = {}
    for entry in tables:
        first.setdefault((entry.table, entry.exact_key), entry)
    return tuple(first.values())


def other_aggregate(entry: TableEntry) -> SearchStrategy[tuple[int, ...]]:
    child, full, first_slot, slots, own_label, window, policy = entry.params
    return st.tuples(
        st.sampled_from([child, 0, full]) | anything(64),
        st.sampled_from([full, child, full | child]) | anything(64),
        st.sampled_from([first_slot, 1, 510]) | anything(32),
        st.sampled_from([slots, 1, 512]) | anything(32),
        st.sampled_from([own_label, 0, 11]) | anything(16),
        st.sampled_from([window, 1, 0]) | anything(32),
        st.sampled_from([policy, *range(32)]) | anything(8),
    )


@cache
@st.composite
def faults(draw: st.DrawFn) -> tuple[TableEntry, ...]:
    """Ports at which packets get lost, overtake one another and are doubled."""
    arriving = [
        TableEntry("InaIngress.arrival.arriving", (port,), "InaIngress.arrival.faulty", (draw(SHARES), draw(SHARES)))
        for port in draw(MOST_PORTS)
    ]
    leaving = [
        TableEntry("InaEgress.departure.leaving", (port,), "InaEgress.departure.faulty", (draw(SHARES),))
        for port in draw(SOME_PORTS)
    ]
    ways = [
        TableEntry("InaIngress.doubling.ways", key, "InaIngress.doubling.doubled", (draw(SHARES), group))
        for key, group in draw(st.lists(st.sampled_from(DOUBLED_WAYS), min_size=1, unique=True))
    ]
    return (*arriving, *leaving, *ways)


# What else an entry of each action may have as its parameters.
OTHER_PARAMETERS: dict[str, Callable[[TableEntry], SearchStrategy[tuple[int, ...]]]] = {
    "InaEgress.departure.faulty": lambda _: st.tuples(SHARES),
    "InaIngress.admit": lambda entry: st.just(entry.params),
    "InaIngress.aggregate": other_aggregate,
    "InaIngress.arrival.faulty": lambda _: st.tuples(SHARES, SHARES),
    "InaIngress.doubling.doubled": lambda _: st.tuples(SHARES, st.sampled_from([0, 1, 9, 10, 4000])),
    "InaIngress.replicate": lambda _: st.tuples(st.sampled_from([0, 1, 2, 3, 4000])),
    "InaIngress.send": lambda _: st.tuples(st.sampled_from(ANY_PORT)),
    "InaIngress.set_pipeline": lambda _: st.tuples(st.integers(0, PIPELINES - 1)),
    "NoAction": lambda _: st.just(()),
}


@cache
def other_parameters(entry: TableEntry) -> SearchStrategy[TableEntry]:
    return OTHER_PARAMETERS[entry.action](entry).map(lambda params: replace(entry, params=params))


@cache
def tables_with_key() -> list[Table]:
    return [table for table in read_program(PROGRAM).tables.values() if table.key]


@cache
@st.composite
def any_entry(draw: st.DrawFn) -> TableEntry:
    """An entry of any table with any action of it; keys are small numbers more often than not."""
    table = draw(st.sampled_from(tables_with_key()))
    action = draw(st.sampled_from(table.actions))
    key = tuple(draw(anything(part.bits)) for part in table.key)
    params = tuple(draw(anything(parameter.bits)) for parameter in action.parameters)
    entry = TableEntry(table.name, key, action.name, params)
    return entry if action.name == "InaIngress.aggregate" else draw(other_parameters(entry))


@st.composite
def any_group(draw: st.DrawFn, group: MulticastGroup) -> MulticastGroup:
    if not draw(rarely(30)):
        return group
    ports = st.sampled_from(ANY_PORT[:-1])
    more = st.sets(st.tuples(st.sampled_from([0, 2, 65535]), ports), max_size=3)
    return replace(group, ports=tuple(sorted(draw(st.sets(ports, max_size=6)))), more=tuple(sorted(draw(more))))


@cache
@st.composite
def any_preset(draw: st.DrawFn) -> RegisterPreset:
    """A value in a slot or at a port that the example uses; BMv2's control plane takes 63 bits."""
    register = draw(st.sampled_from(list(read_program(PROGRAM).registers.values())))
    slot = draw(st.integers(0, SLOTS - 1)) + draw(st.sampled_from([0, 512]))
    index = slot if slot < register.size else draw(ARRIVAL_PORTS)
    return RegisterPreset(register.name, index, draw(anything(min(register.bits, 63))))


# ---- packets -----------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Entries, and some 100 packets whose fragments advance through the window."""
    first = draw(st.sampled_from(FIRST_FRAGMENTS))
    steps: list[Step] = []
    for number in range(BURSTS):
        newest = first + number // BURSTS_PER_FRAGMENT
        steps += draw(st.lists(packets(newest), max_size=BURST_PACKETS))
        if draw(rarely(10)):
            steps += overtaken_by_its_result(newest % 2**32)
    return Case(draw(entries()), tuple(steps))


def overtaken_by_its_result(seq: int) -> list[Step]:
    """A gradient that waits in a slot, and the result that says that nobody waits for it."""
    of: dict[str, Any] = {"job": 1, "tree": 1, "seq": seq, "slot": seq % SLOTS}
    return [
        packet(5, kind=Kind.GRADIENT, values=1, label=14, workers=1, **of),
        packet(ROOT_PORT, kind=Kind.RESULT, values=1, **of),
    ]


@cache
@st.composite
def packets(draw: st.DrawFn, newest: int) -> Step:
    """A packet while `newest` is the fragment that senders have come to."""
    step = draw(draw(KINDS_OF_PACKET)(newest))
    made = draw(CHANGES) if draw(rarely(12)) else []
    return Step(step.port, changed(step.packet, made))


@cache
@st.composite
def gradients(draw: st.DrawFn, newest: int) -> Step:
    """A child's gradient: at times flagged, at another port, or of a fragment that is over."""
    job, tree, label, port = draw(SENDERS)
    seq = (newest - draw(AGES)) % 2**32
    ina: dict[str, Any] = {"job": job, "tree": tree, "label": label, "seq": seq, "slot": seq % SLOTS, "workers": 1}
    if job == ESA_JOB:
        ina["priority"] = draw(PRIORITIES)
    if draw(rarely(50 if job in KEEPING_JOBS else 25)):
        ina["flags"] = Flag.RETRANSMITTED
    elif draw(rarely(20)):
        ina |= {"flags": draw(FLAGS), "bitmap": draw(anything(64)), "part": draw(st.integers(0, 2))}
    if draw(rarely(5)):
        port = draw(ARRIVAL_PORTS)
    return packet(port, kind=Kind.GRADIENT, values=draw(VALUES), **ina)


@cache
@st.composite
def from_root(draw: st.DrawFn, newest: int) -> Step:
    """A result or a notice, at times flagged, to one address or another."""
    job, tree = draw(TREES)
    kind = draw(KINDS_FROM_ROOT)
    flags = draw(FLAGS) if draw(rarely(50)) else 0
    to = draw(ADDRESSES)
    content = None if kind == Kind.NOTICE else draw(VALUES)
    ina: dict[str, Any] = {"kind": kind, "job": job, "tree": tree, "seq": newest % 2**32, "flags": flags}
    ina["slot"] = newest % SLOTS
    return packet(ROOT_PORT, dst_ip=to, values=content, **ina)


@cache
@st.composite
def foreign(draw: st.DrawFn, _newest: int) -> Step:
    return Step(draw(ARRIVAL_PORTS), draw(FOREIGN_FRAMES))


# The more a job's slots do, the more of its packets.
OFTEN = [child[:4] for child in CHILDREN for _ in range(8 if child[0] in KEEPING_JOBS else 4)]
SENDERS = st.sampled_from((*OFTEN, *UNAGGREGATED))
AGES = st.sampled_from((0, 0, 0, 1, 1, 2, SLOTS))
PRIORITIES = st.sampled_from((0, 1, 3))
TREES = st.sampled_from((*[(1, 1)] * 6, *RESULT_GROUPS, (1, 3), (3, 1)))
KINDS_FROM_ROOT = st.sampled_from((Kind.RESULT, Kind.RESULT, Kind.NOTICE, 0, 200))
ADDRESSES = st.sampled_from((SERVER_IP, *map(worker_ip, PORTS)))
ARRIVAL_PORTS = st.sampled_from(PORTS)
FLAGS = st.sampled_from((*[Flag.RETRANSMITTED] * 4, *Flag, Flag.RETRANSMITTED | Flag.OVERFLOW)) | anything(8)
# Of 100 packets, so many of each kind; the first is the simplest.
KINDS_OF_PACKET = st.sampled_from((*[gradients] * 80, *[from_root] * 11, *[foreign] * 9))
