"""`inakit switch stf`: a test in p4c's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.run.console import Screen
from inakit.switch.testing.stf_play import StfVerdict, play
from inakit.switch.testing.stf_script import read_script
from inakit.topo.errors import InputError

Program = Annotated[Path, typer.Argument(help="a P4 program as BMv2 JSON, which p4c-bm2-ss writes")]
Target = Annotated[str, typer.Option(help="fast (in this process, without root), kernel or bmv2 (both need root)")]

FAILED = 1
UNSUPPORTED = 3


def stf(
    program: Program,
    test: Annotated[Path, typer.Argument(help="a test in p4c's Simple Test Framework format")],
    target: Target = "fast",
    trace: Annotated[
        bool, typer.Option("--trace", help="trace each packet: states, keys, hits, actions, fields")
    ] = False,
) -> None:
    """Play a test: PASS (exit code 0), FAIL with the differences (1), or UNSUPPORTED with the reason (3)."""
    if trace and target != "fast":
        raise InputError(f"--trace with --target {target}: only the embedded switch in this process keeps a trace")
    result = play(program, read_script(test), "traced" if trace else target)
    console = Screen(soft_wrap=True, highlight=False, markup=False)
    for line in (*result.shown, *result.reasons):
        console.print(line)
    console.print(result.verdict, style="green" if result.verdict is StfVerdict.PASS else "red")
    raise typer.Exit({StfVerdict.PASS: 0, StfVerdict.FAIL: FAILED, StfVerdict.UNSUPPORTED: UNSUPPORTED}[result.verdict])
