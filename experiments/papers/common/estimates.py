"""Means over draws with their 95 % confidence intervals, which every figure shows.

A draw is the result of one seed. The interval is Student's t interval of the mean over draws: with three draws, as in
some figures, a bootstrap interval would be far too narrow. It bounds the mean, not single draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, nan, pi, sqrt, tan
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95
INTERVAL = "95 % interval of the mean (t, over draws)"
"""The name of the interval in figures and their CSV files."""


@dataclass(frozen=True)
class Estimate:
    """A point of a figure: the mean over `draws`, and the ends of its interval, which are None for a single draw."""

    value: float
    low: float | None
    high: float | None
    draws: tuple[float, ...]

    def map(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of a monotone function of the mean, which is not the mean of the function."""
        ends = None if self.low is None or self.high is None else sorted((function(self.low), function(self.high)))
        low, high = ends or (None, None)
        return Estimate(function(self.value), low, high, tuple(map(function, self.draws)))


MISSING = Estimate(nan, None, None, ())
"""A point without any valid draw."""

Series = Mapping[str, Sequence[Estimate]]
"""The points of each line, by its name, from left to right."""


def estimate(draws: Sequence[float]) -> Estimate:
    """The mean of one or more draws and its t interval."""
    mean = fmean(draws)
    if len(draws) < 2:
        return Estimate(mean, None, None, tuple(draws))
    half = quantile(len(draws) - 1) * stdev(draws) / sqrt(len(draws))
    return Estimate(mean, mean - half, mean + half, tuple(draws))


def ratio_of_means(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The mean of `above` over the mean of `below`, paired by draw; the interval follows from the delta method."""
    ratio, scale = fmean(above) / fmean(below), fmean(below)
    return estimate([ratio + (a - ratio * b) / scale for a, b in zip(above, below, strict=True)])


def exact(value: float) -> Estimate:
    """A value that was measured or computed once; it has no interval."""
    return estimate([value])


def means(series: Series) -> dict[str, list[float]]:
    """The means without intervals, in the form for tables and statements."""
    return {name: [point.value for point in points] for name, points in series.items()}


def quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else Fisher's expansion (to 0.2 %)."""
    z, p = NormalDist().inv_cdf((1 + CONFIDENCE) / 2), (1 + CONFIDENCE) / 2
    if freedom == 1:
        return tan(pi * (p - 0.5))
    if freedom == 2:
        return 2 * (p - 0.5) * sqrt(2 / (4 * p * (1 - p)))
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return fsum(term / float(freedom) ** power for power, term in enumerate(terms))
