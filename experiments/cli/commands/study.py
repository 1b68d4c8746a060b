"""`inakit study new|run|show`. What runs and reads studies needs an extra, and is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, Processes, Results, split_names
from inakit.experiments.run.console import Screen
from inakit.experiments.study.setting import starter_text
from inakit.topo.files.reader import write_new


def new(file: Annotated[Path, typer.Argument(help="a new .yml file")] = Path("study.yml")) -> None:
    """Write a starter study file, with every key explained."""
    write_new({file: starter_text()})
    Screen().print(f"wrote {file}; run it: inakit study run {file}", highlight=False, soft_wrap=True)


On = Annotated[
    str, typer.Option(help="loky: processes of this machine; dask:tcp://HOST:8786; submitit:slurm,timeout_min=60")
]
Again = Annotated[str, typer.Option(help="kept runs to repeat: failed, all, or the first letters of their names")]

INCOMPLETE = 1


def run(
    file: Annotated[Path, typer.Argument(help="a study file, which `inakit study new` writes")],
    on: On = "loky",
    processes: Processes = None,
    again: Again = "",
    results: Results = RESULTS,
) -> None:
    """Run what has no result yet, and write the table. Exit code 1 if a run failed or is not VALID."""
    from inakit.experiments.study.commands import run_file  # noqa: PLC0415, needs an extra

    raise typer.Exit(0 if run_file(file, on, processes, again, results, Screen()) else INCOMPLETE)


def show(
    file: Annotated[Path, typer.Argument(help="a study file, which `inakit study new` writes")],
    by: Annotated[str, typer.Option(help="keys to group by, separated by commas; default: those of the file")] = "",
    of: Annotated[str, typer.Option(help="figures, separated by commas; default: those of the file")] = "",
    against: Annotated[str, typer.Option(help="the planner with which others are compared; default: the first")] = "",
    results: Results = RESULTS,
) -> None:
    """Print mean, median, 95 % interval and paired differences; write them as CSV and LaTeX, and the figures as PDF."""
    from inakit.experiments.study.commands import show_file  # noqa: PLC0415, needs an extra

    show_file(file, split_names(by), split_names(of), against, results, Screen())
