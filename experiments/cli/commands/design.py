"""`inakit design`: the network of a cluster of optical links, its routes, and the way there from the last design."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from inakit.experiments.cli.options import Gradient, Iterations, Scale, Switch, output_option, time_option
from inakit.experiments.run.console import Amount, Screen, working
from inakit.experiments.run.planning import draw_fabric, print_plan, write_plan
from inakit.experiments.run.printed_report import styled
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import DEFAULT_GRADIENT_BYTES, parse_scale
from inakit.experiments.worlds.registry import find_world
from inakit.experiments.worlds.world import World
from inakit.planner.core.check import check
from inakit.planner.core.files import load_jobs, load_plan
from inakit.planner.core.method import Design, Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.atro import atro, several_jobs
from inakit.planner.methods.atro.rewiring import Step, rewire
from inakit.planner.methods.atro.several_jobs import load_cluster
from inakit.planner.methods.atro.switch_cluster import SwitchCluster, most_workers_bound
from inakit.planner.prepared import prepare, with_headroom
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import patch_panel
from inakit.topo.files.fabrics import load_fabric
from inakit.topo.files.quantities import in_words, parse_rate
from inakit.topo.files.reader import write_csv
from inakit.traffic.wire.packet_format import FRAGMENT

Aggregators = Annotated[int, typer.Option(help="switches that aggregate")]
Common = Annotated[int, typer.Option(help="switches that do not aggregate")]
Ports = Annotated[int, typer.Option(help="ports of every switch")]
Workers = Annotated[int, typer.Option(help="workers, besides the one parameter server")]
Capacity = Annotated[str, typer.Option(help="capacity of every link")]
Layers = Annotated[int, typer.Option(help="the most switches on a path to the parameter server")]
ClusterFile = Annotated[
    Path | None,
    typer.Option(help="a .yml file of switches, hosts' rate and panel, with --jobs, instead of the numbers above"),
]
JobsFile = Annotated[Path | None, typer.Option(help="the jobs to wire the cluster for, with --cluster")]
Before = Annotated[
    Path | None, typer.Option("--from", help="folder of the design in place: show how to get from it to the new one")
]
TimeLimit = Annotated[float, time_option("for the solver, in cases that only a solver can decide", above_0=True)]
DesignFolder = Annotated[Path | None, output_option("folder for the fabric, jobs, plan, entries and picture")]


def design(
    aggregators: Aggregators = 4,
    common: Common = 16,
    ports: Ports = 24,
    workers: Workers = 89,
    capacity: Capacity = "100G",
    layers: Layers = 5,
    cluster: ClusterFile = None,
    jobs: JobsFile = None,
    before: Before = None,
    switch: Switch = "",
    scale: Scale = "1",
    gradient_bytes: Gradient = None,
    iterations: Iterations = 3,
    time_limit: TimeLimit = 60.0,
    output: DesignFolder = None,
) -> None:
    """Design a network: topology and routes with the highest rate for a cluster of optical links (ATRO).

    Switches are alike, or those of a file. With --from, the steps from another design are printed; with --switch too,
    every step is run, so that the rates are those of packets.
    """
    console, options, factor = Screen(), Options(time_limit_s=time_limit), parse_scale(scale)
    if (cluster is None) != (jobs is None):
        raise InputError("--cluster and --jobs go together: the switches, and the jobs to wire them for")
    if before is not None and cluster is None:
        raise InputError("--from needs a --cluster and --jobs: ports keep their names only in a cluster file")
    world = find_world(switch) if switch else None
    old = load_design(before) if before else None
    with working(console, "designing the network"):
        if cluster is None or jobs is None:
            alike = SwitchCluster(aggregators, common, ports, workers, parse_rate(capacity) * factor, layers)
            job = Job(1, (), (), gradient_bytes or DEFAULT_GRADIENT_BYTES, iterations=iterations)
            designed, known = atro.design(alike, FRAGMENT, options, job), alike.aggregators + alike.common
            reason, step_s = why(alike, designed), 0.0
        else:
            found = load_cluster(cluster, factor)
            designed = several_jobs.design(found, load_jobs(jobs), FRAGMENT, options, old.fabric if old else None)
            known, reason = len(found.devices), why_no_higher(designed)
            step_s = found.reconfiguration_s
    run = prepare(designed.problem, designed.plan)
    print_plan(console, run)
    console.print(reason, highlight=False)
    switches = len(designed.fabric.switches)
    console.print(f"{switches} switches in use, {known - switches} spare", highlight=False)
    steps = rewire(old, designed) if old else []
    if output is not None:
        write_plan(output, run)
        draw_fabric(designed.fabric, run, output / "fabric")
        if old:
            write_csv(output / "rewiring.csv", ("step", "action", "a", "a_port", "b", "b_port"), rows_of(steps))
        console.print(f"run it: inakit emulate --topo {output}/fabric.yml --jobs {output}/jobs.yml --planners aro")
    if old:
        print_steps(console, old, designed, steps, world)
        console.print(f"{len(steps)} steps of {step_s:g} s; other circuits stay", highlight=False)


def why(cluster: SwitchCluster, designed: Design) -> str:
    """The reason why the rate is not higher."""
    flows = round(cluster.capacity_bps / designed.rate_bps)
    if flows == 1:
        return "no rate is higher: it is that of a worker's link"
    rate, most = cluster.capacity_bps / (flows - 1), most_workers_bound(cluster, flows - 1)
    proof = "" if most >= cluster.workers else f": such links carry {most:.0f} workers at most"
    return f"{flows} flows share a link; the next higher rate is {in_words(rate, 'bit/s')}{proof}"


def why_no_higher(designed: Design) -> str:
    """What is known of higher rates."""
    outcome = designed.plan.outcome
    least_bps = min(designed.plan.job_rate_bps(job.number) for job in designed.problem.jobs)
    if not outcome.gap:
        return f"every job has {in_words(least_bps, 'bit/s')}; no network has more for all of them"
    most = in_words(least_bps * (1 + outcome.gap), "bit/s")
    return f"every job has {in_words(least_bps, 'bit/s')}; that no network has more is proven above {most} only"


def load_design(folder: Path) -> Design:
    """The design that `--output` wrote. Raises `InputError` for files that do not fit each other."""
    fabric, jobs = load_fabric(folder / "fabric.yml"), load_jobs(folder / "jobs.yml")
    problem, plan = Problem(fabric, jobs, FRAGMENT), load_plan(folder / "plan.json")
    check(problem, plan)
    return Design(problem, plan)


def rows_of(steps: Sequence[Step]) -> list[tuple[int, str, str, int, str, int]]:
    """A row for each circuit that a step disconnects or connects, with the ports that it joins."""
    return [
        (number, action, *one, *other)
        for number, step in enumerate(steps, start=1)
        for action, circuits in (("disconnect", step.disconnected), ("connect", step.connected))
        for one, other in sorted(circuits)
    ]


def print_steps(console: Console, old: Design, new: Design, steps: Sequence[Step], world: World | None) -> None:
    """Print the circuits of every step and the jobs' rates during it, before and after, planned and measured."""
    states = [("in place", old), *((f"step {n}", step.running) for n, step in enumerate(steps, 1)), ("after", new)]
    numbers = sorted({job.number for design in (old, new) for job in design.problem.jobs})
    headings = [f"job {number}" + (", measured" if measured else "") for number in numbers
                for measured in (False, True)[: 1 + bool(world)]]  # fmt: skip
    table = Table("", "disconnect", "connect", *headings, "verdict" if world else "", title="rewiring")
    for position, (name, design) in enumerate(states):
        step = steps[position - 1] if 0 < position <= len(steps) else None
        circuits = (str(len(step.disconnected)), str(len(step.connected))) if step else ("", "")
        made = with_headroom(design.problem, design.plan) if design else None
        outcome = None
        if made and world:
            asked = Run(made, interconnect=patch_panel(made.problem.fabric))
            outcome = run_plan(asked, world, stage=lambda _: nullcontext(lambda _: None))
        cells = []
        for number in numbers:
            runs = made is not None and number in made.prediction.jobs
            cells.append(Amount(made.prediction.jobs[number].sending_rate_bps if made and runs else 0, "bit/s"))
            if world:
                measured = outcome.measured.of_job(number).sending_rate_bps if outcome and runs else 0
                cells.append(Amount(measured or 0, "bit/s"))
        table.add_row(name, *circuits, *cells, styled(outcome.verdict) if outcome else "")
    console.print(table)
    for number, action, *ends in rows_of(steps):
        console.print(f"step {number}: {action} {ends[0]} port {ends[1]}, {ends[2]} port {ends[3]}", highlight=False)
