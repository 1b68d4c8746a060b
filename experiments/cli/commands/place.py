"""`inakit place`: places a queue of jobs on a fabric by one or more policies, and writes files that planners take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from inakit.experiments.cli.options import FabricOptions, Seed, output_option, split_names, time_option
from inakit.experiments.run.console import Amount, Screen
from inakit.experiments.run.scenario import FabricChoice
from inakit.planner.core.files import save_jobs
from inakit.planner.placement import InaOptions, PlacedJob, find_policy, load_queue, place_queue
from inakit.topo.errors import InputError, writing
from inakit.topo.files.reader import write_csv
from inakit.traffic.wire.packet_format import FRAGMENT

Queue = Annotated[Path, typer.Option(help="a YAML file of queued jobs, whose workers and servers are numbers")]
Placements = Annotated[str, typer.Option(help="netpack, mina, first; several, separated by commas, are compared")]
Quota = Annotated[
    int, typer.Option(help="jobs that a switch serves at once under policies with exclusive INA (mina, first)")
]
RoundTrip = Annotated[float, time_option("how long a slot is held under policies with statistical INA (netpack)")]
At = Annotated[float | None, time_option("write the jobs that run at this time; default: when most jobs run")]
PlacementFolder = Annotated[
    Path | None,
    output_option("folder for placement.csv and jobs.yml, which planners take; a subfolder per policy if several"),
]


def place(
    fabric: FabricOptions,
    queue: Queue,
    placements: Placements = "netpack",
    quota: Quota = 1,
    round_trip: RoundTrip = 0.001,
    at: At = None,
    seed: Seed = 0,
    output: PlacementFolder = None,
) -> None:
    """Place a queue of jobs that come and go: the hosts of each, the jobs with INA, and expected completion times."""
    names, options = split_names(placements) or (placements,), InaOptions(quota, round_trip)
    place_and_print(Screen(), fabric.choice(seed), queue, names, options, at, output)


COLUMNS = ("job", "arrival_s", "start_s", "end_s", "ina_s", "workers", "servers")


def place_and_print(
    console: Console,
    fabric: FabricChoice,
    queue: Path,
    names: Sequence[str],
    options: InaOptions,
    at_s: float | None,
    output: Path | None,
) -> None:
    """Place the queue by every policy, print a row for each, and write files for each. Raises `InputError`."""
    policies = {name: find_policy(name) for name in names}
    jobs, built = load_queue(queue), fabric.build()
    placed = {name: place_queue(built, jobs, policy, FRAGMENT, options) for name, policy in policies.items()}
    console.print(comparison(placed))
    for name, found in placed.items():
        if output is not None:
            write(output if len(placed) == 1 else output / name, found, at_s)


def comparison(placed: Mapping[str, Sequence[PlacedJob]]) -> Table:
    """A row for each policy: means over jobs, the share of time with INA, and the end of the last job."""
    table = Table("placement", "mean JCT", "mean wait", "with INA", "all done")
    for name, jobs in placed.items():
        ran = sum(job.end_s - job.start_s for job in jobs)
        figures = (
            Amount(fmean(job.completion_s for job in jobs), "s"),
            Amount(fmean(job.start_s - job.job.arrival_s for job in jobs), "s"),
            f"{sum(job.ina_s for job in jobs) / ran:.0%}",
            Amount(max(job.end_s for job in jobs), "s"),
        )
        table.add_row(name, *figures)
    return table


def write(folder: Path, placed: Sequence[PlacedJob], at_s: float | None) -> None:
    """Write `placement.csv`, and `jobs.yml` with the jobs that run at a time."""
    running = running_at(placed, busiest_s(placed) if at_s is None else at_s)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "placement.csv", COLUMNS, map(row, sorted(placed, key=lambda job: job.start_s)))
    save_jobs(tuple(job.planned for job in running), folder / "jobs.yml")


def row(placed: PlacedJob) -> tuple[object, ...]:
    """A line of `placement.csv`."""
    job = placed.planned
    times = (f"{time:.6f}" for time in (placed.job.arrival_s, placed.start_s, placed.end_s, placed.ina_s))
    return job.number, *times, " ".join(job.workers), " ".join(job.servers)


def busiest_s(placed: Sequence[PlacedJob]) -> float:
    """The first time at which most jobs run."""
    starts = sorted(job.start_s for job in placed)
    return max(starts, key=lambda time: len([job for job in placed if job.start_s <= time < job.end_s]))


def running_at(placed: Sequence[PlacedJob], at_s: float) -> list[PlacedJob]:
    """The jobs that run at a time, by number. Raises `InputError` where there are none."""
    found = [job for job in placed if job.start_s <= at_s < job.end_s]
    if not found:
        raise InputError(f"no job runs at {at_s:g} s: the last ends at {max(job.end_s for job in placed):.3f} s")
    return sorted(found, key=lambda job: job.job.number)
