"""JSON to arguments of primitives and to expressions. One reader for each type of node stands in `LEAVES`."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.program.program import Argument, Arguments, Text
from inakit.switch.program.bmv2_json.declarations import Declarations
from inakit.switch.program.bmv2_json.source_info import Json
from inakit.switch.program.expressions import (
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
from inakit.switch.program.expressions import Field

VALIDITY = "$valid$"


# {"type": "expression", "value": {"op": "+", "left": ..., "right": ...}}
def read_argument(declared: Declarations, node: Json, action: Json = None) -> Argument:
    """An argument of a primitive, or a leaf or node of an expression, inside `action` (its JSON) if any."""
    kind, value = node["type"], node["value"]
    while kind == "expression" and "op" not in value:
        kind, value = value["type"], value["value"]
    if kind not in LEAVES:
        return Unknown(kind, str(value))
    return LEAVES[kind](declared, value, action)


def read_expression(declared: Declarations, node: Json, action: Json = None) -> Expression:
    """Like `read_argument`, for a place where only an expression can stand; anything else is `Unknown`."""
    found = read_argument(declared, node, action)
    return found if isinstance(found, Expression) else Unknown("operand", str(node["value"]))


# {"op": "?", "cond": ..., "left": ..., "right": ...}; unary operators have "left": null, which before - is 0
# {"op": "access_field", "left": <a header>, "right": 2}
def read_operation(declared: Declarations, node: Json, action: Json) -> Operation | ElementField:
    """An operator with its operands, or a field of a header that is computed."""
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


# {"type": "stack_field", "value": ["mpls", "bos"]}
def read_stack_field(declared: Declarations, value: Json, _action: Json) -> LastField | Unknown:
    """A field of the last element of a header stack that the parser filled."""
    name, wanted = value
    return last_field(declared, name, declared.stacks[name].headers[0], wanted)


# {"type": "union_stack_field", "value": ["options", "nop", "kind"]}
def read_union_stack_field(declared: Declarations, value: Json, _action: Json) -> LastField | Unknown:
    """A field of one member of the last union that the parser filled in a stack of unions."""
    name, member, wanted = value
    return last_field(declared, name, declared.union_stacks[name].unions[0].members[member], wanted, member)


def last_field(
    declared: Declarations, stack: str, element: str, wanted: str, member: str | None = None
) -> LastField | Unknown:
    """The field called `wanted` of a stack's last element; `element` is a header of the same type."""
    for index, field in enumerate(declared.headers[element].fields):
        if field.name == wanted:
            return LastField(stack, index, field.bits, member)
    return Unknown("field of a header stack", f"{stack}.last.{wanted}")


# {"type": "runtime_data", "value": 0}, and inside expressions {"type": "local", "value": 0}
def read_parameter(_declared: Declarations, value: Json, action: Json) -> Argument:
    """A parameter of the action in which it stands."""
    return Parameter(value, action["runtime_data"][value]["bitwidth"])


# {"type": "parameters_vector", "value": [{"type": "field", ...}, ...]}; without elements, {}
def read_arguments(declared: Declarations, value: Json, action: Json) -> Arguments:
    """A list of expressions as one argument."""
    return Arguments(tuple(read_expression(declared, each, action) for each in value or ()))


# The reader of each type of argument: (declarations, value, JSON of the action) -> argument.
LEAVES: dict[str, Callable[[Declarations, Json, Json], Argument]] = {
    "expression": read_operation,
    "field": read_field,
    "stack_field": read_stack_field,
    "union_stack_field": read_union_stack_field,
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
    "parameters_vector": read_arguments,
}
