"""The closed loop: gradients go out and sums come back, iteration after iteration, until all workers have exact sums.

One thread drives all endpoints of all jobs: each tick it takes what has arrived anywhere, lets the endpoints act on it,
and sends what they have to send. Workers are synchronous: an iteration of a job begins when all its workers have all
results of the last one and have computed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import RunError
from inakit.topo.live.priority import on_endpoint_processor
from inakit.topo.live.signals import raise_if_lost
from inakit.traffic.collectives.rank_data import CollectiveLayout, CollectiveMemory, lay_out_plan
from inakit.traffic.collectives.receivers import Receivers
from inakit.traffic.collectives.senders import rank_sender
from inakit.traffic.endpoints.gradient import Gradients, Learner, RandomGradients
from inakit.traffic.endpoints.options import Bounds, ServerOptions, WorkerOptions
from inakit.traffic.endpoints.sender import Sender
from inakit.traffic.endpoints.server import Servers
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.endpoints.worker import WorkerMemory, worker_sender
from inakit.traffic.measure.measured import Iteration, Measured, rate_bps
from inakit.traffic.sockets.packet_sockets import SocketPorts
from inakit.traffic.sockets.ports import HostPort, IntArray, Outgoing, Ports
from inakit.traffic.wire.packet_format import Kind

# -- The iterations.

TICK_S = 0.004
"""How often workers and PSs act in real time, in seconds, unless a run has other options."""

ROUNDINGS = 0.01
"""Endpoints may be due earlier than the time that they give, by less than this part of a tick."""

Progress = Callable[[float], None]
"""Called from time to time with the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class ReliableOptions:
    """`tick_s`: how often endpoints act, in seconds; None for what fits the world and the loop, `TICK_S` in real time.

    `stall_s`: a run without a result for so long has failed. `bounds`: what the world lets streams do.
    """

    worker: WorkerOptions = field(default_factory=WorkerOptions)
    tick_s: float | None = None
    stall_s: float = 10.0
    server: ServerOptions = field(default_factory=ServerOptions)
    bounds: Bounds = field(default_factory=Bounds)


