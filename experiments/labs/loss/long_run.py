"""A long run with drawn faults, in which no node is ever put back into a state: what a network does by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from inakit.experiments.labs.course.packets import Agg
from inakit.experiments.labs.loss.exploration import MOST_WAITING, Found
from inakit.experiments.labs.loss.nodes import Event, Job, Node, Step, StudentWorker, WorkerMistakeError

MOST_EVENTS = 4000
MOST_ROUNDS_OF_A_RUN = 40


@dataclass
class LongRun:
    """What happened: packets that each worker sent, and at the start, and what went wrong."""

    packets: list[int]
    first: list[int]
    found: Found | None = None
    story: list[str] = field(default_factory=list)
    arrivals: list[tuple[int, Agg]] = field(default_factory=list)


class Runner:
    """Carries a run out. Of the packets on their way the next one is drawn; a `share` of them meets with a fault."""

    def __init__(self, job: Job, switch: Node, workers: Sequence[Node], random: Random, share: float) -> None:
        self.job, self.switch, self.workers, self.random, self.share = job, switch, workers, random, share
        self.switch_state = switch.first()
        self.states: list[Any] = [worker.first() for worker in workers]
        self.results: list[dict[int, Any]] = [{} for _ in workers]
        self.waiting: deque[tuple[bool, int, Agg]] = deque()
        self.run = LongRun([0] * len(workers), [0] * len(workers))

    def of_worker(self, worker: int, event: Event) -> None:
        """Let an event happen to a worker."""
        node = self.workers[worker]
        try:
            step: Step = node.run(event) if isinstance(node, StudentWorker) else node.step(self.states[worker], event)
        except WorkerMistakeError as mistake:
            self.fail(f"worker {worker}: {mistake}")
            return
        self.states[worker], self.results[worker] = step.state, dict(step.results)
        for fragment, values in step.results.items():
            if fragment >= self.job.count or values != self.job.sum_of(fragment):
                self.fail(f"worker {worker} has a wrong sum of fragment {fragment}", fragment, values)
                return
        self.run.packets[worker] += len(step.sent)
        self.waiting.extend((True, worker, packet) for _, packet in step.sent)

    def of_switch(self, worker: int, packet: Agg) -> None:
        """Let a packet come to the switch."""
        self.run.arrivals.append((worker, packet))
        step = self.switch.step(self.switch_state, Event("receive", packet, worker))
        self.switch_state = step.state
        self.waiting.extend((False, port, sent) for port, sent in step.sent)

    def fail(self, cause: str, fragment: int | None = None, values: Any = None) -> None:
        """Note what went wrong; the run ends."""
        self.run.found = Found(f"in a long run: {cause}", self.run.story, self.run.arrivals, fragment, values)

    def go(self) -> LongRun:
        """Run until all have all results, or something is wrong."""
        for worker in range(self.job.workers):
            self.of_worker(worker, Event("start"))
        self.run.first = list(self.run.packets)
        rounds = 0
        for _ in range(MOST_EVENTS):
            if self.run.found is not None or self.finished:
                break
            if self.waiting:
                self.arrive()
                continue
            rounds += 1
            if rounds > MOST_ROUNDS_OF_A_RUN:
                self.fail("some worker never gets all results, however long it waits")
                break
            self.time_out()
        else:
            self.fail(f"after {MOST_EVENTS} packets some worker still lacks a result")
        return self.run

    @property
    def finished(self) -> bool:
        """Whether all workers have all results and nothing is on its way."""
        return not self.waiting and min(map(len, self.results)) == self.job.count

    def time_out(self) -> None:
        """All workers that lack a result time out for each slot."""
        self.run.story.append("nothing is on its way: workers that lack a result time out")
        for worker, results in enumerate(self.results):
            if len(results) < self.job.count:
                for slot in range(self.job.pool):
                    self.of_worker(worker, Event("timeout", None, slot))

    def arrive(self) -> None:
        """Let the next packet arrive, unless it meets with a fault: lost, doubled, or put back behind the others."""
        to_switch, worker, packet = self.waiting.popleft()
        what = "gradient" if to_switch else "result"
        named = f"{what} {'of' if to_switch else 'for'} worker {worker} (slot {packet.slot} round {packet.round})"
        drawn = self.random.random() if self.share else 1.0
        if drawn < self.share / 3:
            self.run.story.append(f"{named} is LOST")
            return
        if drawn < self.share and len(self.waiting) < MOST_WAITING * self.job.workers:
            self.run.story.append(
                f"{named} is {'DELAYED' if drawn < 2 * self.share / 3 else 'DOUBLED, a copy is late'}"
            )
            self.waiting.append((to_switch, worker, packet))
            if drawn < 2 * self.share / 3:
                return
        self.run.story.append(f"{named} arrives")
        if to_switch:
            self.of_switch(worker, packet)
        else:
            self.of_worker(worker, Event("receive", packet))


def long_run(job: Job, switch: Node, workers: Sequence[Node], random: Random, share: float) -> LongRun:
    """Run a job to its end with faults for a share of packets."""
    return Runner(job, switch, workers, random, share).go()
