"""The search for the highest rate that keeps to a loss limit."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.experiments.bench.trial import RunTrial, Trial

LOSS_LIMITS = (0.002, 0.0)
TRIAL_S = 0.4
CONFIRMATION_S = 0.8
STEP = 0.9
"""Each rate that is tried is this share of the one above it."""
STEPS = 85


def highest_rates(trial: RunTrial, limits: Sequence[float] = LOSS_LIMITS) -> list[float]:
    """For each loss limit, loosest first, the highest rate in packets per second that keeps to it; 0 if none does.

    The search tries flat out first, and then the flat-out rate times 1, `STEP`, `STEP`**2 and so on. Bisection with
    short trials finds the highest of these rates that keeps to the loosest limit. From there the search goes down
    step by step, with longer trials, until one of them keeps to each limit in turn.
    """
    flat_out = trial(TRIAL_S, None)
    rates = [None, *(flat_out.rate_pps * STEP**step for step in range(STEPS))]
    step = 0 if flat_out.loss <= limits[0] else bisect_rates(trial, rates, limits[0])
    carried: list[Trial] = []
    for limit in limits:
        while step < len(rates) and not any(result.loss <= limit for result in carried):
            carried.append(carried_at(trial, rates[step]))
            step += 1
    return [max((result.rate_pps for result in carried if result.loss <= limit), default=0.0) for limit in limits]


def carried_at(trial: RunTrial, rate_pps: float | None) -> Trial:
    """Run a longer trial. A measured rate above `rate_pps` counts as `rate_pps`."""
    result = trial(CONFIRMATION_S, rate_pps)
    return Trial(min(rate_pps or result.rate_pps, result.rate_pps), result.loss)


def bisect_rates(trial: RunTrial, rates: Sequence[float | None], limit: float) -> int:
    """The index, from 1, of the first of the falling `rates` that keeps to the limit; that of the last if none does."""
    low, high = 1, len(rates) - 1
    while low < high:
        middle = (low + high) // 2
        if trial(TRIAL_S, rates[middle]).loss <= limit:
            high = middle
        else:
            low = middle + 1
    return low
