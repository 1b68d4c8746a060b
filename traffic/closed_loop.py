"""The closed loop: gradients go out and sums come back, iteration after iteration, until all workers have exact sums.

One thread drives all endpoints of all jobs: each tick it receives all arrived packets, lets the endpoints process them,
and sends the packets that are due. Workers are synchronous: an iteration of a job begins when all its workers have all
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
"""The default interval at which workers and PSs act in real time, in seconds."""

ROUNDINGS = 0.01
"""Endpoints can be due earlier than their stated time by less than this part of a tick."""

Progress = Callable[[float], None]
"""Called from time to time with the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class ReliableOptions:
    """`tick_s`: the interval at which endpoints act, in seconds; None: the default of the world and the loop.

    `stall_s`: the time without a result after which a run has failed. `bounds`: the world's limits for streams.
    """

    worker: WorkerOptions = field(default_factory=WorkerOptions)
    tick_s: float | None = None
    stall_s: float = 10.0
    server: ServerOptions = field(default_factory=ServerOptions)
    bounds: Bounds = field(default_factory=Bounds)


class Interfering(Protocol):
    """Interference with a run in its own thread: faults at endpoints, and their times."""

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """Return the layout and the ports that the run uses instead of these."""
        ...

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Apply the faults that are due at `now`; called once a tick, except for ticks before `next_due`."""
        ...

    def next_due(self, loop: ClosedLoop) -> float:
        """The time, up to rounding, before which `act` does nothing unless packets arrive; -inf if unknown."""
        ...


@dataclass(frozen=True)
class Following:
    """A plan that replaces another between two iterations of a run with a single job, and the run's options with it."""

    plan: Plan
    options: ReliableOptions


class Replanning(Protocol):
    """Decides between the iterations of a run with a single job whether the next ones follow another plan."""

    def begin(self, now: float) -> None:
        """Note that the run begins, at a time of the ports' clock in seconds."""
        ...

    def pause_s(self, iteration: Iteration) -> float:
        """The time after an iteration in which packets that full queues hold leave the network."""
        ...

    def following(self, iteration: Iteration, now: float) -> Following | None:
        """The next plan after an iteration and its pause; None for the same plan.

        Called beside the loop: planning can take long.
        """
        ...

    def install(self, now: float) -> None:
        """Install the plan that `following` returned last; it was not None."""
        ...


@dataclass
class JobState:
    """A job's progress in its iterations.

    While `loading`, its part of the memory belongs to the loading thread; from `start_at` on, while it is `active`, it
    exchanges gradients. While `pausing`, loading begins only at `start_at`. `results`: the number of results that its
    workers held at `progress_at`, the time of its last change.
    """

    index: int
    loading: Future[str]
    start_at: float
    iteration: int = 0
    active: bool = False
    pausing: bool = False
    results: int = 0
    progress_at: float = 0.0


