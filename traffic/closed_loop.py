"""The closed loop: gradients go out and sums come back, iteration after iteration, until all workers have exact sums.

The endpoints of all jobs act on events (`inakit.traffic.endpoints`), driven by their ports; the loop begins and ends
iterations. Workers are synchronous: an iteration of a job begins when all its workers have all results of the last one
and have computed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import RunError
from inakit.topo.live.priority import on_endpoint_processor
from inakit.topo.live.signals import raise_if_lost
from inakit.traffic.collectives.rank_data import CollectiveLayout, lay_out_plan
from inakit.traffic.collectives.ranks import Ranks
from inakit.traffic.endpoints.endpoints import PS_PER_S, Endpoints
from inakit.traffic.endpoints.gradient import Gradients, Learner, RandomGradients
from inakit.traffic.endpoints.options import Bounds, ServerOptions, WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.measure.measured import Iteration, Measured, rate_bps
from inakit.traffic.sockets.packet_sockets import SocketPorts
from inakit.traffic.sockets.ports import FloatArray, HostPort, IntArray, Ports
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME

# -- The iterations.

UPPER_HALF = 1 << 31
"""The bit of sequence numbers in their upper half."""
LONGEST_S = 0.2
"""The time in seconds between two calls that tell of a run's progress, and between two looks at a thread that loads."""

Progress = Callable[[float], None]
"""Called from time to time with the share of the run that is done, 0 to 1."""


@dataclass(frozen=True)
class ReliableOptions:
    """`stall_s`: the time without a result after which a run has failed. `bounds`: the world's limits for streams."""

    worker: WorkerOptions = field(default_factory=WorkerOptions)
    stall_s: float = 10.0
    server: ServerOptions = field(default_factory=ServerOptions)
    bounds: Bounds = field(default_factory=Bounds)


