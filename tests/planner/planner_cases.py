"""Problems that several planner tests ask."""

from __future__ import annotations

from collections.abc import Sequence

from planner.problem import FragmentFormat, Job, Problem
from topo.fabric import Fabric

FRAGMENT = FragmentFormat(values=64, wire_bytes=326)
GRADIENT_BYTES = 97_000


def job(workers: Sequence[str], *servers: str, number: int = 1, gradient_bytes: int = GRADIENT_BYTES) -> Job:
    return Job(number, tuple(workers), servers, gradient_bytes)


def single(fabric: Fabric, workers: Sequence[str], *servers: str) -> Problem:
    """One job."""
    return Problem(fabric, (job(workers, *servers),), FRAGMENT)


def first_is_server(fabric: Fabric, workers: int | None = None) -> Problem:
    """One job with the fabric's first host as PS and the following ones as workers."""
    server, *others = (host.name for host in fabric.hosts)
    return single(fabric, others[:workers], server)
