"""Actions, and the primitives with their arguments that actions, the parser and the deparser run."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.calculations import Calculation
from inakit.switch.program.expressions import Expression
from inakit.switch.program.externs import Counter, Extern, Meter, Register
from inakit.switch.program.source import Source


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


JUMPS = {"_jump": 0, "_jump_if_zero": 1}
"""The primitives by which p4c writes an `if` or a loop of an action, with the position of their target.

The target is the index, among the action's primitives, of the one that follows; an index beyond the last ends the
action. `_jump_if_zero` jumps where its first argument is 0 or false.
"""


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

    @property
    def jumps(self) -> bool:
        """Whether some of the primitives may be skipped or run again."""
        return any(each.name in JUMPS for each in self.primitives)

    @property
    def always_exits(self) -> bool:
        """Whether the pipeline ends with this action."""
        return not self.jumps and self.has_exit

    @property
    def may_exit(self) -> bool:
        """Whether it shows only when the action runs whether the pipeline ends with it."""
        return self.jumps and self.has_exit

    @property
    def has_exit(self) -> bool:
        """Whether one of the primitives ends the pipeline."""
        return any(each.name == "exit" for each in self.primitives)


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: Action
    values: tuple[int, ...]
