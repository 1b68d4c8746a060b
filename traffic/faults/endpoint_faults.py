"""Faults at the endpoints of a run: hosts that fall silent or send packets twice, and workers slower than planned.

Faults of links, which affect packets on their way, are implemented in switches (`p4/faults.p4`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from random import Random
from threading import Lock
from types import MappingProxyType

import numpy as np

from inakit.planner.core.problem import Problem
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.endpoints.endpoints import ps
from inakit.traffic.endpoints.records import NEVER
from inakit.traffic.endpoints.streams import StreamLayout

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


class FaultyHosts:
    """Hosts of a run of which some are silent for a time, and some send packets twice.

    A silent host neither sends nor receives: packets that arrive meanwhile are lost. `shares` has the share of a host's
    packets that it sends twice, by its name.
    """

    def __init__(self, loop: ClosedLoop, shares: Mapping[str, float] = MappingProxyType({}), seed: int = 0) -> None:
        self.loop = loop
        self.index = {host.name: number for number, host in enumerate(loop.layout.hosts)}
        self.records = loop.endpoints.hosts
        self.ends: list[tuple[float, int]] = []
        self.lock = Lock()
        random = Random(seed)
        for name, number in self.index.items():
            self.records["random"][number] = random.getrandbits(64)
            self.records["doubled_share"][number] = round(shares.get(name, 0.0) * (1 << 32))

    @property
    def doubled(self) -> int:
        """The number of packets that hosts have sent twice."""
        return int(self.records["doubled"].sum())

    @property
    def unheard(self) -> int:
        """The number of packets that silent hosts have lost."""
        return int(self.records["unheard"].sum())

    def silence(self, host: str, until: float = inf) -> None:
        """Silence `host` until a time of the ports' clock."""
        number, ports = self.index[host], self.loop.ports
        at_ps = NEVER if until == inf else ports.now_ps() + ps(max(0.0, until - ports.now()))
        self.records["silent_until"][number] = at_ps
        if until < inf:
            self.ends.append((until, number))

    def cut(self, host: str, *, off: bool) -> None:
        """Silence `host`, because its link is down, or end its silence. Can be called from any thread."""
        if host in self.index:
            with self.lock:
                self.records["cut_off"][self.index[host]] = off
                if not off:
                    self.ends.append((-inf, self.index[host]))

    @property
    def next_due(self) -> float:
        """The time at which a silent host can be heard again."""
        return min((until for until, _ in self.ends), default=inf)

    def resume(self, now: float) -> None:
        """Let hosts go on whose silence is over."""
        with self.lock:
            over = [end for end in self.ends if end[0] <= now]
            self.ends = [end for end in self.ends if end[0] > now]
        for _, number in over:
            self.loop.endpoints.resume(number, self.loop.ports.now_ps())