class Interfering(Protocol):
    """What interferes with a run, in the thread that runs it: faults at endpoints, and their times."""

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """The layout and the ports that the run is to use instead of these."""
        ...

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Do what is due at `now`; called once a tick, except for ticks before `next_due`."""
        ...

    def next_due(self, loop: ClosedLoop) -> float:
        """Before this time, give or take roundings, `act` does nothing unless packets come; -inf if unknown."""
        ...


@dataclass
class JobState:
    """Where a job is in its iterations.

    While `loading`, its part of the memory belongs to the loading thread; from `start_at` on, while it is `active`, it
    exchanges gradients. `results`: how many results its workers held when that last changed, at `progress_at`.
    """

    index: int
    loading: Future[str]
    start_at: float
    iteration: int = 0
    active: bool = False
    results: int = 0
    progress_at: float = 0.0


class ClosedLoop:
    """One run. It reads the clock of the ports, so that a network in memory may have one of its own.

    A subclass sets `memory`, `workers` and `servers`, the endpoints. `real_time_tick_s`: how often they act in real
    time, in seconds, unless a run has other options.
    """

    real_time_tick_s: ClassVar[float] = TICK_S
    memory: WorkerMemory | CollectiveMemory
    workers: Sender
    servers: Servers | Receivers

    def __init__(
        self, layout: StreamLayout, ports: Ports, gradients: Gradients, options: ReliableOptions, executor: Executor
    ) -> None:
        self.layout, self.ports, self.gradients, self.options = layout, ports, gradients, options
        self.executor = executor
        self.interference: Interfering | None = None
        self.jobs: list[JobState] = []
        self.iterations: dict[tuple[int, int], Iteration] = {}  # by job index and number
        self.begun: set[tuple[int, int]] = set()  # of the same
        self.retransmitted_before = np.zeros(len(layout.streams.host), np.int64)

    # -- the loop

    def run(self, progress: Progress) -> Measured:
        """Run until every job has done its iterations."""
        jobs = self.jobs = [JobState(index, self.load(index, 0), 0.0) for index in range(len(self.layout.problem.jobs))]
        for job in jobs:
            job.loading.result()
        self.started_at = self.ports.now()
        for job in jobs:
            job.start_at = self.started_at + self.layout.problem.jobs[job.index].arrival_s
        tell_at = self.started_at
        while jobs:
            raise_if_lost()
            now = self.ports.now()
            if self.interference:
                self.interference.act(self, now)
            self.step(now)
            jobs = [job for job in jobs if not self.is_over(job, now)]
            if now >= tell_at:
                progress(self.fraction_done())
                tell_at = now + 0.2
            self.ports.sleep(max(0.0, self.next_step(jobs, now) - self.ports.now()))
            if jobs and self.ports.is_quiet():
                self.pass_quiet_ticks(jobs)
        progress(1.0)
        return self.measured()

    def next_step(self, jobs: Sequence[JobState], now: float) -> float:
        """When there is something to do again: after a tick or, if all jobs compute, when the first of them is done."""
        tick = now + self.tick_s
        if self.interference or any(job.active or not job.loading.done() for job in jobs):
            return tick
        return max(tick, min((job.start_at for job in jobs), default=now))

    @property
    def tick_s(self) -> float:
        """How often all endpoints act, in seconds."""
        return self.options.tick_s or self.real_time_tick_s

    def pass_quiet_ticks(self, jobs: Sequence[JobState]) -> None:
        """Go on to the first tick at which something has come or is due. Until then steps would change credits only.

        Credits rise tick by tick, so that all figures are the same, to the last bit, as with a step at every tick.
        """
        due = self.next_due(jobs) - ROUNDINGS * self.tick_s
        self.workers.refill_at(self.ports.pass_ticks(self.tick_s, due))

    def next_due(self, jobs: Sequence[JobState]) -> float:
        """When a job, an endpoint or the interference has something to do next, if no packets come; -inf if unknown."""
        found = [job.progress_at + self.options.stall_s if job.active else job.start_at for job in jobs]
        found += [self.servers.next_due(), self.workers.next_due(self.ports.accepts_from())]
        if self.interference:
            found.append(self.interference.next_due(self))
        return min(found)

    def step(self, now: float) -> None:
        """Let all endpoints act once on what has arrived."""
        packets = self.ports.receive()
        gradient = packets.heads["ina"]["kind"] == Kind.GRADIENT
        if gradient.any():
            self.servers.receive(packets.where(gradient), now)
        if not gradient.all():
            self.workers.receive(packets.where(~gradient), now)
        if len(packets):
            self.workers.turn()
        self.send(now)

    def send(self, now: float) -> int:
        """Send what is due; returns how many packets were accepted."""
        due = [(sender, batch) for sender, batch in self.due(now) if batch is not None]
        batches = [batch for _, batch in due]
        sent = 0
        for (sender, batch), accepted in zip(due, self.ports.send(batches), strict=True):
            sender.note(batch.counts, accepted)
            sent += int(accepted.sum())
        return sent

    def due(self, now: float) -> Iterator[tuple[Servers | Receivers | Sender, Outgoing | None]]:
        """What each endpoint has to send now; PSs come first, so that results do not wait behind gradients."""
        yield self.servers, self.servers.due(now)
        yield self.workers, self.workers.due(now)

    # -- iterations

    def is_over(self, job: JobState, now: float) -> bool:
        """Take a job a step further if it is time, and return whether it has done all iterations."""
        if job.active:
            self.watch(job, now)
            if self.finished(job.index):
                self.finish(job, now)
        elif job.loading.done() and now >= job.start_at:
            self.note_exactness(job)
            if job.iteration == self.layout.problem.jobs[job.index].iterations:
                return True
            self.begin(job, now)
        return False

    def begin(self, job: JobState, now: float) -> None:
        """Begin the iteration for which the job's gradients are loaded."""
        self.begun.add((job.index, job.iteration))
        self.servers.begin(job.index, job.iteration)
        self.workers.begin(job.index, job.iteration)
        job.active, job.results, job.progress_at = True, 0, now

    def finish(self, job: JobState, now: float) -> None:
        """Record the iteration; check its sums and load the next gradients while the workers compute."""
        self.iterations[job.index, job.iteration] = self.measure(job)
        self.workers.end(job.index)
        job.active = False
        job.iteration += 1
        job.start_at = now + self.layout.problem.jobs[job.index].compute_s
        job.loading = self.load(job.index, job.iteration)

    def finished(self, job_index: int) -> bool:
        """Whether the iteration of a job is over: all workers have all sums."""
        return self.workers.progress.finished(self.layout.streams_of(job_index))

    def missing(self, job_index: int) -> str:
        """What a job without progress waits for, in words."""
        raise NotImplementedError

    def note_exactness(self, job: JobState) -> None:
        """Add what is wrong with the sums of the last iteration to its record."""
        wrong_sums = job.loading.result()
        if job.iteration:
            last = self.iterations[job.index, job.iteration - 1]
            wrong = (*last.wrong, *filter(None, (wrong_sums,)))
            self.iterations[job.index, job.iteration - 1] = replace(last, exact=not wrong, wrong=wrong)

    def load(self, job_index: int, iteration: int) -> Future[str]:
        """Judge the sums of the last iteration and load the gradients of this one, in the background."""
        return self.executor.submit(self.judge_and_load, job_index, iteration)

    def judge_and_load(self, job_index: int, iteration: int) -> str:
        """Judge the last sums, tell them to gradients that depend on them, and load the next gradients.

        Returns what is wrong with the last sums, in words; empty if nothing is.
        """
        wrong, job = "", self.layout.problem.jobs[job_index]
        if iteration:
            wrong = self.memory.wrong(job_index)
            if isinstance(self.gradients, Learner):
                for worker in range(len(job.workers)):
                    self.gradients.take(job, worker, iteration - 1, self.memory.result(job, worker))
        if iteration < job.iterations:
            self.memory.load(job_index, self.gradients, iteration)
        return wrong

    def watch(self, job: JobState, now: float) -> None:
        """Raise `RunError` when no result has come for too long."""
        results = int(self.done(self.layout.streams_of(job.index)).sum())
        if results != job.results:
            job.results, job.progress_at = results, now
        elif now - job.progress_at > self.options.stall_s:
            number = self.layout.problem.jobs[job.index].number
            raise RunError(
                f"job {number}, iteration {job.iteration} stalled: no result for {self.options.stall_s:g} s; "
                f"{self.missing(job.index)}; "
                "check that the plan's entries are installed and that every switch still runs"
            )

    # -- what is measured

    def measure(self, job: JobState) -> Iteration:
        """The iteration that has just ended."""
        counts, number = self.workers.counts, self.layout.problem.jobs[job.index].number
        of = self.layout.streams_of(job.index)
        begun, ended = np.nanmin(counts.first_sent_at[of]), self.ended_at(job.index)
        retransmitted = int((counts.retransmitted - self.retransmitted_before)[of].sum())
        self.retransmitted_before[of] = counts.retransmitted[of]
        return Iteration(
            job=number,
            number=job.iteration,
            started_s=float(begun - self.started_at),
            communication_time_s=float(ended - begun),
            sending_rate_bps=self.sending_rates(job.index),
            sent_bytes=self.by_worker(job.index, counts.sent * self.layout.problem.fragment.wire_bytes),
            ps_ingress_bytes=self.servers.ingress(job.index),
            retransmissions=retransmitted,
            wrong=tuple(filter(None, (self.servers.take_wrong(job.index), counts.miscounts.take(job.index)))),
        )

    def by_worker(self, job_index: int, per_stream: IntArray) -> dict[str, int]:
        """Sums over the streams of each worker of a job."""
        names, of = self.layout.problem.jobs[job_index].workers, self.layout.streams_of(job_index)
        totals = np.bincount(self.layout.streams.worker[of], per_stream[of], minlength=len(names))
        return {name: int(total) for name, total in zip(names, totals, strict=True)}

    def sending_rates(self, job_index: int) -> dict[str, float]:
        """What left each worker's sockets, in bit/s over the time from its first frame to its last."""
        counts, wire_bytes = self.workers.counts, self.layout.problem.fragment.wire_bytes
        of_job, rates = self.layout.streams_of(job_index), {}
        for number, (name, frames) in enumerate(self.by_worker(job_index, counts.sent).items()):
            of = of_job[self.layout.streams.worker[of_job] == number]
            duration = counts.last_sent_at[of].max() - np.nanmin(counts.first_sent_at[of])
            rates[name] = rate_bps(frames, wire_bytes, float(duration), self.frames_of_last(of))
        return rates

    def frames_of_last(self, streams: IntArray) -> int | None:
        """How many frames that one of a worker's streams has sent which ended last: its streams send side by side."""
        counts = self.workers.counts
        return int(counts.sent[streams[counts.last_sent_at[streams].argmax()]])

    def fraction_done(self) -> float:
        """The share of the run's results that workers hold, 0 to 1."""
        total = done = 0
        for index, job in enumerate(self.layout.problem.jobs):
            of = self.layout.streams_of(index)
            total += int(self.layout.streams.count[of].sum()) * job.iterations
            ended = sum(1 for job_index, _ in self.iterations if job_index == index)
            done += int(self.layout.streams.count[of].sum()) * ended
            if not self.finished(index):
                done += int(self.done(of).sum())
        return done / total

    def ended_at(self, job_index: int) -> float:
        """When the last sum of the iteration came."""
        return float(self.workers.counts.last_result_at[self.layout.streams_of(job_index)].max())

    def done(self, streams: IntArray) -> IntArray:
        """Up to which fragment each of `streams` has all results of the iteration, (streams,)."""
        done: IntArray = self.workers.progress.base[streams]
        return done

    def measured(self) -> Measured:
        """What the whole run measured."""
        late = self.workers.late_s()
        return Measured(
            mode="reliable",
            iterations=tuple(self.iterations[key] for key in sorted(self.iterations)),
            late_s={host.name: float(s) for host, s in zip(self.layout.hosts, late, strict=True) if s > 0},
            problems=dict(self.ports.problems()),
            strangers=self.servers.strangers + self.workers.counts.strangers,
        )


