"""Grades a class: several submissions at a time, one table."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from inakit.experiments.labs.grading.formats import FORMATS
from inakit.experiments.labs.grading.grade import Lab, Request, grade
from inakit.experiments.labs.grading.items import Grade
from inakit.experiments.labs.grading.submission import submissions_in
from inakit.experiments.sweeps.trial import tried
from inakit.topo.errors import RunError, writing
from inakit.topo.live.signals import interrupts_held

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
    """Grade all submissions and write the table; a line for each student, in the order of their names.

    However it ends, the table of those that were graded is written. Raises `RunError` in the end where grading itself
    failed, which is no student's fault: they have no points in the table, and the reason.
    """
    submissions = submissions_in(request.folder)
    grades: dict[str, Grade | str] = {}
    # No copies of this process, whose threads would be missing in them: Python warns of that from 3.12 on.
    with ProcessPoolExecutor(request.jobs or os.cpu_count() or 1, get_context("forkserver")) as pool:
        asked = {student: pool.submit(grade, request.request(student, path)) for student, path in submissions.items()}
        try:
            for student, each in asked.items():
                found, error = tried(each.result)
                grades[student] = found or f"not graded: {error}"
                if found:
                    write_reports(request, student, found)
                yield line_of(student, grades[student])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with interrupts_held(), writing(request.table):
                request.table.write_text(table_of(request.lab, grades))
    yield f"wrote {request.table}"
    if failed := [student for student, found in grades.items() if isinstance(found, str)]:
        raise RunError(f"{len(failed)} of {len(grades)} were not graded, the first '{failed[0]}': {grades[failed[0]]}")


def line_of(student: str, found: Grade | str) -> str:
    """A student's points on a line, and what could not be graded; or why there is no grade."""
    if isinstance(found, str):
        return f"{student:24} {found}"
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


def table_of(lab: Lab, grades: Mapping[str, Grade | str]) -> str:
    """The table as CSV: points of each item, their sum, and what could not be graded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", *(item.name for item in lab.items), "points", "problem"])
    for student, found in grades.items():
        if isinstance(found, str):
            writer.writerow([student, *("" for _ in lab.items), "", found])
            continue
        points = [f"{each.points:g}" for each in found.graded]
        writer.writerow([student, *points, f"{found.points:g}", found.problem])
    return text.getvalue()
