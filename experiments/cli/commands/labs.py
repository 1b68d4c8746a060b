"""`inakit labs ...` and `inakit grade`: the course, and its grader."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import Processes, Seed, output_option, time_option
from inakit.experiments.labs.course.in_mininet import check_emulation, with_emulation
from inakit.experiments.labs.course.leaderboard import Standing, board_of, ranked
from inakit.experiments.labs.course.leaderboard import leaderboard as measured
from inakit.experiments.labs.course.measure_lab import write_own_fabric
from inakit.experiments.labs.course.pool_lab import Star, curve
from inakit.experiments.labs.grading.formats import FORMATS, Cells, as_gradescope, csv_text, lines_of
from inakit.experiments.labs.grading.grade import ClassRequest, Request, of_student
from inakit.experiments.labs.grading.grade import grade as graded
from inakit.experiments.labs.grading.grade import grade_class as graded_class
from inakit.experiments.labs.grading.handing_over import collect as collected
from inakit.experiments.labs.grading.handing_over import similarities, write_bundle
from inakit.experiments.labs.grading.lab import Grade
from inakit.experiments.labs.grading.teacher import compile_all, compile_skeletons, trials_of
from inakit.experiments.labs.registry import (
    COURSE,
    LABS,
    export_labs,
    find_lab,
    lab_folder,
    task_folder,
    teacher_folder,
)
from inakit.experiments.labs.sandbox.process import allow_unconfined
from inakit.experiments.labs.sandbox.untrusted import printable
from inakit.experiments.run.console import Screen
from inakit.experiments.sweeps.trial import tried
from inakit.switch.program.p4_source import compiled
from inakit.topo.errors import InputError, RunError, writing
from inakit.topo.files.quantities import parse_rate
from inakit.topo.files.reader import FileKind, read_text

SEED, LEAST_SEED = "INAKIT_SEED", 12
SeedFile = Annotated[
    Path | None, typer.Option(help=f"a file with the seed of the tests, any text; or the variable {SEED} has it")
]
Unconfined = Annotated[
    bool, typer.Option("--unconfined", help="also grade where nothing confines programs: only those that you trust")
]


def given_seed(file: Path | None) -> str | None:
    """The seed in a file, or in the environment; None if there is none. Raises `InputError`."""
    seed = read_text(file, FileKind("file with a seed", max_bytes=1 << 12)) if file else os.environ.get(SEED, "")
    return seed.strip() or None


def show(lines: Iterable[tuple[str, Cells]]) -> None:
    """Print lines as they come; those with cells are rows of a table, and all others are notes."""
    for line, cells in lines:
        if cells:
            Screen().row(line, cells)
        else:
            Screen().print(line, highlight=False, markup=False, soft_wrap=True)


def list_labs() -> None:
    """List the labs: the files that students write, hours and points."""
    for lab in LABS.values():
        points = sum(item.points for item in lab.items)
        line = f"{lab.name:10} {lab.title:40} {lab.hours:>8} hours  {points} points  {', '.join(lab.files)}"
        cells = {
            "lab": lab.name,
            "title": lab.title,
            "hours": lab.hours,
            "points": points,
            "files": " ".join(lab.files),
        }
        Screen().row(line, cells)


def export(
    folder: Annotated[Path, typer.Argument(help="a folder for the students' files; labs that it already has stay")],
    labs: Annotated[list[str] | None, typer.Option("--lab", help="only this lab; can be repeated")] = None,
) -> None:
    """Write the students' files: tasks, figures, skeletons and the tests that they see; no solutions."""
    for path in export_labs(folder, labs or ()):
        print(f"wrote {path}")


def grade_class(
    lab: Annotated[Path, typer.Argument(help="the folder of a lab, such as labs/2-sum")],
    folder: Annotated[Path, typer.Argument(help="a folder with one submission (a folder or file) per student")],
    seed_file: SeedFile = None,
    per_student: Annotated[bool, typer.Option("--per-student", help="draw different tests for each student")] = False,
    output: Annotated[Path, output_option("the table to write, a line per student")] = Path("grades.csv"),
    reports: Annotated[Path | None, typer.Option(help="a folder for each student's report, as text and JSON")] = None,
    processes: Processes = None,
    unconfined: Unconfined = False,
) -> None:
    """Grade a whole class, several at a time, into one table; the same command goes on where it was interrupted."""
    if unconfined:
        allow_unconfined()
    if (seed := given_seed(seed_file)) is None:
        raise InputError(f"a class needs a seed that students do not know: --seed-file FILE, or the variable {SEED}")
    if len(seed) < LEAST_SEED:
        raise InputError(f"a seed of {len(seed)} letters can be guessed: write at least {LEAST_SEED} random ones")
    show(
        graded_class(
            ClassRequest(find_lab(lab), task_folder(lab), folder, seed, per_student, output, reports, processes or 0)
        )
    )


