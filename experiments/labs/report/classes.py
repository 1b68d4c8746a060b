"""Grades a class: several submissions at a time, one table."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from experiments.labs.grading.grade import Lab, Request, grade
from experiments.labs.grading.item import Grade
from experiments.labs.grading.submission import submissions_in
from experiments.labs.report.formats import FORMATS
from topo.errors import writing

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

    def request(self, student: str, submission: Path) -> Request:
        """The grading of one student."""
        seed = f"{self.seed}/{student}" if self.per_student else self.seed
        return Request(self.lab, self.lab_folder, submission, seed, student=student if self.per_student else "")


def grade_class(request: ClassRequest) -> Iterator[str]:
    """Grade all submissions and write the table; a line for each student, in the order of their names."""
    submissions = submissions_in(request.folder)
    grades: dict[str, Grade] = {}
    # No copies of this process, whose threads would be missing in them: Python warns of that from 3.12 on.
    with ProcessPoolExecutor(request.jobs or os.cpu_count() or 1, get_context("forkserver")) as pool:
        requests = [request.request(student, path) for student, path in submissions.items()]
        for student, found in zip(submissions, pool.map(grade, requests), strict=True):
            grades[student] = found
            write_reports(request, student, found)
            yield line_of(student, found)
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
