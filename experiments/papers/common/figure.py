"""A figure of a paper as the command line knows it, and the request by which it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from inakit.topo.errors import InputError


@dataclass(frozen=True)
class Request:
    """How a figure is to be run: `results` is the folder for its files, `quick` asks for its cheaper variant.

    `switch` is a world, or auto. `scale` is that of rates and sizes, 1 for the paper's own; None is the figure's own.
    """

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"
    scale: float | None = None


@dataclass(frozen=True)
class Figure:
    """A figure or a claim of a paper. `run` prints it, leaves its files in the results, and returns the verdict.

    A `simulated` figure needs no emulated network. Where it `scales`, a request may choose the scale.
    """

    summary: str
    run: Callable[[Console, Request], str]
    simulated: bool = False
    scales: bool = False

    def check(self, request: Request) -> None:
        """Raise `InputError` for a scale that is none, or that the figure has no use for."""
        if request.scale is None:
            return
        if not self.scales:
            raise InputError(f"--scale {request.scale:g}: the figure '{self.summary}' has only one; leave it away")
        if not request.scale > 0:
            raise InputError(f"--scale {request.scale:g}: it must be greater than 0, such as 1/100")