class Interfering(Protocol):
    """Interference with a run in its own thread: faults at endpoints, and their times."""

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        """Return the layout that the run uses instead of this one."""
        ...

    def begin(self, loop: ClosedLoop) -> None:
        """Note that the run begins; the loop has its endpoints."""
        ...

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Apply the faults that are due at `now`."""
        ...

    def next_due(self, loop: ClosedLoop) -> float:
        """The time before which `act` does nothing, unless an iteration begins or ends; -inf: `act` now."""
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


def endpoints_of(layout: StreamLayout, options: ReliableOptions) -> Endpoints:
    """The endpoints of a layout of trees or of collectives."""
    if isinstance(layout, CollectiveLayout):
        return Ranks(layout, options.worker)
    return Endpoints(layout, options.worker, options.server)


class ClosedLoop:
    """One run. It reads the ports' clock, so that a network in memory can have its own.

    `coming`: the loop of another plan, whose endpoints have the next iteration.
    """

    def __init__(
        self, layout: StreamLayout, ports: Ports, gradients: Gradients, options: ReliableOptions, executor: Executor
    ) -> None:
        self.layout, self.ports, self.gradients, self.options = layout, ports, gradients, options
        self.executor = executor
        self.endpoints = endpoints_of(layout, options)
        self.interference: Interfering | None = None
        self.replanning: Replanning | None = None
        self.coming: ClosedLoop | None = None
        self.jobs: list[JobState] = []
        self.iterations: dict[tuple[int, int], Iteration] = {}  # by job index and iteration
        self.begun: set[tuple[int, int]] = set()  # of the same
        self.counted = {name: np.zeros(len(layout.streams.host), np.int64) for name in ("retransmitted", "cuts")}
        self.late_s_before, self.strangers_before = np.zeros(len(layout.hosts)), 0  # of earlier plans

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.endpoints.close()

    # -- the loop

    def run(self, progress: Progress) -> Measured:
        """Run until every job has finished its iterations."""
        self.ports.attach(self.endpoints)
        jobs = self.jobs = [JobState(index, self.load(index, 0), 0.0) for index in range(len(self.layout.problem.jobs))]
        for job in jobs:
            job.loading.result()
        self.started_at = self.ports.now()
        for job in jobs:
            job.start_at = self.started_at + self.layout.problem.jobs[job.index].arrival_s
        if self.replanning:
            self.replanning.begin(self.started_at)
        if self.interference:
            self.interference.begin(self)
        told_at = time.monotonic()
        while jobs:
            raise_if_lost()
            now = self.ports.now()
            if self.interference:
                self.interference.act(self, now)
            self.watch(jobs, now)
            jobs = [job for job in jobs if not self.is_over(job, now)]
            if time.monotonic() - told_at > LONGEST_S:
                progress(self.fraction_done())
                told_at = time.monotonic()
            if jobs:
                self.ports.run(self.next_due(jobs))
        progress(1.0)
        return self.measured()

    def next_due(self, jobs: Sequence[JobState]) -> float:
        """The time of the next action of a job or of the interference, unless an iteration ends before."""
        others = [self.interference.next_due(self)] if self.interference else []
        return min([*map(self.job_due, jobs), *others])

    def job_due(self, job: JobState) -> float:
        """The time of a job's next action; while a thread loads its gradients, that of the next look at the thread."""
        if not job.loading.done():
            return self.ports.now() + LONGEST_S
        return job.progress_at + self.options.stall_s if job.active else job.start_at

    # -- iterations

    def is_over(self, job: JobState, now: float) -> bool:
        """Advance a job if its time has come, and return whether it has finished all iterations."""
        if job.active:
            if self.endpoints.finished(job.index):
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
        self.endpoints.begin(job.index, job.iteration, self.ports.now_ps())
        job.active, job.results, job.progress_at = True, 0, now

    def finish(self, job: JobState, now: float) -> None:
        """Record the iteration, and load the next gradients while the workers compute."""
        measured = self.iterations[job.index, job.iteration] = self.measure(job)
        self.endpoints.end(job.index)
        job.active = False
        job.iteration += 1
        pause_s = self.replanning.pause_s(measured) if self.replanning else 0.0
        job.start_at = now + max(self.layout.problem.jobs[job.index].compute_s, pause_s)
        job.pausing = pause_s > 0
        if not job.pausing:
            job.loading = self.load(job.index, job.iteration)

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
            wrong = self.endpoints.wrong(job_index)
            if isinstance(self.gradients, Learner):
                for worker in range(len(job.workers)):
                    self.gradients.take(job, worker, iteration - 1, self.endpoints.result(job, worker))
        if iteration < job.iterations:
            self.coming = self.successor(job_index, iteration) if self.replanning and iteration else None
            (self.coming or self).endpoints.load(job_index, self.gradients, iteration)
        return wrong

    # -- another plan

    def successor(self, job_index: int, iteration: int) -> ClosedLoop | None:
        """The loop of the plan that an iteration follows; None for the same plan.

        Its sequence numbers go on from those of this plan, since switches may see an earlier plan's trees again. They
        are in the upper half of all, so that slots whose registers are 0 again hold no earlier fragment of the tree.
        """
        assert self.replanning is not None
        following = self.replanning.following(self.iterations[job_index, iteration - 1], self.ports.now())
        if following is None:
            return None
        options = following.options
        layout = lay_out_plan(self.layout.problem, following.plan, self.layout.hosts, options.bounds)
        used = self.options.worker.first_seq + iteration * int(self.layout.trees.count.max())
        first_seq = UPPER_HALF | (used + max(part.tree.reach for part in layout.parts))
        options = replace(options, worker=replace(options.worker, first_seq=first_seq))
        return ClosedLoop(layout, self.ports, self.gradients, options, self.executor)

    def follow(self, other: ClosedLoop) -> None:
        """Install the plan of another loop, and go on with its endpoints. No job may be in an iteration."""
        assert self.replanning is not None
        self.replanning.install(self.ports.now())
        self.late_s_before, self.strangers_before = self.late_s(), self.strangers
        self.layout, self.options, self.counted = other.layout, other.options, other.counted
        self.endpoints.close()
        self.endpoints, self.coming = other.endpoints, None
        self.ports.attach(self.endpoints)

    @property
    def strangers(self) -> int:
        """The packets of the run so far that came to an endpoint outside their tree."""
        return self.strangers_before + int(self.endpoints.hosts["strangers"].sum())

    def late_s(self) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        return self.late_s_before + self.endpoints.late_s()

    def watch(self, jobs: Sequence[JobState], now: float) -> None:
        """Raise `RunError` when a job has had no result for too long."""
        done = self.endpoints.done(np.arange(len(self.layout.streams.job)))
        results = np.bincount(self.layout.streams.job, done, minlength=len(self.jobs)).tolist()
        for job in jobs:
            if not job.active:
                continue
            if results[job.index] != job.results:
                job.results, job.progress_at = results[job.index], now
            elif now >= job.progress_at + self.options.stall_s:
                number = self.layout.problem.jobs[job.index].number
                raise RunError(
                    f"job {number}, iteration {job.iteration} stalled: no result for {self.options.stall_s:g} s; "
                    f"{self.endpoints.lacking(job.index)}; "
                    "check that the plan's entries are installed and that every switch still runs"
                )

    # -- what is measured

    def measure(self, job: JobState) -> Iteration:
        """Measure the iteration that has just ended."""
        number, of = self.layout.problem.jobs[job.index].number, self.layout.streams_of(job.index)
        streams = self.endpoints.streams[of]
        begun, ended = self.endpoints.begun_at(of), self.endpoints.ended_at(job.index)
        return Iteration(
            job=number,
            number=job.iteration,
            started_s=self.ports.seconds(begun) - self.started_at,
            communication_time_s=(ended - begun) / PS_PER_S,
            sending_rate_bps=self.sending_rates(job.index),
            sent_bytes=self.by_worker(
                job.index, streams["sent"] * FRAME.itemsize + streams["questions"] * BARE_FRAME.itemsize
            ),
            ps_ingress_bytes=self.endpoints.take_ingress(job.index),
            retransmissions=self.more("retransmitted", of),
            window_cuts=self.more("cuts", of),
            wrong=tuple(filter(None, (self.endpoints.take_miscounts(job.index),))),
        )

    def more(self, name: str, streams: IntArray) -> int:
        """The sum of a count of streams since the last call."""
        now = self.endpoints.streams[name][streams]
        more = int((now - self.counted[name][streams]).sum())
        self.counted[name][streams] = now
        return more

    def by_worker(self, job_index: int, per_stream: IntArray) -> dict[str, int]:
        """Sums over the streams of each worker of a job; `per_stream` is by the job's streams."""
        names, of = self.layout.problem.jobs[job_index].workers, self.layout.streams_of(job_index)
        totals = np.bincount(self.layout.streams.worker[of], per_stream, minlength=len(names))
        return {name: int(total) for name, total in zip(names, totals, strict=True)}

    def sending_rates(self, job_index: int) -> dict[str, float]:
        """The rate at which frames left each worker's sockets, in bit/s, from its first frame to its last."""
        problem, streams, rates = self.layout.problem, self.endpoints.streams, {}
        for name, of in zip(problem.jobs[job_index].workers, self.layout.streams_of_workers(job_index), strict=True):
            own = streams[of[streams["first_sent_at"][of] >= 0]]
            frames, wire_bytes = int(own["sent"].sum()), problem.fragment.wire_bytes
            duration_s = (own["last_sent_at"].max() - own["first_sent_at"].min()) / PS_PER_S
            rates[name] = rate_bps(frames, wire_bytes, float(duration_s), self.endpoints.frames_of_last(own))
        return rates

    def fraction_done(self) -> float:
        """The share of the run's results that workers hold, 0 to 1."""
        total = done = 0
        for index, job in enumerate(self.layout.problem.jobs):
            of = self.layout.streams_of(index)
            total += int(self.layout.streams.count[of].sum()) * job.iterations
            ended = sum(1 for job_index, _ in self.iterations if job_index == index)
            done += int(self.layout.streams.count[of].sum()) * ended
            if not self.endpoints.finished(index):
                done += int(self.endpoints.done(of).sum())
        return done / total

    def measured(self) -> Measured:
        """The measurements of the whole run."""
        late = self.late_s()
        return Measured(
            mode="reliable",
            iterations=tuple(self.iterations[key] for key in sorted(self.iterations)),
            late_s={host.name: float(s) for host, s in zip(self.layout.hosts, late, strict=True) if s > 0},
            problems=dict(self.ports.problems()),
            strangers=self.strangers,
        )


# -- The loop of a plan: its endpoints, and their ports.

OpenPorts = Callable[[Sequence[HostPort]], AbstractContextManager[tuple[Ports, Executor]]]
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
    endpoints: OpenPorts | None = None,
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
        used = interference.prepare(layout) if interference else layout
        loop = ClosedLoop(used, ports, gradients or RandomGradients(), options, executor)
        loop.interference, loop.replanning = interference, replanning
        with loop:
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
