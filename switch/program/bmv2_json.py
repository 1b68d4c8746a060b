"""Reads BMv2 JSON, as p4c's backend `p4c-bm2-ss` writes it: a file, checked for malformed parts, to a `Program`.

A comment above each reader shows the JSON that it takes.

`make p4` writes `ina.sha256` next to `p4/build/ina.json`, with the hashes of the program and of all its sources. A
program without such a file, like a user's own, is not checked against its sources.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import (
    STANDARD_METADATA,
    Action,
    ActionCall,
    ActionParameter,
    ActionProfile,
    Argument,
    Arguments,
    Boolean,
    Calculation,
    Checksum,
    Conditional,
    Constant,
    ConstEntry,
    Counter,
    DirectCounter,
    ElementField,
    Expression,
    Extern,
    Field,
    FieldList,
    HashInput,
    Header,
    HeaderReference,
    LastField,
    Lookahead,
    MatchKey,
    Meter,
    Node,
    Operation,
    Parameter,
    Parser,
    ParserState,
    Payload,
    Pipeline,
    Primitive,
    Program,
    Register,
    SizedNumber,
    Source,
    Stack,
    StackReference,
    Table,
    Text,
    Transition,
    Union,
    UnionReference,
    UnionStack,
    UnionStackReference,
    Unknown,
    Validity,
    ValueSet,
)
from inakit.topo.errors import InputError

Json = Any
"""The result of `json.loads`. A reader raises an exception of `MALFORMED` if its shape is wrong."""


def listed(node: Json, name: str) -> Json:
    """The elements of a list in a node; empty if the list is absent, as older compilers left it."""
    return node.get(name) or []


# {"source_info": {"filename": "ina.p4", "line": 12, "column": 4, "source_fragment": "drop()"}}
def read_source(node: Json) -> Source | None:
    """The line of P4 that a node names; None without one."""
    info = node.get("source_info")
    return Source(info.get("filename", ""), info.get("line", 0), info.get("source_fragment", "")) if info else None


# {"header_types": [{"name": "udp_t", "fields": [["src_port", 16, false], ["options", "*"]]}]}
# {"headers": [{"name": "udp", "id": 4, "header_type": "udp_t", "metadata": false}]}
def read_headers(document: Json) -> dict[str, Header]:
    """The header instances by name, metadata among them.

    A field is a name, its bits (`*`: a variable length), and whether it is signed; fields follow one another.
    """
    types, found = {each["name"]: each for each in document["header_types"]}, {}
    for node in document["headers"]:
        name, declared, fields, offset = node["name"], types[node["header_type"]], list[Field](), 0
        for field, bits, *signed in declared["fields"]:
            width = 0 if bits == "*" else bits
            fields.append(Field(name, field, width, bool(signed and signed[0]), offset, bits == "*"))
            offset += width
        metadata = node.get("metadata", False)
        found[name] = Header(name, metadata, tuple(fields), declared["name"], declared.get("max_length"))
    return found


# {"header_stacks": [{"name": "mpls", "size": 2, "header_ids": [3, 4]}]}
def read_stacks(document: Json) -> dict[str, Stack]:
    names = {header["id"]: header["name"] for header in document["headers"]}
    nodes = document.get("header_stacks", [])
    return {node["name"]: Stack(node["name"], tuple(names[each] for each in node["header_ids"])) for node in nodes}


# {"header_union_types": [{"name": "U", "headers": [["ipv4", "ipv4_t"]]}], "header_unions": [{"header_ids": [3]}]}
# {"header_union_stacks": [{"name": "options", "size": 2, "header_union_ids": [0, 1]}]}
def read_unions(document: Json) -> tuple[dict[str, Union], dict[str, UnionStack]]:
    """The header unions and the stacks of unions, by name."""
    names = {header["id"]: header["name"] for header in document["headers"]}
    types = {each["name"]: [name for name, _ in each["headers"]] for each in document.get("header_union_types", [])}
    unions = {}
    for node in document.get("header_unions", []):
        members = zip(types[node["union_type"]], (names[each] for each in node["header_ids"]), strict=True)
        unions[node["id"]] = Union(node["name"], dict(members))
    stacks = {}
    for node in document.get("header_union_stacks", []):
        stacks[node["name"]] = UnionStack(node["name"], tuple(unions[each] for each in node["header_union_ids"]))
    return {union.name: union for union in unions.values()}, stacks


Fields = dict[tuple[str, str], Field]
"""All fields of a program, by the names of header and field."""

INPUTS: dict[str, Callable[[Json, Fields], HashInput]] = {
    "field": lambda node, fields: fields[tuple(node["value"])],
    "hexstr": lambda node, _fields: SizedNumber(int(node["value"], 16), node["bitwidth"]),
    "header": lambda node, _fields: HeaderReference(node["value"]),
    "payload": lambda _node, _fields: Payload(),
}
"""Readers of one part of an input, by its type."""


# [{"type": "field", "value": ["ipv4", "ttl"]}, {"type": "hexstr", "value": "0x00", "bitwidth": 8}]
def read_inputs(nodes: Json, fields: Fields) -> tuple[HashInput, ...]:
    """The parts of an input or of a list, in order."""
    return tuple(INPUTS[node["type"]](node, fields) for node in nodes)


# {"id": 1, "name": "digest_t", "elements": [{"type": "field", ...}, {"type": "hexstr", ..., "bitwidth": 8}]}
def read_field_lists(nodes: Json, fields: Fields) -> dict[int, FieldList]:
    """Lists of fields by number; parts that are neither fields nor numbers are omitted."""
    found = {}
    for node in nodes:
        parts = (each for each in read_inputs(node["elements"], fields) if isinstance(each, Field | SizedNumber))
        found[node["id"]] = FieldList(node["id"], node["name"], tuple(parts), read_source(node))
    return found


# {"action_profiles": [{"name": "ap", "max_size": 16, "selector": {"algo": "crc16", "input": [...]}}]}
# before: {"tables": [{"name": "t", "act_prof_name": "ap", "max_size": 16, "selector": {...}}]}
def read_profiles(pipeline: Json, fields: Fields) -> Iterable[ActionProfile]:
    """The action profiles of a pipeline; older compilers write them with the tables that use them."""
    nodes = [(node["name"], node) for node in listed(pipeline, "action_profiles")]
    tables = (table for table in listed(pipeline, "tables") if "action_profile" not in table)
    for name, node in (*nodes, *((table["act_prof_name"], table) for table in tables if "act_prof_name" in table)):
        chosen, selector = node.get("selector"), None
        if chosen is not None:
            selector = Calculation(
                node["name"], chosen["algo"], read_inputs(chosen["input"], fields), read_source(node)
            )
        yield ActionProfile(name, node["max_size"] or 0, selector)


@dataclass(frozen=True)
class Declarations:
    """Declarations by name, for the readers of statements.

    `meters` includes direct meters, `counters` only indirect counters.
    """

    headers: dict[str, Header]
    fields: Fields
    stacks: dict[str, Stack]
    unions: dict[str, Union]
    union_stacks: dict[str, UnionStack]
    registers: dict[str, Register]
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    calculations: dict[str, Calculation]
    externs: dict[str, Extern]


# {"register_arrays": [{"name": "r", "size": 1024, "bitwidth": 32}]}
# {"counter_arrays": [{"name": "c", "size": 16, "is_direct": false}]}
# {"calculations": [{"name": "calc", "algo": "csum16", "input": [{"type": "field", ...}, {"type": "payload", ...}]}]}
# {"extern_instances": [{"name": "e", "id": 0, "type": "my_extern"}]}: none of v1model; older compilers write no list
def read_declarations(document: Json) -> Declarations:
    headers = read_headers(document)
    fields = {(header.name, each.name): each for header in headers.values() for each in header.fields}
    unions, union_stacks = read_unions(document)
    counters = (each for each in listed(document, "counter_arrays") if not is_direct(each))
    calculations = {
        each["name"]: Calculation(each["name"], each["algo"], read_inputs(each["input"], fields), read_source(each))
        for each in listed(document, "calculations")
    }
    return Declarations(
        headers=headers,
        fields=fields,
        stacks=read_stacks(document),
        unions=unions,
        union_stacks=union_stacks,
        registers=by_name(Register(r["name"], r["size"], r["bitwidth"]) for r in listed(document, "register_arrays")),
        counters=by_name(Counter(each["name"], each["size"]) for each in counters),
        meters=by_name(read_meter(each, fields) for each in listed(document, "meter_arrays")),
        calculations=calculations,
        externs=by_name(Extern(e["name"], e["type"], read_source(e)) for e in listed(document, "extern_instances")),
    )


class Named(Protocol):
    """A declaration with a name."""

    @property
    def name(self) -> str:
        """The name, unique among declarations of one kind."""


Declared = TypeVar("Declared", bound=Named)


def by_name(found: Iterable[Declared]) -> dict[str, Declared]:
    return {each.name: each for each in found}


def is_direct(node: Json) -> bool:
    """Whether the cells of a counter or meter belong to a table's entries."""
    return bool(node.get("is_direct", False))