class CollectiveLoop(ClosedLoop):
    """The loop whose endpoints are the senders and receivers of connections."""

    # What a tree passes on waits for a step of every rank on its way: with 4 ms, double trees of 15 ranks took 4 %
    # longer than planned (1.1 s), with 2 ms they take 2 %.
    real_time_tick_s: ClassVar[float] = 0.002

    def __init__(
        self, layout: StreamLayout, ports: Ports, gradients: Gradients, options: ReliableOptions, executor: Executor
    ) -> None:
        assert isinstance(layout, CollectiveLayout)
        super().__init__(layout, ports, gradients, options, executor)
        self.memory: CollectiveMemory = CollectiveMemory(layout)
        self.workers = rank_sender(layout, self.memory, options.worker)
        self.servers: Receivers = Receivers(layout, self.memory, self.workers.progress, options.worker)

    def done(self, streams: IntArray) -> IntArray:
        """Up to which fragment all has come to the receivers, whose acknowledgements may take a while, (streams,)."""
        done: IntArray = self.servers.base[streams]
        return done

    def finished(self, job_index: int) -> bool:
        """Whether every rank of the job has all sums of the iteration."""
        return bool(self.memory.waiting[job_index] == 0)

    def ended_at(self, job_index: int) -> float:
        """When the last result of the iteration came to its rank."""
        return float(self.memory.complete_at[job_index])

    def frames_of_last(self, streams: IntArray) -> int | None:
        """None: the connections of a rank send in turn, by the rank's pace."""
        _ = streams
        return None

    def missing(self, job_index: int) -> str:
        """The first fragment that a rank waits for, in words."""
        host, fragment = self.memory.first_missing(job_index)
        return f"host {host} lacks a chunk of others for fragment {fragment}"


