"""`inakit validate`: a network judged before it is bought."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, Results
from inakit.experiments.hardware.validation import start, validate_file
from inakit.experiments.run.console import Screen
from inakit.topo.errors import InputError

SiteFile = Annotated[
    Path | None, typer.Argument(help="a site's file, which --starter writes", show_default=False, metavar="SITE.YML")
]
Starter = Annotated[
    Path | None, typer.Option(help="write a starter site.yml, fabric.yml and jobs.yml into this folder")
]
On = Annotated[
    str, typer.Option(help="the engine for planning failures: loky (processes of this machine), dask:, submitit:")
]
Processes = Annotated[int | None, typer.Option(min=1, help="processes; default: one per processor")]

DOES_NOT_HOLD = 1


def validate(
    site: SiteFile = None,
    starter: Starter = None,
    on: On = "loky",
    processes: Processes = None,
    results: Results = RESULTS,
) -> None:
    """Judge a network before it is bought: plans, chips, virtual time, and every single failure.

    Exit code 0 if the site holds, 1 if it does not. Results are kept; after Ctrl-C the same command continues.
    """
    if (site is None) == (starter is None):
        raise InputError("give a site's file; or --starter FOLDER, which writes a starter")
    if starter is not None:
        start(starter, Screen())
    elif site is not None:
        raise typer.Exit(0 if validate_file(site, on, processes, results, Screen()) else DOES_NOT_HOLD)
