"""Values from a student's code or files: their form in messages, and their checks.

Both sides of a sandbox use it, so it imports only Python's standard library.
"""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    """A text without control characters of terminals."""
    return "".join(each if each.isprintable() else "?" for each in text)


def shown(value: Any) -> str:
    """A value's `repr`, shortened and printable."""
    return printable(repr(value)[:60])


def is_whole(value: Any, most: int) -> bool:
    """Whether a value is an integer, not a bool, from 0 to `most`."""
    return type(value) is int and 0 <= value <= most