# -- The loop of a plan: who its endpoints are, and the ports that they send and receive at.

NAMED = 5
"""How many of the missing workers are named."""

Endpoints = Callable[[Sequence[HostPort]], AbstractContextManager[tuple[Ports, Executor]]]
"""Opens the ports of hosts for a run; the executor runs what may take long beside it."""


def run_reliable(
    hosts: Sequence[HostPort],
    problem: Problem,
    plan: Plan,
    *,
    options: ReliableOptions | None = None,
    gradients: Gradients | None = None,
    progress: Progress | None = None,
    interference: Interfering | None = None,
    endpoints: Endpoints | None = None,
) -> Measured:
    """Run all iterations of all jobs on a network in which the plan's entries are installed.

    `endpoints` opens the hosts' ports, by default their sockets.

    Raises `PlanError` for a plan without a PS at a tree's root, `RunError` when a run stalls.
    """
    options = options or ReliableOptions()
    layout = lay_out_plan(problem, plan, hosts, options.bounds)
    with (endpoints or on_sockets)(layout.hosts) as (ports, executor):
        used: tuple[StreamLayout, Ports] = interference.prepare(layout, ports) if interference else (layout, ports)
        loop = loop_of(used[0])(*used, gradients or RandomGradients(), options, executor)
        loop.interference = interference
        return loop.run(progress or (lambda _: None))


