"""`inakit capture`: what arrives and leaves at a port of a running switch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inakit.experiments.cli.options import Network, SwitchName
from inakit.experiments.inspect.capture import Limit, capture_to
from inakit.experiments.run.printed.tables import Screen
from inakit.topo.live.running import find_network

Port = Annotated[int, typer.Argument(help="the number of one of its ports")]
Output = Annotated[Path | None, typer.Option(help="a .pcap file")]
Print = Annotated[bool, typer.Option("--print", help="a line for each packet, by scapy's layers of the packet format")]
Seconds = Annotated[float | None, typer.Option(help="end after so many seconds")]
Packets = Annotated[int | None, typer.Option(help="end after so many packets")]


def capture(
    switch: SwitchName,
    port: Port,
    output: Output = None,
    print_packets: Print = False,
    seconds: Seconds = None,
    packets: Packets = None,
    run: Network = None,
) -> None:
    """Capture what arrives and leaves at a port of a switch, until Ctrl-C or the end of the network."""
    limit = Limit(seconds, packets)
    capture_to(Screen(), find_network(run), (switch, port), output, limit, decode=print_packets)