class ClosedLoop:
    """One run. It reads the ports' clock, so that a network in memory can have its own.

    A subclass sets `memory`, `workers` and `servers`, the endpoints. `real_time_tick_s`: the default interval at which
    they act in real time, in seconds. `coming`: the loop of another plan, whose endpoints have the next iteration.
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
        self.replanning: Replanning | None = None
        self.coming: ClosedLoop | None = None
        self.jobs: list[JobState] = []
        self.iterations: dict[tuple[int, int], Iteration] = {}  # by job index and iteration
        self.begun: set[tuple[int, int]] = set()  # of the same
        self.retransmitted_before = np.zeros(len(layout.streams.host), np.int64)
        self.cuts_before = np.zeros(len(layout.streams.host), np.int64)
        self.late_s_before, self.strangers_before = np.zeros(len(layout.hosts)), 0  # of earlier plans

    # -- the loop

    def run(self, progress: Progress) -> Measured:
        """Run until every job has finished its iterations."""
        jobs = self.jobs = [JobState(index, self.load(index, 0), 0.0) for index in range(len(self.layout.problem.jobs))]
        for job in jobs:
            job.loading.result()
        self.started_at = self.ports.now()
        for job in jobs:
            job.start_at = self.started_at + self.layout.problem.jobs[job.index].arrival_s
        if self.replanning:
            self.replanning.begin(self.started_at)
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
        """The time of the next step: after a tick or, if all jobs compute, when the first of them has computed."""
        tick = now + self.tick_s
        if self.interference or any(job.active or not job.loading.done() for job in jobs):
            return tick
        return max(tick, min((job.start_at for job in jobs), default=now))

    @property
    def tick_s(self) -> float:
        """The interval at which all endpoints act, in seconds."""
        return self.options.tick_s or self.real_time_tick_s

    def pass_quiet_ticks(self, jobs: Sequence[JobState]) -> None:
        """Skip to the first tick with an arrival or an action that is due. Steps before it would change credits only.

        Credits rise tick by tick, so that all figures are the same, bit for bit, as with a step at every tick.
        """
        due = self.next_due(jobs) - ROUNDINGS * self.tick_s
        self.workers.refill_at(self.ports.pass_ticks(self.tick_s, due))

    def next_due(self, jobs: Sequence[JobState]) -> float:
        """The next action's time of a job, an endpoint or the interference if no packets arrive; -inf if unknown."""
        found = [job.progress_at + self.options.stall_s if job.active else job.start_at for job in jobs]
        found += [self.servers.next_due(), self.workers.next_due(self.ports.accepts_from())]
        if self.interference:
            found.append(self.interference.next_due(self))
        return min(found)

    def step(self, now: float) -> None:
        """Let all endpoints process the arrived packets once."""
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
        """Send the packets that are due; return the number of accepted packets."""
        due = [(sender, batch) for sender, batch in self.due(now) if batch is not None]
        batches = [batch for _, batch in due]
        sent = 0
        for (sender, batch), accepted in zip(due, self.ports.send(batches), strict=True):
            sender.note(batch.counts, accepted)
            sent += int(accepted.sum())
        return sent

    def due(self, now: float) -> Iterator[tuple[Servers | Receivers | Sender, Outgoing | None]]:
        """Yield each endpoint's packets that are due; PSs come first, so that results do not wait behind gradients."""
        yield self.servers, self.servers.due(now)
        yield self.workers, self.workers.due(now)

    # -- iterations

    def is_over(self, job: JobState, now: float) -> bool:
        """Advance a job if its time has come, and return whether it has finished all iterations."""
        if job.active:
            self.watch(job, now)
            if self.finished(job.index):
                self.finish(job, now)
        elif job.pausing and now >= job.start_at:
            job.pausing = False
            job.loading = self.load(job.index, job.iteration)
        elif not job.pausing and job.loading.done() and now >= job.start_at:
            self.note_exactness(job)
            if job.iteration == self.layout.problem.jobs[job.index].iterations:
                return True
            if self.coming:
                self.follow(self.coming)
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
        measured = self.iterations[job.index, job.iteration] = self.measure(job)
        self.workers.end(job.index)
        job.active = False
        job.iteration += 1
        pause_s = self.replanning.pause_s(measured) if self.replanning else 0.0
        job.start_at = now + max(self.layout.problem.jobs[job.index].compute_s, pause_s)
        job.pausing = pause_s > 0
        if not job.pausing:
            job.loading = self.load(job.index, job.iteration)

    def finished(self, job_index: int) -> bool:
        """Whether the iteration of a job is over, that is, all workers have all sums."""
        return self.workers.progress.finished(self.layout.streams_of(job_index))

    def missing(self, job_index: int) -> str:
        """A text that describes the packets that a stalled job waits for."""
        raise NotImplementedError

    def note_exactness(self, job: JobState) -> None:
        """Add the mistakes in the sums of the last iteration to its record."""
        wrong_sums = job.loading.result()
        if job.iteration:
            last = self.iterations[job.index, job.iteration - 1]
            wrong = (*last.wrong, *filter(None, (wrong_sums,)))
            self.iterations[job.index, job.iteration - 1] = replace(last, exact=not wrong, wrong=wrong)

    def load(self, job_index: int, iteration: int) -> Future[str]:
        """Check the sums of the last iteration and load the gradients of this one, in the background."""
        return self.executor.submit(self.judge_and_load, job_index, iteration)

    def judge_and_load(self, job_index: int, iteration: int) -> str:
        """Check the last sums, pass them to gradients that depend on them, and load the next gradients.

        Returns a text about wrong sums; empty if all sums are exact.
        """
        wrong, job = "", self.layout.problem.jobs[job_index]
        if iteration:
            wrong = self.memory.wrong(job_index)
            if isinstance(self.gradients, Learner):
                for worker in range(len(job.workers)):
                    self.gradients.take(job, worker, iteration - 1, self.memory.result(job, worker))
        if iteration < job.iterations:
            self.coming = self.successor(job_index, iteration) if self.replanning and iteration else None
            (self.coming or self).memory.load(job_index, self.gradients, iteration)
        return wrong

    # -- another plan

    def successor(self, job_index: int, iteration: int) -> ClosedLoop | None:
        """The loop of the plan that an iteration follows; None for the same plan.

        Its sequence numbers go on from those of this plan, since switches may see an earlier plan's trees again.
        """
        assert self.replanning is not None
        following = self.replanning.following(self.iterations[job_index, iteration - 1], self.ports.now())
        if following is None:
            return None
        options = following.options
        layout = lay_out_plan(self.layout.problem, following.plan, self.layout.hosts, options.bounds)
        used = self.options.worker.first_seq + iteration * int(self.layout.trees.count.max())
        first_seq = used + max(part.tree.reach for part in layout.parts)
        options = replace(options, worker=replace(options.worker, first_seq=first_seq))
        return type(self)(layout, self.ports, self.gradients, options, self.executor)

    def follow(self, other: ClosedLoop) -> None:
        """Install the plan of another loop, and go on with its endpoints. No job may be in an iteration."""
        assert self.replanning is not None
        self.replanning.install(self.ports.now())
        self.late_s_before, self.strangers_before = self.workers.late_s() + self.late_s_before, self.strangers
        self.layout, self.options = other.layout, other.options
        self.retransmitted_before, self.cuts_before = other.retransmitted_before, other.cuts_before
        self.memory, self.workers, self.servers, self.coming = other.memory, other.workers, other.servers, None

    @property
    def strangers(self) -> int:
        """The packets of the run so far that came to an endpoint outside their tree."""
        return self.strangers_before + self.servers.strangers + self.workers.counts.strangers

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
        """Measure the iteration that has just ended."""
        counts, number = self.workers.counts, self.layout.problem.jobs[job.index].number
        of = self.layout.streams_of(job.index)
        begun, ended = np.nanmin(counts.first_sent_at[of]), self.ended_at(job.index)
        retransmitted = int((counts.retransmitted - self.retransmitted_before)[of].sum())
        cuts = int((self.workers.windows.cuts - self.cuts_before)[of].sum())
        self.retransmitted_before[of] = counts.retransmitted[of]
        self.cuts_before[of] = self.workers.windows.cuts[of]
        return Iteration(
            job=number,
            number=job.iteration,
            started_s=float(begun - self.started_at),
            communication_time_s=float(ended - begun),
            sending_rate_bps=self.sending_rates(job.index),
            sent_bytes=self.by_worker(job.index, counts.sent * self.layout.problem.fragment.wire_bytes),
            ps_ingress_bytes=self.servers.ingress(job.index),
            retransmissions=retransmitted,
            window_cuts=cuts,
            wrong=tuple(filter(None, (self.servers.take_wrong(job.index), counts.miscounts.take(job.index)))),
        )

    def by_worker(self, job_index: int, per_stream: IntArray) -> dict[str, int]:
        """Sums over the streams of each worker of a job."""
        names, of = self.layout.problem.jobs[job_index].workers, self.layout.streams_of(job_index)
        totals = np.bincount(self.layout.streams.worker[of], per_stream[of], minlength=len(names))
        return {name: int(total) for name, total in zip(names, totals, strict=True)}

    def sending_rates(self, job_index: int) -> dict[str, float]:
        """The rate at which frames left each worker's sockets, in bit/s, from its first frame to its last."""
        counts, wire_bytes = self.workers.counts, self.layout.problem.fragment.wire_bytes
        of_job, rates = self.layout.streams_of(job_index), {}
        for number, (name, frames) in enumerate(self.by_worker(job_index, counts.sent).items()):
            of = of_job[self.layout.streams.worker[of_job] == number]
            duration = counts.last_sent_at[of].max() - np.nanmin(counts.first_sent_at[of])
            rates[name] = rate_bps(frames, wire_bytes, float(duration), self.frames_of_last(of))
        return rates

    def frames_of_last(self, streams: IntArray) -> int | None:
        """The number of frames of the worker's stream that ended last; its streams send in parallel."""
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
        """The arrival time of the iteration's last sum."""
        return float(self.workers.counts.last_result_at[self.layout.streams_of(job_index)].max())

    def done(self, streams: IntArray) -> IntArray:
        """The number of fragments up to which each of `streams` has all results of the iteration, (streams,)."""
        done: IntArray = self.workers.progress.base[streams]
        return done

    def measured(self) -> Measured:
        """The measurements of the whole run."""
        late = self.workers.late_s() + self.late_s_before
        return Measured(
            mode="reliable",
            iterations=tuple(self.iterations[key] for key in sorted(self.iterations)),
            late_s={host.name: float(s) for host, s in zip(self.layout.hosts, late, strict=True) if s > 0},
            problems=dict(self.ports.problems()),
            strangers=self.strangers,
        )


