"""Expressions of BMv2 as functions of a packet. Numbers are Python's integers: of any width, never rounded.

A header is an expression too: its value is the header's place in the packet.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from inakit.switch.interpret.packet import Packet, Value
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.program import (
    Boolean,
    Constant,
    ElementField,
    Expression,
    Field,
    Header,
    HeaderReference,
    LastField,
    Operation,
    Parameter,
    StackReference,
    UnionReference,
    Validity,
)
from inakit.topo.errors import RunError

WIDEST_SHIFT = 1 << 16
"""A wider left shift changes nothing: p4c keeps at most 2048 bits of a shifted number."""


def division(part: int) -> Callable[..., Value]:
    """`/` (0) and `%` (1) of a non-negative number by a positive one; with other numbers BMv2 ends."""

    def operate(left: Value, right: Value) -> Value:
        def divide(packet: Packet) -> int:
            number, by = left(packet), right(packet)
            if number < 0 or by <= 0:
                raise RunError(f"the program divides {number} by {by}: BMv2 ends here")
            return divmod(number, by)[part]

        return divide

    return operate


def two_complement(operand: Value, width: Value) -> Value:
    """`two_comp_mod`: the low `width` bits as a signed number."""

    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return ((operand(packet) + half) & (2 * half - 1)) - half

    return cast


def saturate_signed(operand: Value, width: Value) -> Value:
    """`sat_cast`: the nearest signed number of `width` bits."""

    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return min(max(operand(packet), -half), half - 1)

    return cast


# {"op": "+", "left": ..., "right": ...}; operands in the order condition, left, right.
OPERATORS: dict[str, Callable[..., Value]] = {
    "+": lambda left, right: lambda packet: left(packet) + right(packet),
    "-": lambda left, right: lambda packet: left(packet) - right(packet),
    "/": division(0),
    "%": division(1),
    "*": lambda left, right: lambda packet: left(packet) * right(packet),
    "&": lambda left, right: lambda packet: left(packet) & right(packet),
    "|": lambda left, right: lambda packet: left(packet) | right(packet),
    "^": lambda left, right: lambda packet: left(packet) ^ right(packet),
    "~": lambda operand: lambda packet: ~operand(packet),
    "<<": lambda left, right: lambda packet: left(packet) << min(right(packet), WIDEST_SHIFT),
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
    "usat_cast": lambda operand, width: lambda packet: min(max(operand(packet), 0), (1 << width(packet)) - 1),
    "sat_cast": saturate_signed,
    "d2b": lambda operand: lambda packet: operand(packet) != 0,
    "b2d": lambda operand: lambda packet: int(operand(packet)),
}


def value_of(context: Context, expression: Expression) -> Value:
    """The function that gives the expression's value for a packet; true is 1, false is 0."""
    if isinstance(expression, Operation):
        return operation(context, expression)
    for kind, leaf in LEAVES.items():
        if isinstance(expression, kind):
            return leaf(context, expression)
    raise context.refusal(f"'{expression}' in an expression")


def operation(context: Context, node: Operation) -> Value:
    """The function of an operator on stacks, on whole headers or on numbers."""
    if node.operator in ON_STACKS:
        return ON_STACKS[node.operator](context, *node.operands)
    values = [value_of(context, operand) for operand in node.operands]
    if node.operator in ("==", "!=") and is_header(node.operands[0]):
        return compared(len(header_of(context, node.operands[0]).fields), node.operator == "==", *values)
    if node.operator not in OPERATORS:
        raise context.refusal(f"operator '{node.operator}'")
    return OPERATORS[node.operator](*values)


def fixed(value: int) -> Value:
    """The function that gives the same number for every packet."""
    return lambda _packet: value


# {"op": "access_field", "left": {"type": "header", ...}, "right": 2}
def element_field(context: Context, node: ElementField) -> Value:
    """A field of a computed header."""
    return at_place(element_place(context, node))


def at_place(place: Value) -> Value:
    """The function that reads the place that `place` gives."""
    return lambda packet: packet[place(packet)]


def element_place(context: Context, node: ElementField) -> Value:
    """The place of a field of a computed header; as in BMv2, the index after the last field is the validity."""
    header = value_of(context, node.header)
    step = 0 if node.index == len(header_of(context, node.header).fields) else 1 + node.index
    return lambda packet: header(packet) + step


