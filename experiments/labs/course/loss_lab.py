"""Lab 4: exactly once under loss, duplicates and reordering: what is graded, and how it is tested.

The student's switch is tested with workers of the course, the student's worker with a switch of the course, and at last
both together. What a test looks for it finds by itself: a schedule of arrivals and faults that breaks a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from inakit.experiments.labs.course.graded_switch import SANDBOX, ProgramPart, excerpt
from inakit.experiments.labs.course.loss_exploration import Fault, Found, Network, long_run
from inakit.experiments.labs.course.packets import described
from inakit.experiments.labs.course.student_worker import (
    Job,
    ModelSwitch,
    ModelWorker,
    Node,
    Remembered,
    StudentSwitch,
    StudentWorker,
)
from inakit.experiments.labs.grading.items import Finding, Item, WrongError
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.topo.errors import InakitError, InputError

PROGRAM, WORKER = "loss", "worker.py"
GROUP = 1
MOST_LINES = 24


class LossWrongError(WrongError):
    """A schedule that breaks something; `by` is the switch that it broke, if the student's."""

    def __init__(self, found: Found, job: Job, by: StudentSwitch | None) -> None:
        super().__init__(found.cause)
        self.found, self.job, self.by = found, job, by


class LossBench:
    """The parts of a submission for one item, and what is drawn for it. `failed` has the names of items that failed."""

    def __init__(self, opened: OpenedParts, random: Random) -> None:
        self.opened, self.random = opened, random
        self.stack = opened.stack

    def job(self, workers: int, pool: int, count: int) -> Job:
        """A job with drawn fragments."""
        draw = self.random.getrandbits
        fragments = tuple(tuple(tuple(draw(32) for _ in range(8)) for _ in range(count)) for _ in range(workers))
        return Job(pool, fragments)

    def switch(self, job: Job) -> StudentSwitch:
        """The student's switch, started anew for a job."""
        ports = self.random.sample(range(1, 64), job.workers)
        return StudentSwitch(self.opened.program(), entries_of(ports), ports)

    def workers(self, job: Job) -> list[StudentWorker]:
        """The student's workers."""
        made = []
        for worker in range(job.workers):
            made.append(StudentWorker(job, worker, self.opened.worker_text()))
            self.opened.processes.callback(made[-1].close)
        return made

    def sound_job(self, workers: int, pool: int, count: int) -> tuple[Job, StudentSwitch]:
        """A job whose sums the student's switch gets right when nothing is lost, of at most `count` fragments."""
        for fewer in range(count, pool, -1):
            job = self.job(workers, pool, fewer)
            switch = self.switch(job)
            if Network(job, switch, models(job)).explore() is None:
                return job, switch
        raise WrongError("this cannot be tested yet: also when nothing is lost, workers do not get their first sums")

    def explore(self, network: Network) -> None:
        """Raise `LossWrongError` if some schedule breaks a network."""
        found, node = network.explore(), network.switch
        inner = node.node if isinstance(node, Remembered) else node
        by = inner if isinstance(inner, StudentSwitch) else None
        if found is not None:
            raise LossWrongError(found, network.job, by)


def entries_of(ports: list[int]) -> SwitchEntries:
    full = (1 << len(ports)) - 1
    at = tuple(TableEntry("worker_at", (port,), "is_worker", (worker, full)) for worker, port in enumerate(ports))
    return SwitchEntries("switch", at, (MulticastGroup(GROUP, tuple(ports)),))


def models(job: Job) -> list[Node]:
    """Workers of the course."""
    return [ModelWorker(job, worker) for worker in range(job.workers)]


# -- the items


def check_plain(bench: LossBench) -> None:
    """The switch, when nothing is lost: slots, rounds and versions."""
    for workers, pool, count in ((3, 2, 8), (2, 1, 6)):
        job = bench.job(workers, pool, count)
        bench.explore(Network(job, bench.switch(job), models(job)))


