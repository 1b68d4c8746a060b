"""`inakit switch network`: a course's network of hosts and P4 switches."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.commands.switch.shared import FAILED, say
from inakit.switch.networks.course_files import read_network
from inakit.switch.networks.running_network import Doors, RunningNetwork, check_mininet


def network(
    file: Annotated[Path, typer.Argument(help="topology.json of p4lang's tutorials, or p4app.json of p4-utils")],
    program: Annotated[
        Path | None, typer.Option(help="what all switches run: BMv2 JSON, or P4 source where p4c is installed")
    ] = None,
    thrift: Annotated[bool, typer.Option("--thrift", help="switches take Thrift at ports from 9090 on")] = False,
    grpc: Annotated[bool, typer.Option("--p4runtime", help="switches take P4Runtime at ports from 9559 on")] = False,
    run: Annotated[
        list[str] | None, typer.Option(help="a line for the command line of the network, which then ends")
    ] = None,
    pingall: Annotated[
        bool, typer.Option("--pingall", help="ping between all hosts, and end (exit code 1: lost)")
    ] = False,
) -> None:
    """Start a course's network of hosts and P4 switches, filled as its files say, and open a command line."""
    check_mininet()
    plan = read_network(file, program)
    with RunningNetwork(plan, Doors(thrift, grpc)) as started:
        for line in (*plan.notes, *started.skipped):
            say(line)
        for switch in started.switches:
            print(f"{switch.name}: {switch.runs}")
        for script in plan.scripts:
            say(f"to be run beside the network, in another terminal: {script}")
        if pingall:
            raise typer.Exit(FAILED if started.lost() else 0)
        talk(started, run or ())


def talk(started: RunningNetwork, lines: Sequence[str]) -> None:
    """Give the network's command line these lines, or, without any, open it."""
    from inakit.switch.networks.network_cli import NetworkCli  # noqa: PLC0415, needs Mininet

    if not lines:
        NetworkCli(started)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as script:
        script.write("\n".join(lines) + "\n")
        script.flush()
        NetworkCli(started, script=script.name)
