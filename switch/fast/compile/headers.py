"""Header validity, header stacks and header unions to C: headers are added, removed, moved and copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.layout.layout import Variable
from inakit.switch.program.program import (
    Argument,
    Constant,
    Expression,
    Field,
    HeaderReference,
    Operation,
    StackReference,
    UnionReference,
)
from inakit.topo.errors import UnsupportedError

MOST_SWAPPED = 256  # bytes: half of eBPF's stack for all variables of a function
Case = TypeVar("Case")


def make_valid(context: Context, header: str) -> None:
    """Mark a header as valid; the other members of its header union become invalid."""
    context.out.line(f"{context.validity(header)} = 1;")
    for other in context.layout.siblings(header):
        context.out.line(f"{context.validity(other)} = 0;")


# {"op": "add_header", "parameters": [{"type": "header", "value": "vlan"}]}
def add_header(context: Context, target: Argument) -> None:
    """Make a header valid with all fields 0, unless it is already valid."""
    header, out = header_of(target), context.out
    with out.block(f"if (!{context.validity(header)})"):
        clear(context, header)
        make_valid(context, header)
        move(context)
        out.line(f"state.current_length += {wire_size(context, header)};")


# {"op": "remove_header", "parameters": [{"type": "header", "value": "vlan"}]}
def remove_header(context: Context, target: Argument) -> None:
    """Make a header invalid."""
    header, out = header_of(target), context.out
    with out.block(f"if ({context.validity(header)})"):
        out.line(f"{context.validity(header)} = 0;")
        move(context)
        out.line(f"state.current_length -= {wire_size(context, header)};")


def move(context: Context) -> None:
    """Write that headers are not where the parser has found them."""
    if context.layout.moving:
        context.out.line("state.moved = 1;")


# {"op": "assign_header", "parameters": [{"type": "header", "value": "outer"}, {"type": "header", "value": "inner"}]}
def assign_header(context: Context, target: Argument, source: Expression) -> None:
    """Copy one header to another, fields and validity."""
    for header in each_case(context, header_cases(context, source)):
        copy_header(context, header_of(target), header)


# {"op": "assign_header_stack", "parameters": [{"type": "header_stack", "value": "h2"}, {"type": "header_stack", ...}]}
# {"op": "assign_union", "parameters": [{"type": "header_union", "value": "u1"}, {"type": "header_union", ...}]}
def assign_all(context: Context, target: Argument, source: Argument) -> None:
    """Copy a header stack or a header union, header by header."""
    for one, other in zip(headers_of(context, target), headers_of(context, source), strict=True):
        copy_header(context, one, other)


# {"op": "push", "parameters": [{"type": "header_stack", "value": "tags"}, {"type": "hexstr", "value": "0x1"}]}
def push(context: Context, target: Argument, count: Argument) -> None:
    """Move the elements of a stack up; the first ones become invalid."""
    headers, by = headers_of(context, target), count_of(count)
    for index in reversed(range(by, len(headers))):
        swap_headers(context, headers[index], headers[index - by])
    invalidate(context, headers[:by])


# {"op": "pop", "parameters": [{"type": "header_stack", "value": "tags"}, {"type": "hexstr", "value": "0x1"}]}
def pop(context: Context, target: Argument, count: Argument) -> None:
    """Move the elements of a stack down; the last ones become invalid."""
    headers, by = headers_of(context, target), count_of(count)
    kept = max(len(headers) - by, 0)
    for index in range(kept):
        swap_headers(context, headers[index], headers[index + by])
    invalidate(context, headers[kept:])


# {"op": "assign_VL", "parameters": [{"type": "field", ...}, {"type": "field", ...}]}
def assign_variable(context: Context, target: Argument, source: Argument) -> None:
    one, other = variable_of(context, target), variable_of(context, source)
    if one.most < other.most:
        raise UnsupportedError(f"assigning '{other.field}' to '{one.field}', which has less room")
    context.out.line(f"copy_bytes({one.bytes}, {other.bytes}, {other.length}, {other.most});")
    context.out.line(f"{one.length} = {other.length};")


def variable_of(context: Context, argument: Argument) -> Variable:
    """The field of variable length that an argument names; `UnsupportedError` for anything else."""
    found = context.layout.variable(argument.header) if isinstance(argument, Field) else None
    if found is None:
        raise UnsupportedError(f"{argument!r} where a field of variable length is expected")
    return found


def wire_size(context: Context, header: str) -> str:
    """The C expression of a header's size in the packet, in bytes."""
    size, variable = context.program.headers[header].size, context.layout.variable(header)
    return f"{size} + {variable.length}" if variable else str(size)


