"""BMv2 JSON, as p4c's backend `p4c-bm2-ss` writes it, to a `Program`.

Above each reader stands the piece of JSON that it takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from switch.program import (
    Action,
    ActionCall,
    ActionParameter,
    Argument,
    Boolean,
    Conditional,
    Constant,
    Counter,
    Expression,
    Field,
    Header,
    HeaderReference,
    MatchKey,
    Node,
    Operation,
    Parameter,
    Parser,
    ParserState,
    Pipeline,
    Primitive,
    Program,
    Register,
    Source,
    Table,
    Transition,
    Unknown,
    Validity,
)
from topo.errors import InputError

Json = Any  # what json.loads gives: checked where it is used, by the shapes named here

VALIDITY = "$valid$"

# Whole sections of the JSON that have no place in a `Program`, and what one element of each is called.
EXTRAS = {
    "checksums": "checksum",
    "header_stacks": "header stack",
    "header_unions": "header union",
    "header_union_stacks": "stack of header unions",
    "parse_vsets": "parser value set",
    "meter_arrays": "meter",
    "learn_lists": "digest",
    "calculations": "hash calculation",
    "extern_instances": "extern instance",
}


def read_program(path: Path) -> Program:
    """The program in a BMv2 JSON file."""
    try:
        return program_of(json.loads(path.read_text()))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; p4c-bm2-ss makes it from the P4 source") from None
    except (json.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path} is not BMv2 JSON as p4c-bm2-ss writes it: {error!r}; compile the P4 again") from error


def program_of(document: Json) -> Program:
    """The program in a BMv2 JSON document."""
    return ProgramReader(document).program()


class ProgramReader:
    """Reads one document; declarations first, so that whatever refers to them finds them."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.headers = read_headers(document)
        self.fields = {(h.name, field.name): field for h in self.headers.values() for field in h.fields}
        self.registers = {r["name"]: Register(r["name"], r["size"], r["bitwidth"]) for r in document["register_arrays"]}
        self.counters = {
            c["name"]: Counter(c["name"], c["size"]) for c in document["counter_arrays"] if not c["is_direct"]
        }
        self.actions = {a["id"]: self.action(a) for a in document["actions"]}

    def program(self) -> Program:
        document = self.document
        pipelines = {p["name"]: self.pipeline(p) for p in document["pipelines"]}
        return Program(
            name=document.get("program", "?"),
            headers=self.headers,
            errors=dict(document["errors"]),
            parser=self.parser(document["parsers"][0]),
            ingress=pipelines["ingress"],
            egress=pipelines["egress"],
            deparser=tuple(document["deparsers"][0]["order"]),
            actions=tuple(self.actions.values()),
            registers=self.registers,
            counters=self.counters,
            aliases={name: self.fields[tuple(target)] for name, target in document["field_aliases"]},
            extras=tuple(read_extras(document)),
        )

    # -- expressions and arguments

    # {"type": "expression", "value": {"op": "+", "left": ..., "right": ...}}
    def argument(self, node: Json, action: Json = None) -> Argument:
        """An argument of a primitive, or a leaf or node of an expression, inside `action` (its JSON) if any."""
        kind, value = node["type"], node["value"]
        while kind == "expression" and "op" not in value:
            kind, value = value["type"], value["value"]
        if kind not in LEAVES:
            return Unknown(kind, str(value))
        return LEAVES[kind](self, value, action)

    # {"type": "field", "value": ["ina", "label"]}, or ["ina", "$valid$"]
    def field(self, value: Json, _action: Json) -> Argument:
        if value[1] == VALIDITY:
            return Validity(value[0])
        return self.fields.get(tuple(value), Unknown("field", ".".join(value)))

    # {"type": "runtime_data", "value": 0}, and inside expressions {"type": "local", "value": 0}
    def parameter(self, value: Json, action: Json) -> Argument:
        return Parameter(value, action["runtime_data"][value]["bitwidth"])

    # {"type": "counter_array", "value": "InaIngress.events"}
    def counter(self, value: Json, _action: Json) -> Argument:
        return self.counters.get(value, Unknown("direct counter", value))

    def expression(self, node: Json, action: Json = None) -> Expression:
        found = self.argument(node, action)
        if isinstance(found, Register | Counter | HeaderReference):
            return Unknown("operand", str(node["value"]))
        return found

    # {"op": "?", "cond": ..., "left": ..., "right": ...};  unary operators have "left": null
    def operation(self, node: Json, action: Json) -> Operation:
        operands = [node[side] for side in ("cond", "left", "right") if node.get(side) is not None]
        return Operation(node["op"], tuple(self.expression(operand, action) for operand in operands))

    # -- actions

    # {"op": "assign", "parameters": [{"type": "field", ...}, ...], "source_info": {...}}
    def primitive(self, node: Json, action: Json = None) -> Primitive:
        arguments = tuple(self.argument(parameter, action) for parameter in node["parameters"])
        return Primitive(node["op"], arguments, read_source(node))

    # {"name": "send", "id": 9, "runtime_data": [{"name": "port", "bitwidth": 9}], "primitives": [...]}
    def action(self, node: Json) -> Action:
        parameters = tuple(ActionParameter(data["name"], data["bitwidth"]) for data in node["runtime_data"])
        primitives = tuple(self.primitive(primitive, node) for primitive in node["primitives"])
        return Action(node["id"], node["name"], parameters, primitives)

    # {"action_id": 6, "action_data": ["0x1"], ...}
    def action_call(self, node: Json) -> ActionCall:
        return ActionCall(self.actions[node["action_id"]], tuple(int(data, 16) for data in node["action_data"]))

    # -- parser

    # {"init_state": "start", "parse_states": [...]}
    def parser(self, node: Json) -> Parser:
        states = [self.parser_state(state) for state in node["parse_states"]]
        return Parser(node["init_state"], {state.name: state for state in states})

    # {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
    def parser_state(self, node: Json) -> ParserState:
        key = tuple(self.key_field(part) for part in node["transition_key"])
        transitions = tuple(read_transition(transition, key) for transition in node["transitions"])
        operations = tuple(self.primitive(operation) for operation in node["parser_ops"])
        return ParserState(node["name"], operations, key, transitions)

    # {"type": "field", "value": ["ipv4", "protocol"]}
    def key_field(self, node: Json) -> Field | Unknown:
        value = self.expression(node)
        return value if isinstance(value, Field) else Unknown(node["type"], str(node["value"]))

    # -- control

    # {"name": "ingress", "init_table": "t", "tables": [...], "conditionals": [...]}
    def pipeline(self, node: Json) -> Pipeline:
        nodes: list[Node] = [self.table(table) for table in node["tables"]]
        nodes += [self.conditional(conditional) for conditional in node["conditionals"]]
        return Pipeline(node["name"], node["init_table"], {each.name: each for each in nodes})

    # {"name": "t", "key": [...], "action_ids": [6, 0], "next_tables": {"__HIT__": "x", "__MISS__": null}, ...}
    def table(self, node: Json) -> Table:
        actions = tuple(self.actions[number] for number in node["action_ids"])
        following = node["next_tables"]
        default = node.get("default_entry")
        return Table(
            name=node["name"],
            key=tuple(self.match_key(part) for part in node["key"]),
            actions=actions,
            default=self.action_call(default) if default else None,
            size=node["max_size"],
            after={action.number: following.get(action.name, node["base_default_next"]) for action in actions},
            by_outcome="__HIT__" in following,
            hit=following.get("__HIT__"),
            miss=following.get("__MISS__"),
            source=read_source(node),
            extras=tuple(read_table_extras(node)),
        )

    # {"match_type": "exact", "name": "hdr.ina.job", "target": ["ina", "job"], "mask": null}
    def match_key(self, node: Json) -> MatchKey:
        value = self.expression({"type": "field", "value": node["target"]})
        if node["mask"] is not None or not isinstance(value, Field | Validity):
            value = Unknown("masked key", node["name"])
        return MatchKey(node["name"], node["match_type"], value)

    # {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
    def conditional(self, node: Json) -> Conditional:
        condition = self.expression(node["expression"])
        return Conditional(node["name"], condition, node["true_next"], node["false_next"], read_source(node))


