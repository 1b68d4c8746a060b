"""`inakit labs compile`: a lab's solutions and wrong solutions as compiled programs."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.labs.registry import lab_named, teacher_folder
from inakit.experiments.labs.teacher.trial import compile_all


def compile_lab(lab: Annotated[str, typer.Argument(help="a lab, such as 2-sum")]) -> None:
    """Compile a lab's solutions and wrong solutions, for machines without p4c."""
    print(f"{compile_all(teacher_folder(lab_named(lab).name))} programs")
