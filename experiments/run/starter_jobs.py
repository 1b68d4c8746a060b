"""The file of jobs that `inakit jobs` writes: jobs with every key that they may have, and a comment for each key."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import InputError, writing
from inakit.topo.files.fabrics import flow

COMMENTS = {
    "number": "1 to 65535; without it, the job's place in this list",
    "workers": "hosts that each compute a gradient in every iteration",
    "servers": "parameter servers: hosts to which the sums come; several share the gradient",
    "gradient_bytes": "of one worker's gradient, 4 bytes a value",
    "weight": "how much the job counts where planners share a link out",
    "arrival_s": "seconds from the start of the run to the job's first iteration",
    "iterations": "how often the workers send a gradient and wait for the sum",
    "compute_s": "seconds that workers compute between a sum and their next gradient",
    "model": "what layers the gradient has: a table of planner/models such as vgg16, or a .csv file",
}
"""What each key of a job means, in the order of the file."""


def jobs_text(problem: Problem, topo: str) -> str:
    """The problem's jobs as commented YAML, which `inakit.planner.core.files.load_jobs` reads back as equal jobs."""
    lines = [
        f"# Jobs on fabric '{problem.fabric.name}'. Plan them: inakit plan --topo {topo} --jobs THIS_FILE",
        "# More jobs are more items of the list. docs/files.md describes the format.",
        "version: 1",
        "jobs:",
    ]
    for job in problem.jobs:
        lines += job_lines(job)
    return "\n".join(lines) + "\n"


def job_lines(job: Job) -> list[str]:
    """The lines of one job as an item of the YAML list, one key per line."""
    values = {field.name: getattr(job, field.name) for field in fields(job)}
    written = {name: flow(list(value) if isinstance(value, tuple) else value) for name, value in values.items()}
    lines = [f"    {name}: {written[name]}  # {comment}" for name, comment in COMMENTS.items()]
    return ["  - " + lines[0].lstrip(), *lines[1:]]


def write_jobs(problem: Problem, topo: str, output: Path) -> None:
    """Write a new file of jobs. Raises `InputError` if it exists already, since it may be the user's work."""
    if output.exists():
        raise InputError(f"{output} is there already, and may be your work: choose another --output, or remove it")
    try:
        with writing(output), output.open("x", encoding="utf-8") as file:
            file.write(jobs_text(problem, topo))
    except FileNotFoundError as error:
        raise InputError(
            f"{output}: there is no folder '{output.parent}'; make it, or choose another --output"
        ) from error
