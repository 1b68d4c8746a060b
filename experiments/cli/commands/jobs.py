"""`inakit jobs`: write a file of jobs that a user can start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import GradientOptions, Iterations, Seed, ShapeOptions
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.run.scenario import build_problem
from inakit.experiments.run.starter_jobs import jobs_text, write_jobs

Output = Annotated[Path | None, typer.Option(help="a new .yml file; printed without it")]


def jobs(
    fabric: ShapeOptions,
    job: GradientOptions,
    iterations: Iterations = 3,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Write a file of jobs to begin with: the single job that is run without --jobs, every key explained."""
    problem = build_problem(fabric.choice(seed), job.sized(seed, iterations))
    if output is None:
        print(jobs_text(problem, fabric.topo), end="")
        return
    write_jobs(problem, fabric.topo, output)
    Screen().print(f"wrote {output}", highlight=False)
