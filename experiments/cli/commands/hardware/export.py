"""`inakit hardware export`: the entries of a plan in the formats that hardware takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import PlanFolder, Program
from inakit.experiments.hardware.handover import BFRT, HOSTS, P4RUNTIME, write_handover
from inakit.experiments.hardware.plan_folder import load_plan_folder
from inakit.experiments.run.printed.tables import Screen
from inakit.planner.install.data_plane_program import find_program

Schema = Annotated[
    Path | None,
    typer.Option("--bf-rt", help="the bf-rt.json of the chip's compiler, to which entries of BF-Runtime are held"),
]


def export(plan: PlanFolder, schema: Schema = None, program: Program = "ina") -> None:
    """Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host."""
    console, (problem, made) = Screen(), load_plan_folder(plan)
    for line in write_handover(plan, problem, made, program=find_program(program), schema=schema):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    checked = "" if schema is None else f"; {BFRT}/ fits {schema}"
    console.print(f"wrote {BFRT}, {P4RUNTIME}, {HOSTS} in {plan}{checked}", highlight=False, soft_wrap=True)
