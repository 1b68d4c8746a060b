"""What the names and values of an STF test mean in a program: statements become entries.

STF writes names short: `t` for `ingress.t`, `h.f` for `hdr.h.f`, `stack$0.f` for `stack[0].f`, `h.valid` or
`h.$valid$`. A short name that fits several things is refused. Parts of a key that are not named match anything;
those that match exactly are 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from switch.control.commands.words import parse_number
from switch.control.match_rules import by_priority
from switch.control.short_names import ending_with, one_of
from switch.entries import DefaultAction, KeyPart, Lpm, Range, TableEntry, Ternary
from switch.program.actions import Action
from switch.program.pipelines import MatchKey, Table
from switch.program.program import Program
from switch.stf.script import Add, SetDefault
from topo.errors import InputError

LOWEST_PRIORITY = 10000
"""BMv2's number for STF's priority 0: in BMv2 the lowest number wins, in STF the highest."""
BITS_OF_DIGIT = {"0x": 4, "0o": 3, "0b": 1}


@dataclass(frozen=True)
class ProgramNames:
    """The names of a program's tables, keys and actions."""

    program: Program

    def entry(self, add: Add) -> TableEntry:
        """The entry that `add` describes."""
        table = self.table(add.table)
        key, priority = self.matched(add)
        action, params = self.call(table, add.action, add.params)
        return TableEntry(table.name, key, action.name, params, priority)

    def matched(self, add: Add) -> tuple[tuple[KeyPart, ...], int | None]:
        """The key and the priority of the entry that `add` describes."""
        table = self.table(add.table)
        given = {self.key(table, name).name: value for name, value in add.key}
        key = tuple(key_part(part, given[part.name]) if part.name in given else anything(part) for part in table.key)
        return key, LOWEST_PRIORITY - (add.priority or 0) if by_priority(table) else None

    def default(self, given: SetDefault) -> DefaultAction:
        """The default action that `given` describes."""
        table = self.table(given.table)
        action, params = self.call(table, given.action, given.params)
        return DefaultAction(table.name, action.name, params)

    def table(self, name: str) -> Table:
        """The table whose name ends with `name`; `InputError` if there is none, or more than one."""
        return self.program.tables[only("table", name, self.program.tables)]

    def key(self, table: Table, name: str) -> MatchKey:
        """The part of the key of `table` that STF calls `name`."""
        plain = re.sub(r"\$([0-9]+)", r"[\1]", name)
        parts = {part.name: part for part in table.key}
        spellings = [plain, f"{plain}$", f"{plain}.$valid$", re.sub(r"\bvalid$", "$valid$", plain)]
        for spelling in spellings:
            if spelling in parts:
                return parts[spelling]
        fitting = [known for known in parts if any(known.endswith(f".{spelling}") for spelling in spellings)]
        return parts[one_of(f"key of table '{table.name}'", name, fitting, parts)]

    def call(self, table: Table, name: str, given: Iterable[tuple[str, str]]) -> tuple[Action, tuple[int, ...]]:
        """The action of `table` that STF calls `name`, and its parameters in order."""
        actions = {action.name: action for action in table.actions}
        action = actions[only(f"action of table '{table.name}'", name, actions)]
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


def key_part(part: MatchKey, text: str) -> KeyPart:
    """A value written as `part` matches it: V, V with digits left open by *, V/PREFIX, V&&&MASK or LOW..HIGH."""
    match part.match:
        case "lpm":
            return prefix(part, text)
        case "ternary":
            return Ternary(*masked(part, text))
        case "range":
            low, _, high = text.partition("..")
            return Range(value_of(low), value_of(high or low))
    return value_of(text)


def masked(part: MatchKey, text: str) -> tuple[int, int]:
    """Value and mask: digits that are written are compared, * are not; a decimal number is compared whole."""
    if "&&&" in text:
        value, _, compared = text.partition("&&&")
        return value_of(value), value_of(compared)
    bits = BITS_OF_DIGIT.get(text[:2])
    if bits is None:
        return (0, 0) if text == "*" else (value_of(text), (1 << part.bits) - 1)
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else (1 << bits) - 1)
    return value_of(text.replace("*", "0")), mask & (1 << part.bits) - 1


def prefix(part: MatchKey, text: str) -> Lpm:
    """The prefix that `text` means: V/PREFIX, or digits whose last ones are left open by *, or a whole value."""
    value, slash, length = text.partition("/")
    if slash:
        return Lpm(value_of(value), value_of(length))
    bits = BITS_OF_DIGIT.get(text[:2])
    if bits is None:
        return Lpm(value_of(text), part.bits)
    digits = text[2:].rstrip("*")
    return Lpm(value_of(text.replace("*", "0")), min(len(digits) * bits, part.bits))


def value_of(text: str) -> int:
    """The number that `text` means; `InputError` for anything else."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise InputError(f"'{text}' is no number: expected decimal, 0x, 0o, 0b, or an address") from error
