"""Problems and schedules of P4INC-AOI in files: YAML or JSON in, JSON out.

    version: 1
    center:
      units: [{name: unit1, servers: 4, optical_ports: 8, switch_bps: 2.56e11, inc_jobs: 4}]
      port_bps: 4.0e10           # also: reconfiguration_s, slot_s, step_bps
    jobs:
      - {number: 1, workers: {unit1: 2}, server: unit1, gradient_bytes: 102000000}

The keys are the fields of `DataCenter`, `PlacedJob` and `Schedule`; mistakes are told as in `planner.core.files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planner.core.files import parse, to_json, validate
from planner.core.solving import SolverOutcome
from planner.methods.p4inc_aoi.problem.schedule import Circuit, Grant, Schedule, Slot
from planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling, Unit
from topo.errors import writing


@dataclass(frozen=True)
class SchedulingFile:
    version: Literal[1]
    center: DataCenter
    jobs: tuple[PlacedJob, ...]
    horizon: int | None = None


@dataclass(frozen=True)
class ScheduleFile:
    version: Literal[1]
    schedule: Schedule


SCHEDULING_TYPES = (SchedulingFile, DataCenter, Unit, PlacedJob)
SCHEDULE_TYPES = (ScheduleFile, Schedule, Slot, Circuit, Grant, SolverOutcome)


def load_scheduling(path: Path) -> Scheduling:
    """Raises `InputError`."""
    found = validate(path, parse(path), SchedulingFile, SCHEDULING_TYPES)
    return Scheduling(found.center, found.jobs, found.horizon)


def save_scheduling(problem: Scheduling, path: Path) -> None:
    with writing(path):
        path.write_text(to_json(SchedulingFile(1, problem.center, problem.jobs, problem.horizon)))


def load_schedule(path: Path) -> Schedule:
    """A schedule, not yet checked against any problem. Raises `InputError`."""
    return validate(path, parse(path), ScheduleFile, SCHEDULE_TYPES).schedule


def save_schedule(schedule: Schedule, path: Path) -> None:
    with writing(path):
        path.write_text(to_json(ScheduleFile(1, schedule)))
