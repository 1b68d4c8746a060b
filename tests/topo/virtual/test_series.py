"""What links did over time, in numbers that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from inakit.topo.virtual.engine import PS_PER_S, Engine, LinkSamples, Series

pytestmark = pytest.mark.compiler

FRAME = np.dtype((np.void, 100))
"""800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Two hosts, joined by one link of 1 Gbit/s, whose queue has no limit."""
    with Engine(1, [1, 1], FRAME) as made:
        made.connect(0, (0, 0), (1, 0), rate_bps=1e9, delay_ps=50 * NS, limit=0)
        yield made


def send(engine: Engine, count: int) -> None:
    engine.send(np.zeros(count, np.uint32), np.full(count, 100, np.uint32), np.zeros(count, FRAME))


def observed(engine: Engine, *, interval_ns: int, points: int) -> Series:
    series = Series(1, interval_ns * NS, points)
    engine.observe(series)
    return series


def columns(found: LinkSamples) -> list[list[float]]:
    """Of the one link: its utilisation, its mean queue and its longest queue in every interval."""
    return [found.utilisation[0].tolist(), found.mean_queue[0].tolist(), found.most_queue[0].tolist()]


def test_a_link_is_used_as_long_as_it_sends_and_its_queue_is_who_waits(engine: Engine) -> None:
    series = observed(engine, interval_ns=1000, points=8)
    send(engine, 3)  # they begin at 0, 800 and 1600 ns; the last one ends at 2400 ns
    engine.run(4000 * NS)
    used, mean, most = columns(series.until(4000 * NS))
    assert used == [1.0, 1.0, 0.4, 0.0]
    assert mean == [(800 + 1000) / 1000, 600 / 1000, 0.0, 0.0]
    assert most == [2, 1, 0, 0]


def test_a_link_that_gets_more_than_it_can_send_is_full_and_its_queue_grows(engine: Engine) -> None:
    series = observed(engine, interval_ns=1600, points=16)
    for step in range(5):  # four packets in the time of two
        send(engine, 4)
        engine.run((step + 1) * 1600 * NS)
    used, mean, most = columns(series.until(5 * 1600 * NS))
    assert used == [1.0] * 5
    assert most == [3, 5, 7, 9, 11]
    assert mean == [2.5, 4.5, 6.5, 8.5, 10.5]


def seen_in(engine: Engine, *, interval_ns: int, points: int) -> LinkSamples:
    """One packet at 0 ns, two at 900 ns and four at 3100 ns, until 6400 ns."""
    series = observed(engine, interval_ns=interval_ns, points=points)
    for at_ns, count in ((0, 1), (900, 2), (3100, 4)):
        engine.run(at_ns * NS)
        send(engine, count)
    engine.run(6400 * NS)
    return series.until(6400 * NS)


def test_when_the_points_are_used_up_two_become_one_and_nothing_is_lost(engine: Engine) -> None:
    fine = seen_in(engine, interval_ns=100, points=1000)
    with Engine(1, [1, 1], FRAME) as other:
        other.connect(0, (0, 0), (1, 0), rate_bps=1e9, delay_ps=0, limit=0)
        coarse = seen_in(other, interval_ns=100, points=4)
    assert (fine.interval_ps, coarse.interval_ps) == (100 * NS, 1600 * NS)
    used, mean, most = columns(coarse)
    quarters = [slice(first, first + 16) for first in range(0, 64, 16)]
    assert used == pytest.approx([fine.utilisation[0, quarter].mean() for quarter in quarters])
    assert mean == pytest.approx([fine.mean_queue[0, quarter].mean() for quarter in quarters])
    assert most == [fine.most_queue[0, quarter].max() for quarter in quarters] == [1, 3, 3, 1]


def test_the_longest_queue_of_two_intervals_is_the_longer_one(engine: Engine) -> None:
    series = observed(engine, interval_ns=800, points=4)
    engine.run(900 * NS)
    send(engine, 2)  # one of them waits, in the second interval
    engine.run(3300 * NS)
    send(engine, 1)  # which ends in the sixth one
    assert columns(series.until(4800 * NS))[2] == [1, 1, 0]
