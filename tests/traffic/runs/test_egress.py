"""The sending rate that interface counters show, and the rows that measurements become."""

from __future__ import annotations

import pytest

from inakit.traffic.measure.measured import Iteration, Measured, rate_bps
from inakit.traffic.measure.monitor import LinkSample, gradient_bytes_on_links, link_rows, measured_aggregation
from inakit.traffic.replay import Series, sending
from inakit.traffic.wire.packet_format import Event


def test_the_slope_in_full_flow() -> None:
    # 1000 bytes/s from 0.5 s to 2.5 s, seen every 0.2 s.
    times = [0.6 + 0.2 * i for i in range(11)]
    series = Series(100, 0.0, [(at, 100 + round(1000 * (min(at, 2.5) - 0.5))) for at in times])
    found = sending(series)
    assert found.rate_bps == pytest.approx(8000)
    assert found.begun_at == pytest.approx(0.5)
    assert found.sent_bytes == 2000


def test_a_short_burst_and_none() -> None:
    burst = sending(Series(0, 1.0, [(1.5, 500)]))
    assert burst.sent_bytes == 500
    assert burst.rate_bps == pytest.approx(8000)
    assert sending(Series(7, 1.0)).sent_bytes == 0


def test_rate_counts_intervals() -> None:
    assert rate_bps(11, 100, 2.0) == 8 * 100 * 5
    assert rate_bps(1, 100, 0.0) == 0


def test_rate_of_streams_side_by_side() -> None:
    """Two streams with five frames in a second each: what one with ten has."""
    assert rate_bps(10, 100, 0.8, of_last=5) == pytest.approx(8 * 100 * 10)
    assert rate_bps(10, 100, 0.9) == pytest.approx(8 * 100 * 10)
    assert rate_bps(2, 100, 0.0, of_last=1) == 0


def test_link_rows() -> None:
    samples = [LinkSample(1.0, {"a": 100}), LinkSample(3.0, {"a": 350})]
    row = {"at_s": 3.0, "interface": "a", "bytes": 250, "rate_bps": 1000.0, "sender": "h1", "receiver": "s1"}
    assert list(link_rows(samples, {"a": ("h1", "s1")})) == [row]


def test_means_are_over_iterations_and_never_over_jobs() -> None:
    """Job 1 has two iterations, job 3 one: the slowest rate, all PSs' ingress, the longest time."""
    iterations = tuple(
        Iteration(job, number, 0.0, seconds, {"w0": rate}, {"w0": 500}, {"p0": 100, "p1": 50}, 2, job == 1)
        for job, number, seconds, rate in ((1, 0, 1.0, 10.0), (1, 1, 2.0, 20.0), (3, 0, 3.0, 30.0))
    )
    measured = Measured("reliable", iterations)
    assert measured.sending_rate_bps == 15
    assert measured.total_rate_bps == 15 + 30
    assert measured.ps_ingress_bytes == 300
    assert measured.sent_bytes == 1000
    assert measured.communication_time_s == 3
    assert measured.retransmissions == 6
    assert measured.exact is False
    first = measured.of_job(1)
    assert (first.exact, first.sending_rate_bps, first.ps_ingress_bytes, first.communication_time_s) == (
        True,
        15,
        150,
        1.5,
    )


def test_rows_are_of_every_host_in_every_iteration() -> None:
    iterations = tuple(
        Iteration(job, 0, 0.0, job * 1.0, {"w0": job * 10.0}, {"w0": 5}, {"p0": 100, "p1": 50}) for job in (1, 3)
    )
    rows = list(Measured("reliable", iterations).rows())
    assert [row["host"] for row in rows] == ["w0", "p0", "p1"] * 2
    assert rows[1]["rate_bps"] == 800


def test_aggregation_of_a_switch() -> None:
    events = {Event.SENT_UNICAST: 10, Event.ABSORBED: 25, Event.DUPLICATE: 5, Event.SENT_MULTICAST: 99}
    switch = measured_aggregation({int(event): count for event, count in events.items()})
    assert (switch.packets_in, switch.packets_out, switch.ratio) == (40, 10, 4.0)
    iteration = Iteration(1, 0, 0.0, 1.0, {"w0": 1.0}, {"w0": 700}, {"p0": 1})
    assert gradient_bytes_on_links(Measured("replay", (iteration,)), [switch, switch], 326) == 700 + 20 * 326
