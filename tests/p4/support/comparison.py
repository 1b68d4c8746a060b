"""Compares what two switches made of the same packets: bytes, order per port, registers, counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sequences import COUNTERS, PORTS, Seen

# What BMv2's control plane reports of a value that its signed 64 bits cannot hold.
LARGEST_REPORTED = np.uint64(2**63 - 1)
SHOWN = 12


def differences(reference: Seen, other: Seen) -> Iterator[str]:
    """A line for each thing that `other` did otherwise than `reference`."""
    for port in PORTS:
        yield from packet_differences(port, reference.sent[port], other.sent[port])
    for name, values in reference.registers.items():
        expected, reported = (np.minimum(each, LARGEST_REPORTED) for each in (values, other.registers[name]))
        for index in np.flatnonzero(expected != reported)[:SHOWN]:
            yield f"{name}[{index}]: {expected[index]:#x}, not {reported[index]:#x}"
    for name in COUNTERS:
        for what, left, right in zip(("packets", "bytes"), reference.counters[name], other.counters[name], strict=True):
            for index in np.flatnonzero(left != right)[:SHOWN]:
                yield f"{name}[{index}]: {left[index]} {what}, not {right[index]}"


def packet_differences(port: int, reference: list[bytes], other: list[bytes]) -> Iterator[str]:
    """Lines for another number of packets at a port, and for the first one that differs."""
    if len(reference) != len(other):
        yield f"port {port} sent {len(reference)} packets, not {len(other)}"
    for number, (left, right) in enumerate(zip(reference, other, strict=False)):
        if left != right:
            yield f"port {port}, packet {number}:\n    {left.hex()}\nnot {right.hex()}"
            return
