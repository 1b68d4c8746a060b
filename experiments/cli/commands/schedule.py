"""`inakit schedule`: jobs on one's own data centre of units and optical circuits, scheduled and run by packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from inakit.experiments.cli.options import (
    Scale,
    Seed,
    exit_code,
    one_of,
    output_option,
    some_of,
    split_names,
    time_option,
)
from inakit.experiments.report.document import Document
from inakit.experiments.report.gather import made_by
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.report.write import PAGE, write_page
from inakit.experiments.run.circuit_schedule import CircuitFault
from inakit.experiments.run.console import NARROW, Screen, drawn, figures, names
from inakit.experiments.run.printed_report import styled
from inakit.experiments.run.scenario import parse_scale
from inakit.experiments.run.scheduled import Scheduled, read_problem
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.job_traces import TraceReading
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import pair, save_schedule, save_scheduling
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import InputError, MachineError, unknown_name, writing
from inakit.topo.files.quantities import in_words, parse_duration
from inakit.topo.files.reader import write_csv

CenterFile = Annotated[
    Path | None,
    typer.Argument(help="the data centre, and jobs unless --trace has them", metavar="CENTER.YML", show_default=False),
]
Starter = Annotated[Path | None, typer.Option(help="write a starter center.yml and jobs.csv into this folder")]
TraceFile = Annotated[
    Path | None,
    typer.Option(help="jobs as CSV: your own, or a trace of Helios, Philly (JSON too) or PAI, by its columns"),
]
Schedulers = Annotated[
    str,
    typer.Option(
        help="schedulers, separated by commas; `inakit planners` lists them",
        autocompletion=some_of("inakit.planner.registry:SCHEDULERS"),
    ),
]
First = Annotated[int | None, typer.Option(min=1, help="only so many jobs of the trace, the first to arrive")]
Iterations = Annotated[
    int | None,
    typer.Option(min=1, help="iterations of each job of a public trace; default: as many as its duration has"),
]
Gradient = Annotated[
    int | None, typer.Option(min=4, help="gradient of each job of a public trace; default: drawn from 102 to 548 MB")
]
Compute = Annotated[float, time_option("computing time of an iteration of a public trace", above_0=True)]
TimeLimit = Annotated[float, time_option("for milp: until the best schedule found is taken", above_0=True)]
Dark = Annotated[
    str, typer.Option(help="a connection that fails for good, and when: rack1:rack2@12s; schedules go on without it")
]
OutputFolder = Annotated[
    Path | None, output_option("folder for schedules, jobs.csv, circuits.csv and the page report.html")
]
OnWorld = Annotated[
    str,
    typer.Option(
        help="also run the schedules by packets: virtual (virtual time), fast or bmv2 (both need root)",
        autocompletion=one_of("none", "virtual", "fast", "bmv2"),
    ),
]
NO_WORLD = "none"
SCALE = "1/5000"


def schedule(
    center: CenterFile = None,
    starter: Starter = None,
    trace: TraceFile = None,
    schedulers: Schedulers = "INC-TW",
    first: First = None,
    iterations: Iterations = None,
    gradient_bytes: Gradient = None,
    compute: Compute = 0.25,
    time_limit: TimeLimit = 60.0,
    switch: OnWorld = NO_WORLD,
    scale: Scale = SCALE,
    dark: Dark = "",
    seed: Seed = 0,
    output: OutputFolder = None,
) -> None:
    """Schedule jobs and optical circuits on a data centre of your own; compare schedulers; run them by packets.

    Exit code 1 if a run by packets is not VALID.
    """
    if (center is None) == (starter is None):
        raise InputError("give a data centre's file; or --starter FOLDER, which writes a starter")
    console = Screen()
    if starter is not None:
        write_starter(starter, console)
        return
    assert center is not None
    reading = TraceReading(gradient_bytes, compute, iterations, first, seed)
    problem, notes = read_problem(center, trace, reading)
    chosen = split_names(schedulers)
    for name in chosen:
        find_scheduler(name)
    if not chosen:
        raise InputError("--schedulers: give at least one name; `inakit planners` lists them")
    factor = parse_scale(scale)
    world = None if switch == NO_WORLD else find_world(switch)
    options = SolverOptions(seed=seed, time_limit_s=time_limit)
    found = [Scheduled.by(name, problem, options) for name in chosen]
    if dark:
        fault = fault_of(dark, problem)
        found = [each.anew(fault) for each in found]
        notes.append(
            f"slots from {fault.slot + 1} on are planned anew, without a connection of {dark.partition('@')[0]}"
        )
    if world is not None:
        found = [each.run(world, factor, output, console, quiet=not drawn()) for each in found]
    document = document_of(problem, found, notes, center.name if trace is None else trace.name)
    for note in notes:
        console.print(note, highlight=False, soft_wrap=True)
    console.print(table_of(found))
    console.as_json(document)
    if output is not None:
        for file in write_results(output, problem, found, document):
            console.print(f"wrote {file}", highlight=False, soft_wrap=True)
    verdicts = [each.ran.outcome.verdict for each in found if each.ran is not None]
    raise typer.Exit(max(map(exit_code, verdicts), default=0))


def fault_of(text: str, problem: Scheduling) -> CircuitFault:
    """The fault of `--dark unit1:unit2@12s`. Raises `InputError`."""
    ends, _, at = text.partition("@")
    units = ends.split(":")
    if len(set(units)) != 2 or not at:
        raise InputError(f"--dark {text}: expected two units and a time, such as rack1:rack2@12s")
    for unit in units:
        if unit not in problem.center.index:
            raise InputError(f"--dark {text}: {unknown_name('unit', unit, problem.center.index)}")
    slot, after_s = divmod(parse_duration(at), problem.center.slot_s)
    return CircuitFault(int(slot), after_s, inf, pair(*units))


def document_of(problem: Scheduling, found: Sequence[Scheduled], notes: Sequence[str], source: str) -> dict[str, Any]:
    """Everything about the schedules, as the page and `--format json` have it. Rates are in bit/s, times in s."""
    styles = styles_of([each.name for each in found])
    center = problem.center
    return {
        "source": source,
        "notes": list(notes),
        "units": {unit.name: unit.most_workers for unit in center.units},
        "slot_s": center.slot_s,
        "port_bps": center.port_bps,
        "reconfiguration_s": center.reconfiguration_s,
        "schedulers": [each.as_json(styles[each.name].color) for each in found],
    }


def table_of(found: Sequence[Scheduled]) -> Table:
    """A row for each scheduler: its planned figures and, where it was run, the measured ones."""
    ran = any(each.ran is not None for each in found)
    measured = ("measured\nJCT (s)", "\nratio", "sums\nexact") if ran else ()
    heads = ("mean\nJCT (s)", "mean\nwait (s)", "\nCT-BTI (s)", "new con-\nnections", "planned\nin (s)", *measured)
    columns = [*names("\nscheduler"), *figures(*heads, no_wrap=True), *(names("\nverdict") if ran else ())]
    table = Table(*columns, title="schedules", **NARROW)
    for each in found:
        planned = (
            f"{each.mean_jct_s:.2f}", f"{each.mean_wait_s:.2f}", f"{each.figures.ct_bti_s:.2f}",
            f"{each.figures.connections:,}", f"{each.schedule.outcome.seconds:.2f}",
        )  # fmt: skip
        cells = []
        if each.ran is not None:
            exact = "yes" if each.ran.outcome.measured.exact is True else "no"
            jct_s = fmean(each.ran.jct_s.values())
            cells = [f"{jct_s:.2f}", f"{jct_s / each.mean_jct_s:.4f}", exact, styled(each.ran.outcome.verdict)]
        table.add_row(each.name, *planned, *cells)
    return table


JOB_COLUMNS = (
    *("job", "workers", "server", "inc", "arrival_s", "start_s", "end_s", "jct_s", "rate_bps"),
    "measured_jct_s",
)
CIRCUIT_COLUMNS = ("a", "b", "ports", "from_s", "until_s", "dark_s", "used")


def write_results(
    folder: Path, problem: Scheduling, found: Sequence[Scheduled], document: Mapping[str, Any]
) -> Iterator[Path]:
    """Write the problem, every schedule, tables of jobs and circuits, and the page; yield each file's path."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    save_scheduling(problem, folder / "problem.json")
    yield folder / "problem.json"
    for each in found:
        save_schedule(each.schedule, folder / f"{each.name}.json")
        yield folder / f"{each.name}.json"
    for file, key, columns in (("jobs.csv", "jobs", JOB_COLUMNS), ("circuits.csv", "circuits", CIRCUIT_COLUMNS)):
        rows = ((own["name"], *(cell(row[column]) for column in columns))
                for own in document["schedulers"] for row in own[key])  # fmt: skip
        write_csv(folder / file, ("scheduler", *columns), rows)
        yield folder / file
    try:
        yield write_page(Document(finding_of(found, document["source"]), made_by(), schedule=document), folder / PAGE)
    except MachineError as error:
        Screen().print(f"no page ({error})", highlight=False, markup=False, soft_wrap=True)


