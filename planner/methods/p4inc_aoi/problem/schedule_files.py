"""Problems and schedules of P4INC-AOI in files: YAML or JSON in, JSON out.

    version: 1
    center:
      units: [{name: unit1, servers: 4, optical_ports: 8, switch_bps: 2.56e11, inc_jobs: 4}]
      port_bps: 4.0e10           # also: reconfiguration_s, slot_s, step_bps
    jobs:
      - {number: 1, workers: {unit1: 2}, server: unit1, gradient_bytes: 102000000}

The keys are the fields of `DataCenter`, `PlacedJob` and `Schedule`; mistakes are told as in files of jobs and plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inakit.planner.core.files import FILE, to_json
from inakit.planner.methods.p4inc_aoi.problem.schedule import Schedule
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling
from inakit.topo.errors import writing
from inakit.topo.files.reader import read_file
from inakit.topo.files.validation import validate


@dataclass(frozen=True)
class SchedulingFile:
    """The document of a file with a problem."""

    version: Literal[1]
    center: DataCenter
    jobs: tuple[PlacedJob, ...]
    horizon: int | None = None


@dataclass(frozen=True)
class ScheduleFile:
    """The document of a file with a schedule."""

    version: Literal[1]
    schedule: Schedule


def load_scheduling(path: Path) -> Scheduling:
    """The problem of a file. Raises `InputError`."""
    found = validate(read_file(path, FILE), SchedulingFile)
    return Scheduling(found.center, found.jobs, found.horizon)


def save_scheduling(problem: Scheduling, path: Path) -> None:
    """Write JSON that `load_scheduling` reads back as an equal problem."""
    with writing(path):
        path.write_text(to_json(SchedulingFile(1, problem.center, problem.jobs, problem.horizon)))


def load_schedule(path: Path) -> Schedule:
    """A schedule, not yet checked against any problem. Raises `InputError`."""
    return validate(read_file(path, FILE), ScheduleFile).schedule


def save_schedule(schedule: Schedule, path: Path) -> None:
    """Write JSON that `load_schedule` reads back as an equal schedule."""
    with writing(path):
        path.write_text(to_json(ScheduleFile(1, schedule)))
