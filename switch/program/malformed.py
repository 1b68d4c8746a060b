"""What is wrong with a program that is not as p4c writes it: exceptions that tell it, and values of wrong types.

Types are checked before anything runs, and so are numbers that would only exhaust memory.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from inakit.topo.errors import InputError

MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What is raised for a program that names what it does not declare, or gives a statement what it does not take."""

MOST: Mapping[str, int] = {"bits": 1 << 16, "offset": 1 << 24, "size": 1 << 32, "rates": 16, "index": 1 << 16}
"""The greatest number that a field of this name may be; none is negative."""


def not_p4c(name: str, error: Exception) -> InputError:
    """The error for a program in which one of `MALFORMED` was raised."""
    return InputError(f"program '{name}' is not as p4c writes it: {error!r}; compile the P4 again")


def check_types(value: Any, seen: set[int] | None = None) -> None:
    """Raise `ValueError` for the first value that is not of its declared type, or is too great a number.

    All fields of a dataclass are checked, and those of dataclasses inside it; `seen` are the ids of those done already.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    kind: type = type(value)
    for name, hint in hints_of(kind).items():
        found = getattr(value, name)
        if not fits(found, hint, seen):
            raise ValueError(f"{type(value).__name__} with {name} {found!r}")
        if name in MOST and found is not None and not 0 <= found <= MOST[name]:
            raise ValueError(f"{type(value).__name__} with {name} {found}: 0 to {MOST[name]} are possible")


@cache
def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a dataclass's fields, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def fits(value: Any, hint: Any, seen: set[int]) -> bool:
    """Whether `value` has the type `hint`; dataclasses inside it are checked too."""
    origin = get_origin(hint)
    if origin in (typing.Union, UnionType):
        return any(fits(value, each, seen) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(each, get_args(hint)[0], seen) for each in value)
    if origin is dict:
        of_key, of_value = get_args(hint)
        return isinstance(value, dict) and all(
            fits(key, of_key, seen) and fits(each, of_value, seen) for key, each in value.items()
        )
    if type(value) is not hint:
        return False
    if is_dataclass(value):
        check_types(value, seen)
    return True
