"""The strict reader of YAML and JSON files: fabrics, jobs, faults, plans, table entries, schedules.

A file becomes a complete value, or one error with the file, the place in it, the value, and what is expected:

fabric.yml line 6: links[0].capacity: '20X': expected a rate in bit/s greater than 0, such as 20M or 100G

A file is read in two steps. `read_file` gives its plain lists and dictionaries as a `ParsedFile`, which makes all error
messages. Then `validate` turns the document into a value of a declared type. Files that only programs write are not
read here: BMv2 JSON by `inakit.switch.program.bmv2_json`, and states of running networks.

`write_csv` writes tables.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from inakit.topo.errors import InputError, writing

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a part of a document: ('links', 3, 'capacity')."""


@dataclass(frozen=True)
class FileKind:
    """A kind of files: its name in error messages, its size limit, and the error that a mistake raises.

    `tells_lines` says whether messages give the line of a wrong key.
    """

    name: str
    max_bytes: int
    error: type[InputError] = InputError
    tells_lines: bool = False


@dataclass(frozen=True)
class ParsedFile:
    """The document of a file in plain lists and dictionaries; for YAML, `tree` has its lines."""

    path: Path
    kind: FileKind
    document: Any
    tree: yaml.Node | None = None

    def error(self, place: Place, message: str) -> InputError:
        """The error for a mistake at a place of this file; `()` is the whole document."""
        knows_lines = self.kind.tells_lines and (self.tree is not None or self.document is None)
        line = f" line {line_of(self.tree, place)}" if knows_lines else ""
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).lstrip(".")
        return self.kind.error(f"{self.path}{line}: {where + ': ' if place else ''}{message}")


def read_file(path: Path, kind: FileKind) -> ParsedFile:
    """Parse JSON if the name ends in `.json` or the text is a JSON object, else YAML. Raises the error of `kind`.

    A JSON object in a file of another name is usually valid YAML, whose parser knows the lines; an object indented by
    tabs is not.
    """
    return parse_text(read_text(path, kind), path, kind)


def parse_text(text: str, path: Path, kind: FileKind) -> ParsedFile:
    """Parse the text of a file as `read_file` does. Raises the error of `kind`."""
    if len(text) > kind.max_bytes:
        raise kind.error(too_large(path, kind))
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
    """Read the text of a file within its kind's size limit. Raises the error of `kind`.

    Removes a byte order mark, which editors on Windows write, and converts line ends to newlines.
    """
    try:
        if path.stat().st_size > kind.max_bytes:
            raise kind.error(too_large(path, kind))
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        way = f": name a {kind.name} in it" if path.is_dir() else ""
        raise kind.error(f"{path}: {error.strerror}{way}") from error
    except UnicodeDecodeError as error:
        raise kind.error(f"{path}: not text in UTF-8: save it in this encoding") from error


def too_large(path: Path, kind: FileKind) -> str:
    """The message for a file beyond its kind's size limit."""
    most = f"{kind.max_bytes >> 20} MiB" if kind.max_bytes >> 20 else f"{kind.max_bytes} bytes"
    return f"{path}: larger than {most}, which no {kind.name} is"


class RepeatedKeyError(ValueError):
    """A JSON object has a key twice; keeping the last value would silently drop the other."""


def without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the mapping of one JSON object. Raises `RepeatedKeyError` for a repeated key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RepeatedKeyError(f"key '{twice}' is given twice")
    return mapping


MOST_DEPTH, MOST_DIGITS = 50, 40


class PlainLoader(yaml.SafeLoader):
    """A loader of plain YAML: lists, mappings, texts, numbers of a usual length, truth values and null.

    It takes no tags, no aliases, which can expand a short file enormously, no repeated keys, and no numbers with `_`,
    or with `:`, which count minutes in YAML; a date is a text.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012, PyYAML's own name
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node as PyYAML does. Raises `MarkedYAMLError` for what is not plain."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem=f"alias '*{event.anchor}': write it out", problem_mark=event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem=f"tag '{event.tag}': leave it out", problem_mark=event.start_mark)
        if self.depth > MOST_DEPTH:
            raise RecursionError
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.MappingNode):
            refuse_repeated_keys(node)
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float")):
            problem = ""
            if len(node.value) > MOST_DIGITS:
                problem = f"a number of {len(node.value)} digits: at most {MOST_DIGITS} are read"
            elif "_" in node.value or ":" in node.value:
                problem = f"number '{node.value}': write it without '_' and ':', and a text in quotes"
            if problem:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return node


def refuse_repeated_keys(node: yaml.MappingNode) -> None:
    """Raise `MarkedYAMLError` if a key of the mapping is repeated or is not a scalar."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is a word, not a list", problem_mark=key.start_mark)
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"key '{key.value}' is given twice", problem_mark=key.start_mark)
        seen.add(key.value)