def clear(context: Context, header: str) -> None:
    """Set all fields to 0; as in BMv2, a variable-length field keeps its length."""
    record, variable = context.layout.header(header), context.layout.variable(header)
    if variable:
        context.out.line(f"u32 kept = {variable.length};")
    context.out.line(f"__builtin_memset(&{record}, 0, sizeof {record});")
    if variable:
        context.out.line(f"{variable.length} = kept;")


def copy_header(context: Context, target: str, source: str) -> None:
    """Copy `source` to `target`; if `source` is invalid, copy only the validity."""
    if target == source:
        return
    if any(context.program.headers[name].metadata for name in (target, source)):
        raise UnsupportedError(f"a copy of the whole of '{source}', which is metadata")
    out = context.out
    with out.block(f"if ({context.validity(source)})"):
        out.line(f"{context.layout.header(target)} = {context.layout.header(source)};")
        make_valid(context, target)
    with out.block("else"):
        out.line(f"{context.validity(target)} = 0;")


def swap_headers(context: Context, one: str, other: str) -> None:
    """Exchange two headers; `UnsupportedError` for headers that are too large for eBPF's stack."""
    layout = context.layout
    if layout.state[one].size > MOST_SWAPPED:
        raise UnsupportedError(f"a header of more than {MOST_SWAPPED} bytes in a stack that is pushed or popped")
    context.out.line(f"SWAP({layout.header(one)}, {layout.header(other)});")
    context.out.line(f"SWAP({context.validity(one)}, {context.validity(other)});")


def invalidate(context: Context, headers: tuple[str, ...]) -> None:
    for header in headers:
        context.out.line(f"{context.validity(header)} = 0;")


def each_case(context: Context, cases: Iterable[tuple[str, Case]]) -> Iterator[Case]:
    """Write the statements of each case under its C condition; a case without a condition is the only one."""
    for index, (condition, case) in enumerate(cases):
        if not condition:
            yield case
            return
        with context.out.block(f"{'else ' if index else ''}if ({condition})"):
            yield case


def header_cases(context: Context, expression: Expression, given: str = "") -> Iterator[tuple[str, str]]:
    """The headers that `expression` can be, each with the C condition that selects it.

    `given` is a condition that already holds; "" means none.
    """
    within = f"{given} && " if given else ""
    match expression:
        case HeaderReference(header):
            yield given, header
        case Operation("?", (test, left, right)):
            holds = context.value(test).text
            yield from header_cases(context, left, f"{within}{holds}")
            yield from header_cases(context, right, f"{within}!{holds}")
        case Operation("dereference_header_stack", (StackReference(stack), index)):
            number = context.value(index).text
            for place, header in enumerate(context.program.stacks[stack].headers):
                yield f"{within}{number} == {place}", header
        case _:
            raise UnsupportedError(f"a header computed by {expression!r}")


def header_of(argument: Argument) -> str:
    """The header that an argument names; `UnsupportedError` for anything else."""
    if not isinstance(argument, HeaderReference):
        raise UnsupportedError(f"{argument!r} where a header is expected")
    return argument.header


def headers_of(context: Context, argument: Argument) -> tuple[str, ...]:
    """The headers of the stack or union that an argument names; `UnsupportedError` for anything else."""
    match argument:
        case StackReference(stack):
            return context.program.stacks[stack].headers
        case UnionReference(union):
            return tuple(context.program.unions[union].members.values())
    raise UnsupportedError(f"{argument!r} where a header stack or union is expected")


def count_of(argument: Argument) -> int:
    """The number that an argument is; `UnsupportedError` unless it is a constant."""
    if not isinstance(argument, Constant):
        raise UnsupportedError("pushing or popping a number of headers that is not a constant")
    return argument.value
