"""Meters: arrays of cells, each with a bucket of tokens for each rate, which give a packet its colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inakit.switch.control.data_plane import Rates


@dataclass
class Bucket:
    """A bucket that gets `rate` tokens a microsecond, up to `burst`; `counted` have come since the meter began."""

    rate: float
    burst: int
    colour: int
    tokens: int
    counted: int = 0

    def fill(self, elapsed_us: int) -> None:
        """Add the tokens that have come by this time since the meter began."""
        total = int(elapsed_us * self.rate)
        self.tokens = min(self.tokens + total - self.counted, self.burst)
        self.counted = total


class MeterCell:
    """One cell of a meter. Without rates every packet is green (0)."""

    def __init__(self, rates: Rates = ()) -> None:
        self.rates = rates
        made = [Bucket(rate, burst, colour, burst) for colour, (rate, burst) in enumerate(rates, start=1)]
        self.buckets = made[::-1]

    def colour(self, elapsed_us: int, size: int) -> int:
        """The colour of a packet of `size` tokens: that of the highest rate that it exceeds."""
        for bucket in self.buckets:
            bucket.fill(elapsed_us)
            if bucket.tokens < size:
                return bucket.colour
            bucket.tokens -= size
        return 0


class MeterState:
    """The cells of one meter; each is made when it is first used."""

    def __init__(self, size: int, of_bytes: bool, clock: Callable[[], int]) -> None:
        self.size, self.of_bytes, self.clock = size, of_bytes, clock
        self.start_us = clock()
        self.rates: Rates = ()
        self.cells: dict[int, MeterCell] = {}

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Give one cell, or all (`index` None), these rates and full buckets."""
        if index is None:
            self.rates = rates
            self.cells.clear()
        else:
            self.cells[index] = MeterCell(rates)

    def rates_of(self, index: int) -> Rates:
        """The rates of one cell."""
        return self.cells[index].rates if index in self.cells else self.rates

    def forget(self, index: int) -> None:
        """Let one cell be as all were at first."""
        self.cells.pop(index, None)

    def reset(self) -> None:
        """Let all cells be without rates."""
        self.rates = ()
        self.cells.clear()

    def colour(self, index: int, packet_bytes: int) -> int:
        """The colour that the cell at `index` gives a packet of this length."""
        if index not in self.cells:
            self.cells[index] = MeterCell(self.rates)
        return self.cells[index].colour(self.clock() - self.start_us, packet_bytes if self.of_bytes else 1)