# {"type": "stack_field", "value": ["mpls", "bos"]}
def last_field(context: Context, node: LastField) -> Value:
    """A field of the last element that the parser filled; 0 if there is none."""
    place = last_place(context, node)

    def read(packet: Packet) -> int:
        found = place(packet)
        return packet[found] if found >= 0 else 0

    return read


def last_place(context: Context, node: LastField) -> Value:
    """The place of a field of the last element that the parser filled; negative if there is none."""
    following, step = context.places.next[node.stack], 1 + node.index
    bases = elements(context, node.stack, node.member)

    def place(packet: Packet) -> int:
        filled = packet[following]
        return bases[filled - 1] + step if filled else -1

    return place


LEAVES: dict[type, Callable[..., Value]] = {
    # {"type": "field", "value": ["ipv4", "ttl"]}
    Field: lambda context, field: operator.itemgetter(context.places.field(field)),
    # {"type": "hexstr", "value": "0x0800"}, or {"type": "bool", "value": true}
    Constant: lambda _context, node: fixed(node.value),
    Boolean: lambda _context, node: fixed(int(node.value)),
    # {"type": "field", "value": ["ipv4", "$valid$"]}
    Validity: lambda context, node: operator.itemgetter(context.places.base[node.header]),
    # {"type": "local", "value": 0}: a parameter of the action that runs
    Parameter: lambda context, node: operator.itemgetter(context.places.parameters + node.index),
    # {"type": "header", "value": "ipv4"}: its value is the header's place
    HeaderReference: lambda context, node: fixed(context.places.base[node.header]),
    ElementField: element_field,
    LastField: last_field,
}


def headers_of(context: Context, stack: str, member: str | None = None) -> list[str]:
    """The headers of a stack; in a stack of unions, those of one member."""
    if member is None:
        return [*context.program.stacks[stack].headers]
    return [union.members[member] for union in context.program.union_stacks[stack].unions]


def elements(context: Context, stack: str, member: str | None = None) -> list[int]:
    """The places of these headers."""
    return [context.places.base[name] for name in headers_of(context, stack, member)]


def is_header(node: Expression) -> bool:
    return isinstance(node, HeaderReference) or (
        isinstance(node, Operation)
        and (node.operator == "dereference_header_stack" or (node.operator == "?" and is_header(node.operands[1])))
    )


def header_of(context: Context, node: Expression) -> Header:
    """A header of the same type as the one that `node` evaluates to."""
    match node:
        case HeaderReference(name):
            return context.program.headers[name]
        case Operation("dereference_header_stack", (StackReference(stack), _)):
            return context.program.headers[context.program.stacks[stack].headers[0]]
        case Operation("?", (_, left, _)):
            return header_of(context, left)
    raise context.refusal(f"'{node}' as a header")


# {"op": "dereference_header_stack", "left": {"type": "header_stack", "value": "mpls"}, "right": ...}
def dereference(context: Context, stack: StackReference, index: Expression) -> Value:
    """The place of the element at an index; `RunError` for an index outside the stack."""
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
    """The index of the last element that the parser filled; -1 if there is none."""
    following = context.places.next[stack.stack]
    return lambda packet: packet[following] - 1


def valid_union(context: Context, union: UnionReference) -> Value:
    bases = [context.places.base[name] for name in context.program.unions[union.union].members.values()]
    return lambda packet: max(packet[base] for base in bases)


# {"op": "last_stack_index", "left": null, "right": {"type": "header_stack", "value": "mpls"}}
# {"op": "valid_union", "left": null, "right": {"type": "header_union", "value": "u"}}
ON_STACKS: dict[str, Callable[..., Value]] = {
    "dereference_header_stack": dereference,
    "last_stack_index": last_index,
    "size_stack": lambda context, stack: operator.itemgetter(context.places.next[stack.stack]),
    "valid": lambda context, header: at_place(value_of(context, header)),
    "valid_union": valid_union,
}


# {"op": "==", "left": {"type": "header", ...}, "right": {"type": "header", ...}}
def compared(fields: int, wanted: bool, left: Value, right: Value) -> Value:
    """Whether equality of two headers is as `wanted`: they are equal if both are valid and all fields are equal."""

    def compare(packet: Packet) -> int:
        one, other = left(packet), right(packet)
        equal = packet[one] == 1 and packet[one : one + 1 + fields] == packet[other : other + 1 + fields]
        return equal == wanted

    return compare
