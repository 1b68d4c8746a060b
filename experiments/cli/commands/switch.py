"""`inakit switch stf|compare|ptf|replay|network`: a single switch, or a course's network; and `inakit shim`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from inakit.experiments.cli.options import Seed, output_option
from inakit.experiments.run.console import Screen
from inakit.switch.networks.course_files import read_network
from inakit.switch.networks.running_network import Doors, RunningNetwork, check_mininet
from inakit.switch.program.p4_source import compiled
from inakit.switch.server.serve import make_shim
from inakit.switch.testing.pcaps import IN_REAL_TIME, parse_pcap
from inakit.switch.testing.pcaps import replay as replayed_by
from inakit.switch.testing.ptf_platform import PtfOptions, run_ptf
from inakit.switch.testing.stf_play import StfVerdict, play
from inakit.switch.testing.stf_script import read_script
from inakit.switch.testing.target_comparison import WAYS_OUT, Comparison, Outcome
from inakit.switch.testing.target_comparison import compare as compared
from inakit.topo.errors import InputError

Program = Annotated[Path, typer.Argument(help="a P4 program: P4 source, which p4c compiles, or BMv2 JSON")]
Target = Annotated[str, typer.Option(help="fast (in this process, without root), kernel or bmv2 (both need root)")]

FAILED = 1
UNSUPPORTED = 3
UNDECIDED = 4


def say(line: str) -> None:
    """Print a line to standard error, as it is no result."""
    print(line, file=sys.stderr)


def compare(
    program: Program,
    between: Annotated[str, typer.Option(help="two of fast, interpreted, kernel and bmv2")] = "fast,bmv2",
    packets: Annotated[int, typer.Option(min=1, help="number of packets")] = 1000,
    commands: Annotated[
        Path | None,
        typer.Option(help="a file of simple_switch_CLI commands, or an s1-runtime.json; default: random entries"),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="HEADER.FIELD=MOST or ACTION.PARAMETER=MOST, limits an index of registers or counters"),
    ] = None,
    headers: Annotated[
        str, typer.Option("--with", help="headers of every packet, if the program reads them unchecked: tcp,ipv4")
    ] = "",
    seed: Seed = 0,
) -> None:
    """Send the same random packets to two targets, and compare their output.

    The program's parser accepts the packets. Exit code 1: DIFFERENT; 4: undecided, because packets were LOST or one
    target is UNSTEADY (clocks, random numbers).
    """
    program, names = compiled(program), tuple(name.strip() for name in between.split(","))
    if len(names) != 2:
        raise InputError(f"--between {between}: expected two, such as fast,bmv2")
    shown = Screen(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task("packets", total=packets)
        limits = dict(map(parse_limit, limit or ()))
        needed = [name for name in headers.split(",") if name]
        found = compared(
            program, names, packets, seed, commands, limits, needed, lambda n: progress.update(task, completed=n), say
        )
    show(found)


def show(found: Comparison) -> None:
    """Print the outcome of a comparison; leave with an exit code unless it is `identical`."""
    console = Screen(highlight=False, markup=False, soft_wrap=True)
    if found.outcome is Outcome.IDENTICAL:
        console.print(f"identical: {found.packets:,} packets in, {found.left:,} out, all registers", style="green")
        return
    console.print(f"{found.outcome} after {found.packets:,} packets: {found.difference}", style="red")
    if found.outcome in WAYS_OUT:
        console.print(WAYS_OUT[found.outcome])
    raise typer.Exit(FAILED if found.outcome is Outcome.DIFFERENT else UNDECIDED)


def parse_limit(text: str) -> tuple[str, int]:
    """Parse `HEADER.FIELD=MOST` to the field's name and its largest value. Raises `InputError`."""
    name, _, most = text.partition("=")
    if not most.isdecimal():
        raise InputError(f"--limit {text}: expected HEADER.FIELD=MOST, such as --limit ina.slot=511")
    return name, int(most)


def ptf(
    tests: Annotated[Path, typer.Argument(help="a folder of PTF's tests")],
    more: Annotated[list[str] | None, typer.Argument(help="arguments for PTF: names of tests, -t PARAMETERS")] = None,
    program: Annotated[Path | None, typer.Option(help="a P4 program or its BMv2 JSON, if no test loads one")] = None,
    commands: Annotated[
        Path | None,
        typer.Option(help="a file of simple_switch_CLI commands, or an s1-runtime.json, to load at the start"),
    ] = None,
    ports: Annotated[int, typer.Option(min=1, help="number of ports, counted from 0")] = 8,
    cpu_port: Annotated[int | None, typer.Option(help="the port of packets from and to controllers")] = None,
    grpc: Annotated[str | None, typer.Option(help="ADDRESS:PORT of P4Runtime, for tests that use it")] = None,
    thrift_port: Annotated[
        int | None, typer.Option(help="the port of simple_switch's Thrift, for tests that use it")
    ] = None,
    kernel: Annotated[bool, typer.Option("--kernel", help="run the program in the kernel; needs root")] = False,
) -> None:
    """Run PTF's tests against a switch in PTF's own process, or in the kernel, without veths (exit code: PTF's)."""
    given = program and compiled(program), commands
    program_file, commands_file = (None if path is None else str(path.resolve()) for path in given)
    options = PtfOptions(program_file, commands_file, tuple(range(ports)), cpu_port, grpc, thrift_port, kernel)
    raise typer.Exit(run_ptf(tests, options, more or ()))


