"""The parser: a graph of states, each of which runs operations and chooses the next one."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.actions import Primitive
from inakit.switch.program.expressions import LastField, Lookahead, Unknown
from inakit.switch.program.headers import Field


@dataclass(frozen=True)
class Transition:
    """A transition to `next_state` (None: parsing ends) where key & mask == value.

    One whose value and value set are None always matches. With `value_set`, the key (& mask) must be in that set
    instead.
    """

    value: int | None
    mask: int | None
    next_state: str | None
    value_set: str | None = None


@dataclass(frozen=True)
class ParserState:
    """A state. `key` is what `transitions` look at, its parts side by side."""

    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Field | LastField | Lookahead | Unknown, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    """All states by name; parsing begins in `first`."""

    first: str
    states: dict[str, ParserState]
