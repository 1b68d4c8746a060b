"""Expressions as typed data.

Numbers are Python integers without a width, as in BMv2; fields and parameters have one.
"""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.headers import Field
from inakit.switch.program.source import Source


@dataclass(frozen=True)
class Constant:
    """A number that the program gives."""

    value: int


@dataclass(frozen=True)
class Boolean:
    """True or false, as the program gives it."""

    value: bool


@dataclass(frozen=True)
class Validity:
    """Whether a header is valid, as the number 1 or 0."""

    header: str


@dataclass(frozen=True)
class Parameter:
    """The parameter at `index` of the action that runs: the table entry gives its value."""

    index: int
    bits: int


@dataclass(frozen=True)
class Operation:
    """An operator and its operands; those of `?` are condition, value if true, value if false."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class HeaderReference:
    """A header instance itself, as the operand of a comparison or of a primitive."""

    header: str


@dataclass(frozen=True)
class StackReference:
    """A header stack itself; as what a parser extracts, its next element."""

    stack: str


@dataclass(frozen=True)
class UnionReference:
    """A header union itself, as an operand."""

    union: str


@dataclass(frozen=True)
class UnionStackReference:
    """A stack of unions itself; with `member`, that member of its next union (to extract) or last (to read)."""

    stack: str
    member: str | None = None


@dataclass(frozen=True)
class LastField:
    """A field of the last element that the parser filled; `index` is its place among the header's fields.

    Of a stack of unions, `member` names the header of the union.
    """

    stack: str
    index: int
    bits: int
    member: str | None = None


@dataclass(frozen=True)
class ElementField:
    """The field at place `index` of the header that `header` evaluates to.

    The index after the last field stands for the header's validity.
    """

    header: Expression
    index: int


@dataclass(frozen=True)
class Lookahead:
    """`bits` bits of the packet that the parser has not extracted yet, `offset` bits on from where it is."""

    offset: int
    bits: int

    def __str__(self) -> str:
        return f"lookahead of {self.bits} bits"


@dataclass(frozen=True)
class Unknown:
    """A construct of BMv2 JSON that has no place in this representation: targets refuse it by its kind and name."""

    kind: str
    name: str
    source: Source | None = None


Expression = (
    Constant
    | Boolean
    | Validity
    | Parameter
    | Field
    | Operation
    | HeaderReference
    | StackReference
    | UnionReference
    | UnionStackReference
    | LastField
    | ElementField
    | Lookahead
    | Unknown
)
