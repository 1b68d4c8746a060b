"""What the names and values of an STF test mean in a program: statements become entries.

STF writes names short: `t` for `ingress.t`, `h.f` for `hdr.h.f`, `stack$0.f` for `stack[0].f`, `h.valid` or
`h.$valid$`. A short name that fits several things is refused. Parts of a key that are not named match anything;
those that match exactly are 0.
"""

from __future__ import annotations

from inakit.switch.control.entry_files.program_names import ProgramNames, anything, value_of
from inakit.switch.control.entry_check import by_priority
from inakit.switch.entries import DefaultAction, KeyPart, Lpm, Range, TableEntry, Ternary
from inakit.switch.program.program import MatchKey
from inakit.switch.stf.script import Add, SetDefault

LOWEST_PRIORITY = 10000
"""BMv2's number for STF's priority 0: in BMv2 the lowest number wins, in STF the highest."""
BITS_OF_DIGIT = {"0x": 4, "0o": 3, "0b": 1}


class StfNames(ProgramNames):
    """The names of a program as statements of STF use them."""

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
