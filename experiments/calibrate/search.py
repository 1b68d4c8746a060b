"""The search for the highest rate that a machine carries, where one trial alone may be wrong about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

STEP = 1.1
"""Between neighbouring rates of the search."""
LEAPS = (0, 4, 12, 28, 60)
"""Steps from the start, up or down, until a rate that is carried and one that is not are found."""
AGREEING = 2
"""So many trials must agree on a rate: something else on the machine can spoil one, and luck can save one."""


def highest_rate(carried: Callable[[float], bool], start: float) -> float | None:
    """The highest rate that `carried` says is carried while the one `STEP` above is not; None if none is.

    Rates are `start` times powers of `STEP`: leaps from the start up or down to find two rates that differ,
    bisection between them.
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
    """A step that is carried, and one above it that is not."""
    if settled(0):
        higher = ((low, high) for low, high in pairwise(LEAPS) if not settled(high))
        return next(higher, (LEAPS[-1], LEAPS[-1] + 1))
    lower = ((-low, -high) for high, low in pairwise(LEAPS) if settled(-low))
    return next(lower, (None, -LEAPS[-1]))


def agreed(trial: Callable[[], bool]) -> bool:
    """What the trials say of which `AGREEING` were the first to agree."""
    answers: Counter[bool] = Counter()
    while True:
        answer = trial()
        answers[answer] += 1
        if answers[answer] == AGREEING:
            return answer
