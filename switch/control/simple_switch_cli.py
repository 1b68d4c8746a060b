"""The commands of `simple_switch_CLI`, run on any control plane, or read as entries, which `SwitchEntries.cli` writes.

Names are whole, or any end of them that is unique. Commands that only read, and those without a meaning here, are
skipped and said to be. What cannot be carried out is an `InputError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path

from inakit.switch.control.commands import arrays, profiles, queues, replication, tables
from inakit.switch.control.commands.command import CommandedSwitch
from inakit.switch.control.commands.skipped import REFUSED, SKIPPED
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.recorded_entries import RecordedEntries
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.reader import FileKind, read_text

COMMANDS = tables.COMMANDS | profiles.COMMANDS | replication.COMMANDS | arrays.COMMANDS | queues.COMMANDS
COMMENTS = ("#", "//")
COMMAND_FILE = FileKind("file of simple_switch_CLI's commands", max_bytes=64 << 20)


def run_command(switch: CommandedSwitch, words: Sequence[str]) -> str | None:
    """Carry out one command, given as words; without words, do nothing. Return why it is skipped, if it is."""
    if not words:
        return None
    command, *rest = words
    if command not in COMMANDS or (command in queues.COMMANDS and switch.queues is None):
        return unread(command)
    try:
        COMMANDS[command].run(switch, rest)
    except ValueError as error:
        usage = f"{command} {COMMANDS[command].usage}"
        raise InputError(f"'{' '.join(words)}': {error}; expected {usage}".rstrip()) from error
    return None


def unread(command: str) -> str:
    """Why a command that changes nothing is skipped; `InputError` if it must not be.

    simple_switch_CLI goes on after a line that is no command at all; a misspelt command is refused here.
    """
    if command in SKIPPED:
        return f"'{command}' is skipped: {SKIPPED[command]}"
    if command in REFUSED:
        raise InputError(f"'{command}': {REFUSED[command]}")
    if difflib.get_close_matches(command, [*COMMANDS, *SKIPPED, *REFUSED], n=1):
        raise unknown_name("command", command, COMMANDS)
    return f"'{command}' is no command of simple_switch_CLI: the line is skipped"


def run_commands(path: Path, switch: CommandedSwitch, skipped: Callable[[str], None] = lambda _: None) -> None:
    """Carry out the commands of a file, a line each, up to the first that cannot be.

    `skipped` gets a line for each command that is skipped. `InputError` names file and line.
    """
    for number, line in enumerate(read_text(path, COMMAND_FILE).splitlines(), start=1):
        try:
            said = run_command(switch, command_of(line))
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        if said is not None:
            skipped(f"{path}:{number}: {said}")


def command_of(line: str) -> list[str]:
    """The words of a line before a `#`; none of a line that is a comment, also with `//`."""
    return [] if line.lstrip().startswith(COMMENTS) else line.partition("#")[0].split()


def read_commands(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that the commands of a file install in a switch that runs `program`."""
    recorded = RecordedEntries(program)
    run_commands(path, CommandedSwitch(ControlPlane(recorded)), skipped)
    return recorded.take()


class CommandReader:
    """Turns commands into entries, one after the other."""

    def __init__(self, program: Program) -> None:
        self.recorded = RecordedEntries(program)
        self.switch = CommandedSwitch(ControlPlane(self.recorded))

    def add(self, words: Sequence[str]) -> str | None:
        """Read one command, given as words; without words, do nothing. Return why it is skipped, if it is."""
        return run_command(self.switch, words)

    def take(self) -> SwitchEntries:
        """All entries read since the last call."""
        return self.recorded.take()
