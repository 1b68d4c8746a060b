"""`inakit calibrate`: the highest link rate at which this machine carries a plan."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.calibrate_fabric import Command, run_calibrate, run_curve
from inakit.experiments.cli.completion import one_planner, one_world
from inakit.experiments.cli.options import RESULTS, FabricOptions, JobsOptions, Results, Seed
from inakit.experiments.run.printed.tables import Screen

Planner = Annotated[
    str, typer.Option(help="a planner by name, or a file such as ./mine.py", autocompletion=one_planner)
]
Curve = Annotated[str | None, typer.Option(help="fat-trees of these k, such as 4,6,8, with all hosts working")]
Switch = Annotated[
    str,
    typer.Option(
        help="bmv2 or fast; auto: bmv2 where it is installed, else fast; with --curve also virtual",
        autocompletion=one_world,
    ),
]
Verify = Annotated[int, typer.Option(help="check with so many runs each that overload is always caught")]


def calibrate(
    fabric: FabricOptions,
    job: JobsOptions,
    planner: Planner = "aro",
    switch: Switch = "auto",
    seed: Seed = 0,
    curve: Curve = None,
    verify: Verify = 0,
    results: Results = RESULTS,
) -> None:
    """Find the highest link rate at which this machine carries a plan; `emulate` then warns of one that it cannot."""
    command = Command(fabric.choice(seed), job.choice(seed), planner, switch, seed)
    if curve is not None:
        raise typer.Exit(run_curve(command, curve, results, Screen()))
    raise typer.Exit(run_calibrate(command, verify, Screen()))
