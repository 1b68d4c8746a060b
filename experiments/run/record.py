"""The folder of one run: everything needed to repeat and to judge it.

`run.json` is written before the run starts, with the verdict INCOMPLETE, and completed after it. So a run that dies
leaves the record of what it was about to do. Even on a full disk the file is completed, because the folder reserves
some room for that.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import psutil

from inakit.topo.errors import OutputError, writing
from inakit.topo.kit import this_kit
from inakit.topo.kit_source import Source
from inakit.topo.live.signals import interrupts_held
from inakit.traffic.measure.verdict import Verdict

RECORD_VERSION = 1
LIBRARIES = ("numpy", "pulp", "highspy", "networkx", "scapy", "pyroute2", "psutil")
UNFINISHED = (Verdict.FAILED, Verdict.INTERRUPTED)
"""Verdicts of runs that an error or a signal ended. That is what is reported, even if the record cannot be written."""
RESERVE = ".reserve"
RESERVE_BYTES = 64 << 10
"""How many bytes are reserved on the disk for what is measured, besides twice the size of the record before the run."""
GZIP_LEVEL = 3
"""Half the time of level 6, for files that are a sixth larger."""
OF_THE_OCCASION = ("command", "source", "versions", "machine", "started", "finished")
"""The parts of `run.json` that say when, where and how a run was started; so does `setup_s` of each planner."""
PROGRAMS = {"clang": "--version", "simple_switch": "--version", "tcpreplay": "--version"}
VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+")
VERSION_S = 10
"""How long a program may take to say its version, in seconds."""


def versions() -> dict[str, str | None]:
    """The versions of inakit, Python, the kernel, and what libraries and programs a run may use; None if missing."""
    found: dict[str, str | None] = {"inakit": this_kit().version, "python": platform.python_version()}
    found["kernel"] = platform.release()
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = None
    return found | {program: program_version(program, flag) for program, flag in PROGRAMS.items()}


def program_version(program: str, flag: str) -> str | None:
    """The first line with a version that `program` prints; None where it is missing, hangs or prints none.

    Warnings may come first: tcpreplay has one, on either stream, when it is not root that asks.
    """
    try:
        answer = subprocess.run(
            [program, flag], capture_output=True, text=True, errors="replace", timeout=VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(filter(VERSION.search, (answer.stdout + "\n" + answer.stderr).splitlines()), None)


def machine() -> dict[str, Any]:
    """The machine of a run: its processors, memory, load before the run, and operating system."""
    return {
        "processors": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_before": psutil.getloadavg()[0],
        "system": platform.platform(),
    }


@dataclass
class RunRecord:
    """The contents of `run.json`; `planners` grows while the run goes on."""

    fabric: dict[str, Any]
    switch: str
    mode: str
    seed: int
    configuration: dict[str, Any]
    verdict: str = Verdict.INCOMPLETE
    reasons: list[str] = field(default_factory=list)
    planners: dict[str, Any] = field(default_factory=dict)
    source: Source = field(default_factory=lambda: this_kit().source)
    versions: dict[str, str | None] = field(default_factory=versions)
    machine: dict[str, Any] = field(default_factory=machine)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    finished: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The contents of `run.json`."""
        return {
            "version": RECORD_VERSION,
            "verdict": self.verdict,
            "reasons": self.reasons,
            "switch": self.switch,
            "mode": self.mode,
            "seed": self.seed,
            "fabric": self.fabric,
            "planners": self.planners,
            "configuration": self.configuration,
            "command": sys.argv,
            "source": self.source._asdict(),
            "versions": self.versions,
            "machine": self.machine,
            "started": self.started,
            "finished": self.finished,
        }

    def finish(self, verdict: str, reasons: Iterable[str] = ()) -> None:
        """Close the record with its verdict."""
        self.verdict, self.reasons = verdict, list(reasons)
        self.finished = datetime.now(UTC).isoformat(timespec="seconds")


def repeatable(record: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of a `run.json` without what differs from occasion to occasion.

    What is left of a run in virtual time is the same again, on every machine that makes the same plans.
    """
    kept = {key: part for key, part in record.items() if key not in OF_THE_OCCASION}
    planners = {name: {k: v for k, v in entry.items() if k != "setup_s"} for name, entry in record["planners"].items()}
    return kept | {"planners": planners}


class RunFolder:
    """The folder `results/<time>-<name>/`, which is new for each run; `results/latest` points to the newest."""

    def __init__(self, results: Path, name: str) -> None:
        """Make the folder. Raises `OutputError` where it cannot be written."""
        with writing(results):
            self.path = make_new_folder(results, f"{stamp()}-{name}")
            point_latest(results / "latest", self.path)

    def write_record(self, record: RunRecord) -> None:
        """Write `run.json`."""
        self.write_json("run.json", record.as_json())

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write `name` whole or not at all: a reader never sees half a file. Raises `OutputError`."""
        target = self.path / name
        draft = target.with_suffix(".part")
        try:
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
                draft.replace(target)
        except OutputError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise

    def write_rows(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a series as CSV, compressed if `name` ends with `.gz`. Raises `OutputError`."""
        target = self.path / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_text(target) as file:
                writer = csv.writer(file)
                writer.writerow(header)
                writer.writerows(rows)

    @contextmanager
    def completing(self, record: RunRecord) -> Iterator[None]:
        """Complete `run.json` however the block ends: with the verdict, and with what was measured until then.

        An error that leaves the block gets a note that names the folder.
        """
        self.hold_room(record)
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

    def hold_room(self, record: RunRecord) -> None:
        """Reserve room on the disk for the completed record. Raises `OutputError` where there is none."""
        size = RESERVE_BYTES + 2 * len(json.dumps(record.as_json(), indent=2))
        with writing(self.path), (self.path / RESERVE).open("wb") as file:
            file.write(bytes(size))


@contextmanager
def open_text(target: Path) -> Iterator[IO[str]]:
    """A file to write text to, compressed if its name ends with `.gz`: the same text gives the same bytes."""
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
        return Verdict.INTERRUPTED, ["a signal ended the run: its figures are those of what it had measured by then"]
    return Verdict.FAILED, [f"{type(error).__name__}: {error}"]


def measured_so_far(record: RunRecord) -> str:
    """What the record of a run that did not end well contains, in words."""
    measured = [name for name, entry in record.planners.items() if "measured" in entry]
    return f"kept what was measured ({', '.join(measured)})" if measured else "kept what was planned"


def check_results(results: Path) -> None:
    """Raise `OutputError` unless a run folder can be made in `results`. The attempt leaves nothing behind."""
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
    """The time now (UTC), as the names of run folders begin: `YYYYmmdd-HHMMSS`."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def make_new_folder(results: Path, name: str) -> Path:
    """Make a folder that did not exist, and return it; runs of the same second are numbered."""
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
    """Point the symbolic link at `target`, beside it, in one step, so that it always points somewhere."""
    draft = link.with_name(f".latest-{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target.name)
    draft.replace(link)
