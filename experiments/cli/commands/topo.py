"""`inakit topo`: draw a fabric, and save it as YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.completion import one_planner
from inakit.experiments.cli.options import FabricOptions, JobsOptions, PlanMode, Seed
from inakit.experiments.run.planning import draw_fabric, plan_to_run, print_headroom
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.run.scenario import build_problem

Planner = Annotated[
    str | None, typer.Option(help="draw this planner's trees and link loads too", autocompletion=one_planner)
]
Output = Annotated[Path, typer.Option(help="name of the files; .png, .svg and .yml are added")]
FABRIC = Path("fabric")


def topo(
    fabric: FabricOptions,
    job: JobsOptions,
    planner: Planner = None,
    mode: PlanMode = "reliable",
    seed: Seed = 0,
    output: Output = FABRIC,
) -> None:
    """Draw a fabric as PNG and SVG and, given a planner, its trees and link loads; save it as YAML."""
    choice = fabric.choice(seed)
    problem = made = None
    if planner is not None:
        problem = build_problem(choice, job.choice(seed))
        run = plan_to_run(problem, planner, seed, mode)
        print_headroom(Screen(), planner, run)
        made = run.plan
    for path in draw_fabric(choice.build(), problem, made, output):
        Screen().print(f"wrote {path}", highlight=False)
