"""`inakit labs mutants`: whether the grader finds what is wrong with a lab's wrong solutions."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.labs.registry import COURSE, lab_named, teacher_folder
from inakit.experiments.labs.teacher.trial import trials_of
from inakit.experiments.sweeps.one_trial import tried

MISSED = 1


def mutants(
    lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")],
    seed: Annotated[str, typer.Option(help="what the tests are drawn from")] = "0",
) -> None:
    """Grade a lab's solutions, and its wrong solutions: each has to lose its item and no other (exit code 1 if not)."""
    failed = 0
    known = lab_named(lab)
    for name, trial in trials_of(known, COURSE, teacher_folder(known.name), seed):
        found, error = tried(trial)
        good = found is not None and found.as_expected
        failed += not good
        lost, cause = (", ".join(found.lost) or "-", found.cause) if found else ("?", f"not graded: {error}")
        print(f"{'ok ' if good else 'BAD'} {name:40} loses {lost:12} {cause[:100]}", flush=True)
    raise typer.Exit(MISSED if failed else 0)
