"""Rewrites expressions about whole headers, stacks and unions as expressions about fields and validity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from inakit.switch.program.expressions import (
    Constant,
    ElementField,
    Expression,
    HeaderReference,
    LastField,
    Operation,
    StackReference,
    UnionReference,
    Validity,
)
from inakit.switch.program.expressions import Field
from inakit.switch.program.program import Program
from inakit.topo.errors import UnsupportedError

REWRITTEN = ("dereference_header_stack", "last_stack_index", "size_stack", "valid", "valid_union")
"""The operators that are rewritten; no other file needs to know them."""


@dataclass(frozen=True)
class ParsedStacks:
    """What is known of header stacks where the parser is: the field of a last element, how many elements are filled."""

    last: Callable[[LastField], Field]
    filled: Callable[[str], int]


def plain(program: Program, expression: Expression, parsed: ParsedStacks | None = None) -> Expression:
    """`expression` without headers, stacks and unions; `parsed` is what is known of stacks inside the parser."""
    match expression:
        case LastField() if parsed is not None:
            return parsed.last(expression)
        case Operation("size_stack" | "last_stack_index" as operator, (StackReference(stack),)):
            return about_filled(operator, stack, parsed)
        case ElementField(header, index):
            return member(program, header, index)
        case Operation(operator, operands):
            about = about_headers(program, expression)
            return about or Operation(operator, tuple(plain(program, operand, parsed) for operand in operands))
    return expression


def about_filled(operator: str, stack: str, parsed: ParsedStacks | None) -> Constant:
    """How many elements of a stack the parser has filled, or the index of the last one; known in the parser only."""
    if parsed is None:
        raise UnsupportedError(f"operator '{operator}' outside of the parser")
    return Constant(parsed.filled(stack) - (operator == "last_stack_index"))


def about_headers(program: Program, operation: Operation) -> Expression | None:
    """An operation on whole headers as one on their fields; None for any other operation."""
    match operation:
        case Operation("valid", (header,)):
            return member(program, header, VALIDITY)
        case Operation("valid_union", (UnionReference(union),)):
            return any_of([Validity(header) for header in program.unions[union].members.values()])
        case Operation("==", (HeaderReference(one), HeaderReference(other))):
            return same_header(program, one, other)
        case Operation("!=", (HeaderReference(one), HeaderReference(other))):
            return Operation("not", (same_header(program, one, other),))
    return None


VALIDITY = -1
"""The place of a header's validity among its fields, which is behind the last one."""


def member(program: Program, header: Expression, index: int) -> Expression:
    """The field at place `index` of the header that `header` evaluates to.

    The index behind the last field stands for the header's validity.
    """
    match header:
        case HeaderReference(name):
            fields: tuple[Expression, ...] = (*program.headers[name].fields, Validity(name))
            return fields[index]
        case Operation("?", (condition, left, right)):
            chosen = member(program, left, index), member(program, right, index)
            return Operation("?", (plain(program, condition), *chosen))
        case Operation("dereference_header_stack", (StackReference(stack), place)):
            return element(program, program.stacks[stack].headers, plain(program, place), index)
    raise UnsupportedError(f"a field of a header computed by {header!r}")


def element(program: Program, headers: tuple[str, ...], place: Expression, index: int) -> Expression:
    """The field at place `index` of the header number `place` of a stack's `headers`.

    BMv2 ends at a number that the stack does not have; here it is the last header.
    """
    values = [member(program, HeaderReference(header), index) for header in headers]
    numbered = list(enumerate(values[:-1]))
    return reduce(
        lambda rest, each: Operation("?", (Operation("==", (place, Constant(each[0]))), each[1], rest)),
        reversed(numbered),
        values[-1],
    )


def same_header(program: Program, one: str, other: str) -> Expression:
    """Whether two headers are equal: BMv2 finds them so where both are valid and all of their fields are equal."""
    pairs = zip(program.headers[one].fields, program.headers[other].fields, strict=True)
    fields = [equal_fields(left, right) for left, right in pairs]
    return reduce(
        lambda left, right: Operation("and", (left, right)), fields, Operation("and", (Validity(one), Validity(other)))
    )


def equal_fields(one: Field, other: Field) -> Operation:
    """Whether two fields are equal; `UnsupportedError` for one of variable length."""
    if one.variable:
        raise UnsupportedError(f"comparing '{one}', which has a variable length")
    return Operation("==", (one, other))


def any_of(expressions: list[Expression]) -> Expression:
    """Whether one of these holds."""
    return reduce(lambda left, right: Operation("or", (left, right)), expressions)
