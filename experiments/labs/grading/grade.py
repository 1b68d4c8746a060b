"""Grades a submission, item by item, and a class: several submissions at a time, in one table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from random import Random

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.formats import FORMATS, README, Cells, csv_text, without_commands
from inakit.experiments.labs.grading.graded_switch import SANDBOX
from inakit.experiments.labs.grading.lab import Finding, Grade, Graded, Item, Lab, WrongError
from inakit.experiments.labs.grading.submission import read_submission, submissions_in
from inakit.experiments.labs.sandbox.process import EndedError, wall_limit
from inakit.experiments.sweeps.trial import code_version, key_of, told_in_a_line
from inakit.switch.program.p4_source import find_compiler
from inakit.topo.errors import InputError, MachineError, RunError, UnsupportedError, writing
from inakit.topo.live.signals import interrupts_held

MOST_NAME = 200
"""The bytes of a student's name up to which a report has this name."""
MOST_ENDS = 2
"""The number of killed processes after which a submission is not tried again."""
ITEM_S, SUBMISSION_S, WHOLE_S = 90.0, 300.0, 1200.0
"""The time for which the grader waits for a student's processes in an item and in a submission, and the time after
which it ends itself. Honest submissions need seconds; the rest is for machines under load."""


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


def of_student(seed: str, student: str) -> str:
    """The seed of a student's own tests; that of the class without a name."""
    return f"{seed}/{student}" if student else seed


def grade(request: Request) -> Grade:
    """Grade a submission. One that cannot be graded gets no points, and its problem in one sentence."""
    lab = request.lab
    try:
        bench = Bench(read_submission(request.submission, request.student, lab.files), request.target)
        with bench.stack, wall_limit(SUBMISSION_S):
            open_submission(lab, bench)
            graded = tuple(grade_items(request, bench))
            return Grade(lab.name, graded, notes=tuple(bench.notes))
    except MachineError:
        raise
    except (InputError, UnsupportedError, EndedError) as error:
        return Grade(lab.name, tuple(Graded(item, 0) for item in lab.items), problem=refusal(error))
    except Exception as error:
        return Grade(lab.name, tuple(failure(item, error) for item in lab.items))


