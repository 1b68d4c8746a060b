"""`inakit calibrate`: one fabric and plan, the check of the result, or a curve over sizes of fat-trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from inakit.experiments.bench.virtual_time import SIMULATED, Simulated, simulate
from inakit.experiments.calibrate.limit import (
    CALIBRATED,
    Calibration,
    Curve,
    T,
    curve_table,
    find_limit,
    print_calibration,
    verify,
    write_curve,
)
from inakit.experiments.calibrate.rate_probe import TrialNetwork
from inakit.experiments.cli.options import RESULTS, FabricOptions, JobsOptions, Results, Seed, one_planner, one_world
from inakit.experiments.run.console import Screen, working
from inakit.experiments.run.planning import plan_to_run, print_headroom
from inakit.experiments.run.run_folder import check_results, make_new_folder, stamp
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem, parse_scale
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.experiments.worlds.emulated import emulated_world
from inakit.experiments.worlds.registry import print_choice
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.own_planners import name_of
from inakit.topo.errors import InputError

Planner = Annotated[
    str, typer.Option("--planners", help="one planner, by name or file (./mine.py)", autocompletion=one_planner)
]
CurveSizes = Annotated[str | None, typer.Option(help="fat-trees of these k, such as 4,6,8, with work for all hosts")]
Switch = Annotated[
    str,
    typer.Option(
        help="bmv2 or fast; auto: bmv2 where it is installed, else fast; with --curve also virtual",
        autocompletion=one_world,
    ),
]
Verify = Annotated[int, typer.Option(help="check that overload is detected, with this many runs at each rate")]


def calibrate(
    fabric: FabricOptions,
    job: JobsOptions,
    planner: Planner = "aro",
    switch: Switch = "auto",
    seed: Seed = 0,
    curve: CurveSizes = None,
    verify: Verify = 0,
    results: Results = RESULTS,
) -> None:
    """Find the highest link rate at which this machine carries a plan; `emulate` then warns of rates above it."""
    command = CalibrationRequest(fabric.choice(seed), job.choice(seed), planner, switch, seed)
    if curve is not None:
        raise typer.Exit(run_curve(command, curve, results, Screen()))
    raise typer.Exit(run_calibrate(command, verify, Screen()))


@dataclass(frozen=True)
class CalibrationRequest:
    """The fabric, jobs, planner, switch and seed of a calibration."""

    fabric: FabricChoice
    job: JobChoice
    planner: str
    switch: str
    seed: int

    def network(self, console: Console) -> TrialNetwork:
        """Make the plan, and return a network for its trials. Raises `InakitError` before any network is built."""
        world, problem = emulated_world(self.switch), build_problem(self.fabric, self.job)
        print_choice(console, self.switch, world.name)
        with working(console, f"{problem.fabric.name}: planning"):
            run = plan_to_run(problem, self.planner, self.seed)
        hosts, switches = len(problem.fabric.hosts), len(problem.fabric.switches)
        console.print(
            f"{problem.fabric.name}: {switches} switches, {hosts} hosts; {name_of(self.planner)} on {world.name}",
            highlight=False,
        )
        print_headroom(console, name_of(self.planner), run)
        return TrialNetwork(problem, run.plan, world)


def run_calibrate(command: CalibrationRequest, verify_runs: int, console: Console) -> int:
    """Find the highest link rate that is carried and, with `verify_runs`, check the verdicts of runs around it.

    Return the exit code: 1 if a verdict breaks its promise. Raises `InputError` for a negative number of runs, and for
    virtual time.
    """
    if command.switch == VirtualWorld.name:
        raise InputError("switch 'virtual' carries any link rate: choose fast or bmv2, or give --curve 4,6,8")
    if verify_runs < 0:
        raise InputError(f"--verify {verify_runs}: a number of runs is expected, such as 30")
    with command.network(console) as bed:
        found = find_limit(bed, console)
        print_calibration(console, found, parse_scale(command.fabric.scale))
        return 0 if not verify_runs or verify(bed, found.trial.scale, verify_runs, console) else 1


def run_curve(command: CalibrationRequest, sizes: str, results: Path, console: Console) -> int:
    """Measure fat-trees of the sizes in `sizes`, print the curve, and write it to a new folder in `results`.

    After an error or an interrupt the curve of the sizes so far is printed and written. Return exit code 1 if a size
    failed.
    """
    check_results(results)
    numbers = parse_sizes(sizes)
    if command.switch == VirtualWorld.name:
        # The process's memory only grows, so larger fabrics must come later.
        return measured_curve(SIMULATED, command, sorted(numbers), simulated, results, console)
    return measured_curve(CALIBRATED, command, numbers, calibrated, results, console)


def measured_curve(
    curve: Curve[T],
    command: CalibrationRequest,
    sizes: Sequence[int],
    measure: Callable[[CalibrationRequest, Console], T],
    results: Path,
    console: Console,
) -> int:
    """Measure one size after another, and show the curve of those that did not fail. Return the exit code."""

    def show(rows: Sequence[Row[str, T]]) -> int:
        found = [row.found for row in rows if row.found is not None]
        if found:
            console.print(curve_table(curve, found))
            for path in write_curve(curve, found, make_new_folder(results, f"{stamp()}-curve")):
                console.print(f"wrote {path}", highlight=False)
        return int(len(found) < len(rows))

    commands = {f"k = {k}": of_size(command, k) for k in sizes}
    return measure_rows(
        list(commands),
        lambda size: measure(commands[size], console),
        lambda _: "measured",
        show,
        console,
        waiting=lambda *_: nullcontext(),
    )


def of_size(command: CalibrationRequest, k: int) -> CalibrationRequest:
    """Return the request for a fat-tree of size `k` with work for all hosts."""
    return all_hosts(replace(command, fabric=replace(command.fabric, topo="fattree", k=k)))


def calibrated(command: CalibrationRequest, console: Console) -> Calibration:
    """Find and print the highest link rate that is carried."""
    with command.network(console) as bed:
        found = find_limit(bed, console)
    print_calibration(console, found, parse_scale(command.fabric.scale))
    return found


def simulated(command: CalibrationRequest, console: Console) -> Simulated:
    """Measure a run in virtual time."""
    problem = build_problem(command.fabric, command.job)
    with working(console, f"{problem.fabric.name}: in virtual time"):
        return simulate(problem, command.planner, command.seed)


def parse_sizes(text: str) -> list[int]:
    """Parse "4,6,8" as numbers. Raises `InputError`."""
    try:
        return [int(k) for k in text.split(",")]
    except ValueError as error:
        raise InputError(f"--curve {text}: sizes of fat-trees are expected, such as 4,6,8") from error


def all_hosts(command: CalibrationRequest) -> CalibrationRequest:
    """Return the request with all hosts but the PSs as workers, unless it has a number of workers or a file of jobs."""
    if command.job.file or command.job.workers:
        return command
    hosts = len(command.fabric.build().hosts)
    return replace(command, job=replace(command.job, workers=hosts - command.job.servers))
