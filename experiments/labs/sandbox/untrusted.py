"""Values that a student's code or files give: how messages show them, and how they are checked.

Both sides of a sandbox use it, so it needs nothing but Python's own library.
"""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    """A text without the characters that a terminal obeys."""
    return "".join(each if each.isprintable() else "?" for each in text)


def shown(value: Any) -> str:
    """A value as Python writes it, cut short and printable."""
    return printable(repr(value)[:60])


def is_whole(value: Any, most: int) -> bool:
    """Whether a value is a whole number from 0 to `most`; a truth value is none."""
    return type(value) is int and 0 <= value <= most
