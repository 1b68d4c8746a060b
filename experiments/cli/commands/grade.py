"""`inakit grade`: points for a submission of a lab, and for what failed the packets that show it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.emulated.grading import check_emulation, with_emulation
from inakit.experiments.labs.grading.grade import Request
from inakit.experiments.labs.grading.grade import grade as graded
from inakit.experiments.labs.grading.item import Grade
from inakit.experiments.labs.registry import find_lab
from inakit.experiments.labs.report.formats import FORMATS
from inakit.topo.errors import writing

STDOUT = Path("-")
MISSED = 1

LabFolder = Annotated[Path, typer.Argument(help="the folder of a lab, such as labs/2-sum")]
Handed = Annotated[Path, typer.Argument(help="what a student hands in: a folder, or a file")]
LabSeed = Annotated[str, typer.Option(help="what the tests are drawn from: any text; keep yours from students")]
Target = Annotated[
    str,
    typer.Option(help="what runs P4: sandbox; or, for programs that you trust, fast, virtual, kernel, bmv2"),
]
Emulate = Annotated[str | None, typer.Option(help="run it in Mininet, too, on fast or bmv2 (as root; labs 2 to 5)")]


def grade(
    lab: LabFolder,
    submission: Handed,
    seed: LabSeed = "0",
    target: Target = "sandbox",
    emulate: Emulate = None,
    json: Annotated[Path | None, typer.Option(help="write all as JSON to this file (-: the terminal)")] = None,
    gradescope: Annotated[Path | None, typer.Option(help="write Gradescope's results.json")] = None,
    classroom: Annotated[Path | None, typer.Option(help="write what GitHub Classroom's reporter takes")] = None,
    junit: Annotated[Path | None, typer.Option(help="write JUnit's XML")] = None,
) -> None:
    """Grade a submission of a lab: points for each item, and why some are missing (exit code 1 unless all are there).

    What students hand in runs in a sandbox, without root and without a network; the same seed gives the same result.
    """
    found = grade_of(Request(find_lab(lab), lab, submission, seed, target), emulate)
    wanted = {"json": json, "gradescope": gradescope, "classroom": classroom, "junit": junit}
    for name, path in wanted.items():
        if path is not None and path != STDOUT:
            with writing(path):
                path.write_text(FORMATS[name](found))
    shown = next((name for name, path in wanted.items() if path == STDOUT), "text")
    print(FORMATS[shown](found), end="")
    raise typer.Exit(0 if found.complete else MISSED)


def grade_of(request: Request, emulate: str | None) -> Grade:
    """The grade, with the run in Mininet if switches of a target are to be emulated."""
    if emulate is None:
        return graded(request)
    check_emulation(request.lab.name, emulate)
    return with_emulation(request, graded(request), emulate)
