"""Jobs for P4INC-AOI: drawn with the paper's distributions and the published shapes of two traces, or read from CSV.

Training jobs (section VII-C): a Poisson process; 2, 4, 8 or 16 workers, as in Philly's trace; 102 to 548 MB, from
ResNet50's parameters to VGG19's. MapReduce jobs have the shape of Facebook's trace as Varys (SIGCOMM 2014) publishes
it: four classes, by whether a shuffle has more than 50 flows and a flow more than 5 MB. No file of either trace is
needed. Traces are also read from files: those of Philly, Helios and PAI, and your own, which is CSV with a header and a
job per line:

    arrival_s,workers,gradient_bytes,update_s,iterations,compute_s,kind
    0.0,4,102000000,0.05,1,0.0,training

The first three columns are required. If a trace does not contain the units of workers, `place` assigns them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil, nan
from pathlib import Path
from typing import Any

import numpy as np

from inakit.planner.methods.p4inc_aoi.optical_system import (
    KINDS,
    MAPREDUCE,
    TRAINING,
    DataCenter,
    PlacedJob,
    fits_alone,
)
from inakit.planner.methods.p4inc_aoi.schedule import MOST_SLOTS
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, read_text

PHILLY_WORKERS = (2, 4, 8, 16)
GRADIENT_BYTES = (102e6, 548e6)
UPDATE_BYTES_PER_S = 0.75e9
"""The bytes that a PS updates per second, fitted to the six speed-ups of Figure 5 (`inakit reproduce p4inc-aoi fig5`):
the paper does not state the time of updates.
"""


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
    free_servers: int | None,
) -> tuple[PlacedJob, ...]:
    """Assign units to jobs: as many workers as possible in a unit drawn at random, the rest in the next; the PS in any.

    The first unit has 1 to `free_servers` servers for a job, or for None all of them. A unit drawn for the PS that has
    no server left for it is replaced by the next one. Raises `InputError` for jobs larger than the data centre, a line
    for each, and for jobs that arrive too late.
    """
    found, faults = [], []
    most = sum(unit.most_workers for unit in center.units)
    for number, request in enumerate(requests, start=1):
        name = f"job {number}, which arrives at {request.arrival_s:g} s"
        if request.workers > most:
            faults.append(
                f"{name}: {request.workers} workers, constraint 'servers': at most {most}, the GPUs of all units, are "
                "expected; enlarge the units or omit the job"
            )
            continue
        if request.arrival_s / center.slot_s >= MOST_SLOTS:
            faults.append(f"{name}: expected before slot {MOST_SLOTS:,} of {center.slot_s:g} s; make slot_s longer")
            continue
        workers = spread(request.workers, center, draws, free_servers)
        first = int(draws.integers(len(center.units)))
        job = PlacedJob(
            number, workers, center.units[first].name, request.gradient_bytes, request.update_s,
            int(request.arrival_s / center.slot_s + 1e-9), request.iterations, request.compute_s, request.kind,
        )  # fmt: skip
        others = (replace(job, server=unit.name) for unit in (*center.units[first:], *center.units[:first]))
        found.append(next((each for each in others if fits_alone(center, each, None)), job))
    if faults:
        raise listed(faults)
    return tuple(found)


def spread(workers: int, center: DataCenter, draws: np.random.Generator, free_servers: int | None) -> dict[str, int]:
    """A job's workers by unit. From the second unit on a job takes as many servers as it needs."""
    found: dict[str, int] = {}
    left = workers
    for number, place_ in enumerate(draws.permutation(len(center.units)), start=1):
        unit = center.units[place_]
        free = workers
        if free_servers is not None and number == 1:
            free = int(draws.integers(1, free_servers + 1)) * unit.gpus
        taken = min(left, unit.most_workers, free)
        if taken:
            found[unit.name] = taken
            left -= taken
    return found


# -- Traces in CSV files. The columns of the header say which trace it is.
#
# | trace | its columns that are read |
# |---|---|
# | the kit's | arrival_s, workers, gradient_bytes; also: update_s, iterations, compute_s, kind |
# | Helios (SenseTime), `cluster_log.csv` | job_id, gpu_num, submit_time, duration |
# | Philly (Microsoft), `cluster_job_log`, a line per job | jobid, submitted_time, start_time, end_time, gpus |
# | Philly's `cluster_job_log` itself, JSON | jobid, submitted_time, attempts: start_time, end_time, detail: gpus |
# | PAI (Alibaba), `pai_task_table.csv`, a line per task | job_name, inst_num, start_time, end_time, plan_gpu |
#
# Public traces tell how long a job had how many GPUs, and not what it sent: `TraceReading` has what has to be assumed.