# What the value of each type of argument becomes: (reader, value, JSON of the action) -> argument.
LEAVES: dict[str, Callable[[ProgramReader, Json, Json], Argument]] = {
    "expression": ProgramReader.operation,
    "field": ProgramReader.field,
    "hexstr": lambda _reader, value, _action: Constant(int(value, 16)),
    "bool": lambda _reader, value, _action: Boolean(value),
    "local": ProgramReader.parameter,
    "runtime_data": ProgramReader.parameter,
    "header": lambda _reader, value, _action: HeaderReference(value),
    "regular": lambda _reader, value, _action: HeaderReference(value),
    "register_array": lambda reader, value, _action: reader.registers[value],
    "counter_array": ProgramReader.counter,
}


# {"header_types": [{"name": "udp_t", "fields": [["src_port", 16, false], ...]}], "headers": [...]}
def read_headers(document: Json) -> dict[str, Header]:
    types = {header_type["name"]: header_type["fields"] for header_type in document["header_types"]}
    return {
        header["name"]: Header(
            header["name"], header["metadata"], tuple(read_fields(header["name"], types[header["header_type"]]))
        )
        for header in document["headers"]
    }


def read_fields(header: str, fields: Json) -> Iterable[Field]:
    offset = 0
    for name, bits, *signed in fields:
        width = 0 if bits == "*" else bits  # a variable-length field, reported by `read_extras`
        yield Field(header, name, width, bool(signed and signed[0]), offset)
        offset += width


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}
def read_transition(node: Json, key: tuple[Field | Unknown, ...]) -> Transition:
    if node["type"] == "default":
        return Transition(None, None, node["next_state"])
    if node["type"] != "hexstr" or any(isinstance(part, Unknown) for part in key):
        raise InputError(f"parser transition of type '{node['type']}' is not understood: only values are")
    widths = [part.bits for part in key if isinstance(part, Field)]
    mask = None if node["mask"] is None else without_padding(int(node["mask"], 16), widths)
    return Transition(without_padding(int(node["value"], 16), widths), mask, node["next_state"])


