"""How much each rank may send now over all its connections, earlier steps first, and of one step the next ranks.

The rates of connections are for their own steps. Where links do not carry all connections at the same time, the steps
of a host follow one another: in a step in which it sends at half its highest rate, each fragment takes twice as much of
its credit, and nothing is left for a later step, which may share links with this one.
"""

from __future__ import annotations

import numpy as np

from inakit.planner.core.collectives.collective_load import overlaps
from inakit.traffic.collectives.dataflow import Dataflow
from inakit.traffic.collectives.layout import CollectiveLayout
from inakit.traffic.endpoints.sending.token_buckets import LEAST_DEPTH
from inakit.traffic.endpoints.worker_options import WorkerOptions
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray


class RankPace:
    """Arrays over hosts, (hosts,): `rate_fps`, the most that a host's connections send together;
    `credit`, how many fragments it may send now; `late_s`, how many seconds' worth of its rate it could have sent and
    did not; `ready`, whether it could have gone on after what it sent last. Over streams, (streams,): `host`;
    `distance`, how many ranks further on the destination is. Over rows of streams, (rows,): `cost`, how much credit a
    fragment takes, at least 1.
    """

    def __init__(self, layout: CollectiveLayout, flow: Dataflow, options: WorkerOptions) -> None:
        self.options = options
        self.rate_fps, self.cost = rates_and_costs(layout, flow)
        self.host, self.distance = layout.streams.host, distances(layout)
        hosts = len(layout.hosts)
        self.credit, self.late_s = np.ones(hosts), np.zeros(hosts)
        self.ready = np.zeros(hosts, np.bool_)
        self.refilled_at = np.nan

    def refill(self, now: float) -> None:
        """Raise all credits by the time that has passed."""
        passed = 0.0 if np.isnan(self.refilled_at) else now - self.refilled_at
        self.refilled_at = now
        depth = np.maximum(LEAST_DEPTH, self.options.credit_s * self.rate_fps)
        self.credit = self.credit + passed * self.rate_fps
        with np.errstate(divide="ignore", invalid="ignore"):
            late = np.maximum(self.credit - depth, 0) / self.rate_fps
        self.late_s += np.where(self.ready & (self.rate_fps > 0), late, 0)
        self.credit = np.minimum(self.credit, limits(depth, passed * self.rate_fps, self.ready))

    def share(
        self, streams: IntArray, rows: IntArray, step: IntArray, credit: FloatArray, wanted: IntArray
    ) -> IntArray:
        """How many fragments, from `rows` on, each of `streams` may send of those `wanted`; all are (streams,).

        Hosts' earliest steps come first and, of one step, streams with the most `credit` of their own. Of equal ones
        the next rank comes first, so that not all ranks begin with the same one. A fragment needs a credit of 1; what
        it costs beyond that is owed.
        """
        host = self.host[streams]
        order = np.lexsort((self.distance[streams], -credit, step, host))
        host, wanted, cost = host[order], wanted[order], self.cost[rows[order]]
        taken = wanted * cost
        before = np.cumsum(taken) - taken
        starts = np.concatenate(([True], host[1:] != host[:-1]))
        before -= np.repeat(before[starts], np.diff(np.append(np.flatnonzero(starts), len(host))))
        granted = np.empty_like(wanted)
        able = np.floor((self.credit[host] - before - 1) / cost) + 1
        granted[order] = np.clip(able, 0, wanted).astype(np.int64)
        return granted

    def note_sent(self, streams: IntArray, rows: IntArray) -> None:
        """Take what fragments cost from the credit of their hosts; both are (fragments,)."""
        self.credit -= np.bincount(self.host[streams], self.cost[rows], len(self.credit))


def distances(layout: CollectiveLayout) -> IntArray:
    """How many ranks further on the destination of each stream is, on the circle of ranks, (streams,)."""
    senders = ((each.connection, len(layout.collectives[each.job_index].ranks)) for each in layout.senders)
    return np.array([(own.destination - own.source) % ranks for own, ranks in senders], np.int64)


def limits(depth: FloatArray, earned: FloatArray, ready: BoolArray) -> FloatArray:
    """How full buckets may be: to their depth or, where there was nothing to send, with little more than twice what was
    `earned` just now.

    Chunks that come after a pause thus do not leave in one burst, which would fill the queue of a link that is shared,
    and yet make up for having come a step of the endpoints too late.
    """
    return np.where(ready, np.maximum(depth, earned), LEAST_DEPTH + 2 * earned)


def rates_and_costs(layout: CollectiveLayout, flow: Dataflow) -> tuple[FloatArray, FloatArray]:
    """The most fragments per second that each host's connections send together, (hosts,), and the costs of all
    fragments, (rows,): 1 in the steps in which a host sends at that rate.
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
    """Whether the steps of each host may overlap, (hosts,)."""
    ranks = {
        rank
        for collective in layout.collectives
        if overlaps(layout.problem.fabric, collective)
        for rank in collective.ranks
    }
    return np.array([host.name in ranks for host in layout.hosts], np.bool_)
