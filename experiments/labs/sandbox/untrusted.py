"""Values from a student's code or files: the one reader that checks them for all labs, and their form in messages.

Both sides of a sandbox use it, so it imports only Python's standard library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_32_BITS = (1 << 32) - 1
LARGEST, SMALLEST = 1e18, 1e-18
"""The largest number that is read anywhere, a rate of a million Tbit/s, and the smallest one greater than 0."""
MOST_ITEMS, MOST_LETTERS = 1000, 1000
"""The limits of the length of a list or dict, and of a text, unless another one is given."""
MOST_DIGITS = 40
"""The letters of a number in a table: Python writes up to 24 for a fraction, and students ask for more places."""


def printable(text: str) -> str:
    r"""A text in one line without control characters, which have the form `\x1b`."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def lines_printable(text: str) -> str:
    """A text of several lines, of which each is printable."""
    return "\n".join(map(printable, text.splitlines()))


def without_addresses(text: str) -> str:
    """A printable text without the addresses of objects, which differ from run to run."""
    return re.sub(r"\bat 0x[0-9a-f]+", "at 0x...", printable(text))


def shown(value: Any) -> str:
    """A value's `repr`, shortened and printable."""
    try:
        return printable(repr(value)[:60])
    except Exception:  # of an object of the student's, or of a number with too many digits
        return f"a value of type {printable(type(value).__name__[:60])}"


def plain(cell: str) -> int | float | str:
    """The number in a cell of a table, or the cell if there is none of a usual length."""
    text = cell.strip()
    if text.isascii() and "_" not in text and len(text) <= MOST_DIGITS:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return cell


@dataclass(frozen=True)
class Reader:
    """Checks values of unknown types; `error` makes the exception for a wrong one from the message.

    Each method takes the value's place for messages, and returns the value in its type.
    """

    error: Callable[[str], Exception]

    def wrong(self, where: str, value: Any, expected: str) -> Exception:
        """The exception for a value."""
        return self.error(f"{where}: {shown(value)}: {expected} is expected")

    def whole(self, where: str, value: Any, most: int = MOST_32_BITS, least: int = 0) -> int:
        """A whole number, and no truth value."""
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(where, value, f"a whole number from {least} to {most}")
        return value

    def number(self, where: str, value: Any, *, positive: bool = False) -> float:
        """A finite number of at most `LARGEST`; a `positive` one is at least `SMALLEST`, so that ratios are finite."""
        if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST or (positive and value < SMALLEST):
            raise self.wrong(where, value, f"a number{' greater than 0' if positive else ''} of at most {LARGEST:g}")
        return float(value)

    def text(self, where: str, value: Any, most: int = MOST_LETTERS) -> str:
        """A text that files and seeds can have: without parts of characters, such as half of a surrogate pair."""
        if not isinstance(value, str) or len(value) > most or any("\ud800" <= each <= "\udfff" for each in value):
            raise self.wrong(where, value, f"a text of at most {most} letters")
        return value

    def items(self, where: str, value: Any, what: str, most: int = MOST_ITEMS, least: int = 0) -> list[Any]:
        """A list; `what` are its items."""
        if not isinstance(value, list) or not least <= len(value) <= most:
            count = f"{least}" if least == most else f"at most {most}"
            raise self.wrong(where, value, f"a list of {count} {what}")
        return value

    def wholes(
        self,
        where: str,
        value: Any,
        most: int = MOST_32_BITS,
        *,
        what: str = "numbers",
        length: int = MOST_ITEMS,
        least: int = 0,
    ) -> tuple[int, ...]:
        """Whole numbers, at least `least` of them."""
        return tuple(self.whole(where, each, most) for each in self.items(where, value, what, length, least))

    def mapping(self, where: str, value: Any, what: str, most: int = MOST_ITEMS) -> dict[str, Any]:
        """A dict with texts as keys; `what` are its values."""
        if not isinstance(value, dict) or len(value) > most:
            raise self.wrong(where, value, f"a dict of at most {most} {what}")
        return {self.text(where, key): each for key, each in value.items()}

    def record(self, where: str, value: Any, keys: Sequence[str]) -> dict[str, Any]:
        """A dict with exactly these keys."""
        listed = ", ".join(keys)
        if not isinstance(value, dict):
            raise self.wrong(where, value, f"a dict with {listed}")
        for key in keys:
            if key not in value:
                raise self.error(f"{where} has no '{key}': {listed} are expected")
        for key in value:
            if key not in keys:
                raise self.error(f"{where} has the key {shown(key)}: {listed} are expected")
        return value
