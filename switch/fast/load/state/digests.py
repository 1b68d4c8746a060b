"""Reads the digests of a switch from its memory, each once, in the order in which they were reported."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Digest
from inakit.switch.fast.layout.digest_rings import COUNTS, RING, ring_name
from inakit.switch.fast.layout.layout import ProgramLayout


class DigestReader:
    """What was read of each ring. The switch may report more meanwhile: what it overwrites is lost."""

    def __init__(self, layout: ProgramLayout, memory: NDArray[np.uint8]) -> None:
        self.layout, self.memory = layout, memory
        self.done = dict.fromkeys(layout.program.digests, 0)

    def read(self) -> list[Digest]:
        """The digests since the last call; none of a program that reports none."""
        if not self.layout.digesting:
            return []
        found = [each for number in self.done for each in self.read_ring(number)]
        return [digest for _, digest in sorted(found, key=lambda each: each[0])]

    def read_ring(self, number: int) -> list[tuple[int, Digest]]:
        """The new digests of one list, each behind its number among all.

        The place behind the last one may be written to while it is read, so that one less than all places count.
        """
        count = self.count(number)
        first = max(self.done[number], count - RING + 1)
        view, record = self.layout.view(self.memory, ring_name(number)), self.layout.arrays[ring_name(number)].record
        places = [(at, record.unpack(view[at % RING].tobytes())) for at in range(first, count)]
        still = self.count(number) - RING
        kept = [each for at, each in places if at > still]
        self.done[number] = count
        name = self.layout.program.digests[number].name
        return [(order, (name, tuple(values))) for order, *values in kept]

    def count(self, number: int) -> int:
        """How many digests of a list there were so far."""
        return int(self.layout.view(self.memory, COUNTS)[str(number)][0])
