"""Grades a submission: every item of a lab, its points, and for what failed a finding with the task's lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Protocol

from inakit.experiments.labs.grading.items import Finding, Grade, Graded, Item, WrongError
from inakit.experiments.labs.grading.submission import Submission, read_submission, refusal
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.topo.errors import InakitError, MachineError

README = "README.md"


def task_lines(lab: Path, step: str) -> tuple[str, ...]:
    """The heading of a step and the lines below it, each with the number of its line; none if the README has none."""
    path = lab / README
    if not path.is_file():
        return ()
    lines = path.read_text().splitlines()
    first = next((n for n, line in enumerate(lines) if is_heading(line, step)), None)
    if first is None:
        return ()
    after = next((n for n in range(first + 1, len(lines)) if lines[n].startswith("#")), len(lines))
    chosen = [(n, lines[n]) for n in range(first, after) if lines[n].strip()][:8]
    return tuple(f"{README}:{n + 1}: {line}" for n, line in chosen)


def is_heading(line: str, step: str) -> bool:
    return line.startswith("#") and line.lstrip("# ").startswith((f"{step}:", f"{step} "))


MOST_ENDS = 2
"""After the submission has been ended so often, it is not tried again."""


class Graders(Protocol):
    """What opens a submission of one lab for grading."""

    def bench(self, item: Item, random: Random) -> Any:
        """What an item's check is given."""
        ...

    def finding(self, wrong: WrongError) -> Finding:
        """What shows that something is wrong."""
        ...

    def after(self, item: Item, *, passed: bool) -> None:
        """Hear whether an item has its points, before the next one is graded."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever reads the grade has to know: what is not enforced here, and what was graded."""
        ...


class Lab(Protocol):
    """A lab: its folder's name, its items, and how a submission of it is opened."""

    @property
    def name(self) -> str:
        """The name of its folder, such as 2-sum."""
        ...

    @property
    def title(self) -> str:
        """What it is about."""
        ...

    @property
    def hours(self) -> str:
        """The hours that it takes."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """The files that students hand in."""
        ...

    @property
    def items(self) -> tuple[Item, ...]:
        """What is graded."""
        ...

    def open(self, submission: Submission, target: str) -> AbstractContextManager[Graders]:
        """Open a submission; `InputError` for one that cannot be graded."""
        ...


@dataclass(frozen=True)
class Request:
    """What is graded: a lab, its folder, a submission's path, the seed of the tests, and what runs switches.

    `student` is who handed the submission in, where that is known.
    """

    lab: Lab
    folder: Path
    submission: Path
    seed: str = "0"
    target: str = "sandbox"
    student: str = ""


def grade(request: Request) -> Grade:
    """The grade of a submission. A submission that cannot be graded has no points, and a problem in one sentence."""
    lab = request.lab
    try:
        submission = read_submission(request.submission, request.student, lab.files)
        with lab.open(submission, request.target) as opened:
            graded = tuple(grade_items(request, opened))
            return Grade(lab.name, request.seed, graded, notes=opened.notes)
    except MachineError:
        raise
    except (InakitError, EndedError) as error:
        none = tuple(Graded(item, 0) for item in lab.items)
        return Grade(lab.name, request.seed, none, problem=refusal(error))


def grade_items(request: Request, opened: Graders) -> Iterator[Graded]:
    ended = 0
    for item in request.lab.items:
        finding: Finding | None = None
        part = 0.0
        if ended >= MOST_ENDS:
            finding = Finding(f"not tried: the submission has been ended {ended} times before")
        else:
            try:
                item.check(opened.bench(item, random_of(request.seed, request.lab.name, item.name)))
            except WrongError as wrong:
                finding, part = opened.finding(wrong), wrong.part
            except EndedError as why:
                ended += 1
                finding = Finding(f"the submission did not live through this: {why}")
            except InakitError as error:
                finding = Finding(str(error))
        opened.after(item, passed=finding is None)
        task = task_lines(request.folder, item.step)
        yield (
            Graded(item, item.points)
            if finding is None
            else Graded(item, round(item.points * part, 1), replace(finding, task=task))
        )


def random_of(seed: str, lab: str, item: str) -> Random:
    """What the tests of an item are drawn from: the same on every machine."""
    return Random(f"{seed}/{lab}/{item}")
