"""Jobs that wait for hosts, and their placement.

    version: 1
    jobs:
      - {workers: 8, gradient_bytes: 548000, iterations: 100, compute_s: 0.05, arrival_s: 2.5}

A file of queued jobs is one of jobs whose `workers` and `servers` are numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from inakit.planner.core.files import with_job_numbers
from inakit.planner.core.problem import Job
from inakit.topo.errors import InputError
from inakit.topo.files.quantities import Duration, Size, Whole
from inakit.topo.files.reader import FileKind, read_file, validate

FILE = FileKind("file of queued jobs", max_bytes=64 << 20)


@dataclass(frozen=True)
class QueuedJob:
    """A job with its number of hosts. The constructor checks it, and raises `InputError` for a mistake."""

    number: Whole
    workers: Whole
    gradient_bytes: Size
    servers: Whole = 1
    iterations: Whole = 1
    compute_s: Duration = 0.0
    arrival_s: Duration = 0.0

    def __post_init__(self) -> None:
        for name in ("workers", "servers", "iterations"):
            if getattr(self, name) < 1:
                raise InputError(f"queued job {self.number}: {name} {getattr(self, name)}; at least 1 is expected")
        if self.gradient_bytes <= 0 or self.gradient_bytes % 4:
            raise InputError(
                f"queued job {self.number}: {self.gradient_bytes} bytes; a positive multiple of 4 is expected"
            )
        if not (0 <= self.compute_s < inf and 0 <= self.arrival_s < inf):
            raise InputError(f"queued job {self.number}: times must be finite and not negative")

    @property
    def hosts(self) -> int:
        """The hosts that the job needs: workers and parameter servers (PSs)."""
        return self.workers + self.servers


@dataclass(frozen=True)
class QueueFile:
    """The contents of a file of queued jobs."""

    version: Literal[1]
    jobs: tuple[QueuedJob, ...]


@dataclass(frozen=True)
class PlacedJob:
    """A queued job with its hosts, the first of which are its workers, and the times at which it ran.

    `ina_s` is the time for which it had INA.
    """

    job: QueuedJob
    hosts: tuple[str, ...]
    start_s: float
    end_s: float
    ina_s: float

    @property
    def completion_s(self) -> float:
        """The job completion time (JCT): from arrival to the end, including waiting."""
        return self.end_s - self.job.arrival_s

    @property
    def planned(self) -> Job:
        """The job for planners; it begins at once."""
        workers, servers = self.hosts[: self.job.workers], self.hosts[self.job.workers :]
        one = self.job
        return Job(one.number, workers, servers, one.gradient_bytes, iterations=one.iterations, compute_s=one.compute_s)


def load_queue(path: Path) -> tuple[QueuedJob, ...]:
    """The queued jobs of a YAML or JSON file; one without a number gets its position, from 1. Raises `InputError`."""
    jobs = validate(with_job_numbers(read_file(path, FILE)), QueueFile).jobs
    if not jobs:
        raise InputError(f"{path}: no job: the list `jobs` is empty")
    for number, count in Counter(job.number for job in jobs).items():
        if count > 1:
            raise InputError(f"{path}: job {number} is listed {count} times: every job needs its own number")
    return jobs
