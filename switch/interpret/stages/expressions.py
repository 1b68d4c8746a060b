"""Expressions of BMv2 as functions of a packet, on Python's integers: any width, and never rounded.

A header is an expression, too: its value is the place at which the header stands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from switch.interpret.state.context import Context
from switch.interpret.state.packet import Packet, Value
from switch.program.expressions import (
    Boolean,
    Constant,
    ElementField,
    Expression,
    HeaderReference,
    LastField,
    Operation,
    Parameter,
    StackReference,
    UnionReference,
    Validity,
)
from switch.program.headers import Field, Header
from topo.errors import RunError

WIDEST_SHIFT = 1 << 16
"""Wider shifts to the left give the same: what p4c keeps of a shifted number has at most 2048 bits."""


def value_of(context: Context, expression: Expression) -> Value:
    """The function that gives the expression's value; truth is 1 and 0."""
    if isinstance(expression, Operation):
        return operation(context, expression)
    for kind, leaf in LEAVES.items():
        if isinstance(expression, kind):
            return leaf(context, expression)
    raise context.refusal(f"'{expression}' in an expression")


def operation(context: Context, node: Operation) -> Value:
    if node.operator in ON_STACKS:
        return ON_STACKS[node.operator](context, *node.operands)
    values = [value_of(context, operand) for operand in node.operands]
    if node.operator in ON_HEADERS and is_header(node.operands[0]):
        return ON_HEADERS[node.operator](len(header_of(context, node.operands[0]).fields), *values)
    if node.operator not in OPERATORS:
        raise context.refusal(f"operator '{node.operator}'")
    return OPERATORS[node.operator](*values)


# ---- leaves: {"type": "field", "value": ["ipv4", "ttl"]} ------------------------------------------


def field_value(context: Context, field: Field) -> Value:
    return operator.itemgetter(context.places.field(field))


def constant(_context: Context, node: Constant | Boolean) -> Value:
    value = int(node.value)
    return lambda _packet: value


def validity(context: Context, node: Validity) -> Value:
    return operator.itemgetter(context.places.base[node.header])


def parameter(context: Context, node: Parameter) -> Value:
    return operator.itemgetter(context.places.parameters + node.index)


def header_place(context: Context, node: HeaderReference) -> Value:
    place = context.places.base[node.header]
    return lambda _packet: place


def element_field(context: Context, node: ElementField) -> Value:
    place = element_place(context, node)
    return lambda packet: packet[place(packet)]


def element_place(context: Context, node: ElementField) -> Value:
    """Where the field stands. Behind a header's last field BMv2 counts its validity."""
    header = value_of(context, node.header)
    step = 0 if node.index == len(header_of(context, node.header).fields) else 1 + node.index
    return lambda packet: header(packet) + step


def last_field(context: Context, node: LastField) -> Value:
    place = last_place(context, node)

    def read(packet: Packet) -> int:
        found = place(packet)
        return packet[found] if found >= 0 else 0

    return read


def last_place(context: Context, node: LastField) -> Value:
    """Where the field stands in the last element that the parser filled; negative if there is none."""
    following, step = context.places.next[node.stack], 1 + node.index
    bases = elements(context, node.stack, node.member)

    def place(packet: Packet) -> int:
        filled = packet[following]
        return bases[filled - 1] + step if filled else -1

    return place


LEAVES: dict[type, Callable[..., Value]] = {
    Field: field_value,
    Constant: constant,
    Boolean: constant,
    Validity: validity,
    Parameter: parameter,
    HeaderReference: header_place,
    ElementField: element_field,
    LastField: last_field,
}


# ---- headers and stacks ---------------------------------------------------------------------------


def elements(context: Context, stack: str, member: str | None = None) -> list[int]:
    """The places of a stack's headers; of a stack of unions, those of one member."""
    if member is None:
        return [context.places.base[name] for name in context.program.stacks[stack].headers]
    unions = context.program.union_stacks[stack].unions
    return [context.places.base[union.members[member]] for union in unions]


def is_header(node: Expression) -> bool:
    return isinstance(node, HeaderReference) or (
        isinstance(node, Operation)
        and (node.operator == "dereference_header_stack" or (node.operator == "?" and is_header(node.operands[1])))
    )


def header_of(context: Context, node: Expression) -> Header:
    """A header of the type that `node` evaluates to."""
    match node:
        case HeaderReference(name):
            return context.program.headers[name]
        case Operation("dereference_header_stack", (StackReference(stack), _)):
            return context.program.headers[context.program.stacks[stack].headers[0]]
        case Operation("?", (_, left, _)):
            return header_of(context, left)
    raise context.refusal(f"'{node}' as a header")