TRACE = FileKind("trace of jobs", max_bytes=512 << 20)
MOST_FAULTS = 20
"""The number of faults of a file that are listed."""

MOST_NUMBER = 1e12
"""No number of a trace is larger: no time in s, no size in bytes."""

OWN_COLUMNS = ("arrival_s", "workers", "gradient_bytes")
OWN_OTHERS = ("update_s", "iterations", "compute_s", "kind")
HELIOS_COLUMNS = ("job_id", "gpu_num", "submit_time", "duration")
PHILLY_COLUMNS = ("jobid", "submitted_time", "start_time", "end_time", "gpus")
PAI_COLUMNS = ("job_name", "inst_num", "start_time", "end_time", "plan_gpu")
TRACES = {"the kit's": OWN_COLUMNS, "Helios": HELIOS_COLUMNS, "Philly": PHILLY_COLUMNS, "PAI": PAI_COLUMNS}
NOTHING = ("", "none", "nan", "null")
"""The texts with which traces say that a value is unknown."""


@dataclass(frozen=True)
class TraceReading:
    """What a public trace does not say of its jobs.

    A job sends `gradient_bytes` in every iteration (None: drawn between ResNet50's and VGG19's, by `seed`) after it has
    computed for `compute_s`. It has `iterations` of them; None for as many as it computed for as long as it ran.
    `jobs` is the number of jobs that are read, the first to arrive; None for all.
    """

    gradient_bytes: int | None = None
    compute_s: float = 0.25
    iterations: int | None = None
    jobs: int | None = None
    seed: int = 0


@dataclass
class Row:
    """A line of a trace; a value that is not as expected is added to the faults of the file."""

    path: Path
    line: int
    cells: Mapping[str, str]
    faults: list[tuple[int, str]]

    def fault(self, column: str, expected: str) -> None:
        found = self.cells.get(column, "")
        shown = repr(found if len(found) <= 40 else found[:40] + "…")
        self.faults.append((self.line, f"{self.path} line {self.line}, column {column}: {shown}: {expected}"))

    def unknown(self, *columns: str) -> bool:
        """Whether the trace does not know one of these values."""
        return any(self.cells[column].strip().lower() in NOTHING for column in columns)

    def number(self, column: str, least: float = 0.0, whole: bool = False) -> float:
        """The number in a column; `least` if there is none."""
        try:
            value = float(self.cells[column])
        except ValueError:
            value = nan
        if not least <= value <= MOST_NUMBER or (whole and value != int(value)):
            kind = "whole number" if whole else "number"
            self.fault(column, f"a {kind} from {least:g} to {MOST_NUMBER:g} is expected; correct or omit the line")
            return least
        return value

    def time(self, column: str) -> float:
        """The time in a column, in s: a date with a time, which is UTC's without an offset, or a number of seconds."""
        text = self.cells[column].strip()
        try:
            found = datetime.fromisoformat(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            pass
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not abs(value) <= MOST_NUMBER:
            self.fault(column, "a time such as 2020-06-09 18:41:01, or in s, is expected; correct or omit the line")
            return 0.0
        return value


@dataclass(frozen=True)
class Trace:
    """The jobs of a trace in the order of their arrival, and for each kind of jobs that were left out, their number."""

    name: str
    requests: tuple[JobRequest, ...]
    left_out: Mapping[str, int]


def read_trace(path: Path, reading: TraceReading | None = None) -> Trace:
    """Read the jobs of a CSV file, or of Philly's JSON.

    Raises `InputError`, with a line for each fault: file, line, column and value.

    Of public traces, jobs with fewer than two GPUs are left out, which send no gradients, and jobs whose start or end
    is unknown. The first job arrives at 0.
    """
    reading = reading or TraceReading()
    text = read_text(path, TRACE)
    faults: list[tuple[int, str]] = []
    left_out: Counter[str] = Counter()
    if text.lstrip()[:1] in ("[", "{"):
        name, found = "Philly", requests_of(philly_log(path, text, faults, left_out), reading, left_out)
    else:
        name, header, rows = rows_of(path, text)
        lines = [Row(path, line, dict(zip(header, cells, strict=False)), faults)
                 for line, cells in rows if complete(path, line, header, cells, faults)]  # fmt: skip
        if name == "the kit's":
            found = [own_request(row) for row in lines]
        else:
            ran = {"Helios": helios_jobs, "Philly": philly_jobs, "PAI": pai_jobs}[name](lines, left_out)
            found = requests_of(ran, reading, left_out)
    if faults:
        raise listed([fault for _, fault in sorted(faults, key=lambda each: each[0])])
    if not found:
        why = ", ".join(f"{count} {kind}" for kind, count in left_out.items())
        raise InputError(f"{path}: no job: a line per job is expected below the header" + (f" ({why})" if why else ""))
    in_order = sorted(found, key=lambda request: request.arrival_s)
    return Trace(name, tuple(in_order[: reading.jobs]), left_out)


def listed(faults: Sequence[str]) -> InputError:
    """The error with a line for each of the first faults, and the number of the others."""
    more = [f"… and {len(faults) - MOST_FAULTS} more faults"] if len(faults) > MOST_FAULTS else []
    return InputError("\n".join((*faults[:MOST_FAULTS], *more)))


def rows_of(path: Path, text: str) -> tuple[str, list[str], list[tuple[int, list[str]]]]:
    """The name of the trace that the header has, the header, and every line that is not empty, with its number.

    Lines before the header that begin with # are comments.
    """
    try:
        csv.field_size_limit(1 << 20)
        reader = csv.reader(io.StringIO(text), strict=True)
        first = next((cells for cells in reader if cells and not cells[0].startswith("#")), [])
        header = [each.strip() for each in first]
        rows = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: {error}; save it as CSV with commas") from error
    names = [name for name, columns in TRACES.items() if set(columns) <= set(header)]
    if not names:
        near = max(TRACES, key=lambda name: len(set(TRACES[name]) & set(header)))
        missing = ", ".join(column for column in TRACES[near] if column not in header)
        known = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in TRACES.items())
        if len(header) == 1:
            header = [f"{header[0]} (it is one; commas are expected between columns)"]
        raise InputError(
            f"{path} line 1: columns {', '.join(header)[:200] or '(none)'}: {near} trace lacks {missing}; "
            f"the first line has to name the columns of one of these: {known}"
        )
    unknown = [each for each in header if each not in (*OWN_COLUMNS, *OWN_OTHERS)] if names[0] == "the kit's" else []
    for column in unknown:
        known = ", ".join((*OWN_COLUMNS, *OWN_OTHERS))
        raise InputError(
            f"{path} line 1: column '{column[:40]}' is not a column of the kit's traces: choose from {known}"
        )
    for column, count in Counter(header).items():
        if count > 1:
            raise InputError(f"{path} line 1: column '{column[:40]}' is there {count} times: remove all but one")
    return names[0], header, rows


