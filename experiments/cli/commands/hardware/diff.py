"""`inakit hardware diff`: what switches hold, compared with a plan."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.options import PlanFolder, Program
from inakit.experiments.hardware.compare import compare, print_differences, sources_of
from inakit.experiments.hardware.plan_folder import load_plan_folder
from inakit.experiments.run.printed.tables import Screen
from inakit.planner.install.data_plane_program import find_program
from inakit.planner.install.plan_entries import entries

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
    (problem, made), used = load_plan_folder(plan), find_program(program)
    names = [each.switch for each in entries(problem, used.fitted(made)).switches]
    found = compare(problem, made, used, sources_of(held, names))
    print_differences(Screen(), used.path, found)
    raise typer.Exit(DIFFERENT if any(found.values()) else 0)
