"""`inakit labs throughput`: a program of lab 3 over the size of its pool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.labs.pool.curve import curve_lines
from inakit.experiments.labs.pool.star import Star
from inakit.topo.files.quantities import parse_duration, parse_rate


def throughput(
    program: Annotated[Path, typer.Argument(help="a compiled program of lab 3, such as pool.json")],
    slots: Annotated[list[int] | None, typer.Option(help="a size of the pool (several times: these); 1 to 64")] = None,
    workers: Annotated[int, typer.Option(help="1 to 8")] = 4,
    rate: Annotated[str, typer.Option(help="of each link, in bit/s, such as 100M")] = "100M",
    delay: Annotated[str, typer.Option(help="of each link in each direction, such as 25us")] = "25us",
) -> None:
    """Measure the throughput of a program over the size of its pool, in virtual time (lab 3)."""
    star = Star(workers, parse_rate(rate), parse_duration(delay))
    for line in curve_lines(program, star, slots or (1, 2, 4, 8, 16, 32, 64)):
        print(line, flush=True)
