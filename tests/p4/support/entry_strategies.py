"""Entries for hypothesis: those of the example, some of them missing, some different, and some more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from draws import anything, rarely
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from scenarios import SLOTS, example_entries
from sequences import PORTS

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Table
from inakit.traffic.wire.packet_format import PROGRAM

# Ports that a program may name: attached ones, none, and the one that BMv2 takes for "drop".
ANY_PORT = (*PORTS, 0, 9, 511)
PIPELINES = 8
EXAMPLE = example_entries()

# Shares of 2^32: of packets that meet with a fault.
SHARES = st.sampled_from((2**29, 2**30, 2**30, 2**31, 0, 2**32 - 1))
SOME_PORTS, MOST_PORTS = (st.sets(st.sampled_from(PORTS), min_size=least).map(sorted) for least in (0, 4))

# By port 8, which leads to the root, twice; and to all workers of job 1, tree 1, twice to one of them.
DOUBLING_GROUPS = (MulticastGroup(11, (8,), ((0, 8),)), MulticastGroup(12, (1, 2, 3, 5, 6), ((2, 2),)))
DOUBLED_WAYS = (((8, 0), 11), ((0, 1), 12))


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
    """Other parameters of an entry that aggregates."""
    child, full, first_slot, slots, own_label, window, policy = entry.params
    return st.tuples(
        st.sampled_from([child, 0, full]) | anything(64),
        st.sampled_from([full, child, full | child]) | anything(64),
        st.sampled_from([first_slot, 1, 510]) | anything(32),
        st.sampled_from([slots, 1, 512]) | anything(32),
        st.sampled_from([own_label, 0, 11]) | anything(16),
        st.sampled_from([window, 1, 0]) | anything(32),
        st.sampled_from([policy, *range(64)]) | anything(8),
    )


@cache
@st.composite
def faults(draw: st.DrawFn) -> tuple[TableEntry, ...]:
    """Entries by which ports lose packets, reverse their order and double them."""
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
    "InaEgress.marks.phantom": lambda _: st.tuples(st.just(0), st.sampled_from([0, 1, 1000 << 16, 1 << 60])),
    "InaIngress.admit": lambda entry: st.just(entry.params),
    "InaIngress.aggregate": other_aggregate,
    "InaIngress.arrival.faulty": lambda _: st.tuples(SHARES, SHARES),
    "InaIngress.doubling.doubled": lambda _: st.tuples(SHARES, st.sampled_from([0, 1, 11, 12, 4000])),
    "InaIngress.replicate": lambda _: st.tuples(st.sampled_from([0, 1, 2, 3, 4000])),
    "InaIngress.send": lambda _: st.tuples(st.sampled_from(ANY_PORT)),
    "InaIngress.set_pipeline": lambda _: st.tuples(st.integers(0, PIPELINES - 1)),
    "NoAction": lambda _: st.just(()),
}


@cache
def other_parameters(entry: TableEntry) -> SearchStrategy[TableEntry]:
    """An entry with other parameters."""
    return OTHER_PARAMETERS[entry.action](entry).map(lambda params: replace(entry, params=params))


@cache
def tables_with_key() -> list[Table]:
    """The tables of ina.p4 that take entries."""
    return [table for table in read_program(PROGRAM).tables.values() if table.key]


@cache
@st.composite
def any_entry(draw: st.DrawFn) -> TableEntry:
    """An entry of any table with any of its actions; keys are mostly small numbers."""
    table = draw(st.sampled_from(tables_with_key()))
    action = draw(st.sampled_from(table.actions))
    key = tuple(draw(anything(part.bits)) for part in table.key)
    params = tuple(draw(anything(parameter.bits)) for parameter in action.parameters)
    entry = TableEntry(table.name, key, action.name, params)
    return entry if action.name == "InaIngress.aggregate" else draw(other_parameters(entry))


@st.composite
def any_group(draw: st.DrawFn, group: MulticastGroup) -> MulticastGroup:
    """The group, at times with other ports and replicas."""
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


ARRIVAL_PORTS = st.sampled_from(PORTS)
