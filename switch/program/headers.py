"""Headers and metadata of a program, with their fields; header stacks and header unions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance. `offset` counts bits from the header's start.

    A field of variable length (`varbit`) has 0 `bits`: its length is found when it is extracted.
    """

    header: str
    name: str
    bits: int
    signed: bool
    offset: int
    variable: bool = False

    def __str__(self) -> str:
        return f"{self.header}.{self.name}"


@dataclass(frozen=True)
class Header:
    """A header instance, or (`metadata`) a group of metadata fields.

    `max_bytes` bounds a header with a field of variable length; `type` names its declaration.
    """

    name: str
    metadata: bool
    fields: tuple[Field, ...]
    type: str = ""
    max_bytes: int | None = None

    @property
    def bits(self) -> int:
        """The sum of the fields' bits; a field of variable length adds none."""
        return sum(field.bits for field in self.fields)

    @property
    def size(self) -> int:
        """The bytes that the header takes in a packet, without those of a field of variable length."""
        return self.bits // 8


@dataclass(frozen=True)
class Stack:
    """A header stack: the instances that are its elements, first to last."""

    name: str
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Union:
    """A header union: its instances by the names of its members, of which at most one is valid."""

    name: str
    members: dict[str, str]


@dataclass(frozen=True)
class UnionStack:
    """A stack of header unions, first to last."""

    name: str
    unions: tuple[Union, ...]
