"""An aggregation task: the workers of a job, and one of its parameter servers (PSs)."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.planner.core.problem import Job, Problem

TaskKey = tuple[int, str]
"""The number of the job, and the PS: how `plan_from_paths` names a task."""


@dataclass(frozen=True)
class Task:
    """Task i of the paper: D[i] is `server`, and N[i]_w are the job's workers.

    Its graph leaves out the switches `without`, by which SRO and APP prune it.
    """

    job: Job
    server: str
    without: frozenset[str] = frozenset()

    @property
    def key(self) -> TaskKey:
        """The job's number and the PS."""
        return self.job.number, self.server


def tasks_of(problem: Problem) -> tuple[Task, ...]:
    """All tasks, job by job: the union of T_s over the jobs s in S."""
    return tuple(Task(job, server) for job in problem.jobs for server in job.servers)