# {"name": "m", "is_direct": false, "rate_count": 2, "type": "bytes", "size": 16, "result_target": [...]}
def read_meter(node: Json, fields: Fields) -> Meter:
    target = node.get("result_target") if is_direct(node) else None
    result = fields[tuple(target)] if target else None
    of_bytes = node["type"] == "bytes"
    return Meter(node["name"], node["size"], node["rate_count"], of_bytes, result, read_source(node))


VALIDITY = "$valid$"


# {"type": "expression", "value": {"op": "+", "left": ..., "right": ...}}
def read_argument(declared: Declarations, node: Json, action: Json = None) -> Argument:
    """An argument of a primitive, or a leaf or node of an expression, inside `action` (its JSON) if given."""
    kind, value = node["type"], node["value"]
    while kind == "expression" and "op" not in value:
        kind, value = value["type"], value["value"]
    if kind not in LEAVES:
        return Unknown(kind, str(value))
    return LEAVES[kind](declared, value, action)


def read_expression(declared: Declarations, node: Json, action: Json = None) -> Expression:
    """Like `read_argument`, where only an expression is possible; anything else becomes `Unknown`."""
    found = read_argument(declared, node, action)
    return found if isinstance(found, Expression) else Unknown("operand", str(node["value"]))


# {"op": "?", "cond": ..., "left": ..., "right": ...}; unary operators have "left": null, which before - is 0
# {"op": "access_field", "left": <a header>, "right": 2}
def read_operation(declared: Declarations, node: Json, action: Json) -> Operation | ElementField:
    """An operator with its operands, or a field of a computed header."""
    if node["op"] == "access_field":
        return ElementField(read_expression(declared, node["left"], action), node["right"])
    sides = [node[side] for side in ("cond", "left", "right") if node.get(side) is not None]
    operands = tuple(read_expression(declared, side, action) for side in sides)
    return Operation(node["op"], (Constant(0), *operands) if node["op"] == "-" and len(operands) == 1 else operands)


