"""A figure of a paper as the command line knows it, the request by which it is run, and planners of one's own in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from inakit.planner.registry import OWN
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class Request:
    """How a figure is run: `results` is the folder for its files, `quick` asks for its cheaper variant.

    `switch` is a world, or auto. `scale` is that of rates and sizes, 1 for the paper's own; None is the figure's own.
    """

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"
    scale: float | None = None


Run = Callable[[Console, Request], str]
"""Runs a figure: prints it, leaves its files in the results, and returns the verdict."""


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
        """Raise `InputError` for a scale that is not positive, or that the figure has no use for."""
        if request.scale is None:
            return
        if not self.scales:
            raise InputError(f"--scale {request.scale:g}: the figure '{self.summary}' has only one; leave it away")
        if not request.scale > 0:
            raise InputError(f"--scale {request.scale:g}: it must be greater than 0, such as 1/100")


COMPARES_SCHEDULERS = (
    "it compares schedulers of optical circuits (planner/methods/p4inc_aoi), which get a Scheduling and give a \
Schedule, while a planner gets a Problem and gives a Plan"
)
COMPARES_VARIANTS = "it compares a method's own variants"


def own_planners() -> tuple[str, ...]:
    """The names of the planners of one's own that can be used; their code is run to know that."""
    return tuple(name for name in OWN if not wrong_with(name))


def wrong_with(name: str) -> str:
    """Why a planner of one's own cannot be used; empty where it can."""
    try:
        OWN[name].method  # noqa: B018, it runs the planner's code
    except InputError as error:
        return str(error)
    return ""


def print_unusable(console: Console) -> None:
    """Print a line for each planner of one's own that cannot be used."""
    for name in OWN:
        if wrong := wrong_with(name):
            console.print(f"not in this figure: {name}: {wrong}", highlight=False, markup=False, soft_wrap=True)


def leave_out(console: Console, why: str) -> None:
    """Print that the planners of one's own are not in this figure, and why; print nothing where there are none."""
    if names := own_planners():
        console.print(f"not in this figure: {', '.join(names)} ({why})", highlight=False, soft_wrap=True)
