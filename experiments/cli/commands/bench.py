"""`inakit bench`: rates of switches and of virtual time, planning times, and the overhead of studies."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from inakit.experiments.bench.planner_times import bench_planners, bench_several
from inakit.experiments.bench.sweep_engine import bench_sweep, sweep_table
from inakit.experiments.bench.switch_rates import lacking, print_findings, run_bench, targets_here
from inakit.experiments.bench.virtual_time import bench_virtual, datacentre, hops_table
from inakit.experiments.run.console import Screen, working

OfPlanners = Annotated[bool, typer.Option("--planners", help="time ARO's planners instead; needs no root")]
OfSweeps = Annotated[bool, typer.Option("--sweeps", help="time the engine of studies instead; needs no root")]
Quick = Annotated[bool, typer.Option("--quick", help="with --planners: a few seeds, in some minutes")]

FAILED = 1


def bench(planners: OfPlanners = False, sweeps: OfSweeps = False, quick: Quick = False) -> None:
    """Measure the packets per second without loss of every installed switch target, and those of virtual time.

    Each result is printed as soon as it is measured. Exit code 1 if a measurement failed; the others are still valid.
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
