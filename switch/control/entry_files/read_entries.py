"""Reads a file that fills a switch, whichever of the formats that courses use it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from switch.control.entry_files.runtime_json import read_runtime
from switch.control.simple_switch_cli import read_commands
from switch.entries import SwitchEntries
from switch.program.program import Program


def read_entries(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that a file installs in a switch that runs `program`.

    It is a `s1-runtime.json` of p4lang's tutorials if its name ends in .json, else it has commands of
    simple_switch_CLI; `skipped` is told which of them are skipped.
    """
    if path.suffix == ".json":
        return read_runtime(path, program)
    return read_commands(path, program, skipped)
