"""`inakit dissector`: the packet format for Wireshark."""

from __future__ import annotations

from inakit.traffic.wire.dissector import dissector as source


def dissector() -> None:
    """Print a dissector of the packet format, for Wireshark's plugin folder."""
    print(source(), end="")
