"""`inakit hardware fit|record`: whether plans fit chips. They need no extra."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import PlanFolder
from inakit.experiments.hardware.fit import (
    RECORD,
    chips_fit,
    load_plan_folder,
    print_fit,
    print_program,
    print_recorded,
    provenance,
    read_resources,
    record_logs,
    recorded,
)
from inakit.experiments.run.console import Screen
from inakit.topo.files.fabric_records import find_chip

OtherChip = Annotated[
    str | None,
    typer.Option("--chip", help="the chip of every switch, instead of the fabric's: a name or a profile file"),
]
Compiled = Annotated[
    Path | None,
    typer.Option(help="the folder that p4c's Tofino backend wrote for the P4 program: stages, memory, ALUs, PHV"),
]

NO_FIT = 1


def fit(plan: PlanFolder, chip: OtherChip = None, compiled: Compiled = None) -> None:
    """Check whether a plan fits its switches' chips: slots, children, recirculation, entries, groups, memory.

    Exit code 1 if it does not.
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


Logs = Annotated[
    list[Path],
    typer.Argument(help="folders that p4c's Tofino backend wrote for the current p4/ina_hw/tna.p4", show_default=False),
]


def record(logs: Logs) -> None:
    """Record the chip compiler's figures for p4/ina_hw; `inakit hardware fit` shows them without the compiler.

    This replaces the record, p4/build/ina_hw.resources.json.
    """
    console = Screen()
    for each in record_logs(logs):
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    console.print(f"wrote {RECORD}", highlight=False, soft_wrap=True)
