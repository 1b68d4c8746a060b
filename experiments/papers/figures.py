"""The registry of the papers' figures: each is one command, `inakit reproduce PAPER FIGURE`.

A new figure is a line in `figures.csv`, and an entry of `FIGURES` in the module that the line names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.common.figure import Figure, Request
from inakit.experiments.sweeps.trial import tried
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.measure.verdict import Verdict, worst_of

LISTED = Path(__file__).with_suffix(".csv")
"""By paper and figure: its module, how it runs (simulated, by packets, or by packets at any scale), and a summary."""


def read_figures() -> dict[str, dict[str, Figure]]:
    """The listed figures, by paper and name."""
    found: dict[str, dict[str, Figure]] = {}
    with LISTED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            run = partial(run_listed, row["module"], row["figure"])
            figure = Figure(row["summary"], run, row["runs"] == "simulated", row["runs"] == "at any scale")
            found.setdefault(row["paper"], {})[row["figure"]] = figure
    return found


def run_listed(module: str, name: str, console: Console, request: Request) -> str:
    """Run a figure of a module, which is imported only now."""
    verdict: str = import_module(f"inakit.experiments.papers.{module}").FIGURES[name](console, request)
    return verdict


FIGURES = read_figures()


def find_figure(paper: str, figure: str) -> Figure:
    """The figure of that name. Raises `InputError` with the nearest paper or figure for an unknown one."""
    found = figures_of(paper)
    if figure not in found:
        raise unknown_name(f"figure of '{paper}'", figure, found)
    return found[figure]


def figures(paper: str | None = None) -> Iterator[tuple[str, Figure]]:
    """The figures of one paper or of all, each with its name on the command line, such as "aro fig7"."""
    for name in FIGURES if paper is None else [paper]:
        for figure, found in figures_of(name).items():
            yield f"{name} {figure}", found


def run_simulated(paper: str, console: Console, request: Request) -> str:
    """Run all simulated figures of a paper and return their worst verdict. Raises `InputError` if there are none.

    A figure that fails says why, and the others are run.
    """
    verdicts = []
    for name, figure in figures_of(paper).items():
        if figure.simulated:
            figure.check(request)
            console.rule(f"{paper} {name}: {figure.summary}")
            verdict, error = tried(partial(figure.run, console, request))
            verdicts.append(verdict or Verdict.FAILED)
            if error:
                console.print(f"{paper} {name} failed: {error}", highlight=False, markup=False, soft_wrap=True)
    if not verdicts:
        raise InputError(
            f"paper '{paper}' has no simulated figure: name one of its figures, {', '.join(FIGURES[paper])}"
        )
    return worst_of(verdicts)


def figures_of(paper: str) -> dict[str, Figure]:
    """The figures of a paper by name. Raises `InputError` with the nearest name for an unknown paper."""
    if paper not in FIGURES:
        raise unknown_name("paper", paper, FIGURES)
    return FIGURES[paper]