def finding_of(found: Sequence[Scheduled], source: str) -> str:
    """The title of the page: the scheduler with the shortest mean JCT, and how much longer those of others are."""
    best, *others = sorted(found, key=lambda each: each.mean_jct_s)
    longer = ", ".join(f"{each.name}'s is {each.mean_jct_s / best.mean_jct_s:.3g} times as long" for each in others[:3])
    shortest = f"{best.name} has the shortest mean JCT, {in_words(best.mean_jct_s, 's')}" if others else ""
    first = shortest or f"{best.name} has a mean JCT of {in_words(best.mean_jct_s, 's')}"
    return f"{first}{longer and '; '}{longer}: {len(best.problem.jobs)} jobs of {source}"


def cell(value: Any) -> Any:
    """A cell of a table: a job's workers by unit as `unit1:4 unit2:2`, nothing for None."""
    if isinstance(value, dict):
        return " ".join(f"{unit}:{count}" for unit, count in value.items())
    return "" if value is None else value


CENTER, JOBS = "center.yml", "jobs.csv"


def write_starter(folder: Path, console: Console) -> None:
    """Write the starter's files, and print the next command. Raises `InputError` for files that exist."""
    files = {folder / CENTER: starter_center(), folder / JOBS: starter_jobs()}
    for file in files:
        if file.exists():
            raise InputError(f"{file} exists: choose another folder, or remove it")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        with writing(file):
            file.write_text(text)
        console.print(f"wrote {file}", highlight=False, soft_wrap=True)
    command = f"inakit schedule {folder / CENTER} --trace {folder / JOBS} --output {folder / 'out'}"
    console.print(f"schedule it: {command}", highlight=False, soft_wrap=True)