def without_padding(value: int, widths: list[int]) -> int:
    """A transition's value, in which each field fills whole bytes, as the fields' bits side by side."""
    result = shift = 0
    for bits in reversed(widths):
        result |= (value & ((1 << bits) - 1)) << shift
        value >>= -(-bits // 8) * 8
        shift += bits
    return result


def read_source(node: Json) -> Source | None:
    info = node.get("source_info")
    return Source(info["filename"], info["line"], info["source_fragment"]) if info else None


def read_extras(document: Json) -> Iterable[Unknown]:
    for section, kind in EXTRAS.items():
        for element in document.get(section, []):
            yield Unknown(kind, element["name"])
    for counter in document["counter_arrays"]:
        if counter["is_direct"]:
            yield Unknown("direct counter", counter["name"])
    for header_type in document["header_types"]:
        if any(field[1] == "*" for field in header_type["fields"]):
            yield Unknown("header of variable length", header_type["name"])
    for deparser in document["deparsers"]:
        if deparser.get("primitives"):
            yield Unknown("statement in the deparser", deparser["name"])


def read_table_extras(node: Json) -> Iterable[Unknown]:
    if node["type"] != "simple":
        yield Unknown("table type", node["type"])
    if node.get("entries"):
        yield Unknown("table property", "const entries")
    if node["with_counters"]:
        yield Unknown("table property", "direct counter")
    if node["direct_meters"]:
        yield Unknown("table property", "direct meter")
    if node["support_timeout"]:
        yield Unknown("table property", "idle timeout")
