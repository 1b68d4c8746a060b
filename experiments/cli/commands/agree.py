"""`inakit agree`: the same plans emulated and in virtual time."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.bench.agreement import Extent, chosen, run_agreement
from inakit.experiments.cli.options import RESULTS, Results, one_world
from inakit.experiments.run.console import Screen
from inakit.experiments.worlds.registry import find_world

Emulated = Annotated[
    str, typer.Option("--switch", help="the world to compare with: fast, bmv2, auto", autocompletion=one_world)
]
Against = Annotated[str, typer.Option(help="the world that must agree with it", autocompletion=one_world)]
Only = Annotated[str, typer.Option(help="combinations with this in their names, such as 'fattree-4 aro' or replay")]
Short = Annotated[bool, typer.Option("--short", help="a few small combinations instead of all")]
Seconds = Annotated[
    float, typer.Option(min=0.01, help="planned seconds of an iteration; below 2 the machine's own delays matter")
]
Tries = Annotated[int, typer.Option(min=1, help="attempts at an emulation that is OVERLOADED")]


def agree(
    switch: Emulated = "fast",
    against: Against = "virtual",
    only: Only = "",
    short: Short = False,
    seconds: Seconds = 3.0,
    tries: Tries = 2,
    results: Results = RESULTS,
) -> None:
    """Run the same plans emulated and in virtual time, and print how much rates, times and bytes differ."""
    combinations = chosen(only, short=short)
    worlds = find_world(switch), find_world(against)
    found = run_agreement(combinations, worlds, Extent(seconds, tries), results, Screen())
    raise typer.Exit(0 if found.agrees else 1)
