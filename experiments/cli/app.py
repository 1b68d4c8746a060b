"""The `inakit` command, composed of the subcommands that `inakit.experiments.cli.known_commands` lists.

A command's module is imported when the command is called, not for the list of all. A group of options is a dataclass
that a command takes as a parameter; each of its fields is an option. `inakit.experiments.cli.main` runs the command,
and turns errors and signals into messages and exit codes.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from inakit.experiments.cli.known_commands import COMMANDS, Command, Group
from inakit.topo.errors import InputError
from inakit.topo.kit import this_kit


def with_groups(command: Callable[..., None], *, tables: bool, details: bool) -> Callable[..., None]:
    """The command with one parameter for each option of its groups, in place of the groups, as typer needs it.

    A command that prints tables also gets the options of how it prints.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    parameters = list(flattened(inspect.signature(command), hints, groups))
    printing = printing_options(details=details) if tables else None
    if printing is not None:
        parameters += options_of(printing)

    @wraps(command)
    def flat(**given: Any) -> None:
        how = nullcontext() if printing is None else printing(**taken(given, printing)).applied()
        for name, kind in groups.items():
            given[name] = kind(**taken(given, kind))
        with how:
            command(**given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    del flat.__wrapped__
    return flat


def printing_options(*, details: bool) -> Any:
    """The group of options of how tables are printed; it is imported with the commands, not for their list."""
    options = import_module("inakit.experiments.cli.options")
    return options.DetailOptions if details else options.PrintOptions


def taken(given: dict[str, Any], group: type) -> dict[str, Any]:
    """Remove the options of a group from `given`, and return them."""
    return {field.name: given.pop(field.name) for field in fields(group)}


def flattened(
    signature: inspect.Signature, hints: dict[str, Any], groups: dict[str, type]
) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command; for a group, one parameter for each of its fields."""
    for name, parameter in signature.parameters.items():
        if name in groups:
            yield from options_of(groups[name])
        else:
            yield parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)


def options_of(group: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of a group of options; the class in which it is declared names its panel."""
    kinds = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind, option = kinds[field.name].__origin__, copy(kinds[field.name].__metadata__[0])
        option.rich_help_panel = next(
            each.panel for each in group.__mro__ if field.name in inspect.get_annotations(each)
        )
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
        )


class LazyCommand(TyperCommand):
    """A command whose help line is known without its module. It is loaded when called, also with `--help`."""

    def __init__(self, name: str, row: Command) -> None:
        super().__init__(name, help=row.help, rich_help_panel=row.panel or None)
        self.row = row

    @cache  # noqa: B019, commands live as long as the process
    def loaded(self) -> Any:
        """The command with its parameters and its whole help. Raises the errors of the import of its module."""
        module, _, function = self.row.function.partition(":")
        single = typer.Typer(add_completion=False)
        settings = {"ignore_unknown_options": True} if self.row.passes_options_on else None
        row, command = self.row, getattr(import_module(module), function)
        whole = with_groups(command, tables=row.tables or row.details, details=row.details)
        single.command(self.name, context_settings=settings, rich_help_panel=self.rich_help_panel)(whole)
        if not gc.isenabled():  # as `run_to_its_end` leaves it; loaded objects stay, so collections skip them
            gc.freeze()
            gc.enable()
        return typer.main.get_command(single)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the loaded command, which runs in place of this one."""
        return self.loaded().make_context(info_name, self.with_present_names(args), parent, **extra)

    def with_present_names(self, args: list[str]) -> list[str]:
        """The arguments with options by their present names; each former name is told on standard error."""
        found: list[str] = []
        for each in args:
            name, equals, value = each.partition("=")
            new = self.row.renamed.get(name)
            if new is not None:
                typer.echo(f"inakit {self.name}: {name} is now {new}", err=True)
            found += (each,) if new is None else (*new.split()[:-1], new.split()[-1] + equals + value)
        return found


def lazy_commands(rows: Mapping[str, Command | Group]) -> dict[str, Any]:
    """The commands and groups of a table, in its order."""
    return {
        name: lazy_group(name, row) if isinstance(row, Group) else LazyCommand(name, row) for name, row in rows.items()
    }


def lazy_group(name: str, row: Group) -> TyperGroup:
    commands = lazy_commands(row.commands)
    if row.alone is None:
        return TyperGroup(name=name, help=row.help, commands=commands, no_args_is_help=True, rich_help_panel=row.panel)
    return GroupAlone(row.alone, name=name, help=row.help, commands=commands, rich_help_panel=row.panel)


class GroupAlone(TyperGroup):
    """A group whose name stands for one of its commands if no command follows."""

    def __init__(self, alone: str, **options: Any) -> None:
        super().__init__(**options)
        self.alone = alone

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the command if options come first."""
        named = args and (args[0] == "--help" or not args[0].startswith("-"))
        return super().parse_args(ctx, args if named else [self.alone, *args])


class Commands(TyperGroup):
    """All commands. Empty arguments are refused: as a name they would mean this folder, or nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": lazy_commands(COMMANDS)})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise `InputError` for an empty argument, unless that is the default of its option."""
        refuse_empty(self, args)
        return super().parse_args(ctx, args)


def refuse_empty(command: Any, arguments: list[str]) -> None:
    """Raise `InputError` for an empty argument that is not the default of its option."""
    before = ""
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument, command)
        option, given, value = argument.partition("=")
        option = option if given else before
        empty = not value if given and argument.startswith("--") else not argument
        if empty and not any(option in each.opts and each.default == "" for each in parameters(command)):
            what = option if option.startswith("-") else "an argument"
            raise InputError(f"{what} is empty: give a value, or omit it")
        before = argument


def parameters(command: Any) -> list[Any]:
    found: list[Any] = (command.loaded() if isinstance(command, LazyCommand) else command).params
    return found


app = typer.Typer(cls=Commands, name="inakit", no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(asked: bool) -> None:
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
