"""`inakit reproduce`: run a figure or a claim of a paper."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from experiments.cli.options import RESULTS, Results, Switch, exit_code

Paper = Annotated[str | None, typer.Argument(help="goat, p4inc-aoi, ...; all figures are listed without it")]
FigureName = Annotated[str | None, typer.Argument(help="one of the paper's; listed without it")]
Simulated = Annotated[bool, typer.Option("--simulated", help="all of the paper's that need no network")]
Quick = Annotated[bool, typer.Option("--quick", help="fewer and shorter runs")]


def reproduce(
    paper: Paper = None,
    figure: FigureName = None,
    simulated: Simulated = False,
    quick: Quick = False,
    switch: Switch = "auto",
    results: Results = RESULTS,
) -> None:
    """Run a figure or a claim of a paper: table, CSV and plot."""
    from experiments.papers.common.figure import Request  # noqa: PLC0415
    from experiments.papers.figures import figures, find_figure, run_simulated  # noqa: PLC0415
    from experiments.run.record import check_results  # noqa: PLC0415

    if paper is not None and (figure is not None or simulated):
        check_results(results)
    if paper is not None and figure is None and simulated:
        raise typer.Exit(exit_code(run_simulated(paper, Console(), Request(results, quick, switch))))
    if paper is None or figure is None:
        for names, found in figures(paper):
            print(f"{names:28} {found.summary}")
        return
    raise typer.Exit(exit_code(find_figure(paper, figure).run(Console(), Request(results, quick, switch))))
