"""`inakit study run`: the runs of a study that are not kept yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, Results
from inakit.experiments.run.printed.tables import Screen
from inakit.experiments.study.commands import run_file

On = Annotated[
    str, typer.Option(help="loky: processes of this machine; dask:tcp://HOST:8786; submitit:slurm,timeout_min=60")
]
Processes = Annotated[int | None, typer.Option(min=1, help="runs at once; default: one for each processor")]
Again = Annotated[
    str, typer.Option(help="what is to be run again although it is kept: failed, all, or the first letters of runs")
]

INCOMPLETE = 1


def run(
    file: Annotated[Path, typer.Argument(help="a study file, which `inakit study new` writes")],
    on: On = "loky",
    processes: Processes = None,
    again: Again = "",
    results: Results = RESULTS,
) -> None:
    """Run what is not kept yet, and write the table. Exit code 1 where a run failed or is not VALID."""
    raise typer.Exit(0 if run_file(file, on, processes, again, results, Screen()) else INCOMPLETE)
