"""`inakit labs`: the course for teachers: what students get, a class graded, wrong solutions and their grades."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The course: what students get, grading a class, checking the grader.", no_args_is_help=True)

MISSED = 1
LabName = Annotated[str, typer.Argument(help="a lab, such as 2-sum")]


@app.command(name="list")
def list_labs() -> None:
    """The labs, what students write, hours and points."""
    from inakit.experiments.labs.registry import LABS  # noqa: PLC0415

    for lab in LABS.values():
        points = sum(item.points for item in lab.items)
        print(f"{lab.name:10} {lab.title:40} {lab.hours:>8} hours  {points} points  {', '.join(lab.files)}")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="a folder for what students get; labs that it has already stay")],
    labs: Annotated[list[str] | None, typer.Option("--lab", help="only this lab (several times: these)")] = None,
) -> None:
    """Write what students get: tasks, figures, skeletons and the tests that they see; no solutions."""
    from inakit.experiments.labs.export import export_labs  # noqa: PLC0415

    for path in export_labs(folder, labs or ()):
        print(f"wrote {path}")


@app.command(name="class")
def grade_class(
    lab: Annotated[Path, typer.Argument(help="the folder of a lab, such as labs/2-sum")],
    folder: Annotated[Path, typer.Argument(help="a folder with a submission, a folder or file, for each student")],
    seed: Annotated[str, typer.Option(help="what the tests are drawn from: any text")] = "0",
    per_student: Annotated[bool, typer.Option("--per-student", help="other tests for each student")] = False,
    table: Annotated[Path, typer.Option(help="one line for each student")] = Path("grades.csv"),
    reports: Annotated[Path | None, typer.Option(help="a folder for each student's report, as text and JSON")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="how many at a time; 0: one for each processor")] = 0,
) -> None:
    """Grade a whole class, several at a time, into one table."""
    from inakit.experiments.labs.registry import find_lab  # noqa: PLC0415
    from inakit.experiments.labs.report.classes import ClassRequest, grade_class  # noqa: PLC0415

    for line in grade_class(ClassRequest(find_lab(lab), lab, folder, seed, per_student, table, reports, jobs)):
        print(line, flush=True)


@app.command()
def throughput(
    program: Annotated[Path, typer.Argument(help="a compiled program of lab 3, such as pool.json")],
    slots: Annotated[list[int] | None, typer.Option(help="a size of the pool (several times: these); 1 to 64")] = None,
    workers: Annotated[int, typer.Option(help="1 to 8")] = 4,
    rate: Annotated[str, typer.Option(help="of each link, in bit/s, such as 100M")] = "100M",
    delay: Annotated[str, typer.Option(help="of each link in each direction, such as 25us")] = "25us",
) -> None:
    """Measure the throughput of a program over the size of its pool, in virtual time (lab 3)."""
    from inakit.experiments.labs.pool.curve import curve_lines  # noqa: PLC0415
    from inakit.experiments.labs.pool.star import Star  # noqa: PLC0415
    from inakit.topo.files.quantities import parse_duration, parse_rate  # noqa: PLC0415

    star = Star(workers, parse_rate(rate), parse_duration(delay))
    for line in curve_lines(program, star, slots or (1, 2, 4, 8, 16, 32, 64)):
        print(line, flush=True)


@app.command()
def leaderboard(
    folder: Annotated[Path, typer.Argument(help="a folder with a submission of lab 6 for each student")],
    seed: Annotated[str, typer.Option(help="what the networks are drawn from: any text")] = "0",
    table: Annotated[Path, typer.Option(help="one line for each student, the best first")] = Path("leaderboard.csv"),
) -> None:
    """Rank the planners of lab 6 on larger networks: the mean part of a bound that no plan exceeds."""
    from rich.console import Console  # noqa: PLC0415

    from inakit.experiments.labs.plan.leaderboard import Entry, board_of, ranked  # noqa: PLC0415
    from inakit.experiments.labs.plan.leaderboard import leaderboard as measured  # noqa: PLC0415
    from inakit.topo.errors import writing  # noqa: PLC0415

    def show(entries: list[Entry]) -> None:
        for rank, entry in ranked(entries):
            print(f"{rank:3} {entry.student:24} {entry.mean:6.1%}  {entry.problem}".rstrip())
        with writing(table):
            table.write_text(board_of(entries))
        print(f"wrote {table}")

    measured(folder, seed, Console(), show)


@app.command()
def fabric(
    student: Annotated[str, typer.Argument(help="your name, as it is in answers.yml")],
    folder: Annotated[Path, typer.Argument(help="the folder of lab 7")] = Path(),
) -> None:
    """Write fabric.yml, the fabric of a student in lab 7: every name has another one."""
    from inakit.experiments.labs.measure.own_fabric import write_own_fabric  # noqa: PLC0415

    print(f"wrote {write_own_fabric(student, folder)}")


@app.command(name="compile")
def compile_lab(lab: LabName) -> None:
    """Compile a lab's solutions and wrong solutions, for machines without p4c."""
    from inakit.experiments.labs.registry import lab_named, teacher_folder  # noqa: PLC0415
    from inakit.experiments.labs.teacher.trial import compile_all  # noqa: PLC0415

    print(f"{compile_all(teacher_folder(lab_named(lab).name))} programs")


@app.command()
def mutants(lab: LabName, seed: Annotated[str, typer.Option(help="what the tests are drawn from")] = "0") -> None:
    """Grade a lab's solutions, and its wrong solutions: each has to lose its item and no other (exit code 1 if not)."""
    from inakit.experiments.labs.registry import COURSE, lab_named, teacher_folder  # noqa: PLC0415
    from inakit.experiments.labs.teacher.trial import trials_of  # noqa: PLC0415
    from inakit.experiments.sweeps.one_trial import tried  # noqa: PLC0415

    failed = 0
    known = lab_named(lab)
    for name, trial in trials_of(known, COURSE, teacher_folder(known.name), seed):
        found, error = tried(trial)
        good = found is not None and found.as_expected
        failed += not good
        lost, cause = (", ".join(found.lost) or "-", found.cause) if found else ("?", f"not graded: {error}")
        print(f"{'ok ' if good else 'BAD'} {name:40} loses {lost:12} {cause[:100]}", flush=True)
    raise typer.Exit(MISSED if failed else 0)
