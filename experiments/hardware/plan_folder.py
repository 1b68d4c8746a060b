"""A plan with what it is for, read from the folder that `inakit plan --output` writes."""

from __future__ import annotations

from pathlib import Path

from inakit.planner.core.check import check
from inakit.planner.core.files import load_jobs, load_plan
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError
from inakit.topo.files.fabrics import load_fabric
from inakit.traffic.wire.frames import FRAGMENT


def load_plan_folder(folder: Path) -> tuple[Problem, Plan]:
    """The problem and the checked plan of a folder. Raises `InputError`, also for a folder of something else."""
    if not (folder / "plan.json").is_file():
        raise InputError(f"{folder}: no plan.json in it; `inakit plan --output {folder}` writes such a folder")
    problem = Problem(load_fabric(folder / "fabric.yml"), load_jobs(folder / "jobs.yml"), FRAGMENT)
    plan = load_plan(folder / "plan.json")
    check(problem, plan)
    return problem, plan
