"""Figures of the papers, each one command: `inakit reproduce PAPER FIGURE`. A new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console

from topo.errors import unknown_name


@dataclass(frozen=True)
class Request:
    """How a figure is wanted: `quick` is its cheaper variant, `switch` a target of `switch.target`."""

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"


@dataclass(frozen=True)
class Figure:
    """A figure or a claim of a paper. `run` prints it, leaves it in the results, and returns the verdict."""

    summary: str
    run: Callable[[Console, Request], str]


def module(name: str, function: str = "run") -> Callable[[Console, Request], str]:
    """A function of a module of this package, imported when it is called: not every figure needs a network."""

    def run(console: Console, request: Request) -> str:
        verdict: str = getattr(import_module(f"{__name__}.{name}"), function)(console, request)
        return verdict

    return run


FIGURES: dict[str, dict[str, Figure]] = {
    "aro": {
        "fig7": Figure("one task: rates by default, over INA switches, over workers", module("aro", "fig7")),
        "fig8": Figure("one task: rates over the number of pipelines", module("aro", "fig8")),
        "fig9": Figure("one job of 1 to 4 tasks: least and total rate", module("aro", "fig9")),
        "fig10": Figure("1 to 4 jobs of two tasks: least and total rate", module("aro", "fig10")),
        "fig11": Figure("five jobs: what SRO and APP save and lose", module("aro_efficiency", "fig11")),
        "fig12": Figure("what alpha of APP saves and loses", module("aro_efficiency", "fig12")),
        "fig13": Figure("what N of QSR saves and loses", module("aro_efficiency", "fig13")),
    },
    "atro": {
        "fig3": Figure("rates of ATRO, ARO, PARING and SPAR", module("atro", "fig3")),
        "fig4": Figure("rates over the number of workers", module("atro", "fig4")),
        "fig5": Figure("rates over the number of aggregators", module("atro", "fig5")),
    },
    "goat": {
        "fig13-emulated": Figure(
            "communication overhead over the spread of worker rates: ATP, ESA, GOAT", module("goat_asynchrony")
        ),
    },
    "p4inc-aoi": {
        "locality": Figure("traffic between units: jobs inside one, jobs over two, no INC", module("aoi_locality")),
    },
}


def find_figure(paper: str, figure: str) -> Figure:
    """The figure of that name. Raises `InputError` with the nearest paper or figure for an unknown one."""
    found = figures_of(paper)
    if figure not in found:
        raise unknown_name(f"figure of '{paper}'", figure, found)
    return found[figure]


def figures(paper: str | None = None) -> Iterator[tuple[str, Figure]]:
    """All figures, or those of one paper, each with what to call it on the command line."""
    for name in FIGURES if paper is None else [paper]:
        for figure, found in figures_of(name).items():
            yield f"{name} {figure}", found


def figures_of(paper: str) -> dict[str, Figure]:
    if paper not in FIGURES:
        raise unknown_name("paper", paper, FIGURES)
    return FIGURES[paper]
