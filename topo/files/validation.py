"""A document as a value of a declared type, strictly: no key is unknown, and nothing is converted silently.

Two kinds of types are read. A `Record` belongs to a file that people write: its fields say, in their descriptions, what
is expected of each key, and error messages repeat that. The kit's own dataclasses (jobs, plans, table entries,
schedules) are mostly read from files that the kit wrote: their fields have no descriptions, and messages say which type
is expected.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from inakit.topo.errors import InputError
from inakit.topo.files.reader import ParsedFile, Place, nearest_name, nearest_or_all

Model = TypeVar("Model")


class Record(BaseModel):
    """A part of a file that people write. The description of each field says what is expected of that key."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def validate(file: ParsedFile, kind: type[Model], remedy: str = "") -> Model:
    """The document of a file as a `Record` or dataclass `kind`. Raises the error of the file's kind.

    `remedy` is added to messages about keys that are missing from a dataclass.
    """
    adapter = TypeAdapter(kind)
    try:
        if issubclass(kind, Record):
            return adapter.validate_python(file.document)
        # As JSON, so that a list is taken for a tuple although no other type is converted.
        return adapter.validate_json(json.dumps(file.document, default=str), strict=True, extra="forbid")
    except ValidationError as error:
        raise first_mistake(file, kind, error, remedy) from error


def first_mistake(file: ParsedFile, kind: type[Any], error: ValidationError, remedy: str) -> InputError:
    """The mistake to correct first: an unknown key, because a misspelt key also makes the right one missing."""
    mistakes = error.errors(include_url=False)
    unknown = ("extra_forbidden", "unexpected_keyword_argument")
    mistake: Mapping[str, Any] = next((each for each in mistakes if each["type"] in unknown), mistakes[0])
    explain = explain_record if issubclass(kind, Record) else explain_dataclass
    place, message = explain(mistake, kind, remedy)
    return file.error(place, message)


def explain_record(mistake: Mapping[str, Any], kind: type[Any], _: str) -> tuple[Place, str]:
    """Where a mistake in a `Record` is, and the message, which repeats the description of the key."""
    place: Place = mistake["loc"]
    if mistake["type"] == "extra_forbidden":
        return place, f"unknown key{nearest_and_all(str(place[-1]), fields_at(kind, place[:-1]))}"
    keys = [depth for depth, key in enumerate(place) if key in fields_at(kind, place[:depth])]
    if not keys:
        return (), f"expected the keys {', '.join(fields_of(kind))}"
    depth = keys[-1]
    expected = type_at(kind, place[:depth]).model_fields[place[depth]].description
    if mistake["type"] == "missing":
        return place[:depth], f"key '{place[depth]}' is missing: expected {expected}"
    found = "null" if mistake["input"] is None else repr(mistake["input"])
    return place[: depth + 1], f"{found}: expected {expected}"


def nearest_and_all(key: str, known: Mapping[str, Any]) -> str:
    """The way out for an unknown key of a `Record`: the key that it resembles, and all that there are."""
    near = nearest_name(key, known)
    hint = f", did you mean '{near}'?" if near else ";"
    return f"{hint} expected one of {', '.join(known)}"


def explain_dataclass(mistake: Mapping[str, Any], kind: type[Any], remedy: str) -> tuple[Place, str]:
    """Where a mistake in one of the kit's dataclasses is, and the message, which says the type that is expected."""
    place: Place = mistake["loc"]
    last = place[-1] if place else ""
    if mistake["type"] == "unexpected_keyword_argument":
        return place, f"unknown key '{last}'; {nearest_or_all(str(last), fields_at(kind, place[:-1]))}"
    if last == "version":
        missing = "missing" in mistake["type"]
        given = "is missing" if missing else f"{mistake['input']!r:.20} is none that this kit reads"
        return (), f"key 'version' {given}: write `version: 1`"
    if mistake["type"] in ("missing", "missing_argument"):
        return place, f"key '{last}' is missing{remedy}"
    if not place:
        return (), f"expected the keys {', '.join(fields_of(kind))}, found {mistake['input']!r:.60}{remedy}"
    return place, f"{mistake['msg'].removeprefix('Value error, ')}, found {mistake['input']!r:.60}"


def fields_at(kind: Any, place: Place) -> dict[str, Any]:
    """The fields, with their types, of the record or dataclass at a place; none where there is neither."""
    return fields_of(type_at(kind, place))


def type_at(kind: Any, place: Place) -> Any:
    """The type that is declared for a place in a document of type `kind`; None where there is none."""
    for step in place:
        kind = part_of(kind, step)
    return kind


def part_of(kind: Any, step: str | int) -> Any:
    """The type that is declared for a field, a list item, or a dictionary's value.

    pydantic leads to a member of a union either by a step with the name of its class or by no step of its own.
    """
    if fields := fields_of(kind):
        return fields.get(str(step))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = (each if getattr(each, "__name__", "") == step else part_of(each, step) for each in arguments)
        return next((part for part in parts if part is not None), None)
    if origin in (list, tuple) and isinstance(step, int):
        return arguments[0]
    return arguments[1] if origin is dict else None


def fields_of(kind: Any) -> dict[str, Any]:
    """The fields, with their types, of a record or dataclass; none of another type."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return {}