# {"type": "field", "value": ["ina", "label"]}, or ["ina", "$valid$"]
def read_field(declared: Declarations, value: Json, _action: Json = None) -> Field | Validity | Unknown:
    """A field of a header or metadata instance, or the validity of a header."""
    if value[1] == VALIDITY:
        return Validity(value[0])
    return declared.fields.get(tuple(value), Unknown("field", ".".join(value)))


# {"type": "stack_field", "value": ["mpls", "bos"]}, {"type": "union_stack_field", "value": ["options", "nop", "kind"]}
def read_last_field(declared: Declarations, value: Json, _action: Json) -> LastField | Unknown:
    """A field of the last element that the parser filled in a stack; in a stack of unions, of one of its headers."""
    stack, *members, wanted = value
    member = members[0] if members else None
    first = declared.union_stacks[stack].unions[0].members[member] if member else declared.stacks[stack].headers[0]
    for index, field in enumerate(declared.headers[first].fields):
        if field.name == wanted:
            return LastField(stack, index, field.bits, member)
    return Unknown("field of a header stack", f"{stack}.last.{wanted}")


# {"type": "runtime_data", "value": 0}, and inside expressions {"type": "local", "value": 0}
def read_parameter(_declared: Declarations, value: Json, action: Json) -> Argument:
    return Parameter(value, action["runtime_data"][value]["bitwidth"])


