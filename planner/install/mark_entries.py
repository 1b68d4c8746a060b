"""Queues behind ports as table entries of `p4/marks.p4`: how fast each link sends, and when its queue is a long one."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.planner.core.problem import Problem
from inakit.planner.install import program
from inakit.switch.entries import TableEntry
from inakit.topo.fabric.fabric import QUEUE_PACKETS

LONG_QUEUE = QUEUE_PACKETS // 4
"""The packets that wait in a long queue: more than the bursts of paced workers, and far from those that are dropped."""
PARTS_PER_BYTE = 1 << 16
US_PER_S = 1_000_000


def mark_entries(problem: Problem, switch: str) -> Iterator[TableEntry]:
    """The entries of every port of a switch."""
    fabric = problem.fabric
    limit = LONG_QUEUE * problem.fragment.wire_bytes * PARTS_PER_BYTE
    for peer in fabric.neighbors[switch]:
        rate = round(fabric.capacities_bps[switch, peer] / 8 / US_PER_S * PARTS_PER_BYTE)
        yield TableEntry(program.QUEUES, (fabric.port_numbers[switch, peer],), program.PHANTOM, (rate, limit))
