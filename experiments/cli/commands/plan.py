"""`inakit plan`: plan without running, show the expected figures, write the table entries, or compare planners."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.completion import some_planners
from inakit.experiments.cli.options import (
    FabricOptions,
    Headroom,
    PlanMode,
    Program,
    Seed,
    SizedJobsOptions,
    split_names,
)
from inakit.experiments.run.planning import plan_to_run, print_comparison, print_plan, write_plan
from inakit.experiments.run.printed.chip_costs import print_chip_costs
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.run.scenario import build_problem
from inakit.planner.core.method import AFTERWARDS
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.data_plane_program import DataPlaneProgram, find_program
from inakit.planner.registry import by_name, find_method
from inakit.topo.extras import lacking_import

Planner = Annotated[
    str,
    typer.Option(
        help="by name, or a file such as ./mine.py; several, comma between, are compared", autocompletion=some_planners
    ),
]
Output = Annotated[
    Path | None, typer.Option(help="folder for plan.json and the table entries; one in it for each of several")
]


def plan(
    fabric: FabricOptions,
    job: SizedJobsOptions,
    planner: Planner = "aro",
    mode: PlanMode = "reliable",
    headroom: Headroom = AFTERWARDS,
    seed: Seed = 0,
    output: Output = None,
    program: Program = "ina",
) -> None:
    """Plan without running: what the method decides, what to expect, and the table entries; or compare planners."""
    problem = build_problem(fabric.choice(seed), job.sized(seed, 1))
    planners = by_name(split_names(planner) or (planner,))
    for each in planners.values():
        find_method(each)
    plans = {name: plan_to_run(problem, each, seed, mode, headroom) for name, each in planners.items()}
    if len(plans) == 1:
        print_plan(Screen(), problem, *plans.values())
    else:
        print_comparison(Screen(), problem, plans)
    print_chip_costs(Screen(), problem, plans, planners, seed=seed, headroom=headroom)
    if output is not None:
        for name, made in plans.items():
            write(output if len(plans) == 1 else output / name, problem, made.plan, name, find_program(program))


def write(folder: Path, problem: Problem, plan: Plan, name: str, program: DataPlaneProgram) -> None:
    """Write a planner's plan with its entries and all that hardware takes, and print what could not be written."""
    write_plan(folder, problem, program.fitted(plan))
    try:
        from inakit.experiments.hardware.handover import write_handover  # noqa: PLC0415, needs an extra's packages
    except ImportError as error:
        if (told := lacking_import(error, "what hardware takes of a plan")) is None:
            raise
        Screen().print(f"{name}: {told}", highlight=False, markup=False, soft_wrap=True)
        return
    for line in write_handover(folder, problem, plan, program=program):
        Screen().print(f"{name}: {line}", highlight=False, markup=False, soft_wrap=True)
