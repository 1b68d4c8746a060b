"""`inakit check`: check a plan against a fabric and jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.run.planning import check_files
from inakit.experiments.run.printed.tables import Screen

PlanFile = Annotated[Path, typer.Argument(help="a plan.json")]
FabricFile = Annotated[Path, typer.Argument(help="the fabric it is for: .yml or .graphml")]
JobsFile = Annotated[Path, typer.Argument(help="the jobs it is for: .yml")]


def check(plan: PlanFile, fabric: FabricFile, jobs: JobsFile) -> None:
    """Check a plan against a fabric and jobs: every rule, with code that no planner shares."""
    check_files(plan, fabric, jobs)
    Screen().print(f"{plan}: valid", style="green", highlight=False)
