"""Credits that are raised at many ticks at once are those of one refill after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.pacing import AT_ONCE, TokenBuckets
from inakit.traffic.endpoints.streams import Streams

RATES_FPS = np.array([0.7, 38.3, 333.3, 4e5])


def buckets(*, begun: bool, ready: bool) -> TokenBuckets:
    """Buckets of four streams."""
    streams: Any = SimpleNamespace(host=np.zeros(4, np.int64), rate_fps=RATES_FPS)
    found = TokenBuckets(cast(Streams, streams), WorkerOptions())
    found.ready[:] = ready
    if begun:
        found.begin(np.array([1, 3]))
    return found


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("ticks", [0, 1, 2, 2 * AT_ONCE + 3])
def test_many_refills_at_once_are_one_after_the_other(ticks: int, begun: bool, ready: bool) -> None:
    times = 3.1 + np.cumsum(np.random.default_rng(ticks).random(ticks) * 0.003)
    one_by_one, at_once = (buckets(begun=begun, ready=ready) for _ in range(2))
    for now in times.tolist():
        one_by_one.refill(now)
    at_once.refill_at(times)
    for name in ("credit", "refilled_at", "late_s"):
        assert getattr(at_once, name).tobytes() == getattr(one_by_one, name).tobytes(), name


def test_a_bucket_is_filled_at_the_time_that_it_gives() -> None:
    found = buckets(begun=False, ready=True)
    found.refill(1.0)
    found.credit -= 1.9
    at = found.filled_at()
    found.refill(float(at[1]) - 1e-6)
    assert found.credit[1] < 1
    found.refill(float(at[1]) + 1e-6)
    assert found.credit[1] >= 1
    found.begin(np.array([2]))
    assert found.filled_at()[2] == -np.inf
