"""`inakit switch compare`: random packets for two targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from inakit.experiments.cli.commands.switch.shared import FAILED, Program, say
from inakit.experiments.run.printed.tables import Screen
from inakit.switch.testing.target_comparison import WAYS_OUT, Comparison, Outcome
from inakit.switch.testing.target_comparison import compare as compared
from inakit.topo.errors import InputError

UNDECIDED = 4


def compare(
    program: Program,
    targets: Annotated[str, typer.Option(help="two of fast, interpreted, kernel and bmv2")] = "fast,bmv2",
    packets: Annotated[int, typer.Option(min=1, help="how many")] = 1000,
    commands: Annotated[
        Path | None,
        typer.Option(
            help="a file of simple_switch_CLI's commands, or a s1-runtime.json; without it, entries are random"
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="HEADER.FIELD=MOST or ACTION.PARAMETER=MOST, for indices of registers or counters"),
    ] = None,
    headers: Annotated[
        str, typer.Option("--with", help="headers that every packet has, if the program reads them unchecked: tcp,ipv4")
    ] = "",
    seed: Annotated[int, typer.Option(help="decides packets and entries")] = 0,
) -> None:
    """Give random packets that the program's parser knows to two targets: do they send the same?

    Exit code 1: DIFFERENT; 4: undecided, for packets were LOST, or one target is UNSTEADY (clocks, random numbers).
    """
    names = tuple(name.strip() for name in targets.split(","))
    if len(names) != 2:
        raise InputError(f"--targets {targets}: expected two, such as fast,bmv2")
    shown = Screen(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task("packets", total=packets)
        limits = dict(map(parse_limit, limit or ()))
        needed = [name for name in headers.split(",") if name]
        found = compared(
            program, names, packets, seed, commands, limits, needed, lambda n: progress.update(task, completed=n), say
        )
    show(found)


def show(found: Comparison) -> None:
    """Print the outcome of a comparison; leave with an exit code unless it is `identical`."""
    console = Screen(highlight=False, markup=False, soft_wrap=True)
    if found.outcome is Outcome.IDENTICAL:
        console.print(f"identical: {found.packets:,} packets in, {found.left:,} out, all registers", style="green")
        return
    console.print(f"{found.outcome} after {found.packets:,} packets: {found.difference}", style="red")
    if found.outcome in WAYS_OUT:
        console.print(WAYS_OUT[found.outcome])
    raise typer.Exit(FAILED if found.outcome is Outcome.DIFFERENT else UNDECIDED)


def parse_limit(text: str) -> tuple[str, int]:
    """The field's name and its largest value in a text `HEADER.FIELD=MOST`. Raises `InputError`."""
    name, _, most = text.partition("=")
    if not most.isdecimal():
        raise InputError(f"--limit {text}: expected HEADER.FIELD=MOST, such as --limit ina.slot=511")
    return name, int(most)
