"""The `inakit` command, composed of subcommands, each of which is a file of `inakit.experiments.cli.commands`.

`inakit.experiments.cli.main` runs it, and turns errors and signals into messages and exit codes.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from inakit.experiments.cli.commands import (
    agree,
    bench,
    calibrate,
    capture,
    check,
    design,
    dissector,
    dump,
    emulate,
    exactness,
    grade,
    hardware,
    jobs,
    labs,
    p4c,
    place,
    plan,
    planners,
    report,
    reproduce,
    shim,
    study,
    switch,
    top,
    topo,
    train,
    validate,
)
from inakit.experiments.cli.options import with_groups
from inakit.experiments.run.kit import this_kit
from inakit.topo.errors import InputError

COMMANDS = (
    emulate.emulate,
    train.train,
    report.report,
    plan.plan,
    design.design,
    validate.validate,
    place.place,
    topo.topo,
    jobs.jobs,
    check.check,
    planners.planners,
    bench.bench,
    exactness.exactness,
    agree.agree,
    grade.grade,
    p4c.p4c,
    reproduce.reproduce,
    dump.dump,
    calibrate.calibrate,
    capture.capture,
    top.top,
    dissector.dissector,
    shim.shim,
)
"""The subcommands, in the order in which the help lists them."""


class Commands(TyperGroup):
    """All commands. An empty text where a name is expected is refused: it would be this folder, or nothing."""

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
        if empty and not any(option in each.opts and each.default == "" for each in command.params):
            what = option if option.startswith("-") else "an argument"
            raise InputError(f"{what} is empty: give it a name, or leave it out")
        before = argument


app = typer.Typer(
    cls=Commands,
    name="inakit",
    help="Emulation of in-network aggregation: plan it, run it on real packets, compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def print_version(asked: bool) -> None:
    """Print which inakit this is, and exit, if that is asked."""
    if asked:
        typer.echo(f"inakit {this_kit()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="version and commit, and exit")
    ] = False,
) -> None:
    """Options of the command itself."""


app.add_typer(labs.app, name="labs")
app.add_typer(study.app, name="study")
app.add_typer(switch.app, name="switch")
app.add_typer(hardware.app, name="hardware")
for command in COMMANDS:
    app.command()(with_groups(command))
