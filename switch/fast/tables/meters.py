"""The rates of a meter's cells, while packets empty and time fills the buckets of each."""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from inakit.switch.control.data_plane import Rates
from inakit.switch.fast.layout.entry_arrays import BUCKET, METER_RATES, meter_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import COPIES
from inakit.switch.fast.tables.rows import Memory

DOUBLE_BITS = 53


class MeterCells:
    """The cells of one meter. The copy of its buckets that packets do not take is written, then they take it."""

    def __init__(self, layout: ProgramLayout, meter: str, memory: Memory) -> None:
        cells = layout.view(memory, meter_array(meter))
        self.which = cells["which"]
        raw = cells.view(np.uint8).reshape(len(cells), -1)[:, self.which.itemsize :]
        self.buckets = raw.reshape(len(cells), COPIES, METER_RATES * BUCKET.size)

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Give one cell, or all (`index` None), these rates and full buckets; without rates every packet is green."""
        if not rates:
            self.which[slice(None) if index is None else index] = 0
            return
        buckets = b"".join(packed(rate, burst) for rate, burst in reversed(rates))
        for cell in range(len(self.which)) if index is None else (index,):
            other = int(self.which[cell]) % COPIES + 1
            self.buckets[cell, other % COPIES] = np.frombuffer(buckets, np.uint8)
            self.which[cell] = other

    def rates(self, index: int) -> Rates:
        """The rates of one cell."""
        which = int(self.which[index])
        if not which:
            return ()
        buckets = self.buckets[index, which % COPIES].tobytes()
        found = (BUCKET.unpack(buckets[at : at + BUCKET.size]) for at in range(0, len(buckets), BUCKET.size))
        return tuple((ldexp(mantissa, -shift), burst) for mantissa, shift, burst, _, _ in found)[::-1]


def packed(rate: float, burst: int) -> bytes:
    """A full bucket: the rate as a whole number over a power of two, which a double is exactly."""
    fraction, exponent = frexp(rate)
    return BUCKET.pack((int(ldexp(fraction, DOUBLE_BITS)), DOUBLE_BITS - exponent, burst, burst, 0))