def starter_center() -> str:
    """The text of the starter's data centre, with every key explained."""
    keys = "servers: 6, gpus: 2, nic_bps: 40.0e+9, optical_ports: 8, switch_bps: 480.0e+9, inc_jobs: 4"
    units = "\n".join(f"    - {{name: rack{number}, {keys}}}" for number in range(1, 5))
    return f"""\
# A data centre for `inakit schedule`. Rates are in bit/s: 40.0e+9 is 40 Gbit/s. Times are in seconds.
version: 1
center:
  # A unit is a programmable switch with its servers: a rack, or a pod.
  #   servers, gpus: servers of the unit, GPUs of a server; a GPU has one worker at a time, a PS has a server for itself
  #   nic_bps: the link of a server in each direction; its GPUs share it equally. null: it never limits
  #   optical_ports: ports to the switch of circuits, each of port_bps
  #   switch_bps: what the switch carries from and to its servers, up and down together
  #   inc_jobs: jobs for which the switch can sum at a time; aggregator_slots (512): they share these equally
  # A pod has leaves: 4, spines: 2, and uplink_bps: 40.0e+9 from each leaf to each spine; null: they never limit.
  units:
{units}
  port_bps: 40.0e+9           # a connection between two units, in each direction
  reconfiguration_s: 0.025    # for so long new connections carry nothing
  slot_s: 1.0                 # circuits and rates change at the beginning of a slot
  step_bps: 1.0e+9            # time-window and FCFS schedulers grant rates in such steps
  inc_across: false           # whether a switch sums for jobs with workers in other units too
# Jobs stand here, or in a trace that --trace names:
# jobs:
#   - {{workers: {{rack1: 4}}, server: rack2, gradient_bytes: 102000000, arrival: 0, iterations: 5, compute_s: 0.16}}
# horizon: 100                # the slots in which all jobs have to be done; without it there is no limit
"""


def starter_jobs() -> str:
    """Twelve jobs: ResNet50 and VGG16 in turn, two a second, with 2 to 12 workers."""
    lines = ["arrival_s,workers,gradient_bytes,update_s,iterations,compute_s,kind"]
    for number in range(12):
        workers = (2, 4, 8, 6, 12, 4)[number % 6]
        model = ("102000000,0.026", "528000000,0.132")[number % 2]
        lines.append(f"{number / 2},{workers},{model},5,{(0.16, 0.25)[number % 2]},training")
    return "\n".join(lines) + "\n"
