"""How much each rank may send now over all its connections, earlier steps first, and of one step the next ranks."""

from __future__ import annotations

import numpy as np

from traffic.collectives.dataflow import Dataflow
from traffic.collectives.layout import CollectiveLayout
from traffic.endpoints.token_buckets import LEAST_DEPTH
from traffic.endpoints.worker_options import WorkerOptions
from traffic.sockets.ports import BoolArray, FloatArray, IntArray


class RankPace:
    """Arrays over hosts, (hosts,): `rate_fps`, the most that a host's connections send together in one step;
    `credit`, how many fragments it may send now; `late_s`, how many seconds' worth of its rate it could have sent and
    did not; `ready`, whether it could have gone on after what it sent last. Over streams, (streams,): `host`;
    `distance`, how many ranks further on the destination is.
    """

    def __init__(self, layout: CollectiveLayout, flow: Dataflow, options: WorkerOptions) -> None:
        self.options = options
        self.rate_fps = host_rates_fps(layout, flow)
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

    def share(self, streams: IntArray, step: IntArray, credit: FloatArray, wanted: IntArray) -> IntArray:
        """How many fragments each of `streams` may send of those `wanted`; all are (streams,).

        Hosts' earliest steps come first and, of one step, streams with the most `credit` of their own. Of equal ones
        the next rank comes first, so that not all ranks begin with the same one.
        """
        host = self.host[streams]
        order = np.lexsort((self.distance[streams], -credit, step, host))
        host, wanted = host[order], wanted[order]
        before = np.cumsum(wanted) - wanted
        starts = np.concatenate(([True], host[1:] != host[:-1]))
        before -= np.repeat(before[starts], np.diff(np.append(np.flatnonzero(starts), len(host))))
        granted = np.empty_like(wanted)
        granted[order] = np.clip(self.credit.astype(np.int64)[host] - before, 0, wanted)
        return granted


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


def host_rates_fps(layout: CollectiveLayout, flow: Dataflow) -> FloatArray:
    """The most fragments per second that each host's connections send together in one step, (hosts,)."""
    streams, steps = layout.streams, int(flow.step.max()) + 1
    pairs = np.unique(layout.stream_of_row * steps + flow.step)
    stream, step = np.divmod(pairs, steps)
    at, where = np.unique(streams.host[stream] * steps + step, return_inverse=True)
    together = np.bincount(where, streams.rate_fps[stream])
    rates = np.zeros(len(layout.hosts))
    np.maximum.at(rates, at // steps, together)
    return rates