def collect(
    export: Annotated[Path, typer.Argument(help="the zip of all submissions, as Moodle, Canvas or Blackboard give it")],
    folder: Annotated[Path, typer.Argument(help="a new folder, for `inakit labs class`")],
    due: Annotated[str, typer.Option(help="the last time that is not late, such as '2026-11-30 23:59'")] = "",
) -> None:
    """Write a folder for each student or group of a platform's zip, and beside it a table of who was late."""
    for each in sorted(collected(export, folder, due), key=lambda each: each.student):
        notes = ", ".join(note for note in (each.group and f"group {each.group}", "late" if each.late else "") if note)
        cells = {"student": each.student, "handed_in": each.when, "group": each.group, "late": each.late}
        Screen().row(f"{each.student:24} {each.when}  {notes}".rstrip(), cells)
    Screen().print(f"wrote {folder} and {folder.name}.csv", highlight=False, markup=False, soft_wrap=True)


def bundle(
    lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")],
    wheel: Annotated[Path, typer.Argument(help="the kit's wheel, which `pip wheel --no-deps .` writes")],
    output: Annotated[Path, output_option("the zip to write")] = Path("autograder.zip"),
    seed_file: SeedFile = None,
    visibility: Annotated[
        str, typer.Option(help="when students see the result: visible, after_due_date, after_published, hidden")
    ] = "visible",
    unconfined: Unconfined = False,
) -> None:
    """Write a lab's autograder for Gradescope: setup.sh, run_autograder, the kit and the seed."""
    seed = given_seed(seed_file)
    print(f"wrote {write_bundle(output, find_lab(lab), wheel, seed, visibility, unconfined=unconfined)}")


def similar(
    lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")],
    folder: Annotated[Path, typer.Argument(help="a folder with one submission (a folder or file) per student")],
    output: Annotated[Path, output_option("the table to write, a line per pair, the most similar first")] = Path(
        "similar.csv"
    ),
) -> None:
    """Compare the submissions of a class in pairs: the share of text that both have and the skeleton lacks."""
    known = find_lab(lab)
    pairs = similarities(known, lab_folder(known.name), folder)
    with writing(output):
        output.write_text(csv_text([("student", "other", "similar"), *pairs]))
    for one, other, share in pairs[:10]:
        Screen().row(f"{share:6.1%}  {one}  {other}", {"share": share, "student": one, "other": other})
    Screen().print(f"wrote {output}", highlight=False, soft_wrap=True)


def throughput(
    program: Annotated[Path, typer.Argument(help="a program of lab 3, such as pool.p4 or pool.json")],
    slots: Annotated[list[int] | None, typer.Option(help="a size of the pool, 1 to 64; can be repeated")] = None,
    workers: Annotated[int, typer.Option(help="1 to 8")] = 4,
    capacity: Annotated[str, typer.Option(help="capacity of every link: 100M")] = "100M",
    delay: Annotated[float, time_option("delay of each link in each direction")] = 25e-6,
) -> None:
    """Measure the throughput of a program over the size of its pool, in virtual time (lab 3)."""
    allow_unconfined()
    star = Star(workers, parse_rate(capacity), delay)
    console = Screen(highlight=False)
    console.print(f"{star}\n{'slots':>5} {'Mbit/s':>10}")
    for each, rate_bps, bar in curve(compiled(program), star, slots or (1, 2, 4, 8, 16, 32, 64)):
        console.row(f"{each:5} {rate_bps / 1e6:10.3f} {bar}", {"slots": each, "throughput_bps": rate_bps})


def leaderboard(
    folder: Annotated[Path, typer.Argument(help="a folder with a submission of lab 6 for each student")],
    seed_file: SeedFile = None,
    output: Annotated[Path, output_option("the table to write, a line per student, the best first")] = Path(
        "leaderboard.csv"
    ),
    unconfined: Unconfined = False,
) -> None:
    """Rank the planners of lab 6 on larger networks by their mean share of a bound that no plan exceeds."""
    if unconfined:
        allow_unconfined()

    def show(entries: list[Standing]) -> None:
        for rank, entry in ranked(entries):
            problem = printable(entry.problem)
            line = f"{rank:3} {entry.student:24} {entry.mean:6.1%}  {problem}".rstrip()
            cells = {"rank": rank, "student": entry.student, "mean": entry.mean, "problem": problem}
            Screen().row(line, cells)
        with writing(output):
            output.write_text(board_of(entries))
        Screen().print(f"wrote {output}", highlight=False, soft_wrap=True)

    measured(folder, given_seed(seed_file) or "0", Screen(), show)


