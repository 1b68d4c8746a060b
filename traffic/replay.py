"""Open-loop traffic, as in InArt's emulation: each worker's pcap is sent at the planned rate.

scapy builds one packet for each stream, a template, and NumPy fills in the fields that differ between fragments. No
packet is sent again, and no results come back. The PSs sum arriving packets, so that losses show as incomplete sums.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import PlanError, writing
from inakit.topo.live.priority import ahead_of_others
from inakit.topo.live.signals import raise_if_lost
from inakit.traffic.closed_loop import Progress
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.gradient import Gradients, RandomGradients, exact_sum, padded
from inakit.traffic.endpoints.streams import StreamLayout, gradient_heads, lay_out, set_sequence
from inakit.traffic.endpoints.sum_check import Held, wrong_sums
from inakit.traffic.measure.counters import interfaces
from inakit.traffic.measure.measured import Iteration, Measured, Replayed
from inakit.traffic.sockets.packet_sockets import SocketPorts
from inakit.traffic.sockets.ports import FloatArray, HostPort, IntArray, Ports, ragged
from inakit.traffic.sockets.tcpreplay import Senders as TcpreplaySenders
from inakit.traffic.sockets.tcpreplay import check_tcpreplay
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAGMENT, pick

# -- Pcap files of gradients, written and read with NumPy: all records at once.

PACKET = np.dtype([("head", BARE_FRAME), ("values", ">i4", (FRAGMENT.values,))])
HEADER_BYTES = 24
"""The header of the file, before its records."""
RECORD = np.dtype([("seconds", "<u4"), ("micros", "<u4"), ("kept", "<u4"), ("length", "<u4"), ("packet", PACKET)])


def write_pcap(path: Path, packets: NDArray[np.void], due_s: FloatArray) -> None:
    """Write packets (`PACKET`) with the times, in seconds, at which they are due; both are (packets,)."""
    from scapy.utils import RawPcapWriter  # noqa: PLC0415, it takes long to import

    records = np.empty(len(packets), RECORD)
    records["seconds"], records["micros"] = due_s, due_s % 1 * 1e6
    records["kept"] = records["length"] = packets.itemsize
    records["packet"] = packets
    with writing(path), RawPcapWriter(str(path), linktype=1, endianness="<") as writer:
        writer.write_header(None)
        writer.f.write(records.tobytes())


def frames_of_pcap(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The frames of a file that `write_pcap` has written, (packets, bytes), and their lengths in bytes, (packets,).

    The file is memory-mapped.
    """
    records = np.memmap(path, RECORD, "r", HEADER_BYTES)
    rows = records.view((np.uint8, RECORD.itemsize))[:, -PACKET.itemsize :]
    return rows, np.full(len(records), PACKET.itemsize, np.uint32)


# -- The sending rates of hosts, from samples of the counters of their interfaces.


@dataclass(frozen=True)
class Sending:
    """The traffic that left a host's interface: its begin (seconds of the ports' clock), bytes, and rate."""

    begun_at: float
    sent_bytes: int
    rate_bps: float


@dataclass
class Series:
    """Samples of one counter of bytes: the time and the value of each that differs from the one before it.

    `before`: the value at `since`, the host's planned begin.
    """

    before: int
    since: float
    samples: list[tuple[float, int]] = field(default_factory=list)


class Egress:
    """Samples the counters of hosts while they send: `sent_bytes` reads a host's counter."""

    def __init__(self, hosts: Sequence[HostPort], sent_bytes: Callable[[HostPort], int], period_s: float) -> None:
        self.hosts, self.sent_bytes, self.period_s = hosts, sent_bytes, period_s
        self.series: dict[int, Series] = {}
        self.due_at = 0.0

    def begin(self, hosts: IntArray, now: float) -> None:
        """Reset the samples of these hosts."""
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
        """The traffic that a host has sent since `begin`."""
        return sending(self.series[host])


def sending(series: Series) -> Sending:
    """A host's sending: its rate is the slope from the first sample to the last one that was taken while it sent."""
    if not series.samples:
        return Sending(series.since, 0, 0.0)
    total = series.samples[-1][1] - series.before
    # The last change can have happened long before it was sampled; at the one before it the host was still sending.
    steady = series.samples[:-1] if len(series.samples) > 2 else [(series.since, series.before), series.samples[-1]]
    (first_at, first), (last_at, last) = steady[0], steady[-1]
    slope = (last - first) / (last_at - first_at) if last_at > first_at else 0.0
    begun_at = first_at - (first - series.before) / slope if slope else first_at
    return Sending(begun_at, total, 8 * slope)