def failure(item: Item, error: Exception | str) -> Graded:
    """The outcome of an item at which the grader failed, which is no fault of the student's."""
    why = told_in_a_line(error) if isinstance(error, Exception) else error
    return Graded(item, 0, Finding(f"the grader failed: {why}"), failed=True)


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
        except MachineError as error:
            if not others or find_compiler() is not None:
                raise
            bench.not_here = error
            bench.notes.append("without p4c only the other parts are graded: items of the P4 have no points yet")
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
                with wall_limit(ITEM_S):
                    bench.begin(request.random(item.name))
                    item.check(bench)
            except WrongError as wrong:
                finding, part = wrong.finding, wrong.part
            except EndedError as why:
                ended += 1
                finding = Finding(f"the submission ended during this item: {why}")
            except (InputError, UnsupportedError) as error:
                finding = Finding(str(error))
            except MachineError as error:
                if error is not bench.not_here:
                    raise
                bench.failed.add(item.part)
                yield Graded(item, 0, Finding(f"not graded: {error}"), failed=True)
                continue
            except Exception as error:
                yield failure(item, error)
                continue
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
        own = student if self.per_student else ""
        return Request(self.lab, self.lab_folder, submission, of_student(self.seed, own), student=own)

    def key(self, student: str, submission: Path) -> str:
        """What the grade of a student depends on: the submission, the seed and the grader."""
        try:
            inside = submission.is_dir() and not submission.is_symlink()
            files = sorted(submission.rglob("*")) if inside else [submission]
            parts = [(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in files]
        except (OSError, RecursionError):  # folders that are nested too deeply, or that change
            return ""
        of_seed = (self.seed, self.per_student, str(self.lab_folder.resolve()), self.lab.name, student)
        return key_of(parts=parts, of_seed=of_seed, code=code_version(Path(__file__).parents[1]))


@dataclass
class ClassTable:
    """The table of a class, written after each grade, and beside it a file with the grades so far.

    The file ends the work of a run that was interrupted: its grades are not made again. A complete table has none.
    """

    request: ClassRequest
    students: Sequence[str]
    rows: dict[str, Row] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file of the grades so far."""
        return self.request.table.with_name(f"{self.request.table.name}.so-far")

    def known(self) -> dict[str, Row]:
        """The grades of the file by their keys; a line that was cut off is none."""
        found = {}
        for line in self.path.read_text(errors="replace").splitlines() if self.path.is_file() else []:
            with suppress(ValueError, TypeError, KeyError):
                document = json.loads(line)
                found[str(document["key"])] = Row(**document["row"])
        return found

    def add(self, student: str, key: str, row: Row) -> None:
        """Write a grade into both files. Raises `OutputError`."""
        with interrupts_held(), writing(self.request.table):
            self.rows[student] = row
            if not row.failed:
                with self.path.open("a") as file:
                    file.write(json.dumps({"key": key, "row": asdict(row)}) + "\n")
            draft = self.path.with_name(f"{self.path.name}.new")
            draft.write_text(self.text, newline="")
            draft.replace(self.request.table)
            if len(self.rows) == len(self.students) and not self.failed:
                self.path.unlink(missing_ok=True)

    @property
    def failed(self) -> list[str]:
        """The students at whose submissions the grader failed."""
        return [student for student in self.students if student in self.rows and self.rows[student].failed]

    @property
    def text(self) -> str:
        """The table as CSV, sorted by name: points of each item, their sum, and why a submission was not graded."""
        rows = ([student, *self.rows[student].cells] for student in self.students if student in self.rows)
        return csv_text([self.head, *rows])

    @property
    def head(self) -> list[str]:
        """The names of the columns."""
        return ["student", *(item.name for item in self.request.lab.items), "points", "problem"]

    def told(self, student: str) -> tuple[str, Cells]:
        """A student's line for the terminal, and the cells of the table, points as numbers."""
        *points, problem = self.rows[student].cells
        cells = [student, *(float(each) if each else None for each in points), problem]
        return without_commands(f"{student:24} {self.rows[student].line}"), dict(zip(self.head, cells, strict=True))


@dataclass(frozen=True)
class Row:
    """A line of the table: its cells after the name, the line for the terminal, and whether the grader failed."""

    cells: list[str]
    line: str
    failed: bool

    @classmethod
    def of(cls, found: Grade) -> Row:
        """The line of a grade. An item at which the grader failed has no points, and neither has the sum."""
        points = ["" if each.failed else f"{each.points:g}" for each in found.graded]
        problem = found.failed or found.problem
        total = "" if found.failed else f"{found.points:g}"
        told = f"{total or '?':>5} of {found.most}  {problem.partition(chr(10))[0]}".rstrip()
        return cls([*points, total, problem], told, bool(found.failed))


def grade_class(request: ClassRequest) -> Iterator[tuple[str, Cells]]:
    """Grade all submissions and write the table: yield a line with its cells for each student, sorted by name.

    Each submission is graded by a process of its own. Raises `RunError` at the end if the grader failed for some
    students, which also happens on a machine that cannot grade.
    """
    submissions = submissions_in(request.folder)
    table = ClassTable(request, list(submissions))
    keys = {student: request.key(student, path) for student, path in submissions.items()}
    known = {key: row for key, row in table.known().items() if key}
    table.rows = {student: known[key] for student, key in keys.items() if key in known}
    # No forks of this process: a copy would lack its threads, of which Python warns from 3.12 on.
    context = get_context("forkserver")
    context.set_forkserver_preload(["inakit.experiments.labs.registry"])
    running: set[ForkServerProcess] = set()

    def graded(student: str) -> Grade:
        try:
            return grade_apart(request.request(student, submissions[student]), context, running)
        except Exception as error:
            return failed_grade(request.lab, error)

    with ThreadPoolExecutor(request.jobs or os.cpu_count() or 1) as pool:
        asked = {pool.submit(graded, student): student for student in submissions if student not in table.rows}
        told = 0
        try:
            for done in chain([None], as_completed(asked)):
                if done is not None:
                    found, student = done.result(), asked[done]
                    write_reports(request.reports, student, found)
                    table.add(student, keys[student], Row.of(found))
                while told < len(table.students) and table.students[told] in table.rows:
                    yield table.told(table.students[told])
                    told += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.kill()
    yield f"wrote {request.table}", {}
    if failed := table.failed:
        why = table.rows[failed[0]].cells[-1]
        raise RunError(f"the grader failed for {len(failed)} of {len(submissions)}, the first '{failed[0]}': {why}")


def failed_grade(lab: Lab, why: Exception | str) -> Grade:
    """The grade of a submission at which the grader failed."""
    return Grade(lab.name, tuple(failure(item, why) for item in lab.items))


def grade_apart(request: Request, context: ForkServerContext, running: set[ForkServerProcess]) -> Grade:
    """Grade a submission in a process of its own, so that nothing that ends it ends others."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=send_grade, args=(theirs, request), daemon=True)
    process.start()
    running.add(process)
    theirs.close()
    try:
        if not ours.poll(WHOLE_S):
            return failed_grade(request.lab, f"it took longer than {WHOLE_S:g} s")
        found: Grade = ours.recv()
        return found
    except EOFError:
        process.join()
        return failed_grade(request.lab, f"its process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()
        running.remove(process)
        ours.close()


def send_grade(pipe: Connection, request: Request) -> None:
    """Grade a submission, and send the grade."""
    try:
        pipe.send(grade(request))
    except MachineError as error:
        pipe.send(failed_grade(request.lab, error))


def write_reports(folder: Path | None, student: str, found: Grade) -> None:
    """Write a student's report as text and as JSON."""
    if folder is None:
        return
    name = student if len(student.encode()) <= MOST_NAME else f"{student[:20]}-{key_of(student=student)}"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for form, suffix in (("text", ".txt"), ("json", ".json")):
            (folder / f"{name}{suffix}").write_text(FORMATS[form](found))
