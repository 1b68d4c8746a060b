"""Faults at the endpoints of a run: hosts that fall silent or send packets twice, and workers slower than planned.

Faults of links, which affect packets on their way, are implemented in switches (`p4/faults.p4`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from threading import Lock

import numpy as np

from inakit.planner.core.problem import Problem
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, Outgoing, Packets, Ports, is_prefix

SLOWEST = 0.05
"""A straggler's least share of its planned rate."""

DIGITS = 9
"""Digits of a straggler's share: C libraries give its logarithm and sine with different last digits."""


@dataclass(frozen=True)
class Stragglers:
    """Workers' shares of their planned rates: normally distributed, clipped to `SLOWEST` to 1 (GOAT, section IV-C).

    GOAT's mean is the planned rate; its spread is 0.2.
    """

    spread: float
    mean: float = 1.0
    seed: int = 0

    def shares(self, problem: Problem) -> dict[str, float]:
        """The share of each worker of the jobs, by name; the same for every plan of the problem."""
        random = Random(self.seed)
        workers = dict.fromkeys(worker for job in problem.jobs for worker in job.workers)
        drawn = {worker: round(random.gauss(self.mean, self.spread), DIGITS) for worker in workers}
        return {worker: min(1.0, max(SLOWEST, share)) for worker, share in drawn.items()}


def with_shares(layout: StreamLayout, shares: Mapping[str, float]) -> StreamLayout:
    """Return the layout with each worker's rate multiplied by its share; workers without a share keep their rates."""
    of_host = np.array([shares.get(host.name, 1.0) for host in layout.hosts])
    streams = replace(layout.streams, rate_fps=layout.streams.rate_fps * of_host[layout.streams.host])
    return replace(layout, streams=streams)


class FaultyPorts:
    """`Ports` of hosts of which some are silent for a time, and some send packets twice.

    A silent host neither sends nor receives: packets that arrive meanwhile are lost. `doubled` has the share of a
    host's packets that it sends twice, by its name. Results, (hosts,): `doubled`, the number of packets that each has
    sent twice; `unheard`, the number that it has lost.
    """

    def __init__(self, inner: Ports, hosts: Sequence[str], doubled: Mapping[str, float], seed: int = 0) -> None:
        self.inner = inner
        self.index = {name: number for number, name in enumerate(hosts)}
        self.silent_until = np.full(len(hosts), -inf)
        self.cut_off = np.zeros(len(hosts), np.bool_)
        self._sending = Lock()
        self.shares = np.array([doubled.get(name, 0.0) for name in hosts])
        self.random = np.random.default_rng(seed)
        self.doubled = np.zeros(len(hosts), np.int64)
        self.unheard = np.zeros(len(hosts), np.int64)

    def silence(self, host: str, until: float = inf) -> None:
        """Silence `host` until a time of the ports' clock."""
        self.silent_until[self.index[host]] = until

    def cut(self, host: str, *, off: bool) -> None:
        """Silence `host`, because its link is down, or end its silence. Can be called from any thread."""
        if host in self.index:
            with self._sending:
                self.cut_off[self.index[host]] = off

    # -- as `Ports`

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Send the packets of hosts that are not silent; no others are accepted. Duplicates follow all packets."""
        with self._sending:
            return self.send_audible(batches)

    def send_audible(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Send batches without the packets of silent hosts, then the duplicates."""
        if self.silent().any():
            batches = [without(batch, self.silent()) for batch in batches]
        accepted = self.inner.send(batches)
        if self.shares.any():
            again = [self.some_of(batch, sent) for batch, sent in zip(batches, accepted, strict=True)]
            for sent in self.inner.send(again):
                self.doubled += sent
        return accepted

    def receive(self) -> Packets:
        """Return the packets that arrived at hosts that are not silent."""
        packets, silent = self.inner.receive(), self.silent()
        if not silent.any():
            return packets
        lost: BoolArray = silent[packets.hosts]
        self.unheard += np.bincount(packets.hosts[lost], minlength=len(self.index))
        return packets.where(~lost)

    def now(self) -> float:
        """The time of the ports beneath."""
        return self.inner.now()

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        self.inner.sleep(seconds)

    def is_quiet(self) -> bool:
        """Whether nothing has arrived at the ports beneath."""
        return self.inner.is_quiet()

    def pass_ticks(self, tick_s: float, due: float) -> FloatArray:
        """Sleep tick by tick as the ports beneath do."""
        return self.inner.pass_ticks(tick_s, due)

    def accepts_from(self) -> FloatArray:
        """The time at which each silent host sends again; unknown for a link that is down."""
        known: FloatArray = np.maximum(self.inner.accepts_from(), self.silent_until)
        return known

    def problems(self) -> Mapping[str, int]:
        """The problems of the ports beneath."""
        return self.inner.problems()

    # -- which

    def silent(self) -> BoolArray:
        """Whether each host is silent now, (hosts,)."""
        found: BoolArray = self.cut_off | (self.silent_until > self.inner.now())
        return found

    def some_of(self, batch: Outgoing, sent: IntArray) -> Outgoing:
        """The packets of a batch that are sent twice: each host's share, at random, of those that were `sent`."""
        host = np.repeat(np.arange(len(batch.counts)), batch.counts)
        chosen = is_prefix(batch.counts, sent) & (self.random.random(len(host)) < self.shares[host])
        return replace(batch, rows=batch.rows[chosen], counts=np.bincount(host[chosen], minlength=len(batch.counts)))


def without(batch: Outgoing, hosts: BoolArray) -> Outgoing:
    """The batch without the packets of some hosts."""
    kept = np.repeat(~hosts, batch.counts)
    return replace(batch, rows=batch.rows[kept], counts=np.where(hosts, 0, batch.counts))
