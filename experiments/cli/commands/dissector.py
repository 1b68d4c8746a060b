"""`inakit dissector`: the packet format for Wireshark."""

from __future__ import annotations


def dissector() -> None:
    """Print a dissector of the packet format, for Wireshark's plugin folder."""
    from inakit.traffic.wire.dissector import dissector as source  # noqa: PLC0415

    print(source(), end="")
