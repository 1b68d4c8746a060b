"""What the trials of a validation share, in a folder: the network, its jobs, and the plan of every planner."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from pathlib import Path

from inakit.experiments.hardware.validate.beside import plan_beside
from inakit.experiments.hardware.validate.failures import Failure, JobLinks, Remains, after, for_jobs, links_of_jobs
from inakit.planner.core.files import load_jobs, load_plan, save_jobs, save_plan
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.own_planners import name_of
from inakit.planner.registry import find_method
from inakit.planner.replan import SECOND_PHASES, replan
from inakit.planner.trees.headroom import as_run
from inakit.topo.errors import writing
from inakit.topo.files.fabric_records import document_of
from inakit.topo.files.fabrics import load_yaml
from inakit.traffic.wire.frames import FRAGMENT

FABRIC, JOBS = "fabric.json", "jobs.json"
"""Files as JSON, of which every worker reads a large network in no time."""
AS_BEFORE, PARTLY_ANEW, ANEW = "as before", "partly anew", "planned anew"
NO_PLAN, NOTHING = "no plan", "no job goes on"
"""What becomes of a plan under a failure."""


def save_problem(folder: Path, problem: Problem) -> None:
    """Write the network and its jobs. Raises `OutputError`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FABRIC).write_text(json.dumps(document_of(problem.fabric)))
    save_jobs(problem.jobs, folder / JOBS)


def plan_file(folder: Path, planner: str) -> Path:
    """Where the plan of a planner is."""
    return folder / f"{name_of(planner)}.plan.json"


def made_file(folder: Path, planner: str) -> Path:
    """Where it stands what the plan of a planner was made from, and what was said of it."""
    return folder / f"{name_of(planner)}.made.json"


def keep_plan(folder: Path, planner: str, plan: Plan, key: str, said: str) -> None:
    """Write the plan of a planner, then the key of all that it depends on, and what was said. Raises `OutputError`."""
    made = made_file(folder, planner)
    with writing(made):
        made.unlink(missing_ok=True)
        save_plan(plan, plan_file(folder, planner))
        made.write_text(json.dumps({"key": key, "said": said}))


def kept_plan(folder: Path, planner: str, key: str) -> tuple[Plan, str] | None:
    """The plan that was made from the same, and what was said of it; None where there is none.

    A plan that a time limit ended might be another one if it were made again, and trials belong to one plan.
    """
    try:
        made = json.loads(made_file(folder, planner).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return (load_plan(plan_file(folder, planner)), str(made["said"])) if made.get("key") == key else None


@lru_cache(maxsize=2)
def load_problem(folder: Path) -> Problem:
    """The network and its jobs."""
    return Problem(load_yaml(folder / FABRIC), load_jobs(folder / JOBS), FRAGMENT)


@lru_cache(maxsize=8)
def load_planned(folder: Path, planner: str) -> Plan:
    """The plan of a planner while nothing fails."""
    return load_plan(plan_file(folder, planner))


@lru_cache(maxsize=8)
def load_remains(folder: Path, planner: str, failure: Failure) -> Remains:
    """What a failure leaves of the network, the jobs and the plan."""
    return after(load_problem(folder), load_links(folder, planner), failure)


@lru_cache(maxsize=8)
def load_links(folder: Path, planner: str) -> JobLinks:
    """The links that the plan of a planner uses, by job."""
    return links_of_jobs(load_planned(folder, planner))


def plan_under(folder: Path, planner: str, failure: Failure, mode: str, seed: int) -> tuple[Problem, Plan, str] | None:
    """What a failure leaves, its plan, and what became of the plan; None where no job goes on.

    The plan's part for the jobs that go on stays as it is unless the failure touches it. Then the touched jobs get new
    routes beside the others, at the rates that they had. Where that is not possible, all jobs are planned anew, with
    room for results. Planners that split gradients over PSs keep the split, since PSs keep their parts. Raises
    `InakitError` where there is no plan.
    """
    remains = load_remains(folder, planner, failure)
    left = remains.problem
    if left is None:
        return None
    kept = for_jobs(load_planned(folder, planner), {job.number for job in left.jobs})
    if not remains.touched:
        return left, kept, AS_BEFORE
    again = partial(planned_anew, planner, Options(seed=seed))
    beside = plan_beside(left, kept, remains.touched, again, mode)
    if beside is not None:
        return left, beside, PARTLY_ANEW
    return left, as_run(left, again(left, kept), mode).plan, ANEW


def planned_anew(planner: str, options: Options, problem: Problem, plan: Plan) -> Plan:
    """A problem's plan, made anew by the planner of the plan that its jobs had. Raises `InakitError`."""
    return (
        replan(problem, plan, options) if plan.method in SECOND_PHASES else find_method(planner).plan(problem, options)
    )
