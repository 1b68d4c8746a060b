"""Which packets the pipelines of chips recirculate in virtual time: the gradients that they sum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inakit.planner.install.program import AGGREGATION
from inakit.switch.entries import Entries, TableEntry
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.recirculation import Recirculation
from inakit.traffic.sockets.socket_filter import INA_FILTER
from inakit.traffic.wire.frames import BARE_FRAME, offset_of
from inakit.traffic.wire.packet_format import Flag, Kind

NOT_SUMMED = Flag.DIRECT | Flag.PARTIAL | Flag.OVERFLOW
"""Packets with one of these flags pass an aggregator as they are."""
CHOSEN = ("kind", "flags", "job", "tree", "label")
"""The fields at the beginning of an INA header that say whether a switch sums the packet."""


def recirculations(fabric: Fabric, installed: Entries) -> dict[tuple[str, int], Recirculation]:
    """By switch and pipeline, what has to pass several times: gradients with an entry that makes the pipeline sum.

    Pipelines whose chip is done in one pass, or that sum nothing, are left out.
    """
    found: dict[tuple[str, int], set[int]] = {}
    for switch in installed.switches:
        chip = fabric.switch_by_name[switch.switch].chip
        if chip is not None and chip.passes > 1:
            for pipeline, number in summed(switch.tables):
                found.setdefault((switch.switch, pipeline), set()).add(number)
    times = {name: chip.passes - 1 for name, s in fabric.switch_by_name.items() if (chip := s.chip)}
    mask = number_of(0xFF, NOT_SUMMED, 0xFFFF, 0xFFFF, 0xFFFF)
    at = offset_of("ina")
    return {inp: Recirculation(INA_FILTER, at, mask, numbers, times[inp[0]]) for inp, numbers in found.items()}


def summed(entries: tuple[object, ...]) -> Iterator[tuple[int, int]]:
    """The pipeline and the number of the gradients that each entry of the aggregation table sums."""
    for entry in entries:
        if isinstance(entry, TableEntry) and entry.table == AGGREGATION:
            pipeline, job, tree, label = entry.exact_key
            yield pipeline, number_of(Kind.GRADIENT, 0, job, tree, label)


def number_of(*fields: int) -> int:
    """The first eight bytes of an INA header with these `CHOSEN` fields, as a number."""
    head = np.zeros(1, BARE_FRAME["ina"])
    for name, value in zip(CHOSEN, fields, strict=True):
        head[name] = value
    return int.from_bytes(head.tobytes()[:8])