def complete(path: Path, line: int, header: Sequence[str], cells: Sequence[str], faults: list[tuple[int, str]]) -> bool:
    """Whether a line has a value for each column; otherwise it is a fault."""
    if len(cells) != len(header):
        fault = f"{path} line {line}: {len(cells)} values: {len(header)}, one for each column, are expected"
        faults.append((line, fault))
    return len(cells) == len(header)


def own_request(row: Row) -> JobRequest:
    """The job of a line of the kit's traces."""
    kind = row.cells.get("kind", TRAINING)
    if kind not in KINDS:
        row.fault("kind", f"{' or '.join(KINDS)} is expected")
    return JobRequest(
        row.number("arrival_s"),
        int(row.number("workers", 1, whole=True)),
        int(row.number("gradient_bytes", 1, whole=True)),
        row.number("update_s") if "update_s" in row.cells else 0.0,
        int(row.number("iterations", 1, whole=True)) if "iterations" in row.cells else 1,
        row.number("compute_s") if "compute_s" in row.cells else 0.0,
        kind,
    )


@dataclass(frozen=True)
class RanJob:
    """A job of a public trace: when it was submitted, the GPUs that it had, and for how long."""

    submitted_s: float
    gpus: int
    duration_s: float


UNFINISHED = "without a known start and end"
WITHOUT_GRADIENTS = "with fewer than two GPUs, which send no gradients"


def helios_jobs(rows: Sequence[Row], _left_out: Counter[str]) -> list[RanJob]:
    """The jobs of Helios's `cluster_log.csv`."""
    once(rows, "job_id")
    return [RanJob(row.time("submit_time"), int(row.number("gpu_num", whole=True)), row.number("duration"))
            for row in rows]  # fmt: skip


def philly_jobs(rows: Sequence[Row], left_out: Counter[str]) -> list[RanJob]:
    """The jobs of Philly's `cluster_job_log`, with the keys of its JSON as columns and the number of its GPUs."""
    once(rows, "jobid")
    found = []
    for row in rows:
        if row.unknown("start_time", "end_time", "gpus"):
            left_out[UNFINISHED] += 1
            continue
        gpus = int(row.number("gpus", whole=True))
        found.append(RanJob(row.time("submitted_time"), gpus, lasting_s(row)))
    return found