# The reader of each type of argument: (declarations, value, JSON of the action) -> argument.
LEAVES: dict[str, Callable[[Declarations, Json, Json], Argument]] = {
    "expression": read_operation,
    "field": read_field,
    "stack_field": read_last_field,
    "union_stack_field": read_last_field,
    "hexstr": lambda _declared, value, _action: Constant(int(value, 16)),
    "bool": lambda _declared, value, _action: Boolean(value),
    "local": read_parameter,
    "runtime_data": read_parameter,
    "header": lambda _declared, value, _action: HeaderReference(value),
    "regular": lambda _declared, value, _action: HeaderReference(value),
    "header_stack": lambda _declared, value, _action: StackReference(value),
    "stack": lambda _declared, value, _action: StackReference(value),
    "header_union": lambda _declared, value, _action: UnionReference(value),
    "header_union_stack": lambda _declared, value, _action: UnionStackReference(value),
    "union_stack": lambda _declared, value, _action: UnionStackReference(*value),
    "lookahead": lambda _declared, value, _action: Lookahead(*value),
    "register_array": lambda declared, value, _action: declared.registers[value],
    "counter_array": lambda declared, value, _action: declared.counters[value],
    "meter_array": lambda declared, value, _action: declared.meters[value],
    "calculation": lambda declared, value, _action: declared.calculations[value],
    "extern": lambda declared, value, _action: declared.externs[value],
    "string": lambda _declared, value, _action: Text(value),
    "parameters_vector": lambda declared, value, action: Arguments(  # without elements, its value is {}
        tuple(read_expression(declared, each, action) for each in value or ())
    ),
}


Actions = dict[int, Action]
"""The actions of a program by the numbers that tables use."""


COMPUTING = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
    "add_to_field": "+",
    "subtract_from_field": "-",
}
"""Primitives of P4-14 that assign the result of an operator; with two arguments, the first is also an operand."""

RENAMED = {"modify_field": "assign", "copy_header": "assign_header", "drop": "mark_to_drop"}
"""Primitives that older compilers write, with their present names."""


# {"op": "assign", "parameters": [{"type": "field", ...}, ...], "source_info": {...}}
def read_primitive(declared: Declarations, node: Json, action: Json = None) -> Primitive:
    """One statement, inside `action` (its JSON) if given; statements of older compilers become their modern forms."""
    name, source = node["op"], read_source(node)
    arguments = tuple(read_argument(declared, parameter, action) for parameter in listed(node, "parameters"))
    if name == "drop":
        arguments = (HeaderReference(STANDARD_METADATA), *arguments)
    if name in COMPUTING:
        target, *operands = arguments
        values = tuple(each for each in (operands if len(operands) > 1 else arguments) if isinstance(each, Expression))
        return Primitive("assign", (target, Operation(COMPUTING[name], values)), source)
    return Primitive(RENAMED.get(name, name), arguments, source)


# {"name": "send", "id": 9, "runtime_data": [{"name": "port", "bitwidth": 9}], "primitives": [...]}
def read_action(declared: Declarations, node: Json) -> Action:
    parameters = tuple(ActionParameter(data["name"], data["bitwidth"]) for data in listed(node, "runtime_data"))
    primitives = tuple(
        read_primitive(declared, each, node) for each in listed(node, "primitives") if each["op"] != "no_op"
    )
    return Action(node["id"], node["name"], parameters, primitives)


# {"action_id": 6, "action_data": ["0x1"], ...}
def read_action_call(actions: Actions, node: Json) -> ActionCall:
    """An action with the values of its parameters, from a default action or an entry of the program."""
    return ActionCall(actions[node["action_id"]], tuple(int(data, 16) for data in node["action_data"]))


# {"name": "ingress", "init_table": "t", "tables": [...], "conditionals": [...]}
def read_pipeline(declared: Declarations, actions: Actions, node: Json) -> Pipeline:
    nodes: list[Node] = [read_table(declared, actions, table) for table in listed(node, "tables")]
    nodes += [read_conditional(declared, conditional) for conditional in listed(node, "conditionals")]
    return Pipeline(node["name"], node.get("init_table"), by_name(nodes))


