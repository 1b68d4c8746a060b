"""`inakit report`: the page of a run, of several runs, or of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import RESULTS, Results, output_option
from inakit.experiments.report.write import write_comparison, write_report
from inakit.experiments.run.console import Screen
from inakit.experiments.study.table import is_study
from inakit.topo.errors import InputError

Paths = Annotated[
    list[Path],
    typer.Argument(help="a run's folder, or several to compare; or a study's file or folder", show_default=False),
]
Output = Annotated[
    Path | None,
    output_option("the file to write; default: report.html in the folder, comparison.html here for several runs"),
]
COMPARISON = Path("comparison.html")


def report(paths: Paths, output: Output = None, results: Results = RESULTS) -> None:
    """Write one page that shows a run, compares several, or shows a study. Any browser opens it, without a network."""
    if any(is_study(path) for path in paths):
        if len(paths) > 1:
            raise InputError(f"{len(paths)} studies or runs at once: give one study alone, or several runs to compare")
        from inakit.experiments.study.commands import report_study  # noqa: PLC0415, only studies need an extra

        written = report_study(paths[0], results, output)
    elif len(paths) > 1 or output is not None:
        written = write_comparison(paths, output or COMPARISON)
    else:
        written = write_report(paths[0])
    Screen().print(f"wrote {written}", highlight=False, soft_wrap=True)
