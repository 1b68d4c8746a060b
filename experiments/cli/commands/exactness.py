"""`inakit exactness`: whether sums are exact under faults."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.bench.exactness import (
    CONDITIONS,
    LONG,
    cells,
    chosen_worlds,
    parse_levels,
    run_matrix,
    shared_out,
)
from inakit.experiments.cli.options import Program, some_policies, some_worlds, split_names
from inakit.experiments.run.console import Screen
from inakit.experiments.worlds.registry import AUTO, print_choice
from inakit.planner.install.ina_program import find_program
from inakit.topo.errors import InputError

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
        raise InputError(f"--long and --fragments {fragments}: choose one; --long divides 10^6 among the runs")
    if names == (AUTO,) and len(worlds) == 1:
        print_choice(console, AUTO, *worlds)
    found = run_matrix(chosen, shared_out(LONG, chosen) if long else fragments, console, chosen_program)
    raise typer.Exit(0 if all(tried.exact for tried in found) else 1)
