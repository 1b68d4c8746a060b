"""The tables of a P4Info read against those of the program."""

from __future__ import annotations

from collections.abc import Mapping

from inakit.switch.program.program import MatchKey, Table
from inakit.switch.program.program import Program
from inakit.switch.server.p4runtime.protocol.faults import invalid
from inakit.switch.server.p4runtime.protocol.messages import Message
from inakit.switch.server.p4runtime.schema.schema import ActionSchema, MatchField, MeterSchema, TableSchema
from inakit.switch.server.p4runtime.schema.type_layouts import translated_bits

KINDS = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
"""The kinds of matches by their numbers in `MatchField.MatchType`."""

MATCHED_AS = {
    "exact": ("exact", "valid"),
    "lpm": ("lpm",),
    "ternary": ("ternary",),
    "range": ("range",),
    "optional": ("ternary",),
}
"""How the program matches a part of a key of each kind."""


def read_table(
    described: Message,
    types: Message,
    program: Program,
    actions: Mapping[int, ActionSchema],
    meters: Mapping[int, MeterSchema | None],
) -> TableSchema:
    """One table; a fault if the program has none of its name, key and actions."""
    name = described.preamble.name
    table = program.tables.get(name)
    if table is None:
        raise invalid(f"P4Info: table '{name}' is not in the program, which has {', '.join(program.tables) or 'none'}")
    return TableSchema(
        id=described.preamble.id,
        name=name,
        table=table,
        fields=read_fields(described, types, table),
        actions={each.id: known_action(actions, each.id, table) for each in described.action_refs},
        scopes={each.id: each.scope for each in described.action_refs},
        profile=described.implementation_id or None,
        has_counter=table.counted,
        meter=meters.get(described.preamble.id) if table.meter is not None else None,
        idle_timeout=table.idle_timeout,
    )


def known_action(actions: Mapping[int, ActionSchema], number: int, table: Table) -> ActionSchema:
    """The action that a table refers to, if it has the program's parameters; a fault otherwise."""
    action = actions.get(number)
    if action is None:
        raise invalid(f"P4Info: table '{table.name}' refers to an action {number:#x} that is not described")
    for known in table.actions:
        if known.name == action.name and len(known.parameters) != len(action.parameters):
            raise invalid(f"P4Info: action '{action.name}' has not the {len(known.parameters)} parameters it should")
    return action


def read_fields(described: Message, types: Message, table: Table) -> tuple[MatchField, ...]:
    """The parts of a key; a fault if they are not those of the program."""
    if len(described.match_fields) != len(table.key):
        count = len(described.match_fields)
        raise invalid(f"P4Info: table '{table.name}' has {count} match fields, in the program {len(table.key)}")
    pairs = zip(described.match_fields, table.key, strict=True)
    return tuple(read_field(table.name, each, types, part) for each, part in pairs)


def read_field(table: str, described: Message, types: Message, part: MatchKey) -> MatchField:
    """One part of a key; its width is the program's, whatever a translation makes of it."""
    kind = kind_of(described)
    translated = bits_of(described, types) != described.bitwidth or described.HasField("type_name")
    if part.match not in MATCHED_AS[kind] or (described.bitwidth != part.bits and not translated):
        has = f"{kind} with {described.bitwidth} bits"
        raise invalid(f"P4Info: '{described.name}' of table '{table}' is {has}, not {part.match} with {part.bits}")
    return MatchField(described.id, described.name, kind, part.bits)


def kind_of(described: Message) -> str:
    """The kind of a match field; a fault for kinds of other architectures."""
    if described.match_type not in KINDS:
        other = described.other_match_type or described.match_type
        raise invalid(f"P4Info: '{described.name}' matches by '{other}': known are {', '.join(KINDS.values())}")
    return KINDS[described.match_type]


def bits_of(described: Message, types: Message) -> int:
    """The bits of a field, a parameter or a piece of metadata, as a client writes it; a fault if it is a string."""
    spec = types.new_types[described.type_name.name] if described.HasField("type_name") else None
    if spec is not None and spec.WhichOneof("representation") == "translated_type":
        return translated_bits(spec)
    return int(described.bitwidth)