# {"name": "t", "key": [...], "action_ids": [6, 0], "next_tables": {"__HIT__": "x", "__MISS__": null}, ...}
# until 2.6, as long as no two actions shared a name, without "action_ids" and with "actions": ["send", "drop"]
def read_table(declared: Declarations, all_actions: Actions, node: Json) -> Table:
    """One table, its `next_tables` by hit and miss or by action."""
    if "action_ids" in node:
        actions = tuple(all_actions[number] for number in node["action_ids"])
    else:
        named = by_name(reversed(all_actions.values()))
        actions = tuple(named[name] for name in node["actions"])
    following, last = node["next_tables"], node.get("base_default_next")
    default, entries = node.get("default_entry"), node.get("entries")
    found: str | None = node.get("action_profile", node.get("act_prof_name"))
    return Table(
        name=node["name"],
        key=tuple(read_match_key(declared, part) for part in listed(node, "key")),
        actions=actions,
        default=read_action_call(all_actions, default) if default else None,
        size=node["max_size"] if "max_size" in node else len(entries),
        after={action.number: following.get(action.name, last) for action in actions},
        by_outcome="__HIT__" in following,
        hit=following.get("__HIT__"),
        miss=following.get("__MISS__"),
        source=read_source(node),
        match=node["match_type"],
        entries=None if entries is None else tuple(read_entry(all_actions, each) for each in entries),
        default_is_const=bool(default and default.get("action_entry_const", False)),
        default_action_is_const=bool(default and default.get("action_const", False)),
        base_next=last,
        profile=found,
        counted=node.get("with_counters", False),
        meter=node.get("direct_meters"),
        idle_timeout=node.get("support_timeout", False),
    )


# {"match_type": "exact", "name": "hdr.ina.job", "target": ["ina", "job"], "mask": "0xff00"}; valid: "target": "ina"
def read_match_key(declared: Declarations, node: Json) -> MatchKey:
    """One part of a table's key."""
    target = node["target"]
    value = Validity(target) if isinstance(target, str) else read_field(declared, target)
    mask = int(node["mask"], 16) if node.get("mask") is not None else None
    name = target if isinstance(target, str) else ".".join(target)
    return MatchKey(node.get("name", name), node["match_type"], value, mask)


# {"match_key": [{"match_type": "exact", "key": "0x01"}], "action_entry": {...}, "priority": 1}
def read_entry(actions: Actions, node: Json) -> ConstEntry:
    """One entry that the program declares."""
    key = tuple(KEY_PARTS[part["match_type"]](part) for part in node["match_key"])
    return ConstEntry(key, read_action_call(actions, node["action_entry"]), node["priority"], read_source(node))


# {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
def read_conditional(declared: Declarations, node: Json) -> Conditional:
    condition = read_expression(declared, node["expression"])
    return Conditional(node["name"], condition, node.get("true_next"), node.get("false_next"), read_source(node))


KEY_PARTS: dict[str, Callable[[Json], KeyPart]] = {
    "exact": lambda node: int(node["key"], 16),
    "valid": lambda node: int(node["key"]),
    "lpm": lambda node: Lpm(int(node["key"], 16), node["prefix_length"]),
    "ternary": lambda node: Ternary(int(node["key"], 16), int(node["mask"], 16)),
    "range": lambda node: Range(int(node["start"], 16), int(node["end"], 16)),
}
"""Readers of one part of an entry's key, by its match type."""


MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""Errors raised for a program that names undeclared things or gives a statement wrong arguments."""

MOST: Mapping[str, int] = {"bits": 1 << 16, "offset": 1 << 24, "size": 1 << 32, "rates": 16, "index": 1 << 16}
"""The greatest number for a field of this name; none is negative."""


def not_p4c(name: str, error: Exception) -> InputError:
    """The error for a program in which one of `MALFORMED` was raised."""
    return InputError(f"program '{name}' is not as p4c writes it: {error!r}; compile the P4 again")


def check_types(value: Any, seen: set[int] | None = None) -> None:
    """Raise `ValueError` for the first value of a wrong type or with too great a number.

    The check covers all fields of a dataclass, and nested dataclasses; `seen` holds the ids of those already checked.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    kind: type = type(value)
    for name, hint in hints_of(kind).items():
        found = getattr(value, name)
        if not fits(found, hint, seen):
            raise ValueError(f"{type(value).__name__} with {name} {found!r}")
        if name in MOST and found is not None and not 0 <= found <= MOST[name]:
            raise ValueError(f"{type(value).__name__} with {name} {found}: 0 to {MOST[name]} are possible")


