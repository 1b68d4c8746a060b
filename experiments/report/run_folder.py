"""Reads the folder of a run: its `run.json`, and the plan and the tables of each planner."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from inakit.experiments.run.record import RECORD_VERSION
from inakit.planner.core.files import FILE as JOBS_FILE
from inakit.planner.core.files import JobsFile, load_plan
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.fabric_records import FabricRecord, fabric_of
from inakit.topo.files.fabrics import YAML, load_fabric
from inakit.topo.files.reader import ParsedFile, validate
from inakit.traffic.wire.packet_format import FRAGMENT

RECORD = "run.json"
PARTS = ("version", "verdict", "reasons", "switch", "mode", "seed", "fabric", "planners", "configuration")
Table = Mapping[str, Sequence[str]]
"""The columns of a CSV file, by their headings."""


@dataclass(frozen=True)
class ReadFolder:
    """The folder of a run. `record` is its `run.json`."""

    path: Path
    record: Mapping[str, Any]

    @property
    def planners(self) -> list[str]:
        """The names of the planners."""
        return list(self.record["planners"])

    @property
    def own_problems(self) -> bool:
        """Whether each planner has a fabric and jobs of its own, as the runs of a paper's figure have."""
        return "planners" not in self.record["configuration"]

    @cached_property
    def described(self) -> Fabric:
        """The fabric that `run.json` describes."""
        document = self.record["fabric"]["description"]
        return fabric_of(validate(ParsedFile(self.path / RECORD, YAML, document), FabricRecord))

    def problem(self, planner: str) -> Problem:
        """The fabric and the jobs of a planner. Raises `InputError`."""
        own = self.path / planner / "fabric.yml"
        fabric = load_fabric(own) if self.own_problems and own.is_file() else self.described
        return Problem(fabric, self.jobs(planner), FRAGMENT)

    def jobs(self, planner: str) -> tuple[Job, ...]:
        """The jobs of a planner. Raises `InputError`."""
        configuration = self.record["configuration"]
        listed = configuration[planner]["jobs"] if self.own_problems else configuration["jobs"]
        return validate(ParsedFile(self.path / RECORD, JOBS_FILE, {"version": 1, "jobs": listed}), JobsFile).jobs

    def plan(self, planner: str) -> Plan | None:
        """The plan of a planner; None where it is not kept. Raises `InputError`."""
        path = self.path / planner / "plan.json"
        return load_plan(path) if path.is_file() else None

    def table(self, planner: str, name: str) -> Table:
        """A CSV file of a planner, also one that is compressed; no columns where there is none. Raises `InputError`."""
        path = self.path / planner / name
        if not path.is_file():
            return {}
        try:
            with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
                header, *rows = csv.reader(file)
        except (EOFError, OSError, ValueError, csv.Error) as error:
            raise cut_short(path) from error
        if any(len(row) != len(header) for row in rows):
            raise cut_short(path)
        return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}


def cut_short(path: Path) -> InputError:
    """The error for a file that ends in the middle."""
    return InputError(f"{path} is cut short or no longer what a run wrote: run again, or copy the whole folder")


def open_folder(path: Path) -> ReadFolder:
    """The folder of a run, or its `run.json`. Raises `InputError` for what is not one, is broken, or is too old."""
    folder = path.parent if path.name == RECORD else path
    file = folder / RECORD
    if not folder.is_dir():
        raise InputError(f"{path}: there is no such folder; `ls results` shows the runs, results/latest is the newest")
    if not file.is_file():
        raise InputError(
            f"{folder} is not the folder of a run, because it has no {RECORD}: name one such as results/latest, "
            "or a study's file"
        )
    try:
        record = json.loads(file.read_text())
    except ValueError as error:
        raise cut_short(file) from error
    return ReadFolder(folder, checked(file, record))


def checked(file: Path, record: Any) -> Mapping[str, Any]:
    """The record as it is. Raises `InputError` unless it is of a run, and of this version."""
    if not isinstance(record, dict) or "version" not in record:
        raise InputError(f"{file} is not the record of a run: it has no version")
    if record["version"] != RECORD_VERSION:
        raise InputError(
            f"{file} has version {record['version']}, this inakit reads {RECORD_VERSION}: "
            "make the report with the inakit that made the run"
        )
    missing = [part for part in PARTS if part not in record]
    if missing or not record["planners"] or "description" not in record["fabric"]:
        lacking = ", ".join(missing) or "planners, or the description of its fabric"
        raise InputError(f"{file} is not the record of a run of planners: it lacks {lacking}")
    return record
