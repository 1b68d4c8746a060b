"""`inakit study new`: a study file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.study.starter import write_starter


def new(file: Annotated[Path, typer.Argument(help="a new .yml file")] = Path("study.yml")) -> None:
    """Write a study file to begin with, every key explained."""
    write_starter(file)
    Screen().print(f"wrote {file}; run it: inakit study run {file}", highlight=False, soft_wrap=True)