@cache
def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a dataclass's fields, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def fits(value: Any, hint: Any, seen: set[int]) -> bool:
    """Whether `value` has the type `hint`, including nested dataclasses."""
    if type(value) is hint:
        if is_dataclass(value):
            check_types(value, seen)
        return True
    origin = get_origin(hint)
    if origin in (typing.Union, UnionType):
        return any(fits(value, each, seen) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(each, get_args(hint)[0], seen) for each in value)
    if origin is dict:
        of_key, of_value = get_args(hint)
        return isinstance(value, dict) and all(
            fits(key, of_key, seen) and fits(each, of_value, seen) for key, each in value.items()
        )
    return False


KeyField = Field | LastField | Lookahead | Unknown


# {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
def read_state(declared: Declarations, node: Json) -> ParserState:
    found = [(part, read_expression(declared, part)) for part in listed(node, "transition_key")]
    key = tuple(
        value if isinstance(value, Field | LastField | Lookahead) else Unknown(part["type"], str(part["value"]))
        for part, value in found
    )
    transitions = tuple(read_transition(transition, key) for transition in listed(node, "transitions"))
    operations = tuple(read_parser_operation(declared, operation) for operation in listed(node, "parser_ops"))
    return ParserState(node["name"], operations, key, transitions)


# {"op": "extract", "parameters": [...]}; any primitive: {"op": "primitive", "parameters": [{"op": ..., ...}]}
# of older compilers: {"op": "shift", "parameters": [4]}, {"op": "verify", "parameters": [{...}, 3]}
def read_parser_operation(declared: Declarations, node: Json) -> Primitive:
    """One operation of a state, or an action primitive that stands in it."""
    name, parameters = node["op"], node["parameters"]
    if name == "primitive":
        return read_primitive(declared, parameters[0])
    if name == "shift":
        (size,) = parameters
        return Primitive("advance", (Constant(8 * size),), read_source(node))
    whole = [{"type": "hexstr", "value": hex(each)} if isinstance(each, int) else each for each in parameters]
    return read_primitive(declared, {**node, "parameters": whole})


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}; until 2.18 without a type, or "default"
def read_transition(node: Json, key: tuple[KeyField, ...]) -> Transition:
    """One transition of a state on `key`; `InputError` if it is not a value, a value set or the default."""
    kind = node.get("type", "hexstr")
    if kind == "default" or (kind == "hexstr" and node["value"] == "default"):
        return Transition(None, None, node["next_state"])
    if kind not in ("hexstr", "parse_vset") or any(isinstance(part, Unknown) for part in key):
        raise InputError(f"parser transition of type '{kind}' is not supported: use values")
    widths = [part.bits for part in key if not isinstance(part, Unknown)]
    mask = None if node["mask"] is None else without_padding(int(node["mask"], 16), widths)
    if kind == "parse_vset":
        return Transition(None, mask, node["next_state"], node["value"])
    return Transition(without_padding(int(node["value"], 16), widths), mask, node["next_state"])


