"""The registry of the papers' figures: each is one command, `inakit reproduce PAPER FIGURE`.

A new figure is a line in `experiments/papers/figures.csv`, and an entry of `FIGURES` in the module that the line names.
A `Request` says how to run a figure. User-defined planners take part in every figure that compares planners.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.common.claims import read_ledger, settle
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.sweeps.trial import tried
from inakit.planner.registry import OWN
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.measure.verdict import Verdict, worst_of


@dataclass(frozen=True)
class Request:
    """How a figure is run: `results` is the folder for its files, `quick` asks for its cheaper variant.

    `switch` is a world, or auto. `scale` multiplies rates and sizes: 1 for the paper's own, None for the figure's
    default. `paper` and `figure` name the figure, whose claims are judged.
    """

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"
    scale: float | None = None
    paper: str = ""
    figure: str = ""

    @property
    def unprinted(self) -> bool:
        """Whether it is a figure of the paper, as its number says, for which the ledger has no printed value."""
        claims = read_ledger(self.paper).of_figure(self.figure)
        return self.figure.startswith("fig") and bool(claims) and all(one.paper is None for one in claims.values())

    def settle(self, console: Console, judged: Sequence[Statement]) -> Verdict:
        """Compare the judged claims with the ledger, as `settle` of `inakit.experiments.papers.common.claims`."""
        return settle(console, self.results, self.paper, self.figure, judged, quick=self.quick)


Run = Callable[[Console, Request], str]
"""Runs a figure: prints it, writes its files to the results, and returns the verdict."""


@dataclass(frozen=True)
class Figure:
    """A figure or a claim of a paper, as the command line lists it.

    A `simulated` figure needs no emulated network. Where it `scales`, a request may choose the scale.
    """

    summary: str
    run: Run
    simulated: bool = False
    scales: bool = False

    def check(self, request: Request) -> None:
        """Raise `InputError` for a scale that is not positive, or for a figure whose scale is fixed."""
        if request.scale is None:
            return
        if not self.scales:
            raise InputError(
                f"--scale {request.scale:g}: the figure '{self.summary}' has a fixed scale; omit the option"
            )
        if not request.scale > 0:
            raise InputError(f"--scale {request.scale:g}: it must be greater than 0, such as 1/100")


COMPARES_SCHEDULERS = (
    "it compares schedulers of optical circuits (planner/methods/p4inc_aoi), which get a Scheduling and give a \
Schedule, while a planner gets a Problem and gives a Plan"
)
COMPARES_VARIANTS = "it compares a method's own variants"


def own_planners() -> tuple[str, ...]:
    """The names of the usable user-defined planners; their code is imported to check them."""
    return tuple(name for name in OWN if not wrong_with(name))


def wrong_with(name: str) -> str:
    """The reason why a user-defined planner cannot be used; empty if it can."""
    try:
        OWN[name].method  # noqa: B018, it runs the planner's code
    except InputError as error:
        return str(error)
    return ""


def print_unusable(console: Console) -> None:
    """Print a line for each user-defined planner that cannot be used."""
    for name in OWN:
        if wrong := wrong_with(name):
            console.print(f"not in this figure: {name}: {wrong}", highlight=False, markup=False, soft_wrap=True)


def leave_out(console: Console, why: str) -> None:
    """Print that user-defined planners are not in this figure, and why; print nothing if there are none."""
    if names := own_planners():
        console.print(f"not in this figure: {', '.join(names)} ({why})", highlight=False, soft_wrap=True)


LISTED = Path(__file__).parents[1] / "figures.csv"
"""By paper and figure: the module, the kind of run (simulated, by packets, by packets at any scale), a summary."""


def read_figures() -> dict[str, dict[str, Figure]]:
    found: dict[str, dict[str, Figure]] = {}
    with LISTED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            run = partial(run_listed, row["module"], row["paper"], row["figure"])
            figure = Figure(row["summary"], run, row["runs"] == "simulated", row["runs"] == "at any scale")
            found.setdefault(row["paper"], {})[row["figure"]] = figure
    return found


def run_listed(module: str, paper: str, name: str, console: Console, request: Request) -> str:
    """Run a figure of a module, which is imported when the figure runs."""
    named = replace(request, paper=paper, figure=name)
    verdict: str = import_module(f"inakit.experiments.papers.{module}").FIGURES[name](console, named)
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

    A figure that fails is reported with its reason, and the others still run.
    """
    verdicts = []
    for name, figure in figures_of(paper).items():
        if figure.simulated:
            figure.check(request)
            console.print(
                f"\n{paper} {name}: {figure.summary}", style="bold", markup=False, highlight=False, soft_wrap=True
            )
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
