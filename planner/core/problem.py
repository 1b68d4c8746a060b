"""The input of a planner: a fabric, and the jobs that train on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf

from inakit.planner.core.models import find_model
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.quantities import Duration, Size, Whole


@dataclass(frozen=True)
class FragmentFormat:
    """The format of packets that carry a gradient: integers per packet, and bytes per packet on the wire.

    `wire_bytes` counts the Ethernet header and everything behind it, which is what link shapers
    and interface counters count. All rates of the kit are rates of these bytes.
    """

    values: int
    wire_bytes: int

    def count(self, gradient_bytes: int) -> int:
        """The number of fragments of a gradient of 32-bit integers. The last fragment is padded with zeros."""
        return -(-gradient_bytes // (4 * self.values))


@dataclass(frozen=True)
class Job:
    """A data-parallel training job. Job numbers count from 1.

    `weight` says how much the job counts beside others: where jobs compete, planners give them rates in proportion to
    their weights, or refuse jobs of different weights by name. `model` names a table of `inakit.planner.core.models`
    with the layers of the gradient, which divide it in proportion to their sizes. Without a model the gradient is one
    piece.
    """

    number: Whole
    workers: tuple[str, ...]
    servers: tuple[str, ...]
    gradient_bytes: Size
    weight: float = 1.0
    arrival_s: Duration = 0.0
    iterations: Whole = 1
    compute_s: Duration = 0.0
    model: str = ""


@dataclass(frozen=True)
class Problem:
    """A fabric and its jobs. The constructor checks it and raises `InputError` for a mistake."""

    fabric: Fabric
    jobs: tuple[Job, ...]
    fragment: FragmentFormat

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError("no job: a problem needs at least one")
        for number, count in Counter(job.number for job in self.jobs).items():
            if count > 1:
                raise InputError(f"job {number} is given {count} times: every job needs its own number")
        for job in self.jobs:
            check_job(self.fabric, job)


def require_equal_weights(problem: Problem, planner: str) -> None:
    """Raise `InputError` if jobs have different weights, for a planner that gives all jobs one rate."""
    first, *others = problem.jobs
    for job in others:
        if job.weight != first.weight:
            raise InputError(
                f"planner '{planner}' ignores weights, and jobs {first.number} and {job.number} have {first.weight:g} "
                f"and {job.weight:g}: give all jobs the same weight, or choose another planner, such as aro"
            )


def check_job(fabric: Fabric, job: Job) -> None:
    """Raise `InputError` unless every host exists and has one role, and every number is in range."""
    name = f"job {job.number}"
    if not 1 <= job.number < 65536:
        raise InputError(f"{name}: job numbers are 1 to 65535")
    for role, hosts in (("worker", job.workers), ("parameter server", job.servers)):
        if not hosts:
            raise InputError(f"{name} has no {role}: it needs at least one")
        if len(set(hosts)) < len(hosts):
            raise InputError(f"{name}: a {role} is listed twice")
        for host in hosts:
            if host not in fabric.host_names:
                raise InputError(f"{name}: {role} '{host}' is not a host of fabric '{fabric.name}'")
    both = sorted(set(job.workers) & set(job.servers))
    if both:
        raise InputError(
            f"{name}: host '{both[0]}' is a worker and the parameter server; give the two roles to different hosts"
        )
    if job.gradient_bytes <= 0 or job.gradient_bytes % 4:
        raise InputError(f"{name}: gradient of {job.gradient_bytes} bytes; a positive multiple of 4 is expected")
    if job.model:
        find_model(job.model)
    if job.iterations < 1:
        raise InputError(f"{name}: {job.iterations} iterations; at least 1 is expected")
    if not (0 < job.weight < inf and 0 <= job.compute_s < inf and 0 <= job.arrival_s < inf):
        raise InputError(f"{name}: weight must be positive, compute time and arrival not negative, and all finite")