def without_padding(value: int, widths: list[int]) -> int:
    """The fields' bits of a transition's value, side by side; in the JSON each field fills whole bytes."""
    result = shift = 0
    if not all(0 <= bits <= MOST["bits"] for bits in widths):
        raise ValueError(f"a key of {widths} bits")
    for bits in reversed(widths):
        result |= (value & ((1 << bits) - 1)) << shift
        value >>= -(-bits // 8) * 8
        shift += bits
    return result


CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
"""The errors of core.p4, in BMv2's order for those that a program does not declare."""

REQUIRED = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")
"""The metadata that `simple_switch` requires of every program."""


def read_document(document: Json) -> Program:
    """The program in a document; values can still have other types than `Program` declares."""
    declared = read_declarations(document)
    actions = {node["id"]: read_action(declared, node) for node in listed(document, "actions")}
    pipelines = {node["name"]: read_pipeline(declared, actions, node) for node in document["pipelines"]}
    check_architecture(document.get("program", "?"), declared.fields.keys(), pipelines.keys())
    direct = {node["name"] for node in listed(document, "meter_arrays") if is_direct(node)}
    parser, deparser = document["parsers"][0], document["deparsers"][0]
    return Program(
        name=document.get("program", "?"),
        headers=declared.headers,
        errors=read_errors(document),
        parser=Parser(parser["init_state"], by_name(read_state(declared, each) for each in parser["parse_states"])),
        ingress=pipelines["ingress"],
        egress=pipelines["egress"],
        deparser=tuple(deparser["order"]),
        actions=tuple(actions.values()),
        registers=declared.registers,
        counters=declared.counters,
        aliases={name: declared.fields[tuple(target)] for name, target in listed(document, "field_aliases")},
        extras=tuple(read_extras(document)),
        stacks=declared.stacks,
        unions=declared.unions,
        union_stacks=declared.union_stacks,
        direct_counters=by_name(
            DirectCounter(each["name"], each["binding"], read_source(each))
            for each in listed(document, "counter_arrays")
            if is_direct(each)
        ),
        meters={name: meter for name, meter in declared.meters.items() if name not in direct},
        direct_meters={name: meter for name, meter in declared.meters.items() if name in direct},
        calculations=declared.calculations,
        checksums=tuple(read_checksum(declared, node) for node in listed(document, "checksums")),
        digests=read_field_lists(listed(document, "learn_lists"), declared.fields),
        field_lists=read_field_lists(listed(document, "field_lists"), declared.fields),
        profiles=by_name(each for node in document["pipelines"] for each in read_profiles(node, declared.fields)),
        value_sets=by_name(
            ValueSet(each["name"], each["compressed_bitwidth"], each.get("max_size", 0), read_source(each))
            for each in listed(document, "parse_vsets")
        ),
        externs=declared.externs,
        deparser_statements=tuple(read_primitive(declared, node) for node in listed(deparser, "primitives")),
    )


def check_architecture(program: str, fields: Collection[tuple[str, str]], pipelines: Collection[str]) -> None:
    """Raise `InputError` for a program without the parts that `simple_switch` requires: it is not for v1model."""
    missing = [f"pipeline '{name}'" for name in ("ingress", "egress") if name not in pipelines]
    missing += [f"field '{STANDARD_METADATA}.{name}'" for name in REQUIRED if (STANDARD_METADATA, name) not in fields]
    if missing:
        raise InputError(
            f"program '{program}' has no {missing[0]}: it is not for v1model, the architecture of simple_switch; "
            "compile it for that one"
        )


# {"errors": [["NoError", 0], ["PacketTooShort", 1], ...]}
def read_errors(document: Json) -> dict[str, int]:
    """The numbers of the parser's errors by name. Errors of core.p4 that a document lacks follow its own."""
    errors = dict(listed(document, "errors"))
    for name in CORE_ERRORS:
        errors.setdefault(name, max(errors.values(), default=-1) + 1)
    return errors


# {"target": ["ipv4", "checksum"], "calculation": "calc", "verify": true, "update": false, "if_cond": {...}}
def read_checksum(declared: Declarations, node: Json) -> Checksum:
    """One checksum; documents without `verify` and `update` mean both."""
    return Checksum(
        node["name"],
        declared.fields[tuple(node["target"])],
        declared.calculations[node["calculation"]],
        verify=node.get("verify", True),
        update=node.get("update", True),
        condition=read_expression(declared, node["if_cond"]) if node.get("if_cond") else None,
        source=read_source(node),
    )


def read_extras(document: Json) -> Iterable[Unknown]:
    """Constructs that have no place in a `Program`; p4c writes none of them, but older compilers did."""
    for checksum in listed(document, "checksums"):
        if checksum["type"] != "generic":
            yield Unknown("checksum type", checksum["type"], read_source(checksum))
    for pipeline in document["pipelines"]:
        for call in listed(pipeline, "action_calls"):
            yield Unknown("call of an action outside of a table", call["name"], read_source(call))
    for header_type in document["header_types"]:
        if header_type.get("length_exp"):
            yield Unknown("header with an expression for its length", header_type["name"])
        for name, _, *more in header_type["fields"]:
            if any(more[1:]):
                yield Unknown("saturating field", f"{header_type['name']}.{name}")


COMPILER = "p4c-bm2-ss"
WHERE_FROM = f"{COMPILER} is not installed here: `inakit p4c --install-help` has the ways to get it"


def check_sources(program: Path) -> None:
    """Raise `InputError`, naming the changed file, unless `program` was compiled from its present sources."""
    if not program.is_file() and recorded(program):
        undo = f"git checkout {shown(program)}"
        raise InputError(f"{shown(program)} is missing: undo that ({undo}), or {compile_by('make p4')}")
    changed = [file for file, digest in recorded(program).items() if digest != sha256(file)]
    sources = [file for file in changed if file != program]
    if sources:
        names = " and ".join(map(shown, sources))
        raise InputError(f"{names} {has_changed(sources)} since {shown(program)} was compiled: {compile_by('make p4')}")
    if changed:
        raise InputError(
            f"{shown(program)} differs from the compiler's output, and its sources have not changed: it was edited or "
            f"replaced; change the sources, or undo it (git checkout {shown(program)}), or {compile_by('make p4')}"
        )


def recorded(program: Path) -> dict[Path, str]:
    """The hash of each file, recorded when `program` was compiled; empty for a program without a record."""
    hashes = program.with_suffix(".sha256")
    if not hashes.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in hashes.read_text().splitlines() if line.strip())
    return {program.parents[1] / name.strip(): digest for digest, name in lines}


