"""JSON to the parser: states, what they look at, and their transitions."""

from __future__ import annotations

from inakit.switch.program.program import Primitive
from inakit.switch.program.bmv2_json.arguments import read_expression
from inakit.switch.program.bmv2_json.declarations import Declarations
from inakit.switch.program.bmv2_json.primitives import read_primitive
from inakit.switch.program.bmv2_json.source_info import Json, listed, read_source
from inakit.switch.program.expressions import Constant, LastField, Lookahead, Unknown
from inakit.switch.program.expressions import Field
from inakit.switch.program.malformed import MOST
from inakit.switch.program.program import Parser, ParserState, Transition
from inakit.topo.errors import InputError

KeyField = Field | LastField | Lookahead | Unknown


# {"init_state": "start", "parse_states": [...]}
def read_parser(declared: Declarations, node: Json) -> Parser:
    """The whole parser."""
    states = [read_state(declared, state) for state in node["parse_states"]]
    return Parser(node["init_state"], {state.name: state for state in states})


# {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
def read_state(declared: Declarations, node: Json) -> ParserState:
    """One state with its operations and transitions."""
    key = tuple(read_key_field(declared, part) for part in listed(node, "transition_key"))
    transitions = tuple(read_transition(transition, key) for transition in listed(node, "transitions"))
    operations = tuple(read_parser_operation(declared, operation) for operation in listed(node, "parser_ops"))
    return ParserState(node["name"], operations, key, transitions)


# {"op": "extract", "parameters": [...]}; any primitive: {"op": "primitive", "parameters": [{"op": ..., ...}]}
# of older compilers: {"op": "shift", "parameters": [4]}, {"op": "verify", "parameters": [{...}, 3]}
def read_parser_operation(declared: Declarations, node: Json) -> Primitive:
    """One operation of a state, or a primitive of actions that stands in it."""
    name, parameters = node["op"], node["parameters"]
    if name == "primitive":
        return read_primitive(declared, parameters[0])
    if name == "shift":
        (size,) = parameters
        return Primitive("advance", (Constant(8 * size),), read_source(node))
    whole = [{"type": "hexstr", "value": hex(each)} if isinstance(each, int) else each for each in parameters]
    return read_primitive(declared, {**node, "parameters": whole})


# {"type": "field", "value": ["ipv4", "protocol"]}
def read_key_field(declared: Declarations, node: Json) -> KeyField:
    """One part of what a state's transitions look at."""
    value = read_expression(declared, node)
    return value if isinstance(value, Field | LastField | Lookahead) else Unknown(node["type"], str(node["value"]))


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}; until 2.18 without a type, or "default"
def read_transition(node: Json, key: tuple[KeyField, ...]) -> Transition:
    """One transition of a state that looks at `key`; `InputError` for one that is no value, value set or default."""
    kind = node.get("type", "hexstr")
    if kind == "default" or (kind == "hexstr" and node["value"] == "default"):
        return Transition(None, None, node["next_state"])
    if kind not in ("hexstr", "parse_vset") or any(isinstance(part, Unknown) for part in key):
        raise InputError(f"parser transition of type '{kind}' is not understood: only values are")
    widths = [part.bits for part in key if not isinstance(part, Unknown)]
    mask = None if node["mask"] is None else without_padding(int(node["mask"], 16), widths)
    if kind == "parse_vset":
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
