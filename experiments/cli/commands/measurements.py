"""`inakit calibrate`, `bench`, `exactness` and `agree`: what this machine, the kit and its worlds are measured by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from inakit.experiments.bench.agreement import Extent, chosen, run_agreement
from inakit.experiments.bench.exactness import (
    CONDITIONS,
    LONG,
    cells,
    chosen_worlds,
    parse_levels,
    run_matrix,
    shared_out,
)
from inakit.experiments.bench.planner_times import bench_planners, bench_several
from inakit.experiments.bench.sweep_engine import bench_sweep, sweep_table
from inakit.experiments.bench.switch_rates import lacking, print_findings, run_bench, targets_here
from inakit.experiments.bench.virtual_time import SIMULATED, Simulated, bench_virtual, datacentre, hops_table, simulate
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
from inakit.experiments.calibrate.trials import TrialNetwork
from inakit.experiments.cli.options import (
    RESULTS,
    FabricOptions,
    JobsOptions,
    Program,
    Results,
    Seed,
    one_planner,
    one_world,
    some_policies,
    some_worlds,
    split_names,
)
from inakit.experiments.run.console import Screen, working
from inakit.experiments.run.planning import plan_to_run, print_headroom
from inakit.experiments.run.record import check_results, make_new_folder, stamp
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem, parse_scale
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.experiments.worlds.emulated import emulated_world
from inakit.experiments.worlds.registry import AUTO, find_world, print_choice
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.install.program import find_program
from inakit.planner.own_planners import name_of
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class Command:
    """What is to be calibrated, as the command line says it."""

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


def run_calibrate(command: Command, verify_runs: int, console: Console) -> int:
    """Find the highest link rate that is carried and, with `verify_runs`, check the verdicts of runs around it.

    Returns the exit code: 1 if a verdict breaks its promise. Raises `InputError` for a negative number of runs, or for
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


def run_curve(command: Command, sizes: str, results: Path, console: Console) -> int:
    """Measure fat-trees of the sizes in `sizes`, print the curve, and write it to a new folder in `results`.

    However it ends, the curve of what was measured is printed and written. Returns the exit code: 1 if a size failed.
    """
    check_results(results)
    numbers = parse_sizes(sizes)
    if command.switch == VirtualWorld.name:
        # The process's memory only grows, so larger fabrics come later.
        return measured_curve(SIMULATED, command, sorted(numbers), simulated, results, console)
    return measured_curve(CALIBRATED, command, numbers, calibrated, results, console)


def measured_curve(
    curve: Curve[T],
    command: Command,
    sizes: Sequence[int],
    measure: Callable[[Command, Console], T],
    results: Path,
    console: Console,
) -> int:
    """Measure one size after another, and show the curve of those that did not fail. Returns the exit code."""

    def show(rows: Sequence[Row[str, T]]) -> int:
        found = [row.found for row in rows if row.found is not None]
        if found:
            show_curve(curve, found, results, console)
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


def of_size(command: Command, k: int) -> Command:
    """The same for a fat-tree of that size, all of whose hosts have work."""
    return all_hosts(replace(command, fabric=replace(command.fabric, topo="fattree", k=k)))


def calibrated(command: Command, console: Console) -> Calibration:
    """The highest link rate that is carried, which is also printed."""
    with command.network(console) as bed:
        found = find_limit(bed, console)
    print_calibration(console, found, parse_scale(command.fabric.scale))
    return found


def simulated(command: Command, console: Console) -> Simulated:
    """What a run in virtual time takes."""
    problem = build_problem(command.fabric, command.job)
    with working(console, f"{problem.fabric.name}: in virtual time"):
        return simulate(problem, command.planner, command.seed)


def show_curve(curve: Curve[T], found: Sequence[T], results: Path, console: Console) -> None:
    """Print a curve, and write it."""
    console.print(curve_table(curve, found))
    for path in write_curve(curve, found, make_new_folder(results, f"{stamp()}-curve")):
        console.print(f"wrote {path}", highlight=False)


def parse_sizes(text: str) -> list[int]:
    """ "4,6,8" as numbers. Raises `InputError`."""
    try:
        return [int(k) for k in text.split(",")]
    except ValueError as error:
        raise InputError(f"--curve {text}: sizes of fat-trees are expected, such as 4,6,8") from error


def all_hosts(command: Command) -> Command:
    """The command with all hosts but the PSs as workers, unless it names a number of workers or a file of jobs."""
    if command.job.file or command.job.workers:
        return command
    hosts = len(command.fabric.build().hosts)
    return replace(command, job=replace(command.job, workers=hosts - command.job.servers))


