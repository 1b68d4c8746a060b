"""Strict reading of parsed YAML: keys are known and values as expected, or one message says which is not."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from topo.errors import InputError

Value = TypeVar("Value")
Convert = Callable[[Any], Value]
"""Gives the value, or raises `ValueError` or `TypeError` for one that is not as expected."""


class Reader:
    """A mapping of the file `path`, at the place `where` in it (`links[3]`). Raises `InputError`."""

    def __init__(self, path: Path, where: str, document: object, keys: tuple[str, ...]) -> None:
        self.path, self.where, self.keys = path, where, keys
        if not isinstance(document, dict):
            raise self.error("", f"{document!r:.60}: expected the keys {', '.join(keys)}")
        self.document: dict[str, Any] = document
        for key in document:
            if key not in keys:
                near = difflib.get_close_matches(str(key), keys, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"expected one of {', '.join(keys)}"
                raise self.error(str(key), f"unknown key; {hint}")

    def __contains__(self, key: str) -> bool:
        return key in self.document

    def take(self, key: str, convert: Convert[Value], expected: str) -> Value:
        """The value of a key that must be there."""
        if key not in self.document:
            raise self.error("", f"key '{key}' is missing: expected {expected}")
        value = self.document[key]
        try:
            return convert(value)
        except (ValueError, TypeError):
            raise self.error(key, f"{value!r:.60}: expected {expected}") from None
        except InputError as error:
            raise self.error(key, str(error)) from None

    def get(self, key: str, convert: Convert[Value], expected: str, default: Value) -> Value:
        """The value of a key that may be missing."""
        return self.take(key, convert, expected) if key in self.document else default

    def each(self, key: str, keys: tuple[str, ...]) -> Iterator[Reader]:
        """The mappings of a list, which may be missing."""
        listed: list[Any] = self.get(key, of_type(list), "a list", [])
        for position, document in enumerate(listed):
            yield Reader(self.path, f"{self.place(key)}[{position}]", document, keys)

    def part(self, key: str, keys: tuple[str, ...]) -> Reader:
        """The mapping under a key."""
        return Reader(self.path, self.place(key), self.document[key], keys)

    def place(self, key: str) -> str:
        return f"{self.where}.{key}".strip(".")

    def error(self, key: str, message: str) -> InputError:
        where = self.place(key)
        return InputError(f"{self.path}: {where}: {message}" if where else f"{self.path}: {message}")


def of_type(kind: type[Value]) -> Convert[Value]:
    """A value of exactly this type; true is no number."""

    def convert(value: object) -> Value:
        if type(value) is not kind:
            raise ValueError
        return value

    return convert
