"""Jobs for P4INC-AOI: drawn with the paper's distributions and the published shapes of two traces, or read from CSV.

Training jobs (section VII-C): a Poisson process; 2, 4, 8 or 16 workers, as in Philly's trace; 102 to 548 MB, from
ResNet50's parameters to VGG19's. MapReduce jobs have the shape of Facebook's trace as Varys (SIGCOMM 2014) publishes
it: four classes, by whether a shuffle has more than 50 flows and a flow more than 5 MB. No file of either trace is
needed. Your own trace is CSV with a header and a job per line:

    arrival_s,workers,gradient_bytes,update_s,iterations,compute_s,kind
    0.0,4,102000000,0.05,1,0.0,training

The first three columns are required. If a trace does not contain the units of workers, `place` assigns them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inakit.planner.methods.p4inc_aoi.optical_system import MAPREDUCE, TRAINING, DataCenter, PlacedJob
from inakit.topo.errors import InputError

PHILLY_WORKERS = (2, 4, 8, 16)
GRADIENT_BYTES = (102e6, 548e6)
UPDATE_BYTES_PER_S = 4e9
"""The bytes that a PS updates per second. The paper does not state the time of updates; here they take 26 to 137 ms."""

FREE_SERVERS = 14
"""A unit has 1 to this many free servers when a job arrives; the paper places "as many workers as possible" in one
unit.
"""

MOST_UNITS = 3
"""A job has its workers in at most this many units, if these have the servers."""


@dataclass(frozen=True)
class ShuffleClass:
    """A class of Facebook's shuffles: its fraction of the jobs, its mappers, and the bytes of each (minimum and
    maximum).
    """

    share: float
    mappers: tuple[int, int]
    mapper_bytes: tuple[float, float]


FACEBOOK = (
    ShuffleClass(0.52, (2, 8), (0.1e6, 5e6)),  # short and narrow
    ShuffleClass(0.16, (2, 8), (5e6, 250e6)),  # long and narrow
    ShuffleClass(0.15, (8, 32), (0.1e6, 5e6)),  # short and wide
    ShuffleClass(0.17, (8, 32), (250e6, 2.5e9)),  # long and wide, with 99 % of the bytes
)


@dataclass(frozen=True)
class JobRequest:
    """A job without units yet. Times are in seconds."""

    arrival_s: float
    workers: int
    gradient_bytes: int
    update_s: float = 0.0
    iterations: int = 1
    compute_s: float = 0.0
    kind: str = TRAINING


def training(count: int, per_s: float | None, draws: np.random.Generator) -> list[JobRequest]:
    """Training jobs, `per_s` per second on average; None for all at once."""
    workers = draws.choice(PHILLY_WORKERS, count)
    sizes = draws.uniform(*GRADIENT_BYTES, count)
    return [
        JobRequest(arrival, int(number), words(size), float(size) / UPDATE_BYTES_PER_S)
        for arrival, number, size in zip(arrivals(count, per_s, draws), workers, sizes, strict=True)
    ]


def mapreduce(count: int, per_s: float | None, draws: np.random.Generator) -> list[JobRequest]:
    """MapReduce jobs of Facebook's classes. A reduction takes as long as an update.

    Mappers and their bytes are log-uniform within a class.
    """
    classes = draws.choice(len(FACEBOOK), count, p=[shuffle.share for shuffle in FACEBOOK])
    found = []
    for arrival, place in zip(arrivals(count, per_s, draws), classes, strict=True):
        mappers = round(log_uniform(FACEBOOK[place].mappers, draws))
        size = log_uniform(FACEBOOK[place].mapper_bytes, draws)
        found.append(JobRequest(arrival, mappers, words(size), size / UPDATE_BYTES_PER_S, kind=MAPREDUCE))
    return found


def arrivals(count: int, per_s: float | None, draws: np.random.Generator) -> list[float]:
    """The arrival times in s of a Poisson process whose first job arrives at 0."""
    if per_s is None:
        return [0.0] * count
    gaps = draws.exponential(1 / per_s, count)
    return [float(time) for time in np.cumsum(gaps) - gaps[0]]


def log_uniform(bounds: tuple[float, float], draws: np.random.Generator) -> float:
    """A log-uniform draw between the two bounds."""
    return float(np.exp(draws.uniform(*np.log(bounds))))


def words(size: float) -> int:
    """The size rounded down to whole 32-bit integers, at least one."""
    return max(4, int(size) // 4 * 4)


def place(
    requests: Sequence[JobRequest],
    center: DataCenter,
    draws: np.random.Generator,
    free_servers: int = FREE_SERVERS,
) -> tuple[PlacedJob, ...]:
    """Assign units to jobs: as many workers as possible in a unit drawn at random, the rest in the next; the PS in any
    unit.

    A unit has 1 to `free_servers` servers for a job. Raises `InputError` for a job larger than the data centre.
    """
    return tuple(
        PlacedJob(
            number,
            spread(request.workers, center, draws, free_servers),
            center.units[draws.integers(len(center.units))].name,
            request.gradient_bytes,
            request.update_s,
            int(request.arrival_s / center.slot_s + 1e-9),
            request.iterations,
            request.compute_s,
            request.kind,
        )
        for number, request in enumerate(requests, start=1)
    )


def spread(workers: int, center: DataCenter, draws: np.random.Generator, free_servers: int) -> dict[str, int]:
    """A job's workers by unit. From the third unit on (`MOST_UNITS`) a job takes as many servers as it needs."""
    found: dict[str, int] = {}
    left = workers
    for number, place_ in enumerate(draws.permutation(len(center.units)), start=1):
        unit = center.units[place_]
        free = draws.integers(1, free_servers + 1) if number < MOST_UNITS else workers
        taken = min(left, unit.servers, int(free))
        if taken:
            found[unit.name] = taken
            left -= taken
    if left:
        total = sum(unit.servers for unit in center.units)
        raise InputError(
            f"a job of {workers} workers, constraint 'servers': no units have room, of {total} servers in all"
        )
    return found


COLUMNS: dict[str, Callable[[str], Any]] = {
    "arrival_s": float,
    "workers": int,
    "gradient_bytes": int,
    "update_s": float,
    "iterations": int,
    "compute_s": float,
    "kind": str,
}
NEEDED = ("arrival_s", "workers", "gradient_bytes")


def read_trace(path: Path) -> list[JobRequest]:
    """Read the jobs of a CSV file, in the order of their arrival. Raises `InputError` with the line of a mistake."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            header = rows.fieldnames or []
            if not set(NEEDED) <= set(header) <= set(COLUMNS):
                raise InputError(f"{path}: columns {', '.join(header)}: {', '.join(COLUMNS)} are expected")
            found = []
            for row in rows:
                line = f"{path} line {rows.line_num}"
                try:
                    request = JobRequest(**{key: COLUMNS[key](value) for key, value in row.items()})
                except (ValueError, TypeError, KeyError) as error:
                    raise InputError(f"{line}: {error}; expected are {', '.join(COLUMNS)}") from error
                if request.workers < 1 or not request.arrival_s >= 0:
                    raise InputError(f"{line}: at least one worker and an arrival of at least 0 are expected")
                found.append(request)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from error
    if not found:
        raise InputError(f"{path}: no job: one line per job is expected below the header")
    return sorted(found, key=lambda request: request.arrival_s)