def fabric(
    student: Annotated[str, typer.Argument(help="your name, as it is in answers.yml")],
    folder: Annotated[Path, typer.Argument(help="the folder of lab 7")] = Path(),
) -> None:
    """Write fabric.yml, a student's fabric in lab 7: every name has a different one."""
    print(f"wrote {write_own_fabric(student, folder)}")


def compile_lab(lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")]) -> None:
    """Compile a lab's solutions and wrong solutions, and what students get, for machines without p4c."""
    allow_unconfined()
    print(f"{compile_all(teacher_folder(find_lab(lab).name)) + compile_skeletons(COURSE)} programs")


CAUGHT_NOT = 1


def mutants(
    lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")],
    seed: Seed = 0,
) -> None:
    """Grade a lab's solutions and wrong solutions: each must lose its item and no other (exit code 1 if not)."""
    failed = 0
    known = find_lab(lab)
    for name, trial in trials_of(known, COURSE, teacher_folder(known.name), str(seed)):
        found, error = tried(trial)
        good = found is not None and found.as_expected
        failed += not good
        lost, cause = (", ".join(found.lost) or "-", found.cause) if found else ("?", f"not graded: {error}")
        line = f"{'ok ' if good else 'BAD'} {name:40} loses {lost:12} {cause[:100]}"
        Screen().row(line, {"good": good, "solution": name, "loses": lost, "cause": cause})
    raise typer.Exit(CAUGHT_NOT if failed else 0)


STDOUT = Path("-")
MISSED = 1

LabFolder = Annotated[Path, typer.Argument(help="the folder of a lab, such as labs/2-sum")]
Handed = Annotated[Path, typer.Argument(help="a student's submission: a folder, or a file")]
Target = Annotated[
    str,
    typer.Option(help="the target for P4: sandbox; for programs that you trust also fast, virtual, kernel, bmv2"),
]
Emulate = Annotated[str | None, typer.Option(help="also run it in Mininet, on fast or bmv2 (as root; labs 2 to 5)")]


def grade(
    lab: LabFolder,
    submission: Handed,
    seed_file: SeedFile = None,
    target: Target = "sandbox",
    emulate: Emulate = None,
    json: Annotated[Path | None, typer.Option(help="write everything as JSON to this file (-: the terminal)")] = None,
    gradescope: Annotated[Path | None, typer.Option(help="write Gradescope's results.json")] = None,
    classroom: Annotated[Path | None, typer.Option(help="write the input of GitHub Classroom's reporter")] = None,
    junit: Annotated[Path | None, typer.Option(help="write JUnit XML")] = None,
    visibility: Annotated[
        str, typer.Option(help="when Gradescope shows it: visible, after_due_date, after_published, hidden")
    ] = "visible",
    student: Annotated[
        str,
        typer.Option(
            help="the student's name, as in `labs class --per-student`: tests of their own, and in lab 7 whose fabric"
        ),
    ] = "",
    unconfined: Unconfined = False,
) -> None:
    """Grade a submission of a lab: points for each item, and why some are missing (exit code 1 unless all are there).

    Submissions run in a sandbox, without root and without a network; the same seed gives the same result.
    """
    if unconfined:
        allow_unconfined()
    seed = of_student(given_seed(seed_file) or "0", student)
    request = Request(find_lab(lab), task_folder(lab), submission, seed, target, student)
    found = grade_of(request, emulate)
    if found.failed:
        show(lines_of(found))
        raise RunError(f"{found.failed}: no other file is written, since there are no points to be told")
    wanted = {"json": json, "gradescope": gradescope, "classroom": classroom, "junit": junit}
    for name, path in wanted.items():
        if path is not None and path != STDOUT:
            with writing(path):
                path.write_text(as_gradescope(found, visibility) if name == "gradescope" else FORMATS[name](found))
    piped = next((name for name, path in wanted.items() if path == STDOUT), None)
    if piped is None:
        show(lines_of(found))
    else:
        print(FORMATS[piped](found), end="")
    raise typer.Exit(0 if found.complete else MISSED)


def grade_of(request: Request, emulate: str | None) -> Grade:
    """Return the grade, with the run in Mininet if `emulate` names a target."""
    if emulate is None:
        return graded(request)
    check_emulation(request.lab.name, emulate)
    return with_emulation(request, graded(request), emulate)
