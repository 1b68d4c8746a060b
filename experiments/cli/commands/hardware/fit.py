"""`inakit hardware fit`: whether a plan fits its switches' chips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import PlanFolder
from inakit.experiments.hardware.compiled.logs import read_resources
from inakit.experiments.hardware.compiled.recorded import recorded
from inakit.experiments.hardware.fit import chips_fit, print_fit, print_program, print_recorded
from inakit.experiments.hardware.plan_folder import load_plan_folder
from inakit.experiments.run.printed.tables import Screen
from inakit.topo.files.chip_profiles import find_chip

OtherChip = Annotated[
    str | None, typer.Option("--chip", help="in every switch, instead of the fabric's: a name, or a profile in a file")
]
Compiled = Annotated[
    Path | None,
    typer.Option(help="the folder that p4c's Tofino backend wrote of the P4 program: stages, memory, ALUs, PHV"),
]

NO_FIT = 1


def fit(plan: PlanFolder, chip: OtherChip = None, compiled: Compiled = None) -> None:
    """Whether a plan fits its switches' chips: slots, children, recirculation, entries, groups, memory.

    Exit code 1 where it does not.
    """
    problem, made = load_plan_folder(plan)
    found = chips_fit(problem, made, None if chip is None else find_chip(chip))
    fits, console = all(each.fits for each in found), Screen()
    print_fit(console, found)
    if compiled is not None:
        resources = read_resources(compiled)
        print_program(console, resources)
        fits = fits and resources.fits
    else:
        for each in found:
            print_recorded(console, each.chip, recorded(each.chip.name))
    raise typer.Exit(0 if fits else NO_FIT)
