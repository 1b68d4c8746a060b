"""`inakit place`: place a queue of jobs on a fabric, by one policy or by several in comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import FabricOptions, Seed, split_names
from inakit.experiments.run.placement import place_and_print
from inakit.experiments.run.printed.tables import Screen
from inakit.planner.placement.simulate import InaOptions
from inakit.topo.files.quantities import parse_duration

Queue = Annotated[Path, typer.Option(help="a YAML file of queued jobs, whose workers and servers are numbers")]
By = Annotated[str, typer.Option(help="netpack, mina, first; several, comma between, are compared")]
Quota = Annotated[int, typer.Option(help="jobs that a switch serves at once where INA is exclusive (mina, first)")]
RoundTrip = Annotated[str, typer.Option(help="how long a slot is held where INA is statistical (netpack)")]
At = Annotated[str | None, typer.Option(help="the time whose running jobs are written; default: when most run")]
Output = Annotated[
    Path | None,
    typer.Option(help="folder for placement.csv and jobs.yml, which planners take; one for each of several"),
]


def place(
    fabric: FabricOptions,
    queue: Queue,
    by: By = "netpack",
    quota: Quota = 1,
    round_trip: RoundTrip = "1ms",
    at: At = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Place a queue of jobs that come and go: hosts for each, who has INA when, and completion times to expect."""
    options = InaOptions(quota, parse_duration(round_trip))
    moment = None if at is None else parse_duration(at)
    place_and_print(Screen(), fabric.choice(seed), queue, split_names(by) or (by,), options, moment, output)
