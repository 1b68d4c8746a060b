"""Faults at the endpoints of a run: hosts that fall silent or send packets twice, and workers slower than planned.

What happens to packets on the way is the switches' doing (`p4/faults.p4`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from threading import Lock

import numpy as np

from planner.core.problem import Problem
from traffic.endpoints.streams import StreamLayout
from traffic.sockets.batches import is_prefix
from traffic.sockets.ports import BoolArray, IntArray, Outgoing, Packets, Ports

SLOWEST = 0.05
"""No straggler stands still."""


@dataclass(frozen=True)
class Stragglers:
    """Workers' shares of their planned rate: a normal distribution, cut off at 1 and just above 0 (GOAT, section IV-C).

    GOAT's mean is the planned rate; its spread is 0.2.
    """

    spread: float
    mean: float = 1.0
    seed: int = 0

    def shares(self, problem: Problem) -> dict[str, float]:
        """The share of each worker, the same for every plan."""
        random = Random(self.seed)
        workers = dict.fromkeys(worker for job in problem.jobs for worker in job.workers)
        return {worker: min(1.0, max(SLOWEST, random.gauss(self.mean, self.spread))) for worker in workers}


def with_shares(layout: StreamLayout, shares: Mapping[str, float]) -> StreamLayout:
    """The layout with each worker's pace multiplied by its share; by 1 for one that has none."""
    of_host = np.array([shares.get(host.name, 1.0) for host in layout.hosts])
    streams = replace(layout.streams, rate_fps=layout.streams.rate_fps * of_host[layout.streams.host])
    return replace(layout, streams=streams)


class FaultyPorts:
    """`Ports` of hosts of which some are silent for a time, and some send packets twice.

    A silent host neither sends nor hears: what comes meanwhile is lost to it.
    """

    def __init__(self, inner: Ports, hosts: Sequence[str], doubled: Mapping[str, float], seed: int = 0) -> None:
        self.inner = inner
        self.index = {name: number for number, name in enumerate(hosts)}
        self.silent_until = np.full(len(hosts), -inf)
        self.cut_off = np.zeros(len(hosts), np.bool_)
        self._sending = Lock()
        self.shares = np.array([doubled.get(name, 0.0) for name in hosts])
        self.random = np.random.default_rng(seed)
        # to be read
        self.doubled = np.zeros(len(hosts), np.int64)
        self.unheard = np.zeros(len(hosts), np.int64)

    def silence(self, host: str, until: float = inf) -> None:
        """Let `host` be silent up to a moment of `now`."""
        self.silent_until[self.index[host]] = until

    def cut(self, host: str, *, off: bool) -> None:
        """Let `host`, whose link goes down or up, be silent from now on until told otherwise. From any thread."""
        if host in self.index:
            with self._sending:
                self.cut_off[self.index[host]] = off

    # -- as `Ports`

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Nothing of silent hosts is accepted. What is doubled goes a second time behind all that goes once."""
        with self._sending:
            return self.send_audible(batches)

    def send_audible(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        if self.silent().any():
            batches = [without(batch, self.silent()) for batch in batches]
        accepted = self.inner.send(batches)
        if self.shares.any():
            again = [self.some_of(batch, sent) for batch, sent in zip(batches, accepted, strict=True)]
            for sent in self.inner.send(again):
                self.doubled += sent
        return accepted

    def receive(self) -> Packets:
        packets, silent = self.inner.receive(), self.silent()
        if not silent.any():
            return packets
        lost: BoolArray = silent[packets.hosts]
        self.unheard += np.bincount(packets.hosts[lost], minlength=len(self.index))
        return packets.where(~lost)

    def now(self) -> float:
        return self.inner.now()

    def sleep(self, seconds: float) -> None:
        self.inner.sleep(seconds)

    def problems(self) -> Mapping[str, int]:
        return self.inner.problems()

    # -- which

    def silent(self) -> BoolArray:
        found: BoolArray = self.cut_off | (self.silent_until > self.inner.now())
        return found

    def some_of(self, batch: Outgoing, sent: IntArray) -> Outgoing:
        """A random share of those packets of a batch that were sent."""
        host = np.repeat(np.arange(len(batch.counts)), batch.counts)
        chosen = is_prefix(batch.counts, sent) & (self.random.random(len(host)) < self.shares[host])
        return replace(batch, rows=batch.rows[chosen], counts=np.bincount(host[chosen], minlength=len(batch.counts)))


def without(batch: Outgoing, hosts: BoolArray) -> Outgoing:
    """The batch without the packets of some hosts."""
    kept = np.repeat(~hosts, batch.counts)
    return replace(batch, rows=batch.rows[kept], counts=np.where(hosts, 0, batch.counts))
