"""Handles: JSON data by which another process finds a running switch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inakit.switch.program.bmv2_json import parse_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

Handle = Mapping[str, Any]
"""`target` is a name of `inakit.switch.targets.TARGETS`, `program` the file of the P4 program, `sha256` its hash.

The target adds the keys by which it finds the switch."""


def make_handle(target: str, program: Path, **own: Any) -> Handle:
    """The handle of a switch that has just read `program`; `own` are the keys by which its target finds it."""
    return {"target": target, "program": str(program.resolve()), "sha256": fingerprint(program), **own}


def program_of(handle: Handle) -> Program:
    """The program that the switch runs; `InputError` if its file has changed since."""
    path = Path(handle["program"])
    if not path.is_file() or fingerprint(path) != handle["sha256"]:
        raise InputError(
            f"{path} is not the program of the running switch (sha256 {handle['sha256'][:12]}...), which "
            "describes its state: restore that file, or start the network again"
        )
    return parse_program(path.read_bytes(), str(path))  # not `read_program`: the sources may have changed since


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
