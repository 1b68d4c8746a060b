"""How fast hosts send, as seen from outside: from samples of the counters of their interfaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inakit.traffic.sockets.ports import HostPort, IntArray


@dataclass(frozen=True)
class Sending:
    """What left a host's interface: since when (seconds of the ports' clock), how many bytes, and at what rate."""

    begun_at: float
    sent_bytes: int
    rate_bps: float


@dataclass
class Series:
    """Samples of one counter of bytes: the time and the value of each that differs from the one before it.

    `before`: the value at `since`, when the host was to begin.
    """

    before: int
    since: float
    samples: list[tuple[float, int]] = field(default_factory=list)


class Egress:
    """Samples the counters of hosts while they send: `sent_bytes` reads what one has sent so far."""

    def __init__(self, hosts: Sequence[HostPort], sent_bytes: Callable[[HostPort], int], period_s: float) -> None:
        self.hosts, self.sent_bytes, self.period_s = hosts, sent_bytes, period_s
        self.series: dict[int, Series] = {}
        self.due_at = 0.0

    def begin(self, hosts: IntArray, now: float) -> None:
        """Forget what these hosts have sent so far."""
        for host in hosts.tolist():
            self.series[host] = Series(self.sent(host), now)

    def sent(self, host: int) -> int:
        """Bytes that have left a host's interface so far."""
        return self.sent_bytes(self.hosts[host])

    def sample(self, now: float) -> None:
        """Read all counters, at most once per period."""
        if now < self.due_at:
            return
        self.due_at = now + self.period_s
        for host, series in self.series.items():
            sent = self.sent(host)
            if sent != (series.samples[-1][1] if series.samples else series.before):
                series.samples.append((now, sent))

    def of(self, host: int) -> Sending:
        """What a host has sent since `begin`."""
        return sending(self.series[host])


def sending(series: Series) -> Sending:
    """A host's sending: its rate is the slope from the first sample to the last one that was taken while it sent."""
    if not series.samples:
        return Sending(series.since, 0, 0.0)
    total = series.samples[-1][1] - series.before
    # The last change may have happened long before it was seen; at the one before it the host was still sending.
    steady = series.samples[:-1] if len(series.samples) > 2 else [(series.since, series.before), series.samples[-1]]
    (first_at, first), (last_at, last) = steady[0], steady[-1]
    slope = (last - first) / (last_at - first_at) if last_at > first_at else 0.0
    begun_at = first_at - (first - series.before) / slope if slope else first_at
    return Sending(begun_at, total, 8 * slope)
