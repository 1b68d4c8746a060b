"""The tables, keys and actions of a program by names that people write short: `t` for `ingress.t`, `h.f` for `hdr.h.f`.

Whole names are taken too. A short name that fits several things is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from inakit.switch.control.simple_switch_cli import parse_number
from inakit.switch.control.simple_switch_cli import ending_with, one_of
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import Action
from inakit.switch.program.program import MatchKey, Table
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class ProgramNames:
    """The names of a program's tables, keys and actions.

    Stacks may be written `stack$0` for `stack[0]`, validity `h.valid` or `h.$valid$`.
    """

    program: Program

    def table(self, name: str) -> Table:
        """The table whose name ends with `name`; `InputError` if there is none, or more than one."""
        return self.program.tables[only("table", name, self.program.tables)]

    def key(self, table: Table, name: str) -> MatchKey:
        """The part of the key of `table` that is called `name`."""
        plain = re.sub(r"\$([0-9]+)", r"[\1]", name)
        parts = {part.name: part for part in table.key}
        spellings = [plain, f"{plain}$", f"{plain}.$valid$", re.sub(r"\bvalid$", "$valid$", plain)]
        for spelling in spellings:
            if spelling in parts:
                return parts[spelling]
        fitting = [known for known in parts if any(known.endswith(f".{spelling}") for spelling in spellings)]
        return parts[one_of(f"key of table '{table.name}'", name, fitting, parts)]

    def action(self, table: Table, name: str) -> Action:
        """The action of `table` that is called `name`."""
        actions = {action.name: action for action in table.actions}
        return actions[only(f"action of table '{table.name}'", name, actions)]

    def call(self, table: Table, name: str, given: Iterable[tuple[str, str]]) -> tuple[Action, tuple[int, ...]]:
        """The action of `table` that is called `name`, and its parameters in order."""
        action = self.action(table, name)
        values = dict(given)
        names = [parameter.name for parameter in action.parameters]
        if set(values) != set(names):
            raise InputError(f"action '{action.name}' takes ({', '.join(names)}), not ({', '.join(values)})")
        return action, tuple(value_of(values[name]) for name in names)


def only(what: str, name: str, known: Iterable[str]) -> str:
    """`name` itself if it is known, else the only name that ends with it: from a dot on, or, if none does, anywhere."""
    choices = list(known)
    if name in choices:
        return name
    fitting = ending_with(name, choices) or [each for each in choices if each.endswith(name)]
    return one_of(what, name, fitting, choices)


def anything(part: MatchKey) -> KeyPart:
    """A part of a key that matches every value; 0, if it matches exactly."""
    match part.match:
        case "lpm":
            return Lpm(0, 0)
        case "ternary":
            return Ternary(0, 0)
        case "range":
            return Range(0, (1 << part.bits) - 1)
    return 0


def value_of(text: str) -> int:
    """The number that `text` means; `InputError` for anything else."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise InputError(f"'{text}' is no number: expected decimal, 0x, 0o, 0b, or an address") from error
