"""Reads programs: a file of BMv2 JSON, checked against its P4 sources and for malformed parts, to a `Program`."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from inakit.switch.program.bmv2_json.document import read_document
from inakit.switch.program.bmv2_json.source_info import Json
from inakit.switch.program.malformed import MALFORMED, check_types
from inakit.switch.program.program import Program
from inakit.switch.program.source_hashes import check_sources, not_json
from inakit.topo.errors import InputError


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
