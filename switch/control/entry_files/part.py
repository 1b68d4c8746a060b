"""Records of files that courses write: they may have keys that nobody here reads, which is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict

from inakit.switch.control.simple_switch_cli import parse_number
from inakit.topo.files.reader import Record, nearest_name

FLAGS = {"true": True, "false": False}


def whole_number(value: Any) -> Any:
    """The number in a text such as "1" or "0x1f"; anything else is as it was."""
    return parse_number(value) if isinstance(value, str) else value


def flag(value: Any) -> Any:
    """The truth in a text such as "True"; anything else is as it was."""
    return FLAGS.get(value.lower(), value) if isinstance(value, str) else value


Flag = Annotated[bool, BeforeValidator(flag)]
Number = Annotated[int, BeforeValidator(whole_number)]
"""A whole number, also as text: some files write ports so."""


class Part(Record):
    """A part of a file; it may have further keys."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


def unread(part: Any, place: str = "") -> Iterator[str]:
    """The keys of a part that nobody reads, each with where it stands; `*` is for any name.

    A key that resembles one which is read is told to do so.
    """
    if isinstance(part, Part):
        known = {name: getattr(part, name) for name in type(part).model_fields}
        for key in part.model_extra or {}:
            near = nearest_name(key, known)
            yield f"{place}{key}" + (f" (did you mean '{near}'?)" if near else "")
        for name, value in known.items():
            yield from unread(value, f"{place}{name}.")
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from unread(value, f"{place}*.")
    elif isinstance(part, list | tuple):
        for value in part:
            yield from unread(value, place)


def told(path: object, keys: Iterable[str]) -> tuple[str, ...]:
    """One line about all keys of a file that nobody reads; nothing if there is none."""
    different = list(dict.fromkeys(keys))
    return (f"{path}: these keys have no effect here: {', '.join(different)}",) if different else ()
