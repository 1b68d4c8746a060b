"""Actions, and the primitives with their arguments that actions, the parser and the deparser run."""

from __future__ import annotations

from dataclasses import dataclass

from switch.program.calculations import Calculation
from switch.program.expressions import Expression
from switch.program.externs import Counter, Extern, Meter, Register
from switch.program.source import Source


@dataclass(frozen=True)
class Text:
    """A string, as the format of a log message."""

    value: str


@dataclass(frozen=True)
class Arguments:
    """A list of expressions as one argument."""

    values: tuple[Expression, ...]


Argument = Expression | Register | Counter | Meter | Calculation | Extern | Text | Arguments


@dataclass(frozen=True)
class Primitive:
    """One statement of an action, of a parser state or of the deparser."""

    name: str
    arguments: tuple[Argument, ...]
    source: Source | None


@dataclass(frozen=True)
class ActionParameter:
    """A parameter of an action, whose value a table entry gives."""

    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """An action. The same P4 action may appear several times with different numbers, once for each use."""

    number: int
    name: str
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: Action
    values: tuple[int, ...]
