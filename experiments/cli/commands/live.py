"""`inakit top`, `dump` and `capture` look into a running network; `dissector` is its packet format for Wireshark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import Network, SwitchName, output_option, time_option
from inakit.experiments.inspect.capture import Limit, capture_to
from inakit.experiments.inspect.dump import dump as read_dump
from inakit.experiments.inspect.top import top as watch
from inakit.experiments.run.console import Screen, listing
from inakit.topo.live.ledger import find_network
from inakit.traffic.wire.dissector import dissector as source

Interval = Annotated[float, time_option("between two readings")]
Once = Annotated[bool, typer.Option("--once", help="print one interval and end")]


def top(interval: Interval = 1.0, once: Once = False, run: Network = None) -> None:
    """Watch a running network: rates of links and switches, drops, processors; the busiest first."""
    watch(Screen(), run, interval, once=once)


Table = Annotated[str | None, typer.Option(help="only this table, such as aggregation")]
Register = Annotated[str | None, typer.Option(help="only this register, such as slot_bitmap")]
Counter = Annotated[str | None, typer.Option(help="only this counter, such as events")]


def dump(
    switch: SwitchName,
    table: Table = None,
    register: Register = None,
    counter: Counter = None,
    run: Network = None,
) -> None:
    """Show the tables, registers and counters of a switch while it works."""
    asked = {"table": table, "register": register, "counter": counter}
    document, sections = read_dump(find_network(run), switch, asked)
    console = Screen()
    for title, (heads, *rows) in sections:
        console.print(listing(heads, rows, title))
    console.as_json(document)


Port = Annotated[int, typer.Argument(help="the number of one of its ports")]
Output = Annotated[Path | None, output_option("a .pcap file")]
Print = Annotated[bool, typer.Option("--print", help="print a line for each packet, decoded by scapy")]
Duration = Annotated[float | None, time_option("after which to end", above_0=True)]
Packets = Annotated[int | None, typer.Option(help="end after this many packets")]


def capture(
    switch: SwitchName,
    port: Port,
    output: Output = None,
    print_packets: Print = False,
    duration: Duration = None,
    packets: Packets = None,
    run: Network = None,
) -> None:
    """Capture the packets that arrive and leave at a port of a switch, until Ctrl-C or the end of the network."""
    limit = Limit(duration, packets)
    capture_to(Screen(), find_network(run), (switch, port), output, limit, decode=print_packets)


def dissector() -> None:
    """Print a dissector of the packet format, for Wireshark's plugin folder."""
    print(source(), end="")
