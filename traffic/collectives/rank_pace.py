"""The pace of ranks: the fragments that each can send now over all connections, earlier steps first, then next ranks.

The rates of connections are for their own steps. If links cannot carry all connections at the same time, the steps of a
host follow one another: in a step in which it sends at half its highest rate, each fragment costs twice the credit, so
that none is left for a later step, which can share links with this one.
"""

from __future__ import annotations

import numpy as np

from inakit.planner.core.collective_times import overlaps
from inakit.traffic.collectives.rank_data import CollectiveLayout, Dataflow
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.pacing import LEAST_DEPTH, TokenBuckets
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray


class RankPace(TokenBuckets):
    """Buckets of streams, and of hosts.

    Over hosts, (hosts,): `most_fps`, the highest total rate of a host's connections; `host_credit`, the fragments that
    it can send now; `host_late_s`, the sending time that it could have used and did not; `host_ready`, whether it could
    have sent more after its last fragment. Over streams, (streams,): `distance`, the number of ranks to the
    destination. Over rows of streams, (rows,): `cost`, the credit of a fragment, at least 1.
    """

    def __init__(self, layout: CollectiveLayout, flow: Dataflow, options: WorkerOptions) -> None:
        super().__init__(layout.streams, options)
        self.layout, self.flow = layout, flow
        self.most_fps, self.cost = rates_and_costs(layout, flow)
        senders = ((each.connection, len(layout.collectives[each.job_index].ranks)) for each in layout.senders)
        self.distance = np.array([(own.destination - own.source) % ranks for own, ranks in senders], np.int64)
        hosts = len(layout.hosts)
        self.host_credit, self.host_late_s = np.ones(hosts), np.zeros(hosts)
        self.host_ready = np.zeros(hosts, np.bool_)
        self.host_refilled_at = np.nan

    def refill(self, now: float) -> None:
        """Raise the credits of streams and hosts; without a pace only windows limit them."""
        if not self.options.paced:
            super().refill(now)
            self.host_credit[:] = np.inf
            return
        passed = 0.0 if np.isnan(self.host_refilled_at) else now - self.host_refilled_at
        self.host_refilled_at = now
        super().refill(now)
        most = limits(self.depth, passed * self.streams.rate_fps, self.ready)
        self.credit = np.minimum(self.credit, most)
        depth = np.maximum(LEAST_DEPTH, self.options.credit_s * self.most_fps)
        credit = self.host_credit + passed * self.most_fps
        with np.errstate(divide="ignore", invalid="ignore"):
            late = np.maximum(credit - depth, 0) / self.most_fps
        self.host_late_s += np.where(self.host_ready & (self.most_fps > 0), late, 0)
        self.host_credit = np.minimum(credit, limits(depth, passed * self.most_fps, self.host_ready))

    def refill_at(self, times: FloatArray) -> None:
        """Raise all credits at each of these times, (ticks,)."""
        for now in times.tolist():
            self.refill(now)

    def grant(self, wanted: IntArray, following: IntArray) -> IntArray:
        """The new fragments that each stream can send of those `wanted`, from `following` on; all are (streams,).

        Hosts' earliest steps come first and, of one step, streams with the most credit of their own. Of equal ones the
        next rank comes first, so that not all ranks begin with the same one. A fragment needs a credit of 1; the rest
        of its cost is owed.
        """
        granted = np.zeros_like(wanted)
        streams = np.flatnonzero(wanted)
        if not streams.size:
            return granted
        rows, host = self.layout.rows(streams, following[streams]), self.streams.host[streams]
        order = np.lexsort((self.distance[streams], -self.credit[streams], self.flow.step[rows], host))
        streams, host, cost = streams[order], host[order], self.cost[rows[order]]
        taken = wanted[streams] * cost
        before = np.cumsum(taken) - taken
        starts = np.concatenate(([True], host[1:] != host[:-1]))
        before -= np.repeat(before[starts], np.diff(np.append(np.flatnonzero(starts), len(host))))
        able = np.floor((self.host_credit[host] - before - 1) / cost) + 1
        granted[streams] = np.clip(able, 0, wanted[streams]).astype(np.int64)
        return granted

    def note_sent(self, stream: IntArray, rows: IntArray, sent: IntArray) -> None:
        """Subtract the costs of fragments from the credits of their streams and hosts."""
        super().note_sent(stream, rows, sent)
        self.host_credit -= np.bincount(self.streams.host[stream], self.cost[rows], len(self.host_credit))

    def note_room(self, room: IntArray) -> None:
        """Note the streams and hosts that only their pace keeps from sending more."""
        super().note_room(room)
        could = self.ready & (self.credit >= 1)
        self.host_ready = np.bincount(self.streams.host[could], minlength=len(self.host_ready)) > 0

    def next_due(self, room: IntArray, accepts_from: FloatArray) -> float:
        """-inf while a stream has fragments to send, as its turn depends on its rank's other streams."""
        _ = accepts_from
        return -np.inf if (self.ready | (room > 0)).any() else np.inf

    def late_s_of(self, hosts: int) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        _ = hosts
        return self.host_late_s


def limits(depth: FloatArray, earned: FloatArray, ready: BoolArray) -> FloatArray:
    """The limits of buckets: their depth or, if nothing was to be sent, a little over twice the credit just `earned`.

    Chunks that arrive after a pause thus do not leave in one burst, which would fill the queue of a shared link, but
    still make up for a delay of one step of the endpoints.
    """
    return np.where(ready, np.maximum(depth, earned), LEAST_DEPTH + 2 * earned)


def rates_and_costs(layout: CollectiveLayout, flow: Dataflow) -> tuple[FloatArray, FloatArray]:
    """Each host's highest total rate in fragments per second, (hosts,), and the costs of all fragments, (rows,).

    A cost is 1 in the steps in which a host sends at that rate.
    """
    streams, steps, hosts = layout.streams, int(flow.step.max()) + 1, len(layout.hosts)
    stream, step = np.divmod(np.unique(layout.stream_of_row * steps + flow.step), steps)
    in_step = np.bincount(streams.host[stream] * steps + step, streams.rate_fps[stream], hosts * steps)
    in_step = in_step.reshape(hosts, steps)
    overlap = hosts_that_overlap(layout)
    rates = np.where(overlap, np.bincount(streams.host, streams.rate_fps, hosts), in_step.max(axis=1))
    host = streams.host[layout.stream_of_row]
    return rates, np.where(overlap[host], 1.0, rates[host] / in_step[host, flow.step])


def hosts_that_overlap(layout: CollectiveLayout) -> BoolArray:
    """Whether the steps of each host can overlap, (hosts,)."""
    ranks = {
        rank
        for collective in layout.collectives
        if overlaps(layout.problem.fabric, collective)
        for rank in collective.ranks
    }
    return np.array([host.name in ranks for host in layout.hosts], np.bool_)
