"""Commands by name, of which the module is imported once one of them is called, not for the list of all."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from inakit.experiments.cli.option_groups import with_groups


@dataclass(frozen=True)
class Command:
    """A command: `function` is its module and its function, with a colon between, and `help` is its line in a list.

    `passes_options_on`: options that it does not know are arguments for a program that it starts.
    """

    function: str
    help: str
    passes_options_on: bool = False


@dataclass(frozen=True)
class Group:
    """Several commands, which follow the group's name; `help` is its line in a list.

    `alone` is the command that the group's name stands for where none follows; without it that shows the help.
    """

    help: str
    commands: Mapping[str, Command]
    alone: str | None = None


class LazyCommand(TyperCommand):
    """A command that lists show by its line alone. It is loaded when it is called with arguments, `--help` included."""

    def __init__(self, name: str, row: Command) -> None:
        super().__init__(name, help=row.help)
        self.row = row

    @cache  # noqa: B019, commands live as long as the process
    def loaded(self) -> Any:
        """The command with its parameters and its whole help. Raises what the import of its module raises."""
        module, _, function = self.row.function.partition(":")
        single = typer.Typer(add_completion=False)
        settings = {"ignore_unknown_options": True} if self.row.passes_options_on else None
        single.command(self.name, context_settings=settings)(with_groups(getattr(import_module(module), function)))
        if not gc.isenabled():  # as `run_to_its_end` leaves it; what is loaded by now need never be looked through
            gc.freeze()
            gc.enable()
        return typer.main.get_command(single)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the loaded command, which runs in the place of this one."""
        return self.loaded().make_context(*arguments, **options)


def lazy_commands(rows: Mapping[str, Command | Group]) -> dict[str, Any]:
    """The commands and groups of a table, in its order."""
    return {
        name: lazy_group(name, row) if isinstance(row, Group) else LazyCommand(name, row) for name, row in rows.items()
    }


def lazy_group(name: str, row: Group) -> TyperGroup:
    """The group of a row."""
    commands = lazy_commands(row.commands)
    if row.alone is None:
        return TyperGroup(name=name, help=row.help, commands=commands, no_args_is_help=True)
    return GroupAlone(row.alone, name=name, help=row.help, commands=commands)


class GroupAlone(TyperGroup):
    """A group whose name stands for one of its commands where no command follows."""

    def __init__(self, alone: str, **options: Any) -> None:
        super().__init__(**options)
        self.alone = alone

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command before options that no command precedes."""
        named = args and (args[0] == "--help" or not args[0].startswith("-"))
        return super().parse_args(ctx, args if named else [self.alone, *args])
