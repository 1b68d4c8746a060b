"""`inakit switch ptf`: PTF's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.switch.testing.ptf.launch import run_ptf
from inakit.switch.testing.ptf.platform import PtfOptions


def ptf(
    tests: Annotated[Path, typer.Argument(help="a folder of PTF's tests")],
    more: Annotated[
        list[str] | None, typer.Argument(help="arguments of PTF itself: names of tests, -t PARAMETERS")
    ] = None,
    program: Annotated[Path | None, typer.Option(help="a P4 program as BMv2 JSON, if no test loads one")] = None,
    commands: Annotated[
        Path | None, typer.Option(help="a file of simple_switch_CLI's commands, or a s1-runtime.json, for the start")
    ] = None,
    ports: Annotated[int, typer.Option(min=1, help="how many, counted from 0")] = 8,
    cpu_port: Annotated[int | None, typer.Option(help="the port of packets from and to controllers")] = None,
    grpc: Annotated[str | None, typer.Option(help="ADDRESS:PORT of P4Runtime, for tests that use it")] = None,
    thrift_port: Annotated[int | None, typer.Option(help="of simple_switch's Thrift, for tests that use it")] = None,
    kernel: Annotated[bool, typer.Option("--kernel", help="run the program in the kernel; needs root")] = False,
) -> None:
    """Run PTF's tests against a switch in PTF's own process, or in the kernel, without veths (exit code: PTF's)."""
    program_file, commands_file = (None if path is None else str(path.resolve()) for path in (program, commands))
    options = PtfOptions(program_file, commands_file, tuple(range(ports)), cpu_port, grpc, thrift_port, kernel)
    raise typer.Exit(run_ptf(tests, options, more or ()))
