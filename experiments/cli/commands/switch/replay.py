"""`inakit switch replay`: packets of pcap files, given to a switch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.commands.switch.shared import Program, Target, say
from inakit.experiments.run.printed.tables import Screen
from inakit.switch.standalone.pcaps import IN_REAL_TIME, parse_pcap
from inakit.switch.standalone.pcaps import replay as replayed_by
from inakit.topo.errors import InputError


def replay(
    program: Program,
    given: Annotated[list[str], typer.Option("--in", help="PORT:FILE.pcap, as often as there are ports")],
    output: Annotated[Path, typer.Option("--out", help="a new folder, for port0.pcap, port1.pcap, ...")],
    commands: Annotated[
        Path | None, typer.Option(help="a file of simple_switch_CLI's commands, or a s1-runtime.json")
    ] = None,
    target: Target = "fast",
) -> None:
    """Give a switch the packets of pcap files, in the order of their times; keep what leaves each port."""
    pcaps = dict(map(parse_pcap, given))
    if len(pcaps) < len(given):
        raise InputError(f"--in {' --in '.join(given)}: one file per port; join those of one port with mergecap")
    if target in IN_REAL_TIME:
        say(f"--target {target} has the machine's time: for the program, packets come one right after the other")
    replayed = replayed_by(program, commands, pcaps, output, target, skipped=say)
    console = Screen(highlight=False)
    for port in sorted({*replayed.arrived, *replayed.left}):
        console.print(f"port {port:3}: {replayed.arrived[port]:8,} arrived, {replayed.left[port]:8,} left")
    console.print(f"wrote {output}", soft_wrap=True)