def philly_log(path: Path, text: str, faults: list[tuple[int, str]], left_out: Counter[str]) -> list[RanJob]:
    """The jobs of Philly's `cluster_job_log` itself, a JSON list.

    A job ran as long as all its attempts together, with the most GPUs that one had. Attempts without a known start or
    end are omitted.
    """
    found, rows = [], []
    for line, job in log_entries(path, text):
        try:
            attempts = [
                (Row(path, line, {key: str(one[key]) for key in ("start_time", "end_time")}, faults),
                 sum(len(a_list(server["gpus"])) for server in a_list(one["detail"])))
                for one in a_list(job["attempts"])
            ]  # fmt: skip
            rows.append(Row(path, line, {key: str(job[key]) for key in ("jobid", "submitted_time")}, faults))
        except (KeyError, TypeError) as error:
            keys = "jobid, submitted_time, and attempts with start_time, end_time and detail with gpus"
            lacks = f"lacks {error}" if isinstance(error, KeyError) else "is of another form"
            faults.append((line, f"{path} line {line}: this job {lacks}: {keys} are expected; correct or omit the job"))
            continue
        known = [(row, gpus) for row, gpus in attempts if not row.unknown("start_time", "end_time")]
        if not known or rows[-1].unknown("submitted_time"):
            left_out[UNFINISHED] += 1
            continue
        lasting = sum(lasting_s(row) for row, _ in known)
        found.append(RanJob(rows[-1].time("submitted_time"), max(gpus for _, gpus in known), lasting))
    once(rows, "jobid")
    return found


def a_list(value: Any) -> list[Any]:
    """The value. Raises `TypeError` unless it is a list."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r}: a list is expected")
    return value


BETWEEN = re.compile(r"[^\s,]")
"""The first character of an entry of a list, or the bracket that ends the list."""


def log_entries(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    """Each entry of a JSON list, and the line in which it begins. Raises `InputError` for anything else."""
    try:
        a_list(json.loads(text))
        decoder, line, counted = json.JSONDecoder(), 1, 0
        place = len(text) - len(text.lstrip()) + 1
        while (begin := BETWEEN.search(text, place)) is not None and text[begin.start()] != "]":
            line, counted = line + text.count("\n", counted, begin.start()), begin.start()
            entry, place = decoder.raw_decode(text, counted)
            yield line, entry
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    except TypeError as error:
        raise InputError(
            f"{path}: Philly's cluster_job_log is a JSON list of jobs: put the jobs into one list"
        ) from error


def pai_jobs(rows: Sequence[Row], left_out: Counter[str]) -> list[RanJob]:
    """The jobs of PAI's `pai_task_table.csv`: an instance with a part of a GPU (in percent) is a worker."""
    tasks: dict[str, list[RanJob]] = {}
    for row in rows:
        if row.unknown("start_time", "end_time", "inst_num"):
            left_out[UNFINISHED] += 1
            continue
        percent = 0.0 if row.unknown("plan_gpu") else row.number("plan_gpu")
        gpus = int(row.number("inst_num", whole=True)) * ceil(percent / 100)
        tasks.setdefault(row.cells["job_name"], []).append(RanJob(row.time("start_time"), gpus, lasting_s(row)))
    return [
        RanJob(min(task.submitted_s for task in own), sum(task.gpus for task in own), max(t.duration_s for t in own))
        for own in tasks.values()
    ]


def lasting_s(row: Row) -> float:
    """The time from a line's start to its end."""
    found = row.time("end_time") - row.time("start_time")
    if found < 0:
        row.fault("end_time", "a time after start_time is expected; correct or omit the line")
    return max(0.0, found)


def once(rows: Sequence[Row], column: str) -> None:
    """Make a fault of each line that has the job of an earlier one."""
    first: dict[str, int] = {}
    for row in rows:
        line = first.setdefault(row.cells[column], row.line)
        if line != row.line:
            row.fault(column, f"it is in line {line} too; every job is expected once; omit one of the lines")


def requests_of(jobs: Sequence[RanJob], reading: TraceReading, left_out: Counter[str]) -> list[JobRequest]:
    """The jobs that send gradients, with what the reading assumes of them."""
    sending = [job for job in jobs if job.gpus > 1]
    if len(sending) < len(jobs):
        left_out[WITHOUT_GRADIENTS] += len(jobs) - len(sending)
    first_s = min((job.submitted_s for job in sending), default=0.0)
    draws = np.random.default_rng(reading.seed)
    found = []
    for job, drawn in zip(sending, draws.uniform(*GRADIENT_BYTES, len(sending)), strict=True):
        size = reading.gradient_bytes or words(drawn)
        iterations = reading.iterations or max(1, round(job.duration_s / reading.compute_s))
        update_s = size / UPDATE_BYTES_PER_S
        found.append(JobRequest(job.submitted_s - first_s, job.gpus, size, update_s, iterations, reading.compute_s))
    return found
