"""`inakit labs fabric`: the fabric of a student in lab 7."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.measure.own_fabric import write_own_fabric


def fabric(
    student: Annotated[str, typer.Argument(help="your name, as it is in answers.yml")],
    folder: Annotated[Path, typer.Argument(help="the folder of lab 7")] = Path(),
) -> None:
    """Write fabric.yml, the fabric of a student in lab 7: every name has another one."""
    print(f"wrote {write_own_fabric(student, folder)}")
