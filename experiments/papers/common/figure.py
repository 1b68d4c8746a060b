"""A figure of a paper as the command line knows it, and how one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console


@dataclass(frozen=True)
class Request:
    """How a figure is wanted: `quick` is its cheaper variant, `switch` a target of `switch.targets`."""

    results: Path = Path("results")
    quick: bool = False
    switch: str = "auto"


@dataclass(frozen=True)
class Figure:
    """A figure or a claim of a paper. `run` prints it, leaves it in the results, and returns the verdict.

    `simulated`: it needs no emulated network.
    """

    summary: str
    run: Callable[[Console, Request], str]
    simulated: bool = False
