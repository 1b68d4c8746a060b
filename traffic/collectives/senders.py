"""The sending ends of all connections: they send what their rank has, in the order of steps, until it is acknowledged.

What is sent when, and when again, follows the rules of workers (`inakit.traffic.endpoints.worker`): windows, paces,
timeouts. A fragment waits besides until all its terms have come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.collective_times import overlaps
from inakit.traffic.collectives.rank_data import CollectiveLayout, CollectiveMemory, Dataflow
from inakit.traffic.endpoints.sending import (
    LEAST_DEPTH,
    Batch,
    Retransmission,
    RoundTrips,
    Sendings,
    TokenBuckets,
    Windows,
    WorkerOptions,
    fair_shares,
    least_windows,
    rules_of,
)
from inakit.traffic.endpoints.streams import gradient_heads
from inakit.traffic.endpoints.worker_memory import WHOLE, StreamProgress
from inakit.traffic.endpoints.wrong_sums import WorkerCounts
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, Outgoing, Packets, before, is_prefix, ragged
from inakit.traffic.wire.packet_format import Flag, pick

# -- How much each rank may send now over all its connections, earlier steps first, and of one step the next ranks.
#
# The rates of connections are for their own steps. Where links do not carry all connections at the same time, the
# steps of a host follow one another: in a step in which it sends at half its highest rate, each fragment takes twice
# as much of its credit, and nothing is left for a later step, which may share links with this one.


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


# -- The senders.

OVERFLOW, RETRANSMITTED = int(Flag.OVERFLOW), int(Flag.RETRANSMITTED)
BITS = np.arange(64, dtype=np.uint64)


class Senders:
    """The state machines of all connections. Times are seconds of the ports' clock.

    By stream, (streams,): `known`, the first fragment that still lacks a term. `chosen`: what `due` has given out and
    `note` is to hear of; `packets`, how many packets each of these fragments takes.
    """

    def __init__(self, layout: CollectiveLayout, memory: CollectiveMemory, options: WorkerOptions) -> None:
        streams = layout.streams
        self.layout, self.memory, self.options = layout, memory, options
        self.heads = gradient_heads(layout)
        self.progress = StreamProgress(layout, options.first_seq)
        self.buckets = TokenBuckets(streams, options)
        self.pace = RankPace(layout, memory.flow, options)
        least = least_windows(streams, fair_shares(streams, options.min_timeout_s))
        self.windows = Windows(streams.in_flight, least, rules_of(layout))
        self.round_trips = RoundTrips(len(streams.host), options, held_s=layout.acknowledged_after_s)
        self.sendings = Sendings(len(memory.parts), len(streams.host))
        self.retransmission = Retransmission(
            layout,
            options,
            memory=memory,
            progress=self.progress,
            sendings=self.sendings,
            round_trips=self.round_trips,
            windows=self.windows,
        )
        self.retransmission.turns[:] = 1
        self.counts = WorkerCounts(layout)
        self.known = np.zeros(len(streams.host), np.int64)
        self.refilled_at = np.nan

    # -- iterations

    def begin(self, job_index: int, iteration: int) -> None:
        """Start to send the gradients that the job's memory holds."""
        self.memory.begin(job_index)
        streams = self.layout.streams_of(job_index)
        rows = self.layout.held_rows(streams)
        self.progress.begin(streams, iteration)
        self.buckets.begin(streams)
        self.counts.begin(streams)
        self.sendings.begin(rows)
        self.retransmission.begin(rows)
        self.known[streams] = 0
        self.learn(streams)

    def end(self, job_index: int) -> None:
        """Send nothing more of the job's gradients: they may change from now on."""
        self.progress.end(self.layout.streams_of(job_index))
        self.retransmission.end()

    def turn(self) -> None:
        """Learn which fragments can be sent since more has come."""
        behind = self.progress.active & (self.known < self.layout.streams.count)
        self.learn(np.flatnonzero(behind))

    def finished(self, job_index: int) -> bool:
        """Whether every rank of the job has all sums of the iteration."""
        return bool(self.memory.waiting[job_index] == 0)

    def learn(self, streams: IntArray) -> None:
        """Move `known` of `streams` to their first fragment that lacks a term."""
        ahead = 8
        while streams.size:
            fragment = self.known[streams, None] + np.arange(ahead)
            inside = fragment < self.layout.streams.count[streams, None]
            rows = self.layout.rows(streams[:, None], np.where(inside, fragment, 0))
            known = inside & self.memory.is_known(rows)
            run = np.where(known.all(axis=1), ahead, np.argmin(known, axis=1))
            self.known[streams] += run
            streams, ahead = streams[run == ahead], 4 * ahead

    # -- sending

    def due(self, now: float) -> Outgoing | None:
        """What is to be sent now; `note` must hear what became of it."""
        self.refill(now)
        batch = self.choose(now)
        self.chosen, self.chosen_at = batch, now
        if not batch.stream.size:
            self.note_ready()
            return None
        rows = self.layout.rows(batch.stream, batch.fragment)
        wide = self.memory.is_wide(rows)
        self.packets = 1 + wide.astype(np.int64)
        owner, part = ragged(np.zeros_like(self.packets), self.packets)
        stream = batch.stream[owner]
        heads = pick(self.heads, stream)
        ina = heads["ina"]
        ina["seq"] = (self.progress.first_seq[stream] + batch.fragment[owner]) & 0xFFFFFFFF
        ina["part"] = part
        ina["flags"] = np.where(batch.again[owner], RETRANSMITTED, 0) | np.where(wide[owner], OVERFLOW, 0)
        counts = np.bincount(self.layout.streams.host[stream], minlength=len(self.layout.hosts))
        return Outgoing(heads, self.memory.words(rows[owner], part), np.arange(len(owner)), counts)

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` packets of each host that were due have been sent; both (hosts,)."""
        last = before(self.packets) + self.packets - 1
        self.note_sent(self.chosen.where(is_prefix(counts, accepted)[last]), self.chosen_at)
        self.note_ready()

    def note_sent(self, batch: Batch, now: float) -> None:
        """Note that a batch has left at `now`."""
        rows, streams = self.layout.rows(batch.stream, batch.fragment), len(self.known)
        sent = np.bincount(batch.stream, minlength=streams)
        again = np.bincount(batch.stream[batch.again], minlength=streams)
        self.sendings.note(batch, rows, sent, now)
        self.progress.next += sent - again
        self.buckets.credit -= sent
        self.pace.note_sent(batch.stream, rows)
        self.counts.note_sent(sent, again, now)

    def next_due(self, accepts_from: FloatArray) -> float:
        """Before this time `due` gives out nothing, and changes only credits, unless packets come.

        As long as a stream has something to send nobody knows: what it sends when depends on its rank's other streams.
        """
        _ = accepts_from
        could: BoolArray = self.buckets.ready | (self.room() > 0)
        return -np.inf if could.any() else self.retransmission.scan_at

    def refill(self, now: float) -> None:
        """Raise the credits of streams and ranks; without a pace only windows limit how much they send."""
        if not self.options.paced:
            self.buckets.fill()
            self.pace.credit[:] = np.inf
            return
        passed = 0.0 if np.isnan(self.refilled_at) else now - self.refilled_at
        self.refilled_at = now
        ready = self.buckets.ready
        self.buckets.refill(now)
        most = limits(self.buckets.depth, passed * self.layout.streams.rate_fps, ready)
        self.buckets.credit = np.minimum(self.buckets.credit, most)
        self.pace.refill(now)

    def refill_at(self, times: FloatArray) -> None:
        """Raise all credits at each of these times, (ticks,)."""
        for now in times.tolist():
            self.refill(now)

    def room(self) -> IntArray:
        """How many new fragments each stream may send, for all that its window and its rank's data allow."""
        progress = self.progress
        end = np.minimum(self.known, progress.base + self.windows.whole())
        return np.where(progress.active, np.maximum(end - progress.next, 0), 0)

    def note_ready(self) -> None:
        """Note which streams could send more, if only their pace allowed it, and which ranks."""
        room = self.room() > 0
        self.buckets.ready = room
        could = room & (self.buckets.credit >= 1)
        self.pace.ready = np.bincount(self.layout.streams.host[could], minlength=len(self.layout.hosts)) > 0

    def choose(self, now: float) -> Batch:
        """Overdue fragments first, then new ones, as far as credits, windows and data allow."""
        again_stream, again_fragment, credit = self.retransmission.due(now, self.buckets.credit.astype(np.int64))
        wanted = np.clip(credit, 0, self.room())
        able = np.flatnonzero(wanted)
        granted = np.zeros_like(wanted)
        if able.size:
            rows = self.layout.rows(able, self.progress.next[able])
            step, own = self.memory.flow.step[rows], self.buckets.credit[able]
            granted[able] = self.pace.share(able, rows, step, own, wanted[able])
        new_stream, new_fragment = ragged(self.progress.next, granted)
        stream = np.concatenate((again_stream, new_stream))
        order = np.argsort(stream, kind="stable")
        fragment = np.concatenate((again_fragment, new_fragment))
        return Batch(stream[order], fragment[order], order < len(again_stream))

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Take in acknowledgements."""
        ina, progress = packets.heads["ina"], self.progress
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        stream = np.where(tree >= 0, self.layout.stream_of[packets.hosts, tree], -1)
        self.counts.strangers += int((stream < 0).sum())
        first = progress.first_seq[stream]
        base, block = ((ina[name].astype(np.int64) - first) & 0xFFFFFFFF for name in ("slot", "seq"))
        mine = (stream >= 0) & progress.active[stream] & (base <= progress.next[stream])
        mine &= block <= self.layout.streams.count[stream]
        stream, base, block, bitmap = stream[mine], base[mine], block[mine], ina["bitmap"][mine].astype(np.uint64)
        if stream.size:
            self.take(stream, base, block, bitmap, now)

    def take(self, stream: IntArray, base: IntArray, block: IntArray, bitmap: NDArray[np.uint64], now: float) -> None:
        """Note that all fragments before `base` have come, and those of the bitmap's bits, from `block` on."""
        progress, parts = self.progress, self.memory.parts
        most = progress.base.copy()
        np.maximum.at(most, stream, base)
        whole_stream, whole = ragged(progress.base, most - progress.base)
        owner, bit = np.nonzero(bitmap[:, None] >> BITS & np.uint64(1))
        single_stream, single = stream[owner], block[owner] + bit
        sent = single < progress.next[single_stream]
        streams = np.concatenate((whole_stream, single_stream[sent]))
        fragments = np.concatenate((whole, single[sent]))
        rows = self.layout.rows(streams, fragments)
        rows, which = np.unique(rows, return_index=True)
        new = parts[rows] != WHOLE
        rows, streams, fragments = rows[new], streams[which][new], fragments[which][new]
        if not rows.size:
            return
        parts[rows] = WHOLE
        self.measure_round_trips(streams, rows, now)
        touched = np.unique(streams)
        np.maximum.at(progress.newest, streams, fragments)
        progress.advance(touched, parts)
        if (progress.newest[touched] > progress.base[touched]).any():
            self.retransmission.look_now()

    def measure_round_trips(self, stream: IntArray, rows: IntArray, now: float) -> None:
        """Adjust round trips and windows to the acknowledgements of `rows` that were sent once."""
        once = self.sendings.tries[rows] == 1
        streams, counts, samples = self.sendings.note_results(stream[once], rows[once], now)
        self.round_trips.add(streams, samples)
        self.windows.grow(streams, counts)

    # -- what is measured

    def late_s(self) -> FloatArray:
        """How many seconds' worth of its rate each host could have sent and did not, (hosts,)."""
        return self.pace.late_s

    def ended_at(self, job_index: int) -> float:
        """When the last result of the iteration came."""
        return float(self.memory.complete_at[job_index])