class CollectiveLoop(ClosedLoop):
    """The loop whose endpoints are the senders and receivers of connections."""

    # A chunk of a tree waits for a step of every rank on its path: with 4 ms, double trees of 15 ranks took 4 % longer
    # than planned (1.1 s), with 2 ms they take 2 %.
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
        """The number of fragments up to which receivers have all, whether acknowledged yet or not, (streams,)."""
        done: IntArray = self.servers.base[streams]
        return done

    def finished(self, job_index: int) -> bool:
        """Whether every rank of the job has all sums of the iteration."""
        return bool(self.memory.waiting[job_index] == 0)

    def ended_at(self, job_index: int) -> float:
        """The arrival time of the iteration's last result at its rank."""
        return float(self.memory.complete_at[job_index])

    def frames_of_last(self, streams: IntArray) -> int | None:
        """None: the connections of a rank send in turn, by the rank's pace."""
        _ = streams
        return None

    def missing(self, job_index: int) -> str:
        """A text about the first fragment that a rank waits for."""
        host, fragment = self.memory.first_missing(job_index)
        return f"host {host} lacks another rank's chunk for fragment {fragment}"


# -- The loop of a plan: its endpoints, and their ports.

NAMED = 5
"""The most missing workers that a message names."""

Endpoints = Callable[[Sequence[HostPort]], AbstractContextManager[tuple[Ports, Executor]]]
"""A function that opens the ports of hosts for a run; the executor runs slow tasks in the background."""


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
    replanning: Replanning | None = None,
) -> Measured:
    """Run all iterations of all jobs on a network in which the plan's entries are installed.

    `endpoints` opens the hosts' ports, by default their sockets. With `replanning` later iterations can follow other
    plans; an interference then has no part in their layout.

    Raises `PlanError` for a plan without a PS at a tree's root, `RunError` when a run stalls.
    """
    options = options or ReliableOptions()
    layout = lay_out_plan(problem, plan, hosts, options.bounds)
    with (endpoints or on_sockets)(layout.hosts) as (ports, executor):
        used: tuple[StreamLayout, Ports] = interference.prepare(layout, ports) if interference else (layout, ports)
        loop = loop_of(used[0])(*used, gradients or RandomGradients(), options, executor)
        loop.interference, loop.replanning = interference, replanning
        return loop.run(progress or (lambda _: None))


@contextmanager
def on_sockets(hosts: Sequence[HostPort]) -> Iterator[tuple[Ports, Executor]]:
    """Open packet sockets of hosts on this machine, and a thread for slow tasks.

    The calling thread runs on the endpoints' processor, with garbage collection disabled.
    """
    with on_endpoint_processor(), no_collection(), SocketPorts(hosts) as ports, ThreadPoolExecutor(1) as executor:
        yield ports, executor


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable Python's garbage collector in the loop: a collection can take a tenth of a second."""
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
        """A text about the first fragment that a worker waits for, and the host that lacks a packet."""
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
    """The class of the loop that runs a layout."""
    return CollectiveLoop if isinstance(layout, CollectiveLayout) else Loop
