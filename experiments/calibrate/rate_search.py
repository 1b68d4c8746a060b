"""The search for the highest rate that a machine carries, where one trial alone may be wrong about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

STEP = 1.1
"""The ratio of two neighbouring rates of the search."""
LEAPS = (0, 4, 12, 28, 60)
"""How many steps above or below the start are tried in turn, until a rate is found on the other side of the limit."""
AGREEING = 2
"""So many trials must agree on a rate: other work on the machine can spoil one trial, and luck can save one."""


def highest_rate(carried: Callable[[float], bool], start: float) -> float | None:
    """The highest rate that is carried, by what `carried` answers for each rate; None if none is.

    Rates are `start` times powers of `STEP`. Leaps up or down from the start find one rate that is carried and one
    that is not; bisection between them ends at two neighbouring rates.
    """

    def settled(step: int) -> bool:
        return agreed(lambda: carried(start * STEP**step))

    low, high = bracket(settled)
    if low is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if settled(middle) else (low, middle)
    return start * STEP**low


def bracket(settled: Callable[[int], bool]) -> tuple[int | None, int]:
    """A step that is carried, None if there is none, and a step above it that is not carried.

    Where the highest of `LEAPS` is carried, the step above it is taken as not carried.
    """
    if settled(0):
        higher = ((low, high) for low, high in pairwise(LEAPS) if not settled(high))
        return next(higher, (LEAPS[-1], LEAPS[-1] + 1))
    lower = ((-low, -high) for high, low in pairwise(LEAPS) if settled(-low))
    return next(lower, (None, -LEAPS[-1]))


def agreed(trial: Callable[[], bool]) -> bool:
    """Repeat `trial` until `AGREEING` of its answers are the same, and return that answer."""
    answers: Counter[bool] = Counter()
    while True:
        answer = trial()
        answers[answer] += 1
        if answers[answer] == AGREEING:
            return answer