def dereference(context: Context, stack: StackReference, index: Expression) -> Value:
    bases, position = elements(context, stack.stack), value_of(context, index)

    def place(packet: Packet) -> int:
        number = position(packet)
        if not 0 <= number < len(bases):
            raise RunError(
                f"header stack '{stack.stack}' has no element {number}: BMv2 ends here; test the index before"
            )
        return bases[number]

    return place


def last_index(context: Context, stack: StackReference) -> Value:
    following = context.places.next[stack.stack]
    return lambda packet: packet[following] - 1


def filled(context: Context, stack: StackReference) -> Value:
    return operator.itemgetter(context.places.next[stack.stack])


def valid_header(context: Context, header: Expression) -> Value:
    place = value_of(context, header)
    return lambda packet: packet[place(packet)]


def valid_union(context: Context, union: UnionReference) -> Value:
    bases = [context.places.base[name] for name in context.program.unions[union.union].members.values()]
    return lambda packet: max(packet[base] for base in bases)


# {"op": "dereference_header_stack", "left": {"type": "header_stack", ...}, "right": ...}
ON_STACKS: dict[str, Callable[..., Value]] = {
    "dereference_header_stack": dereference,
    "last_stack_index": last_index,
    "size_stack": filled,
    "valid": valid_header,
    "valid_union": valid_union,
}


def headers_equal(fields: int, left: Value, right: Value) -> Value:
    """Both headers are there, and all of their fields agree."""

    def equal(packet: Packet) -> int:
        one, other = left(packet), right(packet)
        return packet[one] == 1 and packet[one : one + 1 + fields] == packet[other : other + 1 + fields]

    return equal


def headers_differ(fields: int, left: Value, right: Value) -> Value:
    equal = headers_equal(fields, left, right)
    return lambda packet: not equal(packet)


# {"op": "==", "left": {"type": "header", ...}, "right": {"type": "header", ...}}
ON_HEADERS: dict[str, Callable[[int, Value, Value], Value]] = {"==": headers_equal, "!=": headers_differ}


# ---- operators on numbers ---------------------------------------------------------------------------


def shift_left(left: Value, right: Value) -> Value:
    return lambda packet: left(packet) << min(right(packet), WIDEST_SHIFT)


def two_complement(operand: Value, width: Value) -> Value:
    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return ((operand(packet) + half) & (2 * half - 1)) - half

    return cast


def saturate_unsigned(operand: Value, width: Value) -> Value:
    return lambda packet: min(max(operand(packet), 0), (1 << width(packet)) - 1)


def saturate_signed(operand: Value, width: Value) -> Value:
    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return min(max(operand(packet), -half), half - 1)

    return cast


# {"op": "+", "left": ..., "right": ...}; operands in the order condition, left, right.
OPERATORS: dict[str, Callable[..., Value]] = {
    "+": lambda left, right: lambda packet: left(packet) + right(packet),
    "-": lambda left, right: lambda packet: left(packet) - right(packet),
    "*": lambda left, right: lambda packet: left(packet) * right(packet),
    "&": lambda left, right: lambda packet: left(packet) & right(packet),
    "|": lambda left, right: lambda packet: left(packet) | right(packet),
    "^": lambda left, right: lambda packet: left(packet) ^ right(packet),
    "~": lambda operand: lambda packet: ~operand(packet),
    "<<": shift_left,
    ">>": lambda left, right: lambda packet: left(packet) >> right(packet),
    "==": lambda left, right: lambda packet: left(packet) == right(packet),
    "!=": lambda left, right: lambda packet: left(packet) != right(packet),
    "<": lambda left, right: lambda packet: left(packet) < right(packet),
    "<=": lambda left, right: lambda packet: left(packet) <= right(packet),
    ">": lambda left, right: lambda packet: left(packet) > right(packet),
    ">=": lambda left, right: lambda packet: left(packet) >= right(packet),
    "and": lambda left, right: lambda packet: left(packet) and right(packet),
    "or": lambda left, right: lambda packet: left(packet) or right(packet),
    "not": lambda operand: lambda packet: not operand(packet),
    "?": lambda condition, left, right: lambda packet: left(packet) if condition(packet) else right(packet),
    "two_comp_mod": two_complement,
    "usat_cast": saturate_unsigned,
    "sat_cast": saturate_signed,
    "d2b": lambda operand: lambda packet: operand(packet) != 0,
    "b2d": lambda operand: lambda packet: int(operand(packet)),
}
