"""Queues of jobs for tests of placement."""

from __future__ import annotations

import random

from inakit.planner.placement import QueuedJob


def queued(number: int, workers: int, *, arrival_s: float = 0.0, iterations: int = 10) -> QueuedJob:
    """A job whose gradient is one megabyte, with 1 PS."""
    return QueuedJob(number, workers, 1_000_000, iterations=iterations, arrival_s=arrival_s)


def drawn_queue(jobs: int, mean_gap_s: float, seed: int = 1) -> tuple[QueuedJob, ...]:
    """Jobs of 1 to 32 workers with gradients of 100 to 440 MB that come at random."""
    draw, arrival_s, found = random.Random(seed), 0.0, []
    for number in range(1, jobs + 1):
        arrival_s += draw.expovariate(1 / mean_gap_s)
        found.append(
            QueuedJob(
                number,
                workers=draw.choice([1, 2, 4, 8, 8, 16, 32]),
                gradient_bytes=4 * draw.choice([25_000_000, 60_000_000, 110_000_000]),
                iterations=draw.randrange(50, 500),
                compute_s=0.03,
                arrival_s=arrival_s,
            )
        )
    return tuple(found)
