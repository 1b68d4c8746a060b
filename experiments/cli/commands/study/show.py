"""`inakit study show`: the summaries and figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, Results, split_names
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.study.commands import show_file


def show(
    file: Annotated[Path, typer.Argument(help="a study file, which `inakit study new` writes")],
    by: Annotated[str, typer.Option(help="keys that make a group, comma between; default: those of the file")] = "",
    of: Annotated[str, typer.Option(help="figures, comma between; default: those of the file")] = "",
    against: Annotated[str, typer.Option(help="the planner with which others are compared; default: the first")] = "",
    results: Results = RESULTS,
) -> None:
    """Print mean, median, 95 % interval and paired differences; write them as CSV and LaTeX, and the figures as PDF."""
    show_file(file, split_names(by), split_names(of), against, results, Screen())
