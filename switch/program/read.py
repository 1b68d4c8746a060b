"""Reads programs: a file of BMv2 JSON, checked against its P4 sources and for malformed parts, to a `Program`.

`make p4` writes beside `p4/build/ina.json` a file `ina.sha256`, with the hashes of the program and of every source that
it is made of. A program without such a file, like a user's own, is not checked.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import lru_cache
from pathlib import Path

from inakit.switch.program.bmv2_json import MALFORMED, Json, check_types, read_document
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

COMPILER = "p4c-bm2-ss"
WHERE_FROM = (
    f"{COMPILER} is not installed here: it is in the virtual machine (`vagrant up`) and in p4lang's package p4lang-p4c"
)


def check_sources(program: Path) -> None:
    """Raise `InputError`, with the file that changed, unless `program` was compiled from its sources as they are."""
    if not program.is_file() and recorded(program):
        undo = f"git checkout {shown(program)}"
        raise InputError(f"{shown(program)} is missing: undo that ({undo}), or {compile_by('make p4')}")
    changed = [file for file, digest in recorded(program).items() if digest != sha256(file)]
    sources = [file for file in changed if file != program]
    if sources:
        names = " and ".join(map(shown, sources))
        raise InputError(f"{names} {has_changed(sources)} since {shown(program)} was compiled: {compile_by('make p4')}")
    if changed:
        raise InputError(
            f"{shown(program)} is not what the compiler wrote, and its sources are as they were: it was edited, or is "
            f"another's; change the sources, or undo it (git checkout {shown(program)}), or {compile_by('make p4')}"
        )


def recorded(program: Path) -> dict[Path, str]:
    """The hash of each file, written down when `program` was compiled; empty for a program without such a record."""
    hashes = program.with_suffix(".sha256")
    if not hashes.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in hashes.read_text().splitlines() if line.strip())
    return {program.parents[1] / name.strip(): digest for digest, name in lines}


def sha256(file: Path) -> str | None:
    """The file's hash in hexadecimal; None for a file that is not there."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def has_changed(files: list[Path]) -> str:
    """The verb that says what happened to these files: "has changed", "have changed", "is gone" and so on."""
    if not all(file.is_file() for file in files):
        return "is gone" if len(files) == 1 else "have changed or gone"
    return "has changed" if len(files) == 1 else "have changed"


def compile_by(command: str) -> str:
    """The command that makes a compiled program, and where its compiler comes from if it is not installed here."""
    if shutil.which(COMPILER) is not None:
        return f"run `{command}`, for which {COMPILER} is installed here"
    return f"run `{command}`. {WHERE_FROM}"


def shown(file: Path) -> str:
    """The path of a file in messages: from the folder `p4` on, where it is in one."""
    return str(Path(*file.parts[file.parts.index("p4") :])) if "p4" in file.parts else str(file)


def not_json(path: Path, text: bytes, error: Exception) -> InputError:
    """The error for a file that should be BMv2 JSON: it is P4 source, empty, or broken at some line."""
    if path.suffix == ".p4":
        compiled = path.with_suffix(".json")
        command = f"{COMPILER} --std p4-16 -o {compiled} {path}"
        return InputError(f"{path} is P4 source; give what is compiled of it, {compiled}: {compile_by(command)}")
    place = f" line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
    what = "empty" if not text.strip() else f"not JSON{place}"
    return InputError(f"{path}: {what}; the JSON that {COMPILER} writes is expected")


def read_program(path: Path) -> Program:
    """The program in a BMv2 JSON file. Raises `InputError`, also where it is not compiled of its present sources."""
    try:
        check_sources(path)
        return parse_program(path.read_bytes(), str(path))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path}: {why}; p4c-bm2-ss makes it from the P4 source") from None


@lru_cache(maxsize=8)
def parse_program(text: bytes, name: str) -> Program:
    """The program in a BMv2 JSON document, which is called `name` in errors."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise not_json(Path(name), text, error) from error
    try:
        return program_of(document)
    except (*MALFORMED, RecursionError) as error:
        raise InputError(f"{name} is not BMv2 JSON as p4c-bm2-ss writes it: {error!r}; compile the P4 again") from error


def program_of(document: Json) -> Program:
    """The program in a parsed document; an exception of `MALFORMED` if the document is not as p4c writes it."""
    program = read_document(document)
    check_types(program)
    return program