Planner = Annotated[
    str, typer.Option(help="a planner by name, or a file such as ./mine.py", autocompletion=one_planner)
]
CurveSizes = Annotated[str | None, typer.Option(help="fat-trees of these k, such as 4,6,8, with all hosts working")]
Switch = Annotated[
    str,
    typer.Option(
        help="bmv2 or fast; auto: bmv2 where it is installed, else fast; with --curve also virtual",
        autocompletion=one_world,
    ),
]
Verify = Annotated[int, typer.Option(help="check with so many runs each that overload is always caught")]


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
    """Find the highest link rate at which this machine carries a plan; `emulate` then warns of one that it cannot."""
    command = Command(fabric.choice(seed), job.choice(seed), planner, switch, seed)
    if curve is not None:
        raise typer.Exit(run_curve(command, curve, results, Screen()))
    raise typer.Exit(run_calibrate(command, verify, Screen()))


OfPlanners = Annotated[bool, typer.Option("--planners", help="time ARO's planners instead; without root")]
OfSweeps = Annotated[bool, typer.Option("--sweeps", help="time the engine of studies instead; without root")]
Quick = Annotated[bool, typer.Option("--quick", help="with --planners: a few seeds, in some minutes")]

FAILED = 1


def bench(planners: OfPlanners = False, sweeps: OfSweeps = False, quick: Quick = False) -> None:
    """Measure the packets per second without loss of every installed switch target, and those of virtual time.

    Each result is printed when it is there. Exit code 1 where one failed, of which the others are not the worse.
    """
    console = Screen()
    if planners:
        one, several = bench_planners(console, quick=quick), bench_several(console, quick=quick)
        raise typer.Exit(0 if one and several else FAILED)
    if sweeps:
        console.print(sweep_table(bench_sweep()))
        return
    for reason in lacking():
        console.print(reason, highlight=False, soft_wrap=True)
    findings = run_bench(targets_here(), console, partial(print_findings, console))
    with working(console, "virtual time"):
        speed = bench_virtual(datacentre())
    console.print(hops_table(speed, findings.rates))
    raise typer.Exit(FAILED if findings.failed else 0)


Switches = Annotated[
    str,
    typer.Option(
        help="virtual (in this process, without root), fast or bmv2 (a Mininet network each), auto: those of the last "
        "two that can run here, else virtual",
        autocompletion=some_worlds,
    ),
]
Policies = Annotated[
    str, typer.Option(help="slot policies, separated by commas; all without it", autocompletion=some_policies)
]
Levels = Annotated[str, typer.Option(help="levels of aggregation")]
Conditions = Annotated[str, typer.Option(help="conditions such as '1 % loss,worker paused'; all without it")]
Fragments = Annotated[
    int | None, typer.Option(min=2, help="of each run's gradient; default: 400, 2000 on fast, 200 on bmv2")
]
Long = Annotated[bool, typer.Option("--long", help="10^6 fragments on each switch, over all its runs")]


def exactness(
    switch: Switches = "virtual",
    policies: Policies = "",
    levels: Levels = "1,2,3",
    conditions: Conditions = "",
    fragments: Fragments = None,
    long: Long = False,
    program: Program = "ina",
) -> None:
    """Test whether all sums are exact: every slot policy, over levels of aggregation, under loss and other faults."""
    names, chosen_program, console = split_names(switch) or ("virtual",), find_program(program), Screen()
    worlds = chosen_worlds(names)
    for policy in split_names(policies):
        chosen_program.check_policy(policy, f"--policies {policies}")
    chosen = cells(
        split_names(policies) or chosen_program.policies,
        parse_levels(levels),
        split_names(conditions) or [*CONDITIONS],
        worlds,
    )
    if long and fragments:
        raise InputError(f"--long and --fragments {fragments}: choose one; --long shares 10^6 out by itself")
    if names == (AUTO,) and len(worlds) == 1:
        print_choice(console, AUTO, *worlds)
    found = run_matrix(chosen, shared_out(LONG, chosen) if long else fragments, console, chosen_program)
    raise typer.Exit(0 if all(tried.exact for tried in found) else 1)


Emulated = Annotated[
    str, typer.Option("--switch", help="the world to compare with: fast, bmv2, auto", autocompletion=one_world)
]
Against = Annotated[str, typer.Option(help="the world that is to agree with it", autocompletion=one_world)]
Only = Annotated[str, typer.Option(help="combinations with this in their names, such as 'fattree-4 aro' or replay")]
Short = Annotated[bool, typer.Option("--short", help="a few small combinations instead of all")]
Seconds = Annotated[
    float,
    typer.Option(min=0.01, help="how long an iteration takes by its plan; of less than 2, a machine's delays are much"),
]
Tries = Annotated[int, typer.Option(min=1, help="how often an emulation is tried that is OVERLOADED")]


def agree(
    switch: Emulated = "fast",
    against: Against = "virtual",
    only: Only = "",
    short: Short = False,
    seconds: Seconds = 3.0,
    tries: Tries = 2,
    results: Results = RESULTS,
) -> None:
    """Run the same plans emulated and in virtual time, and print how far rates, times and bytes differ."""
    combinations = chosen(only, short=short)
    worlds = find_world(switch), find_world(against)
    found = run_agreement(combinations, worlds, Extent(seconds, tries), results, Screen())
    raise typer.Exit(0 if found.agrees else 1)
