"""`inakit hardware export|diff`: exports plans for hardware, and compares switches with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import PlanFolder, Program
from inakit.experiments.hardware.compare import compare, print_differences, sources_of
from inakit.experiments.hardware.fit import load_plan_folder
from inakit.experiments.hardware.handover import BFRT, HOSTS, P4RUNTIME, write_handover
from inakit.experiments.run.console import Screen
from inakit.planner.install.ina_program import find_program
from inakit.planner.install.plan_entries import entries

Schema = Annotated[
    Path | None,
    typer.Option("--bf-rt", help="the bf-rt.json of the chip's compiler, to check entries of BF-Runtime against"),
]


def export(plan: PlanFolder, schema: Schema = None, program: Program = "ina") -> None:
    """Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host."""
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
    (problem, made), used = load_plan_folder(plan), find_program(program)
    names = [each.switch for each in entries(problem, used.fitted(made)).switches]
    found = compare(problem, made, used, sources_of(held, names))
    print_differences(Screen(), used.path, found)
    raise typer.Exit(DIFFERENT if any(found.values()) else 0)
