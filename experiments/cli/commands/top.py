"""`inakit top`: rates of links and switches, drops and processors of a running network."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.options import Network
from inakit.experiments.inspect.top import top as watch
from inakit.experiments.run.printed.tables import Screen

Interval = Annotated[float, typer.Option(help="seconds between two looks")]
Once = Annotated[bool, typer.Option("--once", help="print one interval and end")]


def top(interval: Interval = 1.0, once: Once = False, run: Network = None) -> None:
    """Watch a running network: rates of links and switches, drops, processors; the busiest first."""
    watch(Screen(), run, interval, once=once)
