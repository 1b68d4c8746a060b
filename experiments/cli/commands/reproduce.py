"""`inakit reproduce`: figures of the papers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console

from inakit.experiments.cli.options import (
    RESULTS,
    Quick,
    Results,
    Switch,
    exit_code,
    one_figure,
    one_paper,
    split_names,
)
from inakit.experiments.papers.common.claims import find_ledger, ledgers, print_ledger
from inakit.experiments.papers.common.figure_registry import (
    Request,
    figures,
    find_figure,
    print_unusable,
    run_simulated,
)
from inakit.experiments.run.console import Screen
from inakit.experiments.run.run_folder import check_results
from inakit.experiments.run.scenario import parse_scale
from inakit.planner.own_planners import is_path
from inakit.planner.registry import OWN, find_method
from inakit.topo.errors import InputError
from inakit.traffic.measure.verdict import worst_of

Paper = Annotated[
    str | None, typer.Argument(help="goat, p4inc-aoi, ...; default: list all figures", autocompletion=one_paper)
]
FigureName = Annotated[
    str | None, typer.Argument(help="a figure of the paper; default: list them", autocompletion=one_figure)
]
Simulated = Annotated[bool, typer.Option("--simulated", help="all figures of the paper that need no network")]
FigureScale = Annotated[
    str | None, typer.Option("--scale", help="scale of rates and sizes (1: the paper's), for some figures by packets")
]
PlannerFiles = Annotated[
    str,
    typer.Option(
        help="files of further planners to compare, separated by commas: ./mine.py; those of planner/own and "
        "packages always take part"
    ),
]
Claims = Annotated[
    bool,
    typer.Option(
        "--claims", help="what the paper, or every paper, prints: our values, what is reproduced, what differs and why"
    ),
]


def reproduce(
    paper: Paper = None,
    figure: FigureName = None,
    simulated: Simulated = False,
    claims: Claims = False,
    quick: Quick = False,
    switch: Switch = "auto",
    scale: FigureScale = None,
    planners: PlannerFiles = "",
    results: Results = RESULTS,
) -> None:
    """Run a figure or a claim of a paper: table, CSV and plot."""
    if claims:
        asked = ledgers() if paper is None else [find_ledger(paper)]
        raise typer.Exit(exit_code(worst_of([print_ledger(Screen(), ledger, results) for ledger in asked])))
    if paper is None or (figure is None and not simulated):
        for names, found in figures(paper):
            own_paper, _, own_figure = names.partition(" ")
            cells = {"paper": own_paper, "figure": own_figure, "summary": found.summary}
            Screen().row(f"{names:28} {found.summary}", cells)
        return
    check_results(results)
    add_planners(split_names(planners), Screen())
    request = Request(results, quick, switch, None if scale is None else parse_scale(scale))
    if figure is None:
        raise typer.Exit(exit_code(run_simulated(paper, Screen(), request)))
    found = find_figure(paper, figure)
    found.check(request)
    raise typer.Exit(exit_code(found.run(Screen(), request)))


def add_planners(files: Iterable[str], console: Console) -> None:
    """Let planner files take part in figures, and print the user-defined planners that cannot. Raises `InputError`."""
    for file in files:
        if not is_path(file):
            raise InputError(
                f"--planners {file}: a file is expected, such as ./mine.py; other planners take part anyway"
            )
        find_method(OWN.add(file))
    print_unusable(console)
