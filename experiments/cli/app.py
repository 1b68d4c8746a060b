"""The `inakit` command, composed of the subcommands that `inakit.experiments.cli.known_commands` lists.

`inakit.experiments.cli.main` runs it, and turns errors and signals into messages and exit codes.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from inakit.experiments.cli.known_commands import COMMANDS
from inakit.experiments.cli.lazy_command import LazyCommand, lazy_commands
from inakit.topo.errors import InputError
from inakit.topo.kit import this_kit


class Commands(TyperGroup):
    """All commands. An empty text where a name is expected is refused: it would be this folder, or nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": lazy_commands(COMMANDS)})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise `InputError` for an argument that is empty, unless it is what its option is without it."""
        refuse_empty(self, args)
        return super().parse_args(ctx, args)


def refuse_empty(command: Any, arguments: list[str]) -> None:
    """Raise `InputError` for one of the `arguments` that is empty and not the default of its option."""
    before = ""
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument, command)
        option, given, value = argument.partition("=")
        option = option if given else before
        empty = not value if given and argument.startswith("--") else not argument
        if empty and not any(option in each.opts and each.default == "" for each in parameters(command)):
            what = option if option.startswith("-") else "an argument"
            raise InputError(f"{what} is empty: give it a name, or leave it out")
        before = argument


def parameters(command: Any) -> list[Any]:
    """The arguments and options of a command or a group."""
    found: list[Any] = (command.loaded() if isinstance(command, LazyCommand) else command).params
    return found


app = typer.Typer(cls=Commands, name="inakit", no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(asked: bool) -> None:
    """Print which inakit this is, and exit, if that is asked."""
    if asked:
        typer.echo(f"inakit {this_kit()}")
        raise typer.Exit


@app.callback()
def inakit(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="version and commit, and exit")
    ] = False,
) -> None:
    """Emulation of in-network aggregation: plan it, run it on real packets, compare."""
