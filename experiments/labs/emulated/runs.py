"""What labs 2 to 5 do in an emulated network: a job's workers send, and all of them have to get all sums."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

from inakit.experiments.labs.course.packets import GRADIENT, Agg, agg_in, summed
from inakit.experiments.labs.course.sum import entries_of
from inakit.experiments.labs.course.sums import explain_sum
from inakit.experiments.labs.emulated.network import HostFrames, running, star
from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.grading.program import compiled_program
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.loss.nodes import Event, Job, Step, StudentWorker
from inakit.experiments.labs.tree.network import drawn_rounds, interleaved, judge_arrived
from inakit.experiments.labs.tree.plans import drawn_plan
from inakit.experiments.labs.tree.student_entries import FILE, StudentEntries

WORKERS = 4
LOST = 0.1
"""The share of packets that lab 4's hosts lose, each way."""
TIMEOUT_S = 0.05
MOST_TIMEOUTS = 40


@dataclass(frozen=True)
class Emulation:
    """A submission, what is drawn for its run, and the switch target."""

    submission: Submission
    random: Random
    target: str

    def program(self, stem: str) -> str:
        """The compiled program."""
        return compiled_program(self.submission, stem)[0]


def run_sums(run: Emulation, stem: str, slots: int, *, versions: bool) -> str:
    """Labs 2 and 3: four workers, several rounds of several slots, one packet after the other; what was done."""
    ports = list(range(1, WORKERS + 1))
    rounds, chosen = 4, run.random.sample(range(slots), 8)
    with running(star(WORKERS), run.program(stem), stem, {"s1": entries_of(ports)}, run.target) as frames:
        for number in range(rounds):
            for slot in chosen:
                gradients = [
                    Agg(GRADIENT, worker, slot, number, drawn(run.random), version=number % 2 if versions else 0)
                    for worker in run.random.sample(range(WORKERS), WORKERS)
                ]
                run_round(frames, gradients)
    return f"{WORKERS} workers, {rounds * len(chosen)} sums"


def drawn(random: Random) -> tuple[int, ...]:
    """Values of a gradient."""
    return tuple(random.getrandbits(32) for _ in range(8))


def run_round(frames: HostFrames, gradients: list[Agg]) -> None:
    """Let workers send; raises `WrongError` unless the last packet, and no other, brings all of them the sum."""
    last, total = gradients[-1], summed([each.values for each in gradients])
    what = f"slot {last.slot}, round {last.round}"
    for each in gradients:
        arrived = frames.exchange(f"h{each.worker + 1}", each.packed(), len(gradients) if each is last else 0)
        if each is not last and arrived:
            raise WrongError(f"{what}: a packet comes to {arrived[0][0]} before all have sent")
    expected = sorted((f"h{worker + 1}", last.result(total).packed()) for worker in range(len(gradients)))
    if sorted(arrived) == expected:
        return
    missing = sorted({host for host, _ in expected} - {host for host, _ in arrived})
    if missing:
        raise WrongError(f"{what}: no result comes to {', '.join(missing)}")
    found = agg_in(arrived[0][1])
    named = {f"worker {each.worker}'s gradient": each.values for each in gradients}
    why = explain_sum(found.values, named) if found is not None else ""
    raise WrongError(f"{what}: {why or 'what comes to workers is not one result each'}")


def run_lossy(run: Emulation) -> str:
    """Lab 4: three workers of the student, whose hosts lose packets both ways; what was done."""
    fragments = tuple(tuple(drawn(run.random) for _ in range(40)) for _ in range(3))
    job, text = Job(4, fragments), run.submission.text("worker.py")
    ports = list(range(1, job.workers + 1))
    with ExitStack() as stack:
        workers = [StudentWorker(job, number, text) for number in range(job.workers)]
        for worker in workers:
            stack.callback(worker.close)
        frames = stack.enter_context(
            running(star(job.workers), run.program("loss"), "loss", {"s1": entries_of(ports)}, run.target)
        )
        timeouts = LossyRun(job, workers, frames, run.random).go()
    return f"{job.workers} workers, {job.count} sums each, {LOST:.0%} of packets lost, {timeouts} rounds of timeouts"


class LossyRun:
    """Workers at hosts that lose packets."""

    def __init__(self, job: Job, workers: list[StudentWorker], frames: HostFrames, random: Random) -> None:
        self.job, self.workers, self.frames, self.random = job, workers, frames, random
        self.done = [0] * job.workers

    def go(self) -> int:
        """Run until all have all sums; how often nothing came any more. Raises `WrongError`."""
        for worker in range(self.job.workers):
            self.of(worker, Event("start"))
        timeouts = 0
        while min(self.done) < self.job.count:
            arrived = self.frames.received(TIMEOUT_S, 1)
            if not arrived:
                timeouts += 1
                if timeouts > MOST_TIMEOUTS:
                    raise WrongError(f"after {timeouts} rounds of timeouts some worker still lacks a result")
                self.time_out()
            for host, packet in arrived:
                found = agg_in(packet)
                if found is not None and self.random.random() >= LOST:
                    self.of(int(host[1:]) - 1, Event("receive", found))
        return timeouts

    def time_out(self) -> None:
        """All workers that lack a result time out for each slot."""
        for worker, done in enumerate(self.done):
            if done < self.job.count:
                for slot in range(self.job.pool):
                    self.of(worker, Event("timeout", None, slot))

    def of(self, worker: int, event: Event) -> None:
        """Let an event happen to a worker, and send what it sends, unless that is lost."""
        step: Step = self.workers[worker].run(event)
        for fragment, values in step.results.items():
            if fragment >= self.job.count or values != self.job.sum_of(fragment):
                raise WrongError(f"worker {worker} has a wrong sum of fragment {fragment}")
        self.done[worker] = len(step.results)
        for _, packet in step.sent:
            if self.random.random() >= LOST:
                self.frames.send(f"h{worker + 1}", packet.packed())


def run_tree(run: Emulation) -> str:
    """Lab 5: all jobs of a drawn plan on its fabric, with the student's entries; what was done."""
    plan = drawn_plan(run.random)
    student = StudentEntries(run.submission.text(FILE))
    try:
        entries = {name: student.of(plan, name) for name in plan.switches}
    finally:
        student.close()
    sent: dict[tuple[int, int, int], int] = {}
    rounds = drawn_rounds(plan, run.random, tuple(plan.trees))
    with running(plan.fabric, run.program("tree"), "tree", entries, run.target) as frames:
        for each, gradient in interleaved(rounds, run.random):
            key = (each.job, each.slot, each.number)
            sent[key] = sent.get(key, 0) + 1
            workers, complete = plan.trees[each.job].workers, sent[key] == len(each.gradients)
            host = workers[gradient.worker]
            arrived = frames.exchange(host, gradient.packed(), len(workers) if complete else 0)
            judge_arrived(workers, each, arrived, complete=complete)
    return f"{len(plan.switches)} switches, {len(plan.trees)} jobs, {len(rounds)} sums"
