"""Grades a submission, item by item, and a class: several submissions at a time, in one table."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.formats import FORMATS
from inakit.experiments.labs.grading.graded_switch import SANDBOX
from inakit.experiments.labs.grading.lab import Finding, Grade, Graded, Item, Lab, WrongError
from inakit.experiments.labs.grading.submission import read_submission, submissions_in
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.sweeps.trial import tried
from inakit.topo.errors import InakitError, InputError, MachineError, RunError, UnsupportedError, writing
from inakit.topo.live.signals import interrupts_held

README = "README.md"
MOST_ENDS = 2
"""The number of killed processes after which a submission is not tried again."""


@dataclass(frozen=True)
class Request:
    """A lab, its folder, the path of a submission, the seed of the tests, and the target that runs switches.

    `student` is the submission's author, if known.
    """

    lab: Lab
    folder: Path
    submission: Path
    seed: str = "0"
    target: str = SANDBOX
    student: str = ""

    def random(self, item: str) -> Random:
        """The random generator of an item's tests: the same on every machine."""
        return Random(f"{self.seed}/{self.lab.name}/{item}")


def grade(request: Request) -> Grade:
    """Grade a submission. One that cannot be graded gets no points, and its problem in one sentence."""
    lab = request.lab
    try:
        bench = Bench(read_submission(request.submission, request.student, lab.files), request.target)
        with bench.stack:
            open_submission(lab, bench)
            graded = tuple(grade_items(request, bench))
            return Grade(lab.name, request.seed, graded, notes=tuple(bench.notes))
    except MachineError:
        raise
    except (InakitError, EndedError) as error:
        none = tuple(Graded(item, 0) for item in lab.items)
        return Grade(lab.name, request.seed, none, problem=refusal(error))


def refusal(error: Exception) -> str:
    """The reason, in words, why a submission is not graded or a program is not loaded."""
    return f"the program does not load: {error}" if isinstance(error, EndedError) else str(error)


def open_submission(lab: Lab, bench: Bench) -> None:
    """Load the lab's program. Raises an error if nothing can be graded."""
    if lab.sandbox_only and bench.target != SANDBOX:
        raise UnsupportedError(f"--target {bench.target}: {lab.name} {lab.sandbox_only}")
    first, *others = lab.files
    if first.endswith(".p4"):
        try:
            bench.load(first.removesuffix(".p4"))
        except (InputError, UnsupportedError, EndedError) as error:
            if not others:
                raise
            bench.refused = refusal(error)
    elif not others:
        bench.submission.text(first)
    if lab.begin is not None:
        lab.begin(bench)


def grade_items(request: Request, bench: Bench) -> Iterator[Graded]:
    """Grade all items in order."""
    ended = 0
    for item in request.lab.items:
        finding: Finding | None = None
        part = 0.0
        if ended >= MOST_ENDS:
            finding = Finding(f"not tried: the submission was already ended {ended} times")
        else:
            try:
                bench.begin(request.random(item.name))
                item.check(bench)
            except WrongError as wrong:
                finding, part = wrong.finding, wrong.part
            except EndedError as why:
                ended += 1
                finding = Finding(f"the submission ended during this item: {why}")
            except MachineError:
                raise
            except InakitError as error:
                finding = Finding(str(error))
        if finding is None:
            yield Graded(item, item.points)
            continue
        bench.failed.add(item.part)
        yield Graded(item, round(item.points * part, 1), replace(finding, task=task_lines(request.folder, item.step)))


def task_lines(lab: Path, step: str) -> tuple[str, ...]:
    """A step's heading and the lines below it, with line numbers; empty if the README lacks the step."""
    path = lab / README
    lines = path.read_text().splitlines() if path.is_file() else []
    starts = (f"{step}:", f"{step} ")
    first = next((n for n, at in enumerate(lines) if at.startswith("#") and at.lstrip("# ").startswith(starts)), None)
    if first is None:
        return ()
    after = next((n for n in range(first + 1, len(lines)) if lines[n].startswith("#")), len(lines))
    chosen = [(n, lines[n]) for n in range(first, after) if lines[n].strip()][:8]
    return tuple(f"{README}:{n + 1}: {line}" for n, line in chosen)


# -- a class


@dataclass(frozen=True)
class ClassRequest:
    """A class to be graded: `folder` holds the submissions, named after their students."""

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
    """Grade all submissions and write the table: one line for each student, sorted by name.

    The table of the graded submissions is written in any case. Raises `RunError` at the end if grading itself failed
    for some students: the table gives them no points, and the reason.
    """
    submissions = submissions_in(request.folder)
    grades: dict[str, Grade | str] = {}
    # No forks: a copy of this process would lack its threads, of which Python warns from 3.12 on.
    with ProcessPoolExecutor(request.jobs or os.cpu_count() or 1, get_context("forkserver")) as pool:
        asked = {student: pool.submit(grade, request.request(student, path)) for student, path in submissions.items()}
        try:
            for student, each in asked.items():
                found, error = tried(each.result)
                grades[student] = found or f"not graded: {error}"
                if found is None:
                    yield f"{student:24} {grades[student]}"
                    continue
                write_reports(request.reports, student, found)
                problem = found.problem.splitlines()[0] if found.problem else ""
                yield f"{student:24} {found.points:>5g} of {found.most}  {problem}".rstrip()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with interrupts_held(), writing(request.table):
                request.table.write_text(table_of(request.lab.items, grades))
    yield f"wrote {request.table}"
    if failed := [student for student, found in grades.items() if isinstance(found, str)]:
        raise RunError(f"{len(failed)} of {len(grades)} were not graded, the first '{failed[0]}': {grades[failed[0]]}")


def write_reports(folder: Path | None, student: str, found: Grade) -> None:
    """Write a student's report as text and as JSON."""
    if folder is None:
        return
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for form, suffix in (("text", ".txt"), ("json", ".json")):
            (folder / f"{student}{suffix}").write_text(FORMATS[form](found))


def table_of(items: tuple[Item, ...], grades: Mapping[str, Grade | str]) -> str:
    """The table as CSV: points of each item, their sum, and the reason why a submission was not graded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", *(item.name for item in items), "points", "problem"])
    for student, found in grades.items():
        if isinstance(found, str):
            writer.writerow([student, *("" for _ in items), "", found])
        else:
            points = [f"{each.points:g}" for each in found.graded]
            writer.writerow([student, *points, f"{found.points:g}", found.problem])
    return text.getvalue()
