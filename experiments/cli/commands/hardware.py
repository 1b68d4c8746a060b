"""`inakit hardware fit|record|export|diff`, and `inakit validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, PlanFolder, Program, Results
from inakit.experiments.run.console import Screen
from inakit.planner.install.program import find_program
from inakit.topo.errors import InputError

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
    from inakit.experiments.hardware.fit import (
        chips_fit,
        load_plan_folder,
        print_fit,
        print_program,
        print_recorded,
        read_resources,
        recorded,
    )
    from inakit.topo.files.fabric_records import find_chip

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
    typer.Argument(help="folders that p4c's Tofino backend wrote of p4/ina_hw/tna.p4 as it is", show_default=False),
]


def record(logs: Logs) -> None:
    """Record what the chip's compiler says that p4/ina_hw takes, for `inakit hardware fit` where it is not installed.

    The record, p4/build/ina_hw.resources.json, is written anew.
    """
    from inakit.experiments.hardware.fit import RECORD, print_program, provenance, record_logs

    console = Screen()
    for each in record_logs(logs):
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    console.print(f"wrote {RECORD}", highlight=False, soft_wrap=True)


Schema = Annotated[
    Path | None,
    typer.Option("--bf-rt", help="the bf-rt.json of the chip's compiler, to which entries of BF-Runtime are held"),
]


def export(plan: PlanFolder, schema: Schema = None, program: Program = "ina") -> None:
    """Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host."""
    from inakit.experiments.hardware.fit import load_plan_folder
    from inakit.experiments.hardware.handover import BFRT, HOSTS, P4RUNTIME, write_handover

    console, (problem, made) = Screen(), load_plan_folder(plan)
    for line in write_handover(plan, problem, made, program=find_program(program), schema=schema):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    checked = "" if schema is None else f"; {BFRT}/ fits {schema}"
    console.print(f"wrote {BFRT}, {P4RUNTIME}, {HOSTS} in {plan}{checked}", highlight=False, soft_wrap=True)


Held = Annotated[
    list[str],
    typer.Argument(
        help="a folder with a dump of every switch; or SWITCH=DUMP, SWITCH=HOST:PORT/DEVICE (P4Runtime), some of them",
        show_default=False,
    ),
]

DIFFERENT = 1


def diff(plan: PlanFolder, held: Held, program: Program = "ina") -> None:
    """Compare what switches hold with the plan: entries and groups that are wrong, missing, or extra.

    Exit code 1 where a switch differs.
    """
    from inakit.experiments.hardware.compare import compare, print_differences, sources_of
    from inakit.experiments.hardware.fit import load_plan_folder
    from inakit.planner.install.plan_entries import entries

    (problem, made), used = load_plan_folder(plan), find_program(program)
    names = [each.switch for each in entries(problem, used.fitted(made)).switches]
    found = compare(problem, made, used, sources_of(held, names))
    print_differences(Screen(), used.path, found)
    raise typer.Exit(DIFFERENT if any(found.values()) else 0)


SiteFile = Annotated[
    Path | None, typer.Argument(help="a site's file, which --starter writes", show_default=False, metavar="SITE.YML")
]
Starter = Annotated[
    Path | None, typer.Option(help="write site.yml, fabric.yml and jobs.yml to begin with into this folder")
]
On = Annotated[str, typer.Option(help="where failures are planned: loky (processes of this machine), dask:, submitit:")]
Processes = Annotated[int | None, typer.Option(min=1, help="processes; default: one for each processor")]

DOES_NOT_HOLD = 1


def validate(
    site: SiteFile = None,
    starter: Starter = None,
    on: On = "loky",
    processes: Processes = None,
    results: Results = RESULTS,
) -> None:
    """Judge a network before it is bought: plans, chips, virtual time, and every single failure.

    Exit code 0 where it holds, 1 where it does not. What is done is kept; after Ctrl-C the same command goes on.
    """
    from inakit.experiments.hardware.validate import start, validate_file

    if (site is None) == (starter is None):
        raise InputError("give a site's file; or --starter FOLDER, which writes one to begin with")
    if starter is not None:
        start(starter, Screen())
    elif site is not None:
        raise typer.Exit(0 if validate_file(site, on, processes, results, Screen()) else DOES_NOT_HOLD)
