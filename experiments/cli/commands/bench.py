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
from inakit.experiments.cli.options import (
    RESULTS,
    Policies,
    Program,
    Quick,
    Results,
    one_of,
    one_world,
    some_worlds,
    split_names,
    time_option,
)
from inakit.experiments.run.console import Screen, working
from inakit.experiments.worlds.registry import AUTO, find_world, print_choice, program_of
from inakit.topo.errors import InputError, unknown_name

BENCHES = ("switches", "planners", "studies", "peers")
What = Annotated[
    str,
    typer.Argument(
        help="switches: packets per second; planners: ARO's times; studies: their engine; peers: virtual time beside "
        "ns-3, htsim and BMv2, where they are found",
        autocompletion=one_of(*BENCHES),
    ),
]
Ports = Annotated[int, typer.Option("--k", help="peers: ports per switch of the fat-tree")]
Python = Annotated[
    str | None, typer.Option("--ns3", help="peers: a Python that has ns-3 (pip install ns3); default: this one")
]
Htsim = Annotated[str | None, typer.Option("--htsim", help="peers: htsim's program htsim_ndp; default: in PATH")]

FAILED = 1


def bench(
    what: What = BENCHES[0],
    quick: Quick = False,
    k: Ports = K,
    ns3: Python = None,
    htsim: Htsim = None,
) -> None:
    """Measure the packets per second without loss of every installed switch target, and those of virtual time.

    Each result is printed as soon as it is measured. Exit code 1 if a measurement failed; the others are still valid.
    """
    console = Screen()
    if what not in BENCHES:
        raise unknown_name("bench", what, BENCHES)
    if what == "planners":
        one, several = bench_planners(console, quick=quick), bench_several(console, quick=quick)
        raise typer.Exit(0 if one and several else FAILED)
    if what == "studies":
        console.print(sweep_table(bench_sweep()))
        return
    if what == "peers":
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
Reference = Annotated[str, typer.Option(help="the world that must agree with it", autocompletion=one_world)]
Only = Annotated[str, typer.Option(help="combinations with this in their names, such as 'fattree-4 aro' or replay")]
Duration = Annotated[
    float, time_option("planned for an iteration; below 2 s the machine's delays matter", above_0=True)
]
Tries = Annotated[int, typer.Option(min=1, help="attempts at an emulation that is OVERLOADED")]


def agree(
    switch: Emulated = "fast",
    reference: Reference = "virtual",
    only: Only = "",
    quick: Quick = False,
    duration: Duration = 3.0,
    tries: Tries = 2,
    results: Results = RESULTS,
) -> None:
    """Run the same plans emulated and in virtual time, and print how much rates, times and bytes differ."""
    combinations = chosen(only, short=quick)
    worlds = find_world(switch), find_world(reference)
    found = run_agreement(combinations, worlds, Extent(duration, tries), results, Screen())
    raise typer.Exit(0 if found.agrees else 1)


Switches = Annotated[
    str,
    typer.Option(
        help="virtual (in this process, without root), fast or bmv2 (Mininet networks), auto: those of the last "
        "two that can run here, else virtual",
        autocompletion=some_worlds,
    ),
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