# -- Replayers of pcaps: tcpreplay in the namespaces of real hosts, or any other `Replayer`.

Recording = tuple[HostPort, Path, float]
"""A host, the pcap that it sends once, and the rate in frames per second."""


class Senders(Protocol):
    """Hosts that are about to send a pcap each."""

    @property
    def commands(self) -> Mapping[str, str]:
        """The command that sends a host's pcap, by the host's name; empty if no program sends it."""

    def go(self) -> None:
        """Let all hosts begin to send."""

    def over(self) -> bool:
        """Whether all have sent everything. Raises `RunError` if one failed."""

    def end(self) -> None:
        """Stop all senders, whether they are finished or not."""


class Replayer(Protocol):
    """Hosts that send pcaps, and the ports at which packets arrive."""

    @property
    def ports(self) -> Ports:
        """The ports of the hosts."""

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Prepare hosts, which then wait for the signal to send."""

    def sent_bytes(self, host: HostPort) -> int:
        """The number of bytes that a host has sent so far."""


Replaying = Callable[[Sequence[HostPort]], AbstractContextManager[Replayer]]
"""A function that opens the ports of hosts for a replay."""


@dataclass(frozen=True)
class Tcpreplay:
    """The `Replayer` of real hosts: a tcpreplay for each pcap."""

    ports: Ports

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Start tcpreplay for each pcap; all wait at a barrier."""
        return TcpreplaySenders(recordings)

    def sent_bytes(self, host: HostPort) -> int:
        """The bytes that the host's interface has sent."""
        return interfaces(host.pid)[host.interface].sent_bytes


@contextmanager
def with_tcpreplay(hosts: Sequence[HostPort]) -> Iterator[Tcpreplay]:
    """Open packet sockets and tcpreplay for hosts on this machine. Raises `MachineError` without tcpreplay."""
    check_tcpreplay()
    with ahead_of_others(), SocketPorts(hosts) as ports:
        yield Tcpreplay(ports)


# -- The replay.


@dataclass(frozen=True)
class ReplayOptions:
    """`tick_s`: the interval of receiving packets; `sample_s`: the interval of reading workers' counters; in seconds.

    An iteration with incomplete sums ends `quiet_s` after its last packet.
    """

    quiet_s: float = 0.5
    tick_s: float = 0.002
    sample_s: float = 0.02


def run_replay(
    hosts: Sequence[HostPort],
    problem: Problem,
    plan: Plan,
    *,
    options: ReplayOptions | None = None,
    gradients: Gradients | None = None,
    progress: Progress | None = None,
    replaying: Replaying = with_tcpreplay,
) -> Measured:
    """Replay all iterations of all jobs on a network in which the plan's entries are installed.

    `replaying` opens the hosts' ports and sends the pcaps, by default with tcpreplay. Raises `MachineError` without
    tcpreplay, `RunError` if it fails.
    """
    if plan.collectives:
        raise PlanError(f"planner '{plan.method}' in mode replay: ranks wait for each other's chunks; choose reliable")
    layout = lay_out(problem, plan, hosts)
    with ExitStack() as stack:
        replayer = stack.enter_context(replaying(layout.hosts))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        replay = Replay(layout, replayer, folder, gradients or RandomGradients(), options or ReplayOptions())
        stack.callback(replay.end)
        return replay.run(progress or (lambda _: None))


@dataclass
class ReplayedJob:
    """A job's progress in its iterations: the `senders` of the next one wait until `start_at`, then it is `active`.

    `sent_everything_at`: the time at which all senders had ended, None before.
    """

    index: int
    senders: Senders
    start_at: float
    iteration: int = 0
    active: bool = False
    sent_everything_at: float | None = None


