"""BMv2 JSON, as p4c's backend `p4c-bm2-ss` writes it, to a `Program`.

Above each reader stands the piece of JSON that it takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from switch.entries import KeyPart, Lpm, Range, Ternary
from switch.program.actions import Action, ActionCall, ActionParameter, Argument, Arguments, Primitive, Text
from switch.program.calculations import Calculation, Checksum, FieldList, Literal, Payload
from switch.program.expressions import (
    Boolean,
    Constant,
    ElementField,
    Expression,
    HeaderReference,
    LastField,
    Lookahead,
    Operation,
    Parameter,
    StackReference,
    UnionReference,
    UnionStackReference,
    Unknown,
    Validity,
)
from switch.program.externs import ActionProfile, Counter, DirectCounter, Extern, Meter, Register, ValueSet
from switch.program.headers import Field, Header, Stack, Union, UnionStack
from switch.program.malformed import MALFORMED, MOST, check_types
from switch.program.parser import Parser, ParserState, Transition
from switch.program.pipelines import Conditional, ConstEntry, MatchKey, Node, Pipeline, Table
from switch.program.program import Program
from switch.program.source import Source
from switch.program.sources import check_sources, not_json
from topo.errors import InputError

Json = Any  # what json.loads gives: checked where it is used, by the shapes named here

VALIDITY = "$valid$"


def read_program(path: Path) -> Program:
    """The program in a BMv2 JSON file. Raises `InputError`, also where it is not compiled of its present sources."""
    try:
        check_sources(path)
        return parse_program(path.read_bytes(), str(path))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path}: {why}; p4c-bm2-ss makes it from the P4 source") from None


@lru_cache(maxsize=8)
def parse_program(text: bytes, name: str) -> Program:
    """The program in a BMv2 JSON document, which is called `name` in errors."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise not_json(Path(name), text, error) from error
    try:
        return program_of(document)
    except (*MALFORMED, RecursionError) as error:
        raise InputError(f"{name} is not BMv2 JSON as p4c-bm2-ss writes it: {error!r}; compile the P4 again") from error


def program_of(document: Json) -> Program:
    """The program in a BMv2 JSON document."""
    program = ProgramReader(document).program()
    check_types(program)
    return program


