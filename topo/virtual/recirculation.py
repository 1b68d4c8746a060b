"""Which packets pass a pipeline of a switch several times, and the link by which they come in again.

Packets are chosen by what they hold: a filter, and a number at a place in their bytes. What those mean is not known
here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

INSTRUCTION = np.dtype([("code", np.uint16), ("if_true", np.uint8), ("if_false", np.uint8), ("operand", np.uint32)])
"""A line of a filter, `struct instruction` of socket_filter.h."""

RECIRCULATION = np.dtype(
    [
        ("filter", np.uint64), ("numbers", np.uint64), ("mask", np.uint64), ("count", np.uint32),
        ("number_at", np.uint32), ("link", np.uint32), ("times", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct recirculation` of recirculation.h."""


class Recirculation:
    """Packets that come in `times` more times before a switch is done with them.

    They are those that `program`, of classic BPF, accepts, and whose big-endian number of 64 bits at the byte
    `number_at`, with `mask` applied, is one of `numbers`.
    """

    def __init__(
        self, program: Sequence[tuple[int, int, int, int]], number_at: int, mask: int, numbers: set[int], times: int
    ) -> None:
        self.filter = np.array(list(program), INSTRUCTION)
        self.numbers = np.array(sorted(numbers), np.uint64)
        self.number_at, self.mask, self.times = number_at, mask, times

    def record(self, link: int) -> NDArray[np.void]:
        """The record for the engine: packets come in again by this link. It points into this object."""
        record = np.zeros(1, RECIRCULATION)
        at = self.filter.ctypes.data, self.numbers.ctypes.data
        record[0] = (*at, self.mask, len(self.numbers), self.number_at, link, self.times)
        return record
