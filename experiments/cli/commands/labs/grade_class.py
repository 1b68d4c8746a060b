"""`inakit labs class`: a whole class graded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.registry import find_lab
from inakit.experiments.labs.report.classes import ClassRequest
from inakit.experiments.labs.report.classes import grade_class as graded


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
    for line in graded(ClassRequest(find_lab(lab), lab, folder, seed, per_student, table, reports, jobs)):
        print(line, flush=True)
