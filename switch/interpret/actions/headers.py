"""Headers that come, go, move and are copied as a whole: validity, header stacks and header unions."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.expressions import elements, header_of, value_of
from inakit.switch.interpret.expressions.header_bytes import byte_size
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Run, block_size
from inakit.switch.program.expressions import Expression, StackReference, UnionReference, UnionStackReference
from inakit.switch.program.expressions import Header

Copy = Callable[[Packet, int, int], None]


def header_copy(context: Context, header: Header) -> Copy:
    """The function that copies one header of this type to another, given their places, with its validity."""
    size, siblings = block_size(header), context.places.siblings

    def copy(packet: Packet, to: int, of: int) -> None:
        if not packet[of]:
            packet[to] = 0
            return
        packet[to : to + size] = packet[of : of + size]
        for other in siblings.get(to, ()):
            packet[other] = 0

    return copy


def pairs_copied(context: Context, pairs: list[tuple[str, str]]) -> Run:
    """The function that copies header after header, given the names of target and source."""
    headers, base = context.program.headers, context.places.base
    copies = [(header_copy(context, headers[to]), base[to], base[of]) for to, of in pairs]

    def run(packet: Packet) -> None:
        for copy, to, of in copies:
            copy(packet, to, of)

    return run


# {"op": "assign_header", "parameters": [{"type": "header", "value": "outer"}, {"type": "header", "value": "inner"}]}
def assign_header(context: Context, target: Expression, source: Expression) -> Run:
    """Copy one header to another."""
    to, of, copy = (
        value_of(context, target),
        value_of(context, source),
        header_copy(context, header_of(context, target)),
    )
    return lambda packet: copy(packet, to(packet), of(packet))


# {"op": "add_header", "parameters": [{"type": "header", "value": "vlan"}]}
def add_header(context: Context, target: Expression) -> Run:
    """Make a header valid, all its fields 0, unless it is valid already."""
    place, header = value_of(context, target), header_of(context, target)
    zeros, size, siblings = [0] * len(header.fields), byte_size(header), context.places.siblings

    def run(packet: Packet) -> None:
        base = place(packet)
        if packet[base]:
            return
        packet[base] = 1
        packet[base + 1 : base + 1 + len(zeros)] = zeros
        packet.length += size(packet, base)
        for other in siblings.get(base, ()):
            packet[other] = 0

    return run


# {"op": "remove_header", "parameters": [{"type": "header", "value": "vlan"}]}
def remove_header(context: Context, target: Expression) -> Run:
    """Make a header invalid."""
    place, size = value_of(context, target), byte_size(header_of(context, target))

    def run(packet: Packet) -> None:
        base = place(packet)
        if packet[base]:
            packet[base] = 0
            packet.length -= size(packet, base)

    return run


# {"op": "assign_union", "parameters": [{"type": "header_union", "value": "u"}, {"type": "header_union", ...}]}
def assign_union(context: Context, target: UnionReference, source: UnionReference) -> Run:
    """Copy a header union, member by member."""
    to, of = (context.program.unions[each.union].members for each in (target, source))
    return pairs_copied(context, [(to[member], of[member]) for member in to])


# {"op": "assign_header_stack", "parameters": [{"type": "header_stack", "value": "a"}, {"type": "header_stack", ...}]}
def assign_stack(context: Context, target: StackReference, source: StackReference) -> Run:
    """Copy a header stack, and how many elements are filled."""
    to, of = (context.program.stacks[each.stack].headers for each in (target, source))
    return with_count(context, target.stack, source.stack, pairs_copied(context, list(zip(to, of, strict=True))))


# {"op": "assign_union_stack", "parameters": [{"type": "header_union_stack", "value": "a"}, ...]}
def assign_union_stack(context: Context, target: UnionStackReference, source: UnionStackReference) -> Run:
    """Copy a stack of unions, and how many elements are filled."""
    to, of = (context.program.union_stacks[each.stack].unions for each in (target, source))
    pairs = [(one.members[name], two.members[name]) for one, two in zip(to, of, strict=True) for name in one.members]
    return with_count(context, target.stack, source.stack, pairs_copied(context, pairs))


def with_count(context: Context, target: str, source: str, copy: Run) -> Run:
    """The function that runs `copy`, and copies how many elements the parser has filled."""
    to, of = context.places.next[target], context.places.next[source]

    def run(packet: Packet) -> None:
        packet[to] = packet[of]
        copy(packet)

    return run


def rows_of(context: Context, stack: StackReference | UnionStackReference) -> list[tuple[list[int], int]]:
    """The places of a stack's headers, and their size; of a stack of unions, these for each member."""
    if isinstance(stack, StackReference):
        first = context.program.stacks[stack.stack].headers[0]
        return [(elements(context, stack.stack), block_size(context.program.headers[first]))]
    members = context.program.union_stacks[stack.stack].unions[0].members
    return [
        (elements(context, stack.stack, member), block_size(context.program.headers[name]))
        for member, name in members.items()
    ]


def swap(packet: Packet, one: int, other: int, size: int) -> None:
    """Exchange two headers of `size` places."""
    packet[one : one + size], packet[other : other + size] = packet[other : other + size], packet[one : one + size]


# {"op": "push", "parameters": [{"type": "header_stack", "value": "mpls"}, {"type": "hexstr", "value": "0x1"}]}
def push(context: Context, stack: StackReference | UnionStackReference, count: Expression) -> Run:
    """Move a stack's elements up by `count`; the first ones become invalid."""
    number, following, rows = value_of(context, count), context.places.next[stack.stack], rows_of(context, stack)

    def run(packet: Packet) -> None:
        by, filled = number(packet), packet[following]
        for bases, size in rows:
            for index in range(len(bases) - 1, by - 1, -1):
                swap(packet, bases[index], bases[index - by], size)
            for base in bases[:by]:
                packet[base] = 0
            packet[following] = min(len(bases), filled + by)

    return run


# {"op": "pop", "parameters": [{"type": "header_stack", "value": "mpls"}, {"type": "hexstr", "value": "0x1"}]}
def pop(context: Context, stack: StackReference | UnionStackReference, count: Expression) -> Run:
    """Move a stack's elements down by `count`; the last ones become invalid."""
    number, following, rows = value_of(context, count), context.places.next[stack.stack], rows_of(context, stack)

    def run(packet: Packet) -> None:
        by = number(packet)
        packet[following] -= min(packet[following], by)
        for bases, size in rows:
            for index in range(len(bases) - by):
                swap(packet, bases[index], bases[index + by], size)
            for base in bases[max(len(bases) - by, 0) :]:
                packet[base] = 0

    return run


WHOLE_HEADERS: dict[str, Callable[..., Run]] = {
    "add_header": add_header,
    "assign_header": assign_header,
    "assign_header_stack": assign_stack,
    "assign_union": assign_union,
    "assign_union_stack": assign_union_stack,
    "pop": pop,
    "push": push,
    "remove_header": remove_header,
}
