"""`inakit dump`: what a switch of a running network holds now."""

from __future__ import annotations

from typing import Annotated

import typer

from inakit.experiments.cli.options import Network, SwitchName
from inakit.experiments.inspect.dump import dump as show
from inakit.experiments.run.printed.tables import Screen
from inakit.topo.live.running import find_network

Table = Annotated[str | None, typer.Option(help="only this table, such as aggregation")]
Register = Annotated[str | None, typer.Option(help="only this register, such as slot_bitmap")]
Counter = Annotated[str | None, typer.Option(help="only this counter, such as events")]
Json = Annotated[bool, typer.Option("--json", help="all of it, for programs")]


def dump(
    switch: SwitchName,
    table: Table = None,
    register: Register = None,
    counter: Counter = None,
    json: Json = False,
    run: Network = None,
) -> None:
    """Show the tables, registers and counters of a switch while it works."""
    asked = {"table": table, "register": register, "counter": counter}
    show(Screen(), find_network(run), switch, asked, as_json=json)
