"""Meters: buckets of tokens, one for each rate, that give a packet its colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Bucket:
    """Filled at `rate` tokens a microsecond up to `burst`; `counted` tokens have come since the meter began."""

    rate: float
    burst: int
    colour: int
    tokens: int
    counted: int = 0

    def fill(self, elapsed_us: int) -> None:
        total = int(elapsed_us * self.rate)
        self.tokens = min(self.tokens + total - self.counted, self.burst)
        self.counted = total


class MeterCell:
    """One cell of a meter, which began at `start_us`; without rates every packet is green (0)."""

    def __init__(self, start_us: int) -> None:
        self.start_us = start_us
        self.buckets: list[Bucket] = []

    def set_rates(self, rates: Sequence[tuple[float, int]]) -> None:
        """(tokens per microsecond, burst), the lowest rate first; colours count up from there."""
        made = [Bucket(rate, burst, colour, burst) for colour, (rate, burst) in enumerate(rates, start=1)]
        self.buckets = made[::-1]

    def colour(self, now_us: int, size: int) -> int:
        """The colour of a packet of `size` tokens: that of the highest rate which it exceeds."""
        for bucket in self.buckets:
            bucket.fill(now_us - self.start_us)
            if bucket.tokens < size:
                return bucket.colour
            bucket.tokens -= size
        return 0
