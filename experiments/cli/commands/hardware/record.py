"""`inakit hardware record`: what the chip's compiler says, for machines without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.hardware.compiled.recorded import RECORD, record_logs
from inakit.experiments.hardware.fit import print_program, provenance
from inakit.experiments.run.printed.tables import Screen

Logs = Annotated[
    list[Path],
    typer.Argument(help="folders that p4c's Tofino backend wrote of p4/ina_hw/tna.p4 as it is", show_default=False),
]


def record(logs: Logs) -> None:
    """Record what the chip's compiler says that p4/ina_hw takes, for `inakit hardware fit` where it is not installed.

    The record, p4/build/ina_hw.resources.json, is written anew.
    """
    console = Screen()
    for each in record_logs(logs):
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    console.print(f"wrote {RECORD}", highlight=False, soft_wrap=True)
