"""The one strict reader of files in YAML or JSON: fabrics, jobs, faults, plans, table entries, schedules.

Whoever reads a file gets a whole value, or one error with the file, the place in it, the value, and what is expected:

    fabric.yml line 6: links[0].capacity: '20X': expected a rate in bit/s greater than 0, such as 20M or 100G

A file is read in two steps. `read_file` gives its plain lists and dictionaries as a `ParsedFile`, which makes all error
messages. Then either `validate` turns the whole document into a value of a declared type (fabrics,
jobs, plans), or a `Section` takes it key by key, for a file whose names must be looked up elsewhere (faults name links
of a fabric). What only programs write is not read here: BMv2 JSON by `inakit.switch.program.read`, and states of
running networks.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from inakit.topo.errors import InputError

Value = TypeVar("Value")
Convert = Callable[[Any], Value]
"""Gives the value, or raises `ValueError` or `TypeError` for one that is not as expected."""

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a part of a document: ('links', 3, 'capacity')."""


@dataclass(frozen=True)
class FileKind:
    """How files of a kind are called in error messages, how large they may be, and what a mistake in them raises.

    `tells_lines` says whether messages give the line of a wrong key.
    """

    name: str
    max_bytes: int
    error: type[InputError] = InputError
    tells_lines: bool = False


@dataclass(frozen=True)
class ParsedFile:
    """The document of a file in plain lists and dictionaries; `tree` knows its lines, where it was YAML.

    Of an empty file there is nothing but its first line.
    """

    path: Path
    kind: FileKind
    document: Any
    tree: yaml.Node | None = None

    def error(self, place: Place, message: str) -> InputError:
        """The error for a mistake at a place of this file; `()` is the whole document."""
        knows_lines = self.kind.tells_lines and (self.tree is not None or self.document is None)
        line = f" line {line_of(self.tree, place)}" if knows_lines else ""
        where = f"{place_text(place)}: " if place else ""
        return self.kind.error(f"{self.path}{line}: {where}{message}")


def read_file(path: Path, kind: FileKind) -> ParsedFile:
    """Parse JSON where the name ends in `.json` or the text is a JSON object, else YAML. Raises the error of `kind`.

    A JSON object in a file of another name is mostly YAML, too, which knows its lines; one indented by tabs is not.
    """
    text = read_text(path, kind)
    try:
        if path.suffix == ".json" or (text.lstrip()[:1] == "{" and "\t" in text):
            return ParsedFile(path, kind, json.loads(text, object_pairs_hook=without_repeated_keys))
        loader = PlainLoader(text)
        tree = loader.get_single_node()
        return ParsedFile(path, kind, loader.construct_document(tree) if tree else None, tree)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise kind.error(f"{path}{line}: {error.problem}") from error
    except RepeatedKeyError as error:
        raise kind.error(f"{path}: {error}") from error
    except RecursionError as error:
        raise kind.error(f"{path}: nested too deeply for a {kind.name}") from error
    except (yaml.YAMLError, ValueError) as error:
        why = " ".join(str(error).split())
        raise kind.error(f"{path}: not {'JSON' if path.suffix == '.json' else 'YAML'}: {why}") from error


def read_text(path: Path, kind: FileKind) -> str:
    """The text of a file that is not larger than its kind may be. Raises the error of `kind`.

    Skips a byte order mark, which editors on Windows write, and gives every end of a line as one newline.
    """
    try:
        if path.stat().st_size > kind.max_bytes:
            raise kind.error(f"{path}: larger than {kind.max_bytes >> 20} MiB, which no {kind.name} is")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise kind.error(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise kind.error(f"{path}: not text in UTF-8: save it in this encoding") from error


class RepeatedKeyError(ValueError):
    """A JSON object has a key twice, and a reader that keeps the last would drop what a person wrote."""


def without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The mapping of one JSON object. Raises `RepeatedKeyError` for a key that is given twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RepeatedKeyError(f"key '{twice}' is given twice")
    return mapping


class PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, which can make a short file a giant one, and without keys given twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node as PyYAML does. Raises `MarkedYAMLError` for an alias or a key that is given twice."""
        if self.check_event(yaml.AliasEvent):
            alias = self.get_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"alias '*{alias.anchor}': write it out", problem_mark=alias.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        if isinstance(node, yaml.MappingNode):
            refuse_repeated_keys(node)
        return node


def refuse_repeated_keys(node: yaml.MappingNode) -> None:
    """Raise `MarkedYAMLError` if a key of the mapping is given twice or is no word."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is a word, not a list", problem_mark=key.start_mark)
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"key '{key.value}' is given twice", problem_mark=key.start_mark)
        seen.add(key.value)


