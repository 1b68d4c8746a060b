"""`inakit study new`. It needs no extra."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.run.console import Screen
from inakit.experiments.study.setting import write_starter


def new(file: Annotated[Path, typer.Argument(help="a new .yml file")] = Path("study.yml")) -> None:
    """Write a starter study file, with every key explained."""
    write_starter(file)
    Screen().print(f"wrote {file}; run it: inakit study run {file}", highlight=False, soft_wrap=True)