def check_again(bench: LossBench) -> None:
    """The switch, when a gradient comes again before the sum is complete."""
    kinds = frozenset({Fault.GRADIENT_TWICE, Fault.LOST_GRADIENT, Fault.IMPATIENT})
    for workers, count in ((3, 2), (2, 4)):
        job, switch = bench.sound_job(workers, 1, count)
        bench.explore(Network(job, switch, models(job), kinds, faults=2))


def check_answer(bench: LossBench) -> None:
    """The switch, when results are lost: who asks again gets its result."""
    for workers, count in ((2, 4), (3, 3)):
        job, switch = bench.sound_job(workers, 1, count)
        kinds = frozenset({Fault.LOST_RESULT})
        bench.explore(Network(job, switch, models(job), kinds, faults=2, only_behind=True))


def check_stale(bench: LossBench) -> None:
    """The switch, when a gradient of a round that is over arrives."""
    for workers, count in ((2, 6), (3, 4)):
        job, switch = bench.sound_job(workers, 1, count)
        bench.explore(Network(job, switch, models(job), frozenset({Fault.OLD_GRADIENT}), faults=1))


def check_sending(bench: LossBench) -> None:
    """The worker, when nothing is lost: each fragment once, no more on its way than there are slots."""
    for workers, pool, count in ((2, 2, 7), (2, 3, 4), (2, 3, 2)):
        job = bench.job(workers, pool, count)
        made = bench.workers(job)
        bench.explore(Network(job, ModelSwitch(job), list(made)))
        count_packets(job, made)


def count_packets(job: Job, workers: list[StudentWorker]) -> None:
    """Raise `WrongError` if workers send more than their fragments, or more at first than there are slots."""
    sent = long_run(job, ModelSwitch(job), workers, Random(0), share=0)
    if sent.found is not None:
        raise LossWrongError(sent.found, job, None)
    for worker, packets in enumerate(sent.first):
        if packets > min(job.pool, job.count):
            raise WrongError(f"worker {worker} starts with {packets} packets, where the pool has {job.pool} slots")
    for worker, packets in enumerate(sent.packets):
        if packets != job.count:
            raise WrongError(
                f"worker {worker} sends {packets} packets for {job.count} fragments, though nothing is lost"
            )


def check_patience(bench: LossBench) -> None:
    """The worker, when packets are lost: it sends again what it waits for. It is alone, so no result comes twice."""
    kinds = frozenset({Fault.LOST_GRADIENT, Fault.LOST_RESULT})
    for pool, count in ((1, 3), (2, 4)):
        job = bench.job(1, pool, count)
        made: list[Node] = [*bench.workers(job)]
        bench.explore(Network(job, ModelSwitch(job), made, kinds, faults=3))


def check_results(bench: LossBench) -> None:
    """The worker, when results come twice, or late."""
    kinds = frozenset({Fault.RESULT_TWICE, Fault.COPY_OF_RESULT, Fault.COPY_OF_GRADIENT})
    for pool, count in ((1, 4), (2, 5)):
        job = bench.job(2, pool, count)
        made: list[Node] = [*bench.workers(job)]
        bench.explore(Network(job, ModelSwitch(job), made, kinds, faults=1))


OF_SWITCH, OF_WORKER = ("plain", "again", "answer", "stale"), ("sending", "patience", "results")


def check_together(bench: LossBench) -> None:
    """Both, under all faults: explored, and in a long run. The course's stands for a part that has failed."""
    failed = bench.opened.failed
    if failed & set(OF_SWITCH) and failed & set(OF_WORKER):
        raise WrongError("not tried: neither the switch nor the worker does its part alone")
    for long in (False, True):
        job = bench.job(3, 4, 60) if long else bench.job(2, 1, 3)
        switch: Node = ModelSwitch(job) if failed & set(OF_SWITCH) else bench.switch(job)
        workers: list[Node] = models(job) if failed & set(OF_WORKER) else [*bench.workers(job)]
        if not long:
            bench.explore(Network(job, switch, workers, frozenset(Fault) - {Fault.OLD_GRADIENT}, faults=2))
            continue
        run = long_run(job, switch, workers, bench.random, share=0.15)
        if run.found is not None:
            raise LossWrongError(run.found, job, switch if isinstance(switch, StudentSwitch) else None)