class Replay:
    """One run: while the replayer sends, this thread counts and sums the packets that arrive at the PSs."""

    def __init__(
        self, layout: StreamLayout, replayer: Replayer, folder: Path, gradients: Gradients, options: ReplayOptions
    ) -> None:
        self.layout, self.replayer, self.folder, self.options = layout, replayer, folder, options
        self.ports, self.gradients = replayer.ports, gradients
        self.endpoints = Endpoints(layout, whole=True)
        self.values: dict[int, list[NDArray[np.integer]]] = {}  # of each worker, (fragments, values), by job
        from inakit.traffic.wire.scapy_layers import template_frames  # noqa: PLC0415, scapy takes long to import

        self.heads = gradient_heads(layout, template_frames)
        self.egress = Egress(layout.hosts, replayer.sent_bytes, options.sample_s)
        self.jobs: list[ReplayedJob] = []
        self.iterations: list[Iteration] = []
        self.missing: dict[str, int] = {}
        self.replayed: list[Replayed] = []

    def run(self, progress: Progress) -> Measured:
        """Run until every job has finished its iterations."""
        self.jobs = [ReplayedJob(i, self.prepare(i, 0), 0.0) for i in range(len(self.layout.problem.jobs))]
        self.started_at = self.ports.now()
        for job in self.jobs:
            job.start_at = self.started_at + self.layout.problem.jobs[job.index].arrival_s
        self.ports.attach(self.endpoints, mute=True)
        total = sum(job.iterations for job in self.layout.problem.jobs)
        while self.jobs:
            raise_if_lost()
            now = self.ports.now()
            self.egress.sample(now)
            self.jobs = [job for job in self.jobs if not self.is_over(job, now)]
            progress(len(self.iterations) / total)
            self.ports.run(self.next_step(now))
        return self.measured()

    def next_step(self, now: float) -> float:
        """The time of the next step: after a tick or, if no host sends, when the next job begins."""
        tick = now + self.options.tick_s
        if any(job.active for job in self.jobs):
            return tick
        return max(tick, min((job.start_at for job in self.jobs), default=now))

    def end(self) -> None:
        for job in self.jobs:
            job.senders.end()

    # -- iterations

    def prepare(self, job_index: int, iteration: int) -> Senders:
        """Write the pcaps of an iteration, and start its senders, which wait."""
        of_job = self.layout.problem.jobs[job_index]
        fragments = self.layout.problem.fragment.count(of_job.gradient_bytes)
        own = (self.gradients.of(of_job, worker, iteration) for worker in range(len(of_job.workers)))
        self.values[job_index] = [padded(each, fragments, FRAGMENT.values) for each in own]
        streams = self.layout.streams_of(job_index)
        pcaps, frames = [], []
        for host in np.unique(self.layout.streams.host[streams]).tolist():
            mine = streams[self.layout.streams.host[streams] == host]
            path = self.folder / f"job{job_index}-{self.layout.hosts[host].name}.pcap"
            packets, due_s, rate_fps = self.schedule(mine, iteration)
            write_pcap(path, packets, due_s)
            pcaps.append((self.layout.hosts[host], path, rate_fps))
            frames.append(len(packets))
        senders = self.replayer.prepare(pcaps)
        if not iteration:
            job, commands = self.layout.problem.jobs[job_index].number, senders.commands
            self.replayed += [
                Replayed(job, host.name, count, rate_fps, commands.get(host.name))
                for (host, _, rate_fps), count in zip(pcaps, frames, strict=True)
            ]
        return senders

    def schedule(self, streams: IntArray, iteration: int) -> tuple[NDArray[np.void], FloatArray, float]:
        """The packets of one worker, whose streams are spread evenly over the time of the longest.

        Returns the packets (`PACKET`) and their due times in seconds, both (packets,), and the rate in frames/s.
        """
        of = self.layout.streams
        counts = of.count[streams]
        duration_s = float((counts / of.rate_fps[streams]).max())
        owner, fragment = ragged(np.zeros_like(counts), counts)
        due_s = (fragment + 0.5) / counts[owner] * duration_s
        order = np.argsort(due_s, kind="stable")
        stream, fragment = streams[owner[order]], fragment[order]
        packets = np.empty(len(stream), PACKET)
        seq = iteration * of.count[stream] + fragment
        heads = pick(self.heads, stream)
        set_sequence(self.layout, heads, np.arange(len(heads)), stream, seq)
        packets["head"] = heads
        start = np.array([part.start for part in self.layout.parts])[of.tree[stream]]
        (job_index, worker), *_ = zip(of.job[streams], of.worker[streams], strict=True)
        packets["values"] = self.values[int(job_index)][int(worker)][start + fragment]
        return packets, due_s[order], len(packets) / duration_s

    def is_over(self, job: ReplayedJob, now: float) -> bool:
        """Advance a job if its time has come, and return whether it has finished all iterations."""
        if not job.active:
            if now >= job.start_at:
                self.begin(job, now)
            return False
        if job.sent_everything_at is None and job.senders.over():
            job.sent_everything_at = now
        if not self.is_quiet(job, now):
            return False
        self.finish(job)
        if job.iteration == self.layout.problem.jobs[job.index].iterations:
            return True
        job.senders = self.prepare(job.index, job.iteration)
        job.start_at = self.ports.now() + self.layout.problem.jobs[job.index].compute_s
        return False

    def is_quiet(self, job: ReplayedJob, now: float) -> bool:
        """Whether everything was sent, and no more packets are expected."""
        if job.sent_everything_at is None:
            return False
        trees = self.layout.trees_of(job.index).tolist()
        whole = all(self.endpoints.sums_of(tree)[1].all() for tree in trees)
        last = max(job.sent_everything_at, self.last_arrival_at(trees))
        # The counters of the interfaces are sampled once more before the iteration is measured.
        return now > last + (self.egress.period_s * 2 if whole else self.options.quiet_s)

    def begin(self, job: ReplayedJob, now: float) -> None:
        self.endpoints.listen(job.index, job.iteration)
        self.endpoints.take_ingress(job.index)
        self.egress.begin(self.workers_of(job.index), now)
        job.active, job.sent_everything_at = True, None
        job.senders.go()

    def finish(self, job: ReplayedJob) -> None:
        self.iterations.append(self.measure(job))
        job.senders.end()
        job.active = False
        job.iteration += 1

    # -- what is measured

    def workers_of(self, job_index: int) -> IntArray:
        """The hosts of a job's workers, in ascending order."""
        return np.unique(self.layout.streams.host[self.layout.streams_of(job_index)])

    def measure(self, job: ReplayedJob) -> Iteration:
        """The iteration of a job that has just ended."""
        hosts = self.workers_of(job.index).tolist()
        sent = {self.layout.hosts[host].name: self.egress.of(host) for host in hosts}
        trees = self.layout.trees_of(job.index)
        begun = min(sending.begun_at for sending in sent.values())
        wrong = tuple(filter(None, (wrong_sums(self.held(job.index)), self.endpoints.take_miscounts(job.index))))
        return Iteration(
            job=self.layout.problem.jobs[job.index].number,
            number=job.iteration,
            started_s=begun - self.started_at,
            communication_time_s=self.last_arrival_at(trees.tolist()) - begun,
            sending_rate_bps={name: sending.rate_bps for name, sending in sent.items()},
            sent_bytes={name: sending.sent_bytes for name, sending in sent.items()},
            ps_ingress_bytes=self.endpoints.take_ingress(job.index),
            exact=self.is_complete(job.index) and not wrong,
            wrong=wrong,
        )

    def last_arrival_at(self, trees: Sequence[int]) -> float:
        """The time at which the last gradient of some trees reached its PS."""
        return self.ports.seconds(int(self.endpoints.trees["last_arrival_at"][list(trees)].max()))

    def is_complete(self, job_index: int) -> bool:
        """Whether the PSs have summed every fragment; notes the number of incomplete ones by PS and tree."""
        complete = True
        for tree in self.layout.trees_of(job_index).tolist():
            part = self.layout.parts[tree]
            incomplete = int((~self.endpoints.sums_of(tree)[1]).sum())
            if incomplete:
                what = f"PS {part.tree.server}, job {part.job.number}, tree {part.tree.number}: incomplete fragments"
                self.missing[what] = self.missing.get(what, 0) + incomplete
            complete &= not incomplete
        return complete

    def held(self, job_index: int) -> Iterator[Held]:
        """Yield the PSs' sums of the job's trees; for incomplete fragments, not compared, the expected sums."""
        for tree in self.layout.trees_of(job_index).tolist():
            part, (sums, done) = self.layout.parts[tree], self.endpoints.sums_of(tree)
            whole = exact_sum([own[part.start : part.start + part.count] for own in self.values[job_index]])
            yield Held(f"PS {part.tree.server}", part, np.where(done[:, None], sums, whole), whole)

    def measured(self) -> Measured:
        """The measurements of the whole run."""
        iterations = tuple(sorted(self.iterations, key=lambda i: (i.job, i.number)))
        problems = dict(self.ports.problems()) | self.missing
        return Measured("replay", iterations, problems=problems, replayed=tuple(self.replayed))
