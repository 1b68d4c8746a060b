"""The folder of one run: written during the run, and read for reports.

`run.json` is written before the run starts, with the verdict INCOMPLETE, and completed after it, so that a run that
dies leaves a record of its configuration. The folder reserves disk space so that the file can be completed even on a
full disk.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from inakit.experiments.run.record import RunRecord, cut_short, read_record
from inakit.planner.core.files import load_jobs, load_plan
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, OutputError, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.fabric_records import FabricRecord, fabric_of
from inakit.topo.files.fabrics import YAML, load_fabric
from inakit.topo.files.reader import ParsedFile, validate, write_whole
from inakit.topo.live.signals import interrupts_held
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

RECORD = "run.json"
UNFINISHED = (Verdict.FAILED, Verdict.INTERRUPTED)
"""Verdicts of runs ended by an error or a signal, which is reported even if the record cannot be written."""
RESERVE = ".reserve"
RESERVE_BYTES = 64 << 10
"""The bytes of disk space reserved for measured figures, in addition to twice the size of the record before the run."""
ROWS_AT_ONCE = 4096
"""The rows of a table that are written at once: compressing takes as long for one row as for many."""
GZIP_LEVEL = 3
"""The compression level: it takes half the time of level 6, and files are a sixth larger."""


class RunFolder:
    """The new folder `results/<time>-<name>/` of a run; `results/latest` points to the newest run."""

    def __init__(self, results: Path, name: str) -> None:
        """Make the folder. Raises `OutputError` if it cannot be written."""
        with writing(results):
            self.path = make_new_folder(results, f"{stamp()}-{name}")
            point_latest(results / "latest", self.path)

    def write_record(self, record: RunRecord) -> None:
        """Write `run.json`."""
        self.write_json(RECORD, record.as_json())

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write the file `name` atomically: a reader never sees half a file. Raises `OutputError`."""
        target = self.path / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, json.dumps(content, indent=2, allow_nan=False) + "\n")

    def write_rows(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a series as CSV, compressed if `name` ends with `.gz`. Raises `OutputError`."""
        target = self.path / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_text(target) as file:
                of_all = chain([header], rows)
                while some := list(islice(of_all, ROWS_AT_ONCE)):
                    text = io.StringIO(newline="")
                    csv.writer(text).writerows(some)
                    file.write(text.getvalue())

    @contextmanager
    def completing(self, record: RunRecord) -> Iterator[None]:
        """Write `run.json`, and complete it at the end of the block, even after an error, with all measured figures.

        An error that leaves the block gets a note with the folder. Raises `OutputError` without room for the record.
        """
        self.write_record(record)
        size = RESERVE_BYTES + 2 * (self.path / RECORD).stat().st_size
        with writing(self.path), (self.path / RESERVE).open("wb") as file:
            file.write(bytes(size))
        try:
            yield
        except BaseException as error:
            record.finish(*ending(error))
            error.add_note(f"{measured_so_far(record)}: {self.path}")
            raise
        finally:
            with interrupts_held():
                (self.path / RESERVE).unlink(missing_ok=True)
                with suppress(OutputError) if record.verdict in UNFINISHED else nullcontext():
                    self.write_record(record)


@contextmanager
def open_text(target: Path) -> Iterator[IO[str]]:
    """Open a text file for writing, compressed if its name ends with `.gz`. Equal texts give equal bytes."""
    if target.suffix != ".gz":
        with target.open("w", newline="") as file:
            yield file
        return
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, newline="") as text,
    ):
        yield text


def ending(error: BaseException) -> tuple[str, list[str]]:
    """The verdict of a run that `error` ended, and the reasons."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return Verdict.INTERRUPTED, ["a signal ended the run: its figures cover the part before the signal"]
    return Verdict.FAILED, [f"{type(error).__name__}: {error}"]


def measured_so_far(record: RunRecord) -> str:
    """The content of the record of an unfinished run, in words."""
    measured = [name for name, entry in record.planners.items() if entry.measured is not None]
    return f"kept what was measured ({', '.join(measured)})" if measured else "kept what was planned"


def check_results(results: Path) -> None:
    """Raise `OutputError` unless a run folder can be made in `results`. The check leaves no files or folders."""
    with writing(results):
        made = [folder for folder in (results, *results.parents) if not folder.exists()]
        try:
            results.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=results) as file:
                file.write(bytes(RESERVE_BYTES))
        finally:
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()


def stamp() -> str:
    """The time now (UTC) in the form of run folders' names: `YYYYmmdd-HHMMSS`."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def make_new_folder(results: Path, name: str) -> Path:
    """Make a new folder and return it; runs of the same second are numbered."""
    results.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = results / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def point_latest(link: Path, target: Path) -> None:
    """Point the symbolic link at `target` in the same folder, atomically, so that the link always exists."""
    draft = link.with_name(f".latest-{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target.name)
    draft.replace(link)


# -- Reading.

Table = Mapping[str, Sequence[str]]
"""The columns of a CSV file, by their headings."""


@dataclass(frozen=True)
class ReadFolder:
    """A run's folder, with its record."""

    path: Path
    record: RunRecord

    @cached_property
    def described(self) -> Fabric:
        return fabric_of(validate(ParsedFile(self.path / RECORD, YAML, self.record.fabric.description), FabricRecord))

    def problem(self, planner: str) -> Problem:
        """The fabric and the jobs of a planner; each run of a figure has its own. Raises `InputError`."""
        if not self.record.configuration.runs:
            return Problem(self.described, tuple(self.record.configuration.jobs), FRAGMENT)
        own = self.path / planner
        return Problem(load_fabric(own / "fabric.yml"), load_jobs(own / "jobs.yml"), FRAGMENT)

    def plan(self, planner: str) -> Plan | None:
        """The plan of a planner; None if the folder has none. Raises `InputError`."""
        path = self.path / planner / "plan.json"
        return load_plan(path) if path.is_file() else None

    def text(self, planner: str, name: str) -> str | None:
        """Read a planner's file, compressed or not; None if there is no file. Raises `InputError`."""
        path = self.path / planner / name
        if not path.is_file():
            return None
        try:
            with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
                return file.read()
        except (EOFError, OSError, ValueError) as error:
            raise cut_short(path) from error

    def table(self, planner: str, name: str) -> Table:
        """Read a planner's CSV file, compressed or not; no columns if there is no file. Raises `InputError`."""
        if (text := self.text(planner, name)) is None:
            return {}
        try:
            header, *rows = csv.reader(io.StringIO(text, newline=""))
            return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
        except (ValueError, csv.Error) as error:
            raise cut_short(self.path / planner / name) from error


def open_folder(path: Path) -> ReadFolder:
    """Open a run's folder or its `run.json`. Raises `InputError` if it is not a run's, is broken, or is too old."""
    folder = path.parent if path.name == RECORD else path
    file = folder / RECORD
    if not folder.is_dir():
        raise InputError(f"{path}: no such folder; `ls results` lists the runs, results/latest is the newest")
    if not file.is_file():
        raise InputError(
            f"{folder} is not the folder of a run, because it has no {RECORD}: name one such as results/latest, "
            "or a study's file"
        )
    record = read_record(file)
    if not record.planners:
        raise InputError(f"{file} is not the record of a run of planners: it names no planner")
    return ReadFolder(folder, record)
