"""Reads a file that fills a switch, whichever of the formats that courses use it has.

It is a `s1-runtime.json` of p4lang's tutorials if its name ends in .json, else it has commands of simple_switch_CLI.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inakit.switch.control.simple_switch_cli import CommandedSwitch
from inakit.switch.control.entry_files.runtime_json import read_runtime
from inakit.switch.control.install import install
from inakit.switch.control.simple_switch_cli import read_commands, run_commands
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.program import Program

RUNTIME_JSON = ".json"


def read_entries(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that a file installs in a switch that runs `program`; `skipped` is told what has no effect."""
    if path.suffix == RUNTIME_JSON:
        return read_runtime(path, program, skipped)
    return read_commands(path, program, skipped)


def fill_switch(path: Path, switch: CommandedSwitch, skipped: Callable[[str], None] = lambda _: None) -> None:
    """Install in a running switch what a file says; `skipped` gets a line per skipped command."""
    if path.suffix == RUNTIME_JSON:
        install(switch.control, read_runtime(path, switch.control.program, skipped))
    else:
        run_commands(path, switch, skipped)