def line_of(tree: yaml.Node | None, place: Place) -> int:
    """The line, from 1, of the key or list item at `place`, or of the nearest node around it."""
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


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The most similar known name, or None if none is similar."""
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


# -- Strict validation of a document: unknown keys are errors, and no value is converted silently.
#
# A `Record` belongs to a file that people write: error messages quote the descriptions of its fields. The kit's own
# dataclasses (jobs, plans, table entries, schedules) are mostly read from files that the kit wrote: their fields have
# no descriptions, and messages say which type is expected. References (such as a host of a fabric) are checked
# afterwards and reported by `ParsedFile.error`.

Model = TypeVar("Model")


class Record(BaseModel):
    """A part of a file that people write. A field's description states the expected value of its key."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def validate(file: ParsedFile, kind: type[Model], remedy: str = "") -> Model:
    """Convert the document of a file to a `Record` or dataclass `kind`. Raises the error of the file's kind.

    `remedy` is added to messages about missing keys that have no description.
    """
    adapter, document = TypeAdapter(kind), file.document
    if isinstance(document, dict) and isinstance(version := document.get("version"), bool | float):
        document = document | {"version": str(version)}  # pydantic takes True and 1.0 for 1
    try:
        if issubclass(kind, Record):
            return adapter.validate_python(document)
        # JSON mode accepts a list for a tuple but converts no other type.
        return adapter.validate_json(json.dumps(document, default=str), strict=True, extra="forbid")
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        unknown = [each for each in mistakes if each["type"] in UNKNOWN]  # a misspelt key makes the right one missing
        raise file.error(*explained((unknown or mistakes)[0], kind, remedy)) from error
    except InputError as error:  # from the constructor of a dataclass
        raise file.error((), str(error)) from error


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
MISSING = ("missing", "missing_argument")
"""Pydantic's error types for unknown keys, in a model and in a dataclass."""


def explained(mistake: Mapping[str, Any], kind: Any, remedy: str) -> tuple[Place, str]:
    """The place of a mistake, and the message. A value whose key has a description is reported as a whole."""
    way = [Step((), None, ""), *way_to(mistake["loc"], kind)]
    place, around, _ = way[-1]
    found = "null" if mistake["input"] is None else f"{mistake['input']!r:.60}"
    if mistake["type"] in UNKNOWN:
        near = nearest_name(str(place[-1]), fields_of(around))
        hint = f", did you mean '{near}'?" if near else ";"
        return place, f"unknown key{hint} expected one of {', '.join(fields_of(around))}"
    if place == ("version",):
        given = "is missing" if mistake["type"] in MISSING else f"{found:.20} is not a version that this kit reads"
        return (), f"key 'version' {given}: write `version: {get_args(fields_of(kind)['version'].kind)[-1]}`"
    place, _, description = next((step for step in reversed(way) if step.description), way[-1])
    if not place:
        return (), f"expected the keys {', '.join(fields_of(kind))}, found {found}{remedy}"
    if mistake["type"] in MISSING:
        return place[:-1], f"key '{place[-1]}' is missing{f': expected {description}' if description else remedy}"
    if description:
        return place, f"{found}: expected {description}"
    return place, f"{mistake['msg'].removeprefix('Value error, ')}, found {found}{hint_on_number(mistake)}"


def hint_on_number(mistake: Mapping[str, Any]) -> str:
    """How to write a number with an exponent, which YAML reads as text unless it has a point and a sign."""
    try:
        number = float(mistake["input"]) if mistake["type"] in ("float_type", "int_type") else inf
    except (TypeError, ValueError):
        return ""
    if not isinstance(mistake["input"], str) or not isfinite(number):
        return ""
    return f": write {number:.0f}" if mistake["type"] == "int_type" else ": write a point and a sign, as in 1.0e+12"


class Key(NamedTuple):
    """A key of a record or dataclass: the type of its value, and its description."""

    kind: Any
    description: str = ""


class Step(NamedTuple):
    """A step on the path to a value: its place, the type that contains it, and the description of its key."""

    place: Place
    around: Any
    description: str


def way_to(whole: Place, kind: Any) -> Iterator[Step]:
    """The steps of a place in a document of type `kind`, without those that pydantic adds for members of unions."""
    place: Place = ()
    for step in whole:
        members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        named = [each for each in members if getattr(bare(each), "__name__", "") == step]
        if named and len(members) > 1:
            (kind,) = named
            continue
        place = (*place, step)
        key = next(filter(None, (part_of(bare(each), step) for each in members)), Key(None))
        yield Step(place, kind, key.description)
        kind = bare(key.kind)


def part_of(kind: Any, step: str | int) -> Key | None:
    """The key of a record or dataclass, the item of a list, or the value of a dictionary, to which a step leads."""
    if fields := fields_of(kind):
        return fields.get(str(step))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple) and isinstance(step, int):
        return Key(arguments[0])
    return Key(arguments[1]) if origin is dict else None


def bare(kind: Any) -> Any:
    """The type without `Annotated`."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def fields_of(kind: Any) -> dict[str, Key]:
    """The fields of a record or dataclass, or of a union's member, by their keys in files; empty for other types."""
    kind = bare(kind)
    if get_origin(kind) in (Union, UnionType):
        return next(filter(None, map(fields_of, get_args(kind))), {})
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            field.alias or name: Key(field.annotation, field.description or "")
            for name, field in kind.model_fields.items()
        }
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: Key(hints[field.name], "") for field in dataclasses.fields(kind)}
    return {}


def write_csv(path: Path, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows under headings. Raises `OutputError`."""
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows(rows)


def write_whole(file: Path, text: str) -> Path:
    """Write a text in one step, so that a reader never sees half a file; return the path. Raises `OutputError`."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with writing(file):
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    return file


def write_new(texts: Mapping[Path, str], other: str = "name") -> None:
    """Write new files. `other`: what a user can choose instead of their names. Raises `OutputError`.

    Raises `InputError` if a file exists, since it may be the user's work, and if its folder does not.
    """
    for file in texts:
        if file.exists():
            raise InputError(f"{file} already exists and may be your work: choose another {other}, or remove it")
        if not file.parent.is_dir():
            raise InputError(f"{file}: folder '{file.parent}' does not exist; create it, or choose another {other}")
    for file, text in texts.items():
        with writing(file), file.open("x", encoding="utf-8") as opened:
            opened.write(text)
