"""What students hand in for lab 7: answers, a study file, the table of its runs, a summary of the table, a report.

All are read strictly, within bounds; nothing of them runs. A mistake raises `WrongError` with the file and the line.
"""

from __future__ import annotations

import csv
import io
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.measure.own_fabric import write_own_fabric
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import ROOT, EndedError, Sandboxed, printable, python_paths
from inakit.topo.files.reader import PlainLoader

ANSWERS, STUDY, RESULTS, SUMMARY, REPORT = "answers.yml", "study.yml", "results.csv", "summary.csv", "report.md"
FILES = (ANSWERS, STUDY, RESULTS, SUMMARY, REPORT)
MOST_BYTES = {ANSWERS: 4_000, STUDY: 8_000, RESULTS: 400_000, SUMMARY: 100_000, REPORT: 100_000}
INA, RING = "aro", "ring"
RESULT_COLUMNS = ("planner", "gradient_bytes", "seed", "communication_time_s")
FIGURES = (INA, RING, "difference")
ENDS = ("mean_s", "low_s", "high_s")
SUMMARY_COLUMNS = ("gradient_bytes", *(f"{figure}_{end}" for figure in FIGURES for end in ENDS))
MOST_GRADIENT_BYTES, MOST_SEED = 1 << 20, 1 << 20
RUNNER = "inakit.experiments.labs.runners.study_runner"


class RunKey(NamedTuple):
    """Which run it is."""

    planner: str
    gradient_bytes: int
    seed: int

    def __str__(self) -> str:
        return f"{self.planner}, {self.gradient_bytes} bytes, seed {self.seed}"


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def study_limits() -> Limits:
    """What reading a study file may use."""
    parts = (str(ROOT / name) for name in ("topo", "planner", "switch", "traffic", "experiments", "p4"))
    readable = (*python_paths(), *parts, sysconfig.get_path("purelib"), tempfile.gettempdir())
    return Limits(cpu_s=10, wall_s=30.0, memory_bytes=1536 * MIB, readable=readable)


@dataclass(frozen=True)
class HandedIn:
    """The files of a submission, each read when it is asked for."""

    submission: Submission

    def text(self, name: str) -> str:
        """The text of a file. Raises `InputError` if it is not there, `WrongError` if it is too long."""
        text = self.submission.text(name)
        if len(text.encode()) > MOST_BYTES[name]:
            raise WrongError(f"{name} has more than {MOST_BYTES[name]} bytes")
        return text

    @cached_property
    def answers(self) -> dict[str, Any]:
        """`answers.yml`."""
        try:
            document = PlainLoader(self.text(ANSWERS)).get_single_data()
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise WrongError(f"{ANSWERS} is not YAML: {printable(' '.join(str(error).split())[:200])}") from None
        if not isinstance(document, dict):
            raise WrongError(f"{ANSWERS} has no keys: student, crossover_bytes and speedup are expected")
        return document

    @property
    def student(self) -> str:
        """The name that the fabric is drawn from."""
        student = self.answers.get("student")
        if not isinstance(student, str) or not student.strip():
            raise WrongError(f"{ANSWERS}: 'student' is {said(student)}: the name with which your fabric was made")
        return student.strip()

    @cached_property
    def study(self) -> Any:
        """What the sandbox that reads the study file says of it."""
        text = self.text(STUDY)
        with tempfile.TemporaryDirectory(prefix="inakit-study-") as folder:
            write_own_fabric(self.student, Path(folder))
            with Sandboxed(RUNNER, study_limits(), site=True) as process:
                return process.ask([folder, text])

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs that the study file asks for: of each the keys that are not the default."""
        match self.study:
            case ["ok", list(runs)]:
                return runs
            case ["mistake", str(message)]:
                raise WrongError(printable(message))
        raise EndedError("its answer is none")

    @cached_property
    def results(self) -> dict[RunKey, float]:
        """`results.csv`: the seconds of each run. Raises `WrongError` for a run that is there twice."""
        found: dict[RunKey, float] = {}
        for line, row in rows_of(self.text(RESULTS), RESULTS, RESULT_COLUMNS):
            key = RunKey(row[0], whole(row[1], line, MOST_GRADIENT_BYTES), whole(row[2], line, MOST_SEED))
            if key.planner not in (INA, RING):
                raise WrongError(f"{line}: planner {said(key.planner)}: {INA} or {RING} is expected")
            if key in found:
                raise WrongError(f"{line}: the run {key} is there twice")
            found[key] = number(row[3], line)
            if found[key] <= 0:
                raise WrongError(f"{line}: a communication time of {row[3][:20]} s: more than 0 is expected")
        if not found:
            raise WrongError(f"{RESULTS} has no run")
        return found

    @cached_property
    def summary(self) -> dict[int, dict[str, Interval]]:
        """`summary.csv`: for each size the intervals of INA, of the ring, and of the difference, in seconds."""
        found: dict[int, dict[str, Interval]] = {}
        for line, row in rows_of(self.text(SUMMARY), SUMMARY, SUMMARY_COLUMNS):
            values = [number(each, line) for each in row[1:]]
            ends = (Interval(*values[3 * n : 3 * n + 3]) for n in range(len(FIGURES)))
            found[whole(row[0], line, MOST_GRADIENT_BYTES)] = dict(zip(FIGURES, ends, strict=True))
        return found

    def pairs(self, size: int) -> list[tuple[float, float]]:
        """For one size, the seconds of INA and of the ring in runs of the same seed."""
        seeds = sorted(key.seed for key in self.results if key[:2] == (INA, size))
        both = [(RunKey(INA, size, seed), RunKey(RING, size, seed)) for seed in seeds]
        return [(self.results[a], self.results[b]) for a, b in both if b in self.results]

    @property
    def sizes(self) -> list[int]:
        """The sizes in the table, in ascending order."""
        return sorted({key.gradient_bytes for key in self.results})


def rows_of(text: str, name: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines of a CSV file below its heading: each with its place for messages."""
    reader = csv.reader(io.StringIO(text))
    heading = [each.strip() for each in next(reader, [])]
    if heading != list(columns):
        raise WrongError(f"{name}: the first line is {said(','.join(heading))}: {','.join(columns)} is expected")
    for row in reader:
        line = f"{name}:{reader.line_num}"
        if len(row) != len(columns):
            raise WrongError(f"{line}: {len(row)} values, where there are {len(columns)} columns")
        yield line, row


def whole(text: str, line: str, most: int) -> int:
    """A whole number."""
    if not text.strip().isascii() or not text.strip().isdigit() or len(text) > 12 or int(text) > most:
        raise WrongError(f"{line}: {said(text)}: a whole number from 0 to {most} is expected")
    return int(text)


def number(text: str, line: str) -> float:
    """A number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise WrongError(f"{line}: {said(text)}: a number is expected")
    return value


def said(value: Any) -> str:
    """A value, cut short."""
    return printable(repr(value)[:80])
