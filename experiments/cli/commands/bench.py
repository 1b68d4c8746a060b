"""`inakit bench`, `agree` and `exactness`: measurements of the kit itself."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

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
from inakit.experiments.bench.peers import bench_peers
from inakit.experiments.bench.planner_times import bench_planners, bench_several
from inakit.experiments.bench.sweep_engine import bench_sweep, sweep_table
from inakit.experiments.bench.switch_rates import lacking, print_findings, run_bench, targets_here
from inakit.experiments.bench.virtual_time import K, bench_virtual, datacentre, hops_table, parts_table
from inakit.experiments.cli.options import RESULTS, Program, Results, one_world, some_policies, some_worlds, split_names
from inakit.experiments.run.console import Screen, working
from inakit.experiments.worlds.registry import AUTO, find_world, print_choice, program_of
from inakit.topo.errors import InputError

OfPlanners = Annotated[bool, typer.Option("--planners", help="time ARO's planners instead; needs no root")]
OfSweeps = Annotated[bool, typer.Option("--sweeps", help="time the engine of studies instead; needs no root")]
OfPeers = Annotated[
    bool, typer.Option("--peers", help="virtual time beside ns-3, htsim and BMv2 instead, where they are found")
]
Ports = Annotated[int, typer.Option("--k", help="with --peers: ports per switch of the fat-tree")]
Python = Annotated[
    str | None, typer.Option("--ns3", help="with --peers: a Python that has ns-3 (pip install ns3); default: this one")
]
Htsim = Annotated[str | None, typer.Option("--htsim", help="with --peers: htsim's program htsim_ndp; default: in PATH")]
Quick = Annotated[bool, typer.Option("--quick", help="with --planners: a few seeds, in some minutes")]

FAILED = 1


def bench(
    planners: OfPlanners = False,
    sweeps: OfSweeps = False,
    quick: Quick = False,
    peers: OfPeers = False,
    k: Ports = K,
    ns3: Python = None,
    htsim: Htsim = None,
) -> None:
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
    if peers:
        console.print(bench_peers(console, k, ns3, htsim))
        return
    for reason in lacking():
        console.print(reason, highlight=False, soft_wrap=True)
    findings = run_bench(targets_here(), console, partial(print_findings, console))
    with working(console, "virtual time"):
        speed = bench_virtual(datacentre())
    console.print(hops_table(speed, findings.rates))
    console.print(parts_table(speed))
    raise typer.Exit(FAILED if findings.failed else 0)


Emulated = Annotated[
    str, typer.Option("--switch", help="the world to compare with: fast, bmv2, auto", autocompletion=one_world)
]
Against = Annotated[str, typer.Option(help="the world that must agree with it", autocompletion=one_world)]
Only = Annotated[str, typer.Option(help="combinations with this in their names, such as 'fattree-4 aro' or replay")]
Short = Annotated[bool, typer.Option("--short", help="a few small combinations instead of all")]
Seconds = Annotated[
    float, typer.Option(min=0.01, help="planned seconds of an iteration; below 2 the machine's own delays matter")
]
Tries = Annotated[int, typer.Option(min=1, help="attempts at an emulation that is OVERLOADED")]


def agree(
    switch: Emulated = "fast",
    against: Against = "virtual",
    only: Only = "",
    short: Short = False,
    seconds: Seconds = 3.0,
    tries: Tries = 2,
    results: Results = RESULTS,
) -> None:
    """Run the same plans emulated and in virtual time, and print how much rates, times and bytes differ."""
    combinations = chosen(only, short=short)
    worlds = find_world(switch), find_world(against)
    found = run_agreement(combinations, worlds, Extent(seconds, tries), results, Screen())
    raise typer.Exit(0 if found.agrees else 1)


Switches = Annotated[
    str,
    typer.Option(
        help="virtual (in this process, without root), fast or bmv2 (Mininet networks), auto: those of the last "
        "two that can run here, else virtual",
        autocompletion=some_worlds,
    ),
]
Policies = Annotated[
    str, typer.Option(help="slot policies, separated by commas; default: all", autocompletion=some_policies)
]
Levels = Annotated[str, typer.Option(help="levels of aggregation")]
Conditions = Annotated[str, typer.Option(help="conditions such as '1 % loss,worker paused'; default: all")]
Fragments = Annotated[
    int | None, typer.Option(min=2, help="fragments of each run's gradient; default: 400, 2000 on fast, 200 on bmv2")
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
    names, chosen_program, console = split_names(switch) or ("virtual",), program_of(program), Screen()
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
        raise InputError(f"--long and --fragments {fragments}: choose one; --long divides 10^6 among the runs")
    if names == (AUTO,) and len(worlds) == 1:
        print_choice(console, AUTO, *worlds)
    found = run_matrix(chosen, shared_out(LONG, chosen) if long else fragments, console, chosen_program)
    raise typer.Exit(0 if all(tried.exact for tried in found) else 1)
