"""JSON to the parser: states, what they look at, and their transitions."""

from __future__ import annotations

from switch.program.actions import Primitive
from switch.program.bmv2_json.arguments import read_expression
from switch.program.bmv2_json.declarations import Declarations
from switch.program.bmv2_json.primitives import read_primitive
from switch.program.bmv2_json.source_info import Json
from switch.program.expressions import LastField, Lookahead, Unknown
from switch.program.headers import Field
from switch.program.malformed import MOST
from switch.program.parser import Parser, ParserState, Transition
from topo.errors import InputError

KeyField = Field | LastField | Lookahead | Unknown


# {"init_state": "start", "parse_states": [...]}
def read_parser(declared: Declarations, node: Json) -> Parser:
    """The whole parser."""
    states = [read_state(declared, state) for state in node["parse_states"]]
    return Parser(node["init_state"], {state.name: state for state in states})


# {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
def read_state(declared: Declarations, node: Json) -> ParserState:
    """One state with its operations and transitions."""
    key = tuple(read_key_field(declared, part) for part in node["transition_key"])
    transitions = tuple(read_transition(transition, key) for transition in node["transitions"])
    operations = tuple(read_parser_operation(declared, operation) for operation in node["parser_ops"])
    return ParserState(node["name"], operations, key, transitions)


# {"op": "extract", "parameters": [...]}; any primitive: {"op": "primitive", "parameters": [{"op": ..., ...}]}
def read_parser_operation(declared: Declarations, node: Json) -> Primitive:
    """One operation of a state, or a primitive of actions that stands in it."""
    return read_primitive(declared, node["parameters"][0] if node["op"] == "primitive" else node)


# {"type": "field", "value": ["ipv4", "protocol"]}
def read_key_field(declared: Declarations, node: Json) -> KeyField:
    """One part of what a state's transitions look at."""
    value = read_expression(declared, node)
    return value if isinstance(value, Field | LastField | Lookahead) else Unknown(node["type"], str(node["value"]))


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}
def read_transition(node: Json, key: tuple[KeyField, ...]) -> Transition:
    """One transition of a state that looks at `key`; `InputError` for one that is no value, value set or default."""
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
    """The fields' bits of a transition's value side by side; in the JSON each field fills whole bytes."""
    result = shift = 0
    if not all(0 <= bits <= MOST["bits"] for bits in widths):
        raise ValueError(f"a key of {widths} bits")
    for bits in reversed(widths):
        result |= (value & ((1 << bits) - 1)) << shift
        value >>= -(-bits // 8) * 8
        shift += bits
    return result