def sha256(file: Path) -> str | None:
    """The file's hash in hexadecimal; None for a missing file."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def has_changed(files: list[Path]) -> str:
    """The verb for a change of these files: "has changed", "have changed", "is gone" and so on."""
    if not all(file.is_file() for file in files):
        return "is gone" if len(files) == 1 else "have changed or gone"
    return "has changed" if len(files) == 1 else "have changed"


def compile_by(command: str) -> str:
    """The command that makes a compiled program, and a source of its compiler if that is not installed here."""
    if shutil.which(COMPILER) is not None:
        return f"run `{command}`, for which {COMPILER} is installed here"
    return f"run `{command}`. {WHERE_FROM}"


def shown(file: Path) -> str:
    """The path of a file in messages: from the folder `p4` on, if it is in one."""
    return str(Path(*file.parts[file.parts.index("p4") :])) if "p4" in file.parts else str(file)


def not_json(path: Path, text: bytes, error: Exception) -> InputError:
    """The error for a file that should be BMv2 JSON, but is P4 source, empty or broken at some line."""
    if path.suffix == ".p4":
        compiled = path.with_suffix(".json")
        command = f"{COMPILER} --std p4-16 -o {compiled} {path}"
        return InputError(f"{path} is P4 source; give the compiled program, {compiled}: {compile_by(command)}")
    place = f" line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
    what = "empty" if not text.strip() else f"not JSON{place}"
    return InputError(f"{path}: {what}; the JSON that {COMPILER} writes is expected")


def read_program(path: Path) -> Program:
    """The program in a BMv2 JSON file. Raises `InputError`, also if its sources have changed."""
    try:
        check_sources(path)
        return parse_program(path.read_bytes(), str(path))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path}: {why}; p4c-bm2-ss makes it from the P4 source") from None


@lru_cache(maxsize=8)
def parse_program(text: bytes, name: str) -> Program:
    """The program in a BMv2 JSON document; errors call it `name`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise not_json(Path(name), text, error) from error
    try:
        return program_of(document)
    except (*MALFORMED, RecursionError) as error:
        raise InputError(f"{name} is not BMv2 JSON as p4c-bm2-ss writes it: {error!r}; compile the P4 again") from error


def program_of(document: Json) -> Program:
    """The program in a parsed document; an exception of `MALFORMED` if the document differs from p4c's format."""
    program = read_document(document)
    check_types(program)
    return program