ITEMS = (
    Item("plain", "the switch: rounds and versions", 10, "Step 1", check_plain),
    Item("again", "the switch: a gradient comes again", 15, "Step 2", check_again),
    Item("answer", "the switch: a result was lost", 20, "Step 3", check_answer),
    Item("stale", "the switch: a gradient of a round that is over", 15, "Step 4", check_stale),
    Item("sending", "the worker: fragments in turn", 10, "Step 5", check_sending),
    Item("patience", "the worker: sending again", 10, "Step 6", check_patience),
    Item("results", "the worker: results that come twice or late", 10, "Step 7", check_results),
    Item("together", "both together", 10, "Step 8", check_together),
)


# -- the submission


class OpenedParts:
    """A submission's program and worker. What is wrong with one of them is told at the items that need it."""

    def __init__(self, submission: Submission, stack: ExitStack) -> None:
        self.submission, self.stack, self.processes = submission, stack, ExitStack()
        stack.callback(self.close_processes)
        self.failed: set[str] = set()
        self.part = ProgramPart(submission, PROGRAM, SANDBOX, stack)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return self.part.notes or self.part.said

    def program(self) -> SandboxedSwitch:
        """The switch that runs the student's program; `InputError` if there is none."""
        return self.part.sandboxed

    def worker_text(self) -> str:
        """The student's Python."""
        return self.submission.text(WORKER)

    def bench(self, item: Item, random: Random) -> LossBench:
        """The bench of an item. The item counts as failed until the next one begins."""
        self.close_processes()
        self.asked = item.name
        return LossBench(self, random)

    def close_processes(self) -> None:
        """End the workers of the item before."""
        self.processes.close()
        self.processes = ExitStack()

    def after(self, item: Item, *, passed: bool) -> None:
        """Hear whether an item has its points."""
        if not passed:
            self.failed.add(item.name)

    def finding(self, wrong: WrongError) -> Finding:
        """The schedule, the sum that was expected, and the trace of the last packet that came to the switch."""
        if not isinstance(wrong, LossWrongError):
            return Finding(wrong.cause)
        found, job = wrong.found, wrong.job
        expected: tuple[str, ...] = ()
        got: tuple[str, ...] = ()
        if found.fragment is not None and found.got is not None:
            expected, got = (
                (" ".join(f"{value:08x}" for value in values),) for values in (job.sum_of(found.fragment), found.got)
            )
        left_out = len(found.story) - MOST_LINES
        story = [*([f"({left_out} events before)"] if left_out > 0 else []), *found.story[-MOST_LINES:]]
        return Finding(found.cause, tuple(story), expected, got, self.trace(wrong))

    def trace(self, wrong: LossWrongError) -> tuple[str, ...]:
        """What the student's program did with the last gradient of the schedule."""
        switch, arrivals = wrong.by, wrong.found.arrivals
        if switch is None or not arrivals:
            return ()
        try:
            switch.switch.fresh()
            switch.switch.install(switch.entries)
            *before, (worker, last) = arrivals
            for sender, packet in before:
                switch.switch.inject(switch.ports[sender], packet.packed())
            traced = switch.switch.trace(switch.ports[worker], last.packed())
        except (InakitError, EndedError):
            return ()
        head = f"port {switch.ports[worker]}: {described(last.packed())}"
        return (head, *excerpt(traced.lines, "values.v0" if wrong.found.fragment is not None else "port"))


@dataclass(frozen=True)
class LossLab:
    """Lab 4."""

    name: str = "4-loss"
    title: str = "Exactly once, whatever is lost"
    hours: str = "8 to 12"
    files: tuple[str, ...] = (f"{PROGRAM}.p4", WORKER)
    items: tuple[Item, ...] = ITEMS

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedParts]:
        """Open a submission."""
        if target != SANDBOX:
            raise InputError(f"--target {target}: {self.name} explores states, which only the sandboxed switch can")
        with ExitStack() as stack:
            yield OpenedParts(submission, stack)