def replay(
    program: Program,
    given: Annotated[list[str], typer.Option("--in", help="PORT:FILE.pcap; repeat for each port")],
    output: Annotated[Path, output_option("a new folder, for port0.pcap, port1.pcap, ...")],
    commands: Annotated[
        Path | None, typer.Option(help="a file of simple_switch_CLI commands, or an s1-runtime.json")
    ] = None,
    target: Target = "fast",
) -> None:
    """Send the packets of pcap files to a switch, in the order of their times; keep what each port sends."""
    pcaps = dict(map(parse_pcap, given))
    if len(pcaps) < len(given):
        raise InputError(f"--in {' --in '.join(given)}: one file per port; join those of one port with mergecap")
    if target in IN_REAL_TIME:
        say(f"--target {target} runs in real time: the gaps between the packets of the files are not kept")
    replayed = replayed_by(compiled(program), commands, pcaps, output, target, skipped=say)
    console = Screen(highlight=False)
    for port in sorted({*replayed.arrived, *replayed.left}):
        arrived, left = replayed.arrived[port], replayed.left[port]
        line = f"port {port:3}: {arrived:8,} arrived, {left:8,} left"
        console.row(line, {"port": port, "arrived": arrived, "left": left})
    console.print(f"wrote {output}", soft_wrap=True)


def network(
    file: Annotated[Path, typer.Argument(help="topology.json of p4lang's tutorials, or p4app.json of p4-utils")],
    program: Annotated[
        Path | None, typer.Option(help="the program of all switches: BMv2 JSON, or P4 source if p4c is installed")
    ] = None,
    thrift: Annotated[
        bool, typer.Option("--thrift", help="serve Thrift for each switch, at ports from 9090 on")
    ] = False,
    grpc: Annotated[
        bool, typer.Option("--p4runtime", help="serve P4Runtime for each switch, at ports from 9559 on")
    ] = False,
    execute: Annotated[
        list[str] | None, typer.Option(help="a line for the network's command line; the network then ends")
    ] = None,
    pingall: Annotated[
        bool, typer.Option("--pingall", help="ping between all hosts, and end (exit code 1: lost)")
    ] = False,
) -> None:
    """Start a course's network of hosts and P4 switches with the entries of its files, and open a command line."""
    check_mininet()
    plan = read_network(file, program)
    with RunningNetwork(plan, Doors(thrift, grpc)) as started:
        for line in (*plan.notes, *started.skipped):
            say(line)
        for switch in started.switches:
            print(f"{switch.name}: {switch.runs}")
        for script in plan.scripts:
            say(f"run this beside the network, in another terminal: {script}")
        if pingall:
            raise typer.Exit(FAILED if started.lost() else 0)
        talk(started, execute or ())


def talk(started: RunningNetwork, lines: Sequence[str]) -> None:
    """Give these lines to the network's command line or, without lines, open it."""
    from inakit.switch.networks.network_cli import NetworkCli  # noqa: PLC0415, needs Mininet

    if not lines:
        NetworkCli(started)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as script:
        script.write("\n".join(lines) + "\n")
        script.flush()
        NetworkCli(started, script=script.name)


def stf(
    program: Program,
    test: Annotated[Path, typer.Argument(help="a test in p4c's Simple Test Framework format")],
    target: Target = "fast",
    steps: Annotated[
        bool, typer.Option("--steps", help="print each packet's steps: states, keys, hits, actions, fields")
    ] = False,
) -> None:
    """Play a test: PASS (exit code 0), FAIL with the differences (1), or UNSUPPORTED with the reason (3)."""
    if steps and target != "fast":
        raise InputError(f"--steps with --target {target}: only the embedded switch in this process keeps its steps")
    result = play(compiled(program), read_script(test), "traced" if steps else target)
    console = Screen(soft_wrap=True, highlight=False, markup=False)
    for line in (*result.shown, *result.reasons):
        console.print(line)
    console.print(result.verdict, style="green" if result.verdict is StfVerdict.PASS else "red")
    raise typer.Exit({StfVerdict.PASS: 0, StfVerdict.FAIL: FAILED, StfVerdict.UNSUPPORTED: UNSUPPORTED}[result.verdict])


def shim() -> None:
    """Print a folder in which `simple_switch` and `simple_switch_grpc` are the kit's: PATH=$(inakit shim):$PATH."""
    print(make_shim())
