"""The commands of `simple_switch_CLI` read as entries: the reverse of `SwitchEntries.cli`.

Commands that fill a switch become entries; later ones may change or delete what earlier ones have made. Commands that
only read, and those without a meaning here, are skipped and said to be. Every other command is an `InputError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path

from switch.control.commands import arrays, profiles, replication, tables
from switch.control.commands.command import BoundCommand
from switch.control.commands.skipped import REFUSED, SKIPPED
from switch.entries import SwitchEntries
from switch.program.program import Program
from topo.errors import InputError, unknown_name

COMMENTS = ("#", "//")
PROFILE_COMMANDS = [*profiles.COMMANDS, "act_prof_delete_member", "act_prof_delete_group"]
OLDER_NAMES = {name: name.replace("act_prof", "table_indirect") for name in PROFILE_COMMANDS}
"""Commands of action profiles have older names, which take a table instead of a profile."""


def read_commands(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that a file of commands installs in a switch that runs `program`.

    `skipped` gets a line for each command that is skipped. `InputError` names file and line.
    """
    reader = CommandReader(program)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; expected a text file of simple_switch_CLI's commands") from error
    for number, line in enumerate(lines, start=1):
        try:
            said = reader.add(command_of(line))
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        if said is not None:
            skipped(f"{path}:{number}: {said}")
    return reader.take()


def command_of(line: str) -> list[str]:
    """The words of a line before a `#`; none of a line that is a comment, also with `//`."""
    return [] if line.lstrip().startswith(COMMENTS) else line.partition("#")[0].split()


class CommandReader:
    """Turns commands into entries, one after the other."""

    def __init__(self, program: Program) -> None:
        self.tables = tables.WrittenTables(program)
        self.replication = replication.WrittenReplication()
        self.arrays = arrays.WrittenArrays(program, self.tables)
        self.commands: dict[str, BoundCommand] = {
            **{name: command.bound(self.tables) for name, command in tables.COMMANDS.items()},
            **{name: command.bound(self.tables.profiles) for name, command in profiles.COMMANDS.items()},
            **{name: command.bound(self.replication) for name, command in replication.COMMANDS.items()},
            **{name: command.bound(self.arrays) for name, command in arrays.COMMANDS.items()},
            "reset_state": BoundCommand("", self.reset_state),
        }
        self.commands |= {older: self.commands[name] for name, older in OLDER_NAMES.items()}

    def add(self, words: Sequence[str]) -> str | None:
        """Read one command, given as words; without words, do nothing. Return why it is skipped, if it is."""
        if not words:
            return None
        command, *rest = words
        if command not in self.commands:
            return self.unread(command)
        try:
            self.commands[command].read(rest)
        except ValueError as error:
            usage = f"{command} {self.commands[command].usage}"
            raise InputError(f"'{' '.join(words)}': {error}; expected {usage}".rstrip()) from error
        return None

    def unread(self, command: str) -> str:
        """Why a command that makes no entry is skipped; `InputError` if it must not be.

        simple_switch_CLI goes on after a line that is no command at all; a misspelt command is refused here.
        """
        if command in SKIPPED:
            return f"'{command}' is skipped: {SKIPPED[command]}"
        if command in REFUSED:
            raise InputError(f"'{command}': {REFUSED[command]}")
        known = [*self.commands, *SKIPPED, *REFUSED]
        if difflib.get_close_matches(command, known, n=1):
            raise unknown_name("command", command, self.commands)
        return f"'{command}' is no command of simple_switch_CLI: the line is skipped"

    def take(self) -> SwitchEntries:
        """All entries read since the last call."""
        meters, registers, value_sets = self.arrays.take()
        taken = SwitchEntries(
            "switch",
            tuple(self.tables.table_entries()),
            self.replication.take_groups(),
            registers,
            tuple(self.tables.defaults.values()),
            self.replication.take_sessions(),
            meters,
            tuple(self.tables.profile_entries()),
            value_sets,
        )
        self.tables.begin()
        return taken

    def reset_state(self, words: Sequence[str]) -> None:
        """Forget everything that was read."""
        if words or not self.arrays.fresh:
            raise ValueError("it stands alone, before the first packet")
        self.tables.begin()
        self.replication.begin()
        self.arrays.begin()
