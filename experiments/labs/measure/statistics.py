"""95 % intervals of means as students may compute them, and whether theirs is one."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.experiments.labs.measure.handed_in import Interval
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.study.summary import bootstrapped

ROUNDED = 2e-3
"""How far a mean may be off, relative to it, for having been rounded."""
LOOSE = 0.12
"""How far an end of an interval may be off, relative to half its width: bootstraps draw."""


def intervals(values: Sequence[float]) -> tuple[Interval, Interval]:
    """Student's t interval of the mean, and the bootstrap's percentile interval, which is narrower."""
    t, drawn = estimate(values), bootstrapped(values)
    t_low, t_high = (t.value, t.value) if t.low is None or t.high is None else (t.low, t.high)
    low, high = (t.value, t.value) if drawn.low is None or drawn.high is None else (drawn.low, drawn.high)
    return Interval(t.value, t_low, t_high), Interval(t.value, low, high)


def fault_of(given: Interval, values: Sequence[float], scale: float) -> str:
    """What is wrong with an interval that is given for values, in words; empty for nothing. `scale` is for rounding."""
    t, drawn = intervals(values)
    rounding = ROUNDED * abs(scale)
    if abs(given.mean - t.mean) > rounding:
        return f"the mean is {given.mean:.6g}, of the table it is {t.mean:.6g}"
    loose = LOOSE * (t.high - t.low) / 2 + rounding / 2
    for name, end, one, other in (("low", given.low, t.low, drawn.low), ("high", given.high, t.high, drawn.high)):
        if not min(one, other) - loose <= end <= max(one, other) + loose:
            kinds = f"{one:.6g} by Student's t, {other:.6g} by the bootstrap"
            return f"the {name} end of the 95 % interval is {end:.6g}, of the table it is {kinds}"
    return ""


def verdicts(values: Sequence[float]) -> set[int]:
    """What may be said of the sign of a mean: 1 or -1 where the interval excludes 0, 0 where it does not.

    There are two where the two kinds of intervals differ.
    """
    return {(each.low > 0) - (each.high < 0) for each in intervals(values)}
