"""`inakit hardware fit|record|export|diff` and `validate`: from emulation to hardware.

What reads and writes P4Runtime needs an extra, and is imported when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, PlanFolder, Processes, Program, Results
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
from inakit.experiments.hardware.validation import start, validate_file
from inakit.experiments.run.console import Screen
from inakit.planner.install.ina_program import find_program
from inakit.planner.install.plan_entries import entries
from inakit.topo.errors import InputError
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


Schema = Annotated[
    Path | None,
    typer.Option("--bf-rt", help="the bf-rt.json of the chip's compiler, to check entries of BF-Runtime against"),
]


def export(plan: PlanFolder, schema: Schema = None, program: Program = "ina") -> None:
    """Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host."""
    from inakit.experiments.hardware.handover import BFRT, HOSTS, P4RUNTIME, write_handover  # noqa: PLC0415, an extra

    console, (problem, made) = Screen(), load_plan_folder(plan)
    for line in write_handover(plan, problem, made, program=find_program(program), schema=schema):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    checked = "" if schema is None else f"; {BFRT}/ fits {schema}"
    console.print(f"wrote {BFRT}, {P4RUNTIME}, {HOSTS} in {plan}{checked}", highlight=False, soft_wrap=True)


Held = Annotated[
    list[str],
    typer.Argument(
        help="a folder with a dump of every switch; or SWITCH=DUMP or SWITCH=HOST:PORT/DEVICE for single switches",
        show_default=False,
    ),
]

DIFFERENT = 1


def diff(plan: PlanFolder, held: Held, program: Program = "ina") -> None:
    """Compare the entries of switches with the plan: entries and groups that are wrong, missing, or extra.

    Exit code 1 if a switch differs.
    """
    from inakit.experiments.hardware.handover import compare, print_differences, sources_of  # noqa: PLC0415, an extra

    (problem, made), used = load_plan_folder(plan), find_program(program)
    names = [each.switch for each in entries(problem, used.fitted(made)).switches]
    found = compare(problem, made, used, sources_of(held, names))
    print_differences(Screen(), used.path, found)
    raise typer.Exit(DIFFERENT if any(found.values()) else 0)


SiteFile = Annotated[
    Path | None, typer.Argument(help="a site's file, which --starter writes", show_default=False, metavar="SITE.YML")
]
Starter = Annotated[
    Path | None, typer.Option(help="write a starter site.yml, fabric.yml and jobs.yml into this folder")
]
On = Annotated[
    str, typer.Option(help="the engine for planning failures: loky (processes of this machine), dask:, submitit:")
]

DOES_NOT_HOLD = 1


def validate(
    site: SiteFile = None,
    starter: Starter = None,
    on: On = "loky",
    processes: Processes = None,
    results: Results = RESULTS,
) -> None:
    """Judge a network before it is bought: plans, chips, virtual time, and every single failure.

    Exit code 0 if the site holds, 1 if it does not. Results are kept; after Ctrl-C the same command continues.
    """
    if (site is None) == (starter is None):
        raise InputError("give a site's file; or --starter FOLDER, which writes a starter")
    if starter is not None:
        start(starter, Screen())
    elif site is not None:
        raise typer.Exit(0 if validate_file(site, on, processes, results, Screen()) else DOES_NOT_HOLD)
