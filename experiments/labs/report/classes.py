"""Grades a class: several submissions at a time, one table."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from experiments.labs.grading.grade import Lab, Request, grade
from experiments.labs.grading.item import Grade
from experiments.labs.report.formats import FORMATS
from topo.errors import InputError, writing

FILES = {"text": ".txt", "json": ".json"}


@dataclass(frozen=True)
class ClassRequest:
    """A class to be graded: the submissions are what `folder` holds, each by its student's name."""

    lab: Lab
    lab_folder: Path
    folder: Path
    seed: str
    per_student: bool
    table: Path
    reports: Path | None
    jobs: int

    def request(self, submission: Path) -> Request:
        """The grading of one student."""
        seed = f"{self.seed}/{submission.stem}" if self.per_student else self.seed
        student = submission.stem if self.per_student else ""
        return Request(self.lab, self.lab_folder, submission, seed, student=student)


def grade_class(request: ClassRequest) -> Iterator[str]:
    """Grade all submissions and write the table; a line for each student, in the order of their names."""
    if not request.folder.is_dir():
        raise InputError(f"{request.folder}: no such folder; expected one with a submission for each student")
    submissions = sorted(path for path in request.folder.iterdir() if not path.name.startswith("."))
    grades: dict[str, Grade] = {}
    with ProcessPoolExecutor(request.jobs or os.cpu_count() or 1) as pool:
        for submission, found in zip(submissions, pool.map(grade, map(request.request, submissions)), strict=True):
            grades[submission.stem] = found
            write_reports(request, submission.stem, found)
            yield line_of(submission.stem, found)
    with writing(request.table):
        request.table.write_text(table_of(request.lab, grades))
    yield f"wrote {request.table}"


def line_of(student: str, found: Grade) -> str:
    """A student's points on a line, and what could not be graded."""
    problem = found.problem.splitlines()[0] if found.problem else ""
    return f"{student:24} {found.points:>5g} of {found.most}  {problem}".rstrip()


def write_reports(request: ClassRequest, student: str, found: Grade) -> None:
    """Write a student's report in each form."""
    if request.reports is None:
        return
    with writing(request.reports):
        request.reports.mkdir(parents=True, exist_ok=True)
        for form, suffix in FILES.items():
            (request.reports / f"{student}{suffix}").write_text(FORMATS[form](found))


def table_of(lab: Lab, grades: dict[str, Grade]) -> str:
    """The table as CSV: points of each item, their sum, and what could not be graded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", *(item.name for item in lab.items), "points", "problem"])
    for student, found in grades.items():
        points = [f"{each.points:g}" for each in found.graded]
        writer.writerow([student, *points, f"{found.points:g}", found.problem])
    return text.getvalue()
