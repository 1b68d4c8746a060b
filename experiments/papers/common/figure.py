"""A figure of a paper as the command line knows it, and the request by which it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console


@dataclass(frozen=True)
class Request:
    """How a figure is to be run: `results` is the folder for its files, `quick` asks for its cheaper variant.

    `switch` is a target of `switch.targets`, or auto.
    """

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"


@dataclass(frozen=True)
class Figure:
    """A figure or a claim of a paper. `run` prints it, leaves its files in the results, and returns the verdict.

    A `simulated` figure needs no emulated network.
    """

    summary: str
    run: Callable[[Console, Request], str]
    simulated: bool = False