@contextmanager
def on_sockets(hosts: Sequence[HostPort]) -> Iterator[tuple[Ports, Executor]]:
    """Packet sockets of hosts that run on this machine, and a thread for what may take long.

    The calling thread stays on the processor of the endpoints, and collects no garbage.
    """
    with on_endpoint_processor(), no_collection(), SocketPorts(hosts) as ports, ThreadPoolExecutor(1) as executor:
        yield ports, executor


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep Python's garbage collector, which may take a tenth of a second, out of the loop."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Loop(ClosedLoop):
    """The loop of trees: workers send gradients, parameter servers or switches sum them and send the sums back."""

    def __init__(
        self, layout: StreamLayout, ports: Ports, gradients: Gradients, options: ReliableOptions, executor: Executor
    ) -> None:
        super().__init__(layout, ports, gradients, options, executor)
        self.memory: WorkerMemory = WorkerMemory(layout)
        self.workers = worker_sender(layout, self.memory, options.worker)
        self.servers: Servers = Servers(layout, options.worker.first_seq, options.server)

    def missing(self, job_index: int) -> str:
        """The first fragment that a worker waits for, and which host lacks which packet, in words."""
        stream = self.workers.progress.first_unfinished(self.layout.streams_of(job_index))
        tree, fragment = int(self.layout.streams.tree[stream]), int(self.workers.progress.base[stream])
        part, host = self.layout.parts[tree], self.layout.hosts[self.layout.streams.host[stream]]
        absent = self.servers.absent(tree, fragment)
        where = f"tree {part.tree.number}, fragment {fragment}"
        if absent:
            others = f" and {len(absent) - NAMED} more" if len(absent) > NAMED else ""
            return f"{where}: PS {part.tree.server} still lacks {', '.join(absent[:NAMED])}{others}"
        return f"{where}: PS {part.tree.server} has the sum, worker {host.name} has not received it"


def loop_of(layout: StreamLayout) -> type[ClosedLoop]:
    """The kind of loop that runs a layout."""
    return CollectiveLoop if isinstance(layout, CollectiveLayout) else Loop
