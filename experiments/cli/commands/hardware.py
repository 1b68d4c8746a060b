"""`inakit hardware`: does a plan fit, hand it over to hardware, and compare what switches hold with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import Program
from inakit.experiments.run.printed.tables import Screen
from inakit.planner.install.data_plane_program import find_program

app = typer.Typer(
    help="From emulation to hardware: fit plans to chips, hand them over, compare switches.",
    no_args_is_help=True,
)

PlanFolder = Annotated[
    Path, typer.Argument(help="the folder of a plan, which `inakit plan --output` writes", show_default=False)
]
Schema = Annotated[
    Path | None,
    typer.Option("--bf-rt", help="the bf-rt.json of the chip's compiler, to which entries of BF-Runtime are held"),
]
Held = Annotated[
    list[str],
    typer.Argument(
        help="a folder with a dump of every switch; or SWITCH=DUMP, SWITCH=HOST:PORT/DEVICE (P4Runtime), some of them",
        show_default=False,
    ),
]

OtherChip = Annotated[
    str | None, typer.Option("--chip", help="in every switch, instead of the fabric's: a name, or a profile in a file")
]

Compiled = Annotated[
    Path | None,
    typer.Option(help="the folder that p4c's Tofino backend wrote of the P4 program: stages, memory, ALUs, PHV"),
]

Logs = Annotated[
    list[Path],
    typer.Argument(help="folders that p4c's Tofino backend wrote of p4/ina_hw/tna.p4 as it is", show_default=False),
]

DIFFERENT = 1
NO_FIT = 1


@app.command()
def fit(plan: PlanFolder, chip: OtherChip = None, compiled: Compiled = None) -> None:
    """Whether a plan fits its switches' chips: slots, children, recirculation, entries, groups, memory.

    Exit code 1 where it does not.
    """
    from inakit.experiments.hardware.compiled.logs import read_resources  # noqa: PLC0415
    from inakit.experiments.hardware.compiled.recorded import recorded  # noqa: PLC0415
    from inakit.experiments.hardware.fit import chips_fit, print_fit, print_program, print_recorded  # noqa: PLC0415
    from inakit.experiments.hardware.plan_folder import load_plan_folder  # noqa: PLC0415
    from inakit.topo.files.chip_profiles import find_chip  # noqa: PLC0415

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


@app.command()
def record(logs: Logs) -> None:
    """Record what the chip's compiler says that p4/ina_hw takes, for `inakit hardware fit` where it is not installed.

    The record, p4/build/ina_hw.resources.json, is written anew.
    """
    from inakit.experiments.hardware.compiled.recorded import RECORD, record_logs  # noqa: PLC0415
    from inakit.experiments.hardware.fit import print_program, provenance  # noqa: PLC0415

    console = Screen()
    for each in record_logs(logs):
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    console.print(f"wrote {RECORD}", highlight=False, soft_wrap=True)


@app.command()
def export(plan: PlanFolder, schema: Schema = None, program: Program = "ina") -> None:
    """Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host."""
    from inakit.experiments.hardware.handover import BFRT, HOSTS, P4RUNTIME, write_handover  # noqa: PLC0415
    from inakit.experiments.hardware.plan_folder import load_plan_folder  # noqa: PLC0415

    console, (problem, made) = Screen(), load_plan_folder(plan)
    for line in write_handover(plan, problem, made, program=find_program(program), schema=schema):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    checked = "" if schema is None else f"; {BFRT}/ fits {schema}"
    console.print(f"wrote {BFRT}, {P4RUNTIME}, {HOSTS} in {plan}{checked}", highlight=False, soft_wrap=True)


@app.command()
def diff(plan: PlanFolder, held: Held, program: Program = "ina") -> None:
    """Compare what switches hold with the plan: entries and groups that are wrong, missing, or extra.

    Exit code 1 where a switch differs.
    """
    from inakit.experiments.hardware.compare import compare, print_differences, sources_of  # noqa: PLC0415
    from inakit.experiments.hardware.plan_folder import load_plan_folder  # noqa: PLC0415
    from inakit.planner.install.plan_entries import entries  # noqa: PLC0415

    (problem, made), used = load_plan_folder(plan), find_program(program)
    names = [each.switch for each in entries(problem, used.fitted(made)).switches]
    found = compare(problem, made, used, sources_of(held, names))
    print_differences(Screen(), used.path, found)
    raise typer.Exit(DIFFERENT if any(found.values()) else 0)