class ProgramReader:
    """Reads one document; declarations first, so that whatever refers to them finds them."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.headers = read_headers(document)
        self.fields = {(h.name, field.name): field for h in self.headers.values() for field in h.fields}
        self.stacks = read_stacks(document)
        self.unions = read_unions(document)
        self.union_stacks = read_union_stacks(document, self.unions)
        self.registers = {r["name"]: Register(r["name"], r["size"], r["bitwidth"]) for r in document["register_arrays"]}
        self.counters = {
            c["name"]: Counter(c["name"], c["size"]) for c in document["counter_arrays"] if not c["is_direct"]
        }
        self.meters = {meter["name"]: self.meter(meter) for meter in document["meter_arrays"]}
        self.calculations = {each["name"]: self.calculation(each) for each in document["calculations"]}
        self.externs = {
            each["name"]: Extern(each["name"], each["type"], read_source(each))
            for each in document.get("extern_instances", [])
        }
        self.actions = {a["id"]: self.action(a) for a in document["actions"]}

    def program(self) -> Program:
        document = self.document
        pipelines = {p["name"]: self.pipeline(p) for p in document["pipelines"]}
        direct = {meter["name"] for meter in document["meter_arrays"] if meter["is_direct"]}
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
            stacks=self.stacks,
            unions=self.unions,
            union_stacks=self.union_stacks,
            direct_counters={c.name: c for c in read_direct_counters(document)},
            meters={name: meter for name, meter in self.meters.items() if name not in direct},
            direct_meters={name: meter for name, meter in self.meters.items() if name in direct},
            calculations=self.calculations,
            checksums=tuple(self.checksum(each) for each in document["checksums"]),
            digests={each["id"]: self.field_list(each) for each in document["learn_lists"]},
            field_lists={each["id"]: self.field_list(each) for each in document.get("field_lists", [])},
            profiles={each.name: each for p in document["pipelines"] for each in self.profiles(p)},
            value_sets={each.name: each for each in read_value_sets(document)},
            externs=self.externs,
            deparser_statements=tuple(self.primitive(each) for each in document["deparsers"][0].get("primitives", [])),
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
    def field(self, value: Json, _action: Json = None) -> Field | Validity | Unknown:
        if value[1] == VALIDITY:
            return Validity(value[0])
        return self.fields.get(tuple(value), Unknown("field", ".".join(value)))

    # {"type": "stack_field", "value": ["mpls", "bos"]}
    def stack_field(self, value: Json, _action: Json = None) -> LastField | Unknown:
        name, wanted = value
        return self.last_field(name, self.stacks[name].headers[0], wanted)

    # {"type": "union_stack_field", "value": ["options", "nop", "kind"]}
    def union_stack_field(self, value: Json, _action: Json = None) -> LastField | Unknown:
        name, member, wanted = value
        return self.last_field(name, self.union_stacks[name].unions[0].members[member], wanted, member)

    def last_field(self, stack: str, element: str, wanted: str, member: str | None = None) -> LastField | Unknown:
        for index, field in enumerate(self.headers[element].fields):
            if field.name == wanted:
                return LastField(stack, index, field.bits, member)
        return Unknown("field of a header stack", f"{stack}.last.{wanted}")

    # {"type": "parameters_vector", "value": [{"type": "field", ...}, ...]}; without elements, {}
    def arguments(self, value: Json, action: Json) -> Arguments:
        return Arguments(tuple(self.expression(each, action) for each in value or ()))

    # {"type": "runtime_data", "value": 0}, and inside expressions {"type": "local", "value": 0}
    def parameter(self, value: Json, action: Json) -> Argument:
        return Parameter(value, action["runtime_data"][value]["bitwidth"])

    def expression(self, node: Json, action: Json = None) -> Expression:
        found = self.argument(node, action)
        return found if isinstance(found, Expression) else Unknown("operand", str(node["value"]))

    # {"op": "?", "cond": ..., "left": ..., "right": ...};  unary operators have "left": null, which before - is 0
    def operation(self, node: Json, action: Json) -> Operation | ElementField:
        if node["op"] == "access_field":
            return ElementField(self.expression(node["left"], action), node["right"])
        sides = [node[side] for side in ("cond", "left", "right") if node.get(side) is not None]
        operands = tuple(self.expression(side, action) for side in sides)
        return Operation(node["op"], (Constant(0), *operands) if node["op"] == "-" and len(operands) == 1 else operands)

    # -- externs

    # {"name": "m", "is_direct": false, "rate_count": 2, "type": "bytes", "size": 16, "result_target": [...]}
    def meter(self, node: Json) -> Meter:
        target = node.get("result_target") if node["is_direct"] else None
        result = self.fields[tuple(target)] if target else None
        of_bytes = node["type"] == "bytes"
        return Meter(node["name"], node["size"], node["rate_count"], of_bytes, result, read_source(node))

    # {"name": "calc", "algo": "csum16", "input": [{"type": "field", ...}, {"type": "payload", "value": null}]}
    def calculation(self, node: Json) -> Calculation:
        return Calculation(node["name"], node["algo"], self.hashed(node["input"]), read_source(node))

    def hashed(self, nodes: Json) -> tuple[Field | Literal | HeaderReference | Payload, ...]:
        return tuple(HASHED[node["type"]](self, node) for node in nodes)

    # {"target": ["ipv4", "checksum"], "calculation": "calc", "verify": true, "update": false, "if_cond": {...}}
    def checksum(self, node: Json) -> Checksum:
        return Checksum(
            node["name"],
            self.fields[tuple(node["target"])],
            self.calculations[node["calculation"]],
            verify=node.get("verify", True),
            update=node.get("update", True),
            condition=self.expression(node["if_cond"]) if node.get("if_cond") else None,
            source=read_source(node),
        )

    # {"id": 1, "name": "digest_t", "elements": [{"type": "field", ...}, {"type": "hexstr", ..., "bitwidth": 8}]}
    def field_list(self, node: Json) -> FieldList:
        fields = tuple(each for each in self.hashed(node["elements"]) if isinstance(each, Field | Literal))
        return FieldList(node["id"], node["name"], fields, read_source(node))

    # {"action_profiles": [{"name": "ap", "max_size": 16, "selector": {"algo": "crc16", "input": [...]}}]}
    def profiles(self, pipeline: Json) -> Iterable[ActionProfile]:
        for node in pipeline.get("action_profiles", []):
            yield ActionProfile(node["name"], node["max_size"], self.selector(node))

    def selector(self, profile: Json) -> Calculation | None:
        chosen = profile.get("selector")
        if chosen is None:
            return None
        return Calculation(profile["name"], chosen["algo"], self.hashed(chosen["input"]), read_source(profile))

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
        operations = tuple(self.parser_operation(operation) for operation in node["parser_ops"])
        return ParserState(node["name"], operations, key, transitions)

    # {"op": "extract", "parameters": [...]}; any primitive: {"op": "primitive", "parameters": [{"op": ..., ...}]}
    def parser_operation(self, node: Json) -> Primitive:
        return self.primitive(node["parameters"][0] if node["op"] == "primitive" else node)

    # {"type": "field", "value": ["ipv4", "protocol"]}
    def key_field(self, node: Json) -> Field | LastField | Lookahead | Unknown:
        value = self.expression(node)
        return value if isinstance(value, Field | LastField | Lookahead) else Unknown(node["type"], str(node["value"]))

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
            match=node["match_type"],
            entries=tuple(self.entry(each) for each in node["entries"]) if "entries" in node else None,
            default_is_const=bool(default and (default["action_const"] or default["action_entry_const"])),
            base_next=node["base_default_next"],
            profile=node.get("action_profile"),
            counted=node["with_counters"],
            meter=node["direct_meters"],
            idle_timeout=node["support_timeout"],
        )

    # {"match_type": "exact", "name": "hdr.ina.job", "target": ["ina", "job"], "mask": "0xff00"}; valid: "target": "ina"
    def match_key(self, node: Json) -> MatchKey:
        target = node["target"]
        value = Validity(target) if isinstance(target, str) else self.field(target)
        mask = int(node["mask"], 16) if node.get("mask") is not None else None
        return MatchKey(node.get("name", str(target)), node["match_type"], value, mask)

    # {"match_key": [{"match_type": "exact", "key": "0x01"}], "action_entry": {...}, "priority": 1}
    def entry(self, node: Json) -> ConstEntry:
        key = tuple(KEY_PARTS[part["match_type"]](part) for part in node["match_key"])
        return ConstEntry(key, self.action_call(node["action_entry"]), node["priority"], read_source(node))

    # {"name": "node_3", "expression": {...}, "true_next": "x", "false_next": null}
    def conditional(self, node: Json) -> Conditional:
        condition = self.expression(node["expression"])
        return Conditional(node["name"], condition, node["true_next"], node["false_next"], read_source(node))


# What the value of each type of argument becomes: (reader, value, JSON of the action) -> argument.
LEAVES: dict[str, Callable[[ProgramReader, Json, Json], Argument]] = {
    "expression": ProgramReader.operation,
    "field": ProgramReader.field,
    "stack_field": ProgramReader.stack_field,
    "union_stack_field": ProgramReader.union_stack_field,
    "hexstr": lambda _reader, value, _action: Constant(int(value, 16)),
    "bool": lambda _reader, value, _action: Boolean(value),
    "local": ProgramReader.parameter,
    "runtime_data": ProgramReader.parameter,
    "header": lambda _reader, value, _action: HeaderReference(value),
    "regular": lambda _reader, value, _action: HeaderReference(value),
    "header_stack": lambda _reader, value, _action: StackReference(value),
    "stack": lambda _reader, value, _action: StackReference(value),
    "header_union": lambda _reader, value, _action: UnionReference(value),
    "header_union_stack": lambda _reader, value, _action: UnionStackReference(value),
    "union_stack": lambda _reader, value, _action: UnionStackReference(*value),
    "lookahead": lambda _reader, value, _action: Lookahead(*value),
    "register_array": lambda reader, value, _action: reader.registers[value],
    "counter_array": lambda reader, value, _action: reader.counters[value],
    "meter_array": lambda reader, value, _action: reader.meters[value],
    "calculation": lambda reader, value, _action: reader.calculations[value],
    "extern": lambda reader, value, _action: reader.externs[value],
    "string": lambda _reader, value, _action: Text(value),
    "parameters_vector": ProgramReader.arguments,
}

# What is hashed, reported by a digest or kept by a copy, by its type: (reader, node) -> part.
HASHED: dict[str, Callable[[ProgramReader, Json], Field | Literal | HeaderReference | Payload]] = {
    "field": lambda reader, node: reader.fields[tuple(node["value"])],
    "hexstr": lambda _reader, node: Literal(int(node["value"], 16), node["bitwidth"]),
    "header": lambda _reader, node: HeaderReference(node["value"]),
    "payload": lambda _reader, _node: Payload(),
}

# What one part of an entry's key becomes, by its match type.
KEY_PARTS: dict[str, Callable[[Json], KeyPart]] = {
    "exact": lambda node: int(node["key"], 16),
    "valid": lambda node: int(node["key"]),
    "lpm": lambda node: Lpm(int(node["key"], 16), node["prefix_length"]),
    "ternary": lambda node: Ternary(int(node["key"], 16), int(node["mask"], 16)),
    "range": lambda node: Range(int(node["start"], 16), int(node["end"], 16)),
}


# {"header_types": [{"name": "udp_t", "fields": [["src_port", 16, false], ...]}], "headers": [...]}
def read_headers(document: Json) -> dict[str, Header]:
    types = {header_type["name"]: header_type for header_type in document["header_types"]}
    return {header["name"]: read_header(header, types[header["header_type"]]) for header in document["headers"]}


def read_header(node: Json, header_type: Json) -> Header:
    fields = tuple(read_fields(node["name"], header_type["fields"]))
    return Header(node["name"], node["metadata"], fields, header_type["name"], header_type.get("max_length"))


def read_fields(header: str, fields: Json) -> Iterable[Field]:
    offset = 0
    for name, bits, *signed in fields:
        variable = bits == "*"
        width = 0 if variable else bits
        yield Field(header, name, width, bool(signed and signed[0]), offset, variable)
        offset += width


# {"header_stacks": [{"name": "mpls", "size": 2, "header_ids": [3, 4]}]}
def read_stacks(document: Json) -> dict[str, Stack]:
    names = {header["id"]: header["name"] for header in document["headers"]}
    return {
        stack["name"]: Stack(stack["name"], tuple(names[number] for number in stack["header_ids"]))
        for stack in document.get("header_stacks", [])
    }


# {"header_union_types": [{"name": "U", "headers": [["ipv4", "ipv4_t"]]}], "header_unions": [{"header_ids": [3]}]}
def read_unions(document: Json) -> dict[str, Union]:
    names = {header["id"]: header["name"] for header in document["headers"]}
    types = {each["name"]: [name for name, _ in each["headers"]] for each in document.get("header_union_types", [])}
    return {
        union["name"]: Union(
            union["name"],
            dict(zip(types[union["union_type"]], (names[number] for number in union["header_ids"]), strict=True)),
        )
        for union in document.get("header_unions", [])
    }


# {"header_union_stacks": [{"name": "options", "size": 2, "header_union_ids": [0, 1]}]}
def read_union_stacks(document: Json, unions: dict[str, Union]) -> dict[str, UnionStack]:
    named = {union["id"]: unions[union["name"]] for union in document.get("header_unions", [])}
    return {
        stack["name"]: UnionStack(stack["name"], tuple(named[number] for number in stack["header_union_ids"]))
        for stack in document.get("header_union_stacks", [])
    }


# {"counter_arrays": [{"name": "c", "is_direct": true, "binding": "t"}]}
def read_direct_counters(document: Json) -> Iterable[DirectCounter]:
    for counter in document["counter_arrays"]:
        if counter["is_direct"]:
            yield DirectCounter(counter["name"], counter["binding"], read_source(counter))


# {"parse_vsets": [{"name": "pvs", "compressed_bitwidth": 32, "max_size": 4}]}
def read_value_sets(document: Json) -> Iterable[ValueSet]:
    for each in document["parse_vsets"]:
        yield ValueSet(each["name"], each["compressed_bitwidth"], each.get("max_size", 0), read_source(each))


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}
def read_transition(node: Json, key: tuple[Field | LastField | Lookahead | Unknown, ...]) -> Transition:
    if node["type"] == "default":
        return Transition(None, None, node["next_state"])
    if node["type"] not in ("hexstr", "parse_vset") or any(isinstance(part, Unknown) for part in key):
        raise InputError(f"parser transition of type '{node['type']}' is not understood: only values are")
    widths = [part.bits for part in key if not isinstance(part, Unknown)]
    mask = None if node["mask"] is None else without_padding(int(node["mask"], 16), widths)
    if node["type"] == "parse_vset":
        return Transition(None, mask, node["next_state"], node["value"])
    return Transition(without_padding(int(node["value"], 16), widths), mask, node["next_state"])


def without_padding(value: int, widths: list[int]) -> int:
    """A transition's value, in which each field fills whole bytes, as the fields' bits side by side."""
    result = shift = 0
    if not all(0 <= bits <= MOST["bits"] for bits in widths):
        raise ValueError(f"a key of {widths} bits")
    for bits in reversed(widths):
        result |= (value & ((1 << bits) - 1)) << shift
        value >>= -(-bits // 8) * 8
        shift += bits
    return result


def read_source(node: Json) -> Source | None:
    info = node.get("source_info")
    return Source(info["filename"], info["line"], info["source_fragment"]) if info else None


def read_extras(document: Json) -> Iterable[Unknown]:
    """What no part of a `Program` holds; p4c writes none of it, but older compilers did."""
    for checksum in document["checksums"]:
        if checksum["type"] != "generic":
            yield Unknown("checksum type", checksum["type"], read_source(checksum))
    for pipeline in document["pipelines"]:
        for call in pipeline.get("action_calls", []):
            yield Unknown("call of an action outside of a table", call["name"], read_source(call))
    for header_type in document["header_types"]:
        if header_type.get("length_exp"):
            yield Unknown("header with an expression for its length", header_type["name"])