def line_of(tree: yaml.Node | None, place: Place) -> int:
    """The line, from 1, of the key or list item at `place`, or of the nearest thing around it."""
    line = tree.start_mark.line if tree else 0
    for key in place:
        if isinstance(tree, yaml.MappingNode):
            found = [(name, value) for name, value in tree.value if name.value == str(key)]
        elif isinstance(tree, yaml.SequenceNode) and isinstance(key, int):
            found = [(value, value) for value in tree.value[key : key + 1]]
        else:
            break
        for name, value in found:
            line, tree = name.start_mark.line, value
    return line + 1


def place_text(place: Place) -> str:
    """A place as messages write it: `links[3].capacity`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).lstrip(".")


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The known name that `name` most resembles; None where it resembles none."""
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def nearest_or_all(key: str, known: Collection[str]) -> str:
    """The way out for an unknown key: the key that it resembles, else all that there are."""
    near = nearest_name(key, known)
    return f"did you mean '{near}'?" if near else f"expected one of {', '.join(known)}"


class Section:
    """A mapping at `place` of a file, none of whose keys is unknown; its values are taken key by key.

    Raises the error of the file's kind for every mistake.
    """

    def __init__(self, file: ParsedFile, keys: tuple[str, ...], place: Place = ()) -> None:
        self.file, self.place = file, place
        document = file.document
        for step in place:
            document = document[step]
        if not isinstance(document, dict):
            raise self.error("", f"{document!r:.60}: expected the keys {', '.join(keys)}")
        self.document: dict[str, Any] = document
        for key in document:
            if key not in keys:
                raise self.error(str(key), f"unknown key; {nearest_or_all(str(key), keys)}")

    def __contains__(self, key: str) -> bool:
        return key in self.document

    def take(self, key: str, convert: Convert[Value], expected: str) -> Value:
        """The value of a key that must be there; `expected` says in words what `convert` accepts."""
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

    def each(self, key: str, keys: tuple[str, ...]) -> Iterator[Section]:
        """The mappings of the list under a key, which may be missing; `keys` are those that each may have."""
        listed: list[Any] = self.get(key, of_type(list), "a list", [])
        for position in range(len(listed)):
            yield Section(self.file, keys, (*self.place, key, position))

    def part(self, key: str, keys: tuple[str, ...]) -> Section:
        """The mapping under a key, which may have `keys`."""
        return Section(self.file, keys, (*self.place, key))

    def error(self, key: str, message: str) -> InputError:
        """The error for a mistake at a key of this section, or, without a key, in the section as a whole."""
        return self.file.error((*self.place, key) if key else self.place, message)


def of_type(kind: type[Value]) -> Convert[Value]:
    """A conversion that accepts values of exactly this type: true is no number."""

    def convert(value: object) -> Value:
        if type(value) is not kind:
            raise ValueError
        return value

    return convert


# -- A document as a value of a declared type, strictly: no key is unknown, and nothing is converted silently.
#
# Two kinds of types are read. A `Record` belongs to a file that people write: its fields say, in their descriptions,
# what is expected of each key, and error messages repeat that. The kit's own dataclasses (jobs, plans, table entries,
# schedules) are mostly read from files that the kit wrote: their fields have no descriptions, and messages say which
# type is expected.

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
