"""Ingress and egress as functions of a packet: each node's function returns the number of the next node."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inakit.switch.interpret.actions import action_of
from inakit.switch.interpret.calculations import calculation_of
from inakit.switch.interpret.expressions import value_of
from inakit.switch.interpret.headers import store
from inakit.switch.interpret.packet import Packet, Run, Value
from inakit.switch.interpret.switch_state import Context
from inakit.switch.interpret.table_state import Installed
from inakit.switch.program.program import Action, ActionCall, Conditional, MatchKey, Pipeline, Table, Unknown, Validity

ONES = (1 << 32) - 1
"""BMv2 chooses by the low 32 bits of a hash."""

Choice = Callable[[Packet, Installed], ActionCall | None]


# {"type": "indirect_ws", "action_profile": "ap"}; {"name": "ap", "selector": {"algo": "crc16", "input": [...]}}
def call_of(context: Context, table: Table) -> Choice:
    """The function that gives the action and parameters for a packet and its matching entry.

    It returns None for an entry with an empty group.
    """
    selector = context.program.profiles[table.profile].selector if table.profile else None
    if selector is None:
        return lambda _packet, found: found.calls[0]
    hashed = calculation_of(context, selector)
    return lambda packet, found: found.calls[(hashed(packet) & ONES) % len(found.calls)] if found.calls else None


END = -1


# {"name": "ingress", "init_table": "t", "tables": [...], "conditionals": [...]}
def pipeline_of(context: Context, pipeline: Pipeline) -> Run:
    """The function that takes a packet through the pipeline, from the first node to the end or an `exit`."""
    following: Following = {None: END}
    following |= {name: number for number, name in enumerate(pipeline.nodes)}
    nodes = [
        table_of(context, node, following) if isinstance(node, Table) else conditional_of(context, node, following)
        for node in pipeline.nodes.values()
    ]
    first = following[pipeline.first]

    def run(packet: Packet) -> None:
        at = first
        while at != END and not packet.exited:
            at = nodes[at](packet)

    return run


Following = dict[str | None, int]


# {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
def conditional_of(context: Context, node: Conditional, following: Following) -> Value:
    """The function of a condition."""
    with context.located(node.source):
        condition = context.trace.condition(node, value_of(context, node.condition))
    true_next, false_next = following[node.true_next], following[node.false_next]
    return lambda packet: true_next if condition(packet) else false_next


class Ends(NamedTuple):
    """The nodes after a table, after a hit and after a miss, by the number of the action that ran.

    `hit_without` follows a hit with an empty group, `miss_without` a miss without a default action.
    """

    hit: dict[int, int]
    miss: dict[int, int]
    hit_without: int
    miss_without: int


def ends_of(table: Table, following: Following) -> Ends:
    by_action = {number: following[name] for number, name in table.after.items()}
    if not table.by_outcome:
        return Ends(by_action, by_action, following[table.base_next], following[table.base_next])
    hit, miss = following[table.hit], following[table.miss]
    return Ends(dict.fromkeys(by_action, hit), dict.fromkeys(by_action, miss), hit, miss)


# {"name": "t", "key": [...], "action_ids": [6, 0], "next_tables": {...}, "default_entry": {...}}
def table_of(context: Context, table: Table, following: Following) -> Value:
    """The function of a table: it looks the key up, runs an action, and returns the next node."""
    with context.located(table.source):
        key, runs = key_of(context, table), {action.number: runner(context, action) for action in table.actions}
        choose, hit = call_of(context, table), on_hit(context, table)
    state, ends, trace = context.state.tables[table.name], ends_of(table, following), context.trace
    find, listens = state.find, trace.listens

    def apply(packet: Packet) -> int:
        found = find(key(packet))
        if found is None:
            chosen, goes_to = state.chosen_default, ends.miss
            call = state.default if chosen is None else choose(packet, chosen)
        else:
            if hit is not None:
                hit(packet, found)
            call, goes_to = choose(packet, found), ends.hit
        if listens:
            trace.table(table, key(packet), found, call)
        if call is None:
            return ends.miss_without if found is None else ends.hit_without
        runs[call.action.number](packet, call.values)
        return goes_to[call.action.number]

    return apply


def runner(context: Context, action: Action) -> Callable[[Packet, tuple[int, ...]], None]:
    """The function that runs an action with these values as its parameters."""
    run, first, count = action_of(context, action), context.places.parameters, len(action.parameters)
    if not count:
        return lambda packet, _values: run(packet)

    def with_values(packet: Packet, values: tuple[int, ...]) -> None:
        packet[first : first + count] = values
        run(packet)

    return with_values


def on_hit(context: Context, table: Table) -> Callable[[Packet, Installed], None] | None:
    """The function that counts a hit, and sets a meter's colour, before the action; None if the table does neither."""
    if not (table.counted or table.meter or table.idle_timeout):
        return None
    meter = context.program.direct_meters[table.meter] if table.meter else None
    write = store(context, meter.result) if meter is not None and meter.result is not None else None
    cells, clock = context.state.meters[meter.name] if meter is not None else None, context.state.clock

    def hit(packet: Packet, found: Installed) -> None:
        found.matched_us = clock()
        found.packets += 1
        found.bytes += packet.received
        if write is not None and cells is not None:
            write(packet, cells.colour(found.number, packet.received))

    return hit


def key_of(context: Context, table: Table) -> Callable[[Packet], tuple[int, ...]]:
    """The function that gives a packet's key in a table."""
    parts = [part_of(context, part) for part in table.key]
    if len(parts) == 1:
        only = parts[0]
        return lambda packet: (only(packet),)
    return lambda packet: tuple([part(packet) for part in parts])


# {"match_type": "exact", "name": "hdr.ina.job", "target": ["ina", "job"], "mask": null}
def part_of(context: Context, part: MatchKey) -> Value:
    """The function that gives one part of a packet's key, cut to its bits; 0 for an invalid header."""
    if isinstance(part.value, Unknown):
        raise context.refusal(f"{part.value.kind} '{part.value.name}' as a key")
    value = value_of(context, part.value)
    if isinstance(part.value, Validity):
        return value
    header = context.program.headers[part.value.header]
    ones = (1 << part.bits) - 1 if part.mask is None else part.mask
    if header.metadata and part.mask is None and not part.value.signed:
        return value
    valid = context.places.base[header.name]
    return lambda packet: value(packet) & ones if packet[valid] else 0
