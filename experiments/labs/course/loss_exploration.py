"""Looks for a schedule that breaks lab 4's network: every order of arrivals, and every place for a number of faults.

The network is a star: workers, one switch, and a channel each way for each worker, first in, first out. Clocks stand
still; workers time out when nothing is on its way any more. States are visited in the order of their events, those
without faults first, so that the first schedule that breaks something is a shortest one with the fewest faults. A long
run with drawn faults follows, in which no node is ever put back into a state.

`tests/exactly_once` does the same for the kit's own program and endpoints, with arrays of states, and reaches further.
Here nodes are strangers, and a step of them costs more than looking at a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

from inakit.experiments.labs.course.packets import Agg, Values
from inakit.experiments.labs.course.student_worker import (
    Event,
    Job,
    Node,
    Remembered,
    Step,
    StudentWorker,
    WorkerMistakeError,
)

MOST_STATES = 12_000
MOST_WAITING = 16
MOST_ROUNDS = 3
"""After so many rounds of timeouts without a new result, none will come."""


class Fault(StrEnum):
    """What a schedule may do beside letting packets arrive in turn."""

    LOST_GRADIENT = "lost gradient"
    LOST_RESULT = "lost result"
    GRADIENT_TWICE = "gradient twice"
    RESULT_TWICE = "result twice"
    COPY_OF_GRADIENT = "copy of a gradient, at any time"
    COPY_OF_RESULT = "copy of a result, at any time"
    OLD_GRADIENT = "copy of a gradient, when all have its result"
    LATE_GRADIENT = "late gradient"
    LATE_RESULT = "late result"
    IMPATIENT = "impatient worker"


AT_CHANNELS = {
    Fault.LOST_GRADIENT: ("lose", True),
    Fault.LOST_RESULT: ("lose", False),
    Fault.GRADIENT_TWICE: ("twice", True),
    Fault.RESULT_TWICE: ("twice", False),
    Fault.COPY_OF_GRADIENT: ("copy", True),
    Fault.COPY_OF_RESULT: ("copy", False),
    Fault.OLD_GRADIENT: ("copy", True),
    Fault.LATE_GRADIENT: ("hold", True),
    Fault.LATE_RESULT: ("hold", False),
}
"""What each fault does to the packet at the head of a channel, and whether that leads to the switch."""


LOSING = {Fault.LOST_GRADIENT, Fault.LOST_RESULT, Fault.LATE_GRADIENT, Fault.LATE_RESULT}
"""The faults after which workers may have to time out."""


class State(NamedTuple):
    """A state of the network. `held` are packets that arrive at any later time; `rounds` counts timeouts in vain."""

    switch: Any
    workers: tuple[Any, ...]
    up: tuple[tuple[Agg, ...], ...]
    down: tuple[tuple[Agg, ...], ...]
    held: tuple[tuple[bool, int, Agg], ...] = ()
    done: tuple[int, ...] = ()
    faults: int = 0
    rounds: int = 0


class Move(NamedTuple):
    """Something that may happen: to the packet at the head of a channel, to one that is held, or to a worker.

    `to_switch` and `worker` name the channel; `fault` is None for what happens without any.
    """

    what: str
    worker: int
    to_switch: bool = False
    number: int = 0
    fault: Fault | None = None


@dataclass
class Found:
    """What a schedule has broken, the moves that lead there, and the packets that came to the switch on the way."""

    cause: str
    story: list[str]
    arrivals: list[tuple[int, Agg]]
    fragment: int | None = None
    got: Values | None = None


@dataclass
class Network:
    """A job on nodes, and the faults that a schedule may have: how many, and of which kinds.

    `only_behind`: of the workers that lack a result, only those with the fewest results time out.
    """

    job: Job
    switch: Node
    workers: list[Node]
    kinds: frozenset[Fault] = frozenset()
    faults: int = 0
    only_behind: bool = False
    states: int = field(default=0)

    def __post_init__(self) -> None:
        self.switch = Remembered(self.switch)
        self.workers = [Remembered(worker) for worker in self.workers]

    # -- steps

    def first(self) -> State:
        """All workers have started."""
        nothing: tuple[tuple[Agg, ...], ...] = ((),) * self.job.workers
        state = State(
            self.switch.first(), tuple(worker.first() for worker in self.workers), nothing, nothing,
            done=(0,) * self.job.workers,
        )  # fmt: skip
        for worker in range(self.job.workers):
            state = self.of_worker(state, worker, Event("start"))
        return state

    def of_worker(self, state: State, worker: int, event: Event) -> State:
        """What an event makes of the network when it happens to a worker.

        Raises `BrokenError` for a wrong result, and for a worker that cannot take the step.
        """
        try:
            step = self.workers[worker].step(state.workers[worker], event)
        except WorkerMistakeError as mistake:
            raise BrokenError(f"worker {worker}: {mistake}", None, None) from None
        self.judge(worker, step)
        self.judge_sent(worker, step)
        sent = tuple(packet for _, packet in step.sent)
        done = len(step.results)
        return state._replace(
            workers=put(state.workers, worker, step.state),
            up=put(state.up, worker, (*state.up[worker], *sent)),
            done=put(state.done, worker, done),
            rounds=0 if done > state.done[worker] else state.rounds,
        )

    def judge(self, worker: int, step: Step) -> None:
        """Raise `BrokenError` for a result that is not the sum."""
        for fragment, values in step.results.items():
            if fragment >= self.job.count:
                raise BrokenError(
                    f"worker {worker} has a result of fragment {fragment}, which there is not", None, None
                )
            if values != self.job.sum_of(fragment):
                raise BrokenError(f"worker {worker} has a wrong sum of fragment {fragment}", fragment, values)

    def judge_sent(self, worker: int, step: Step) -> None:
        """Raise `BrokenError` for a fragment that is sent before its slot is free."""
        for _, packet in step.sent:
            before = packet.round * self.job.pool + packet.slot - self.job.pool
            if before >= 0 and before not in step.results:
                what = f"round {packet.round} of slot {packet.slot}"
                cause = f"worker {worker} sends {what} without a result of the round before"
                raise BrokenError(cause, None, None)

    def of_switch(self, state: State, worker: int, packet: Agg) -> State:
        step = self.switch.step(state.switch, Event("receive", packet, worker))
        down = list(state.down)
        for port, sent in step.sent:
            down[port] = (*down[port], sent)
        if max(map(len, down)) > MOST_WAITING:
            raise BrokenError("the switch sends more and more packets", None, None)
        return state._replace(switch=step.state, down=tuple(down))

    def arrive(self, state: State, worker: int, packet: Agg, *, to_switch: bool) -> State:
        """Let a packet arrive."""
        if to_switch:
            return self.of_switch(state, worker, packet)
        return self.of_worker(state, worker, Event("receive", packet))

    # -- moves

    def moves(self, state: State) -> Iterator[Move]:
        """What may happen. A worker hears of its results at once, unless something may happen to them."""
        yield from (
            Move("late", held[1], held[0], n) for n, held in enumerate(state.held) if self.may_arrive(state, held[2])
        )
        down = next((worker for worker, waiting in enumerate(state.down) if waiting), None)
        if down is not None:
            yield Move("arrive", down)
            yield from self.faults_at(state, down, to_switch=False)
        else:
            for worker, waiting in enumerate(state.up):
                if waiting:
                    yield Move("arrive", worker, to_switch=True)
                    yield from self.faults_at(state, worker, to_switch=True)
        if not any(state.up) and not any(state.down):
            if min(state.done) < self.job.count:
                yield Move("timeout", -1)
        elif state.faults < self.faults and Fault.IMPATIENT in self.kinds:
            for worker in range(self.job.workers):
                for slot in range(self.job.pool):
                    yield Move("impatient", worker, number=slot, fault=Fault.IMPATIENT)

    def faults_at(self, state: State, worker: int, *, to_switch: bool) -> Iterator[Move]:
        """The faults that may happen to the packet at the head of a channel."""
        if state.faults >= self.faults:
            return
        for fault, (what, leads_to_switch) in AT_CHANNELS.items():
            if fault in self.kinds and leads_to_switch == to_switch:
                yield Move(what, worker, to_switch, fault=fault)

    def may_arrive(self, state: State, packet: Agg) -> bool:
        """Whether a held packet may arrive now."""
        return Fault.OLD_GRADIENT not in self.kinds or min(state.done) > packet.round * self.job.pool + packet.slot

    def after(self, state: State, move: Move) -> State:
        """The state that a move leads to; raises `BrokenError`."""
        if move.fault is not None:
            state = state._replace(faults=state.faults + 1)
        if move.what == "timeout":
            return self.timeout(state)
        if move.what == "impatient":
            return self.of_worker(state, move.worker, Event("timeout", None, move.number))
        state, packet = release(state, move) if move.what == "late" else take(state, move)
        if move.what in ("hold", "copy"):
            state = state._replace(held=(*state.held, (move.to_switch, move.worker, packet)))
        for _ in range(ARRIVALS[move.what]):
            state = self.arrive(state, move.worker, packet, to_switch=move.to_switch)
        return state

    def timeout(self, state: State) -> State:
        """All workers that lack a result time out for each slot."""
        if not self.kinds & LOSING:
            raise BrokenError(f"worker {self.last(state)} lacks a result, though nothing was lost", None, None)
        if state.rounds >= MOST_ROUNDS:
            worker = self.last(state)
            some = f"{self.job.count - state.done[worker]} of {self.job.count} results"
            raise BrokenError(f"worker {worker} never gets {some}, however long it waits", None, None)
        state = state._replace(rounds=state.rounds + 1)
        most = min(state.done) if self.only_behind else self.job.count - 1
        for worker in range(self.job.workers):
            if state.done[worker] <= most:
                for slot in range(self.job.pool):
                    state = self.of_worker(state, worker, Event("timeout", None, slot))
        return state

    def last(self, state: State) -> int:
        """The worker with the fewest results."""
        return min(range(self.job.workers), key=lambda each: state.done[each])

    # -- the search

    def explore(self) -> Found | None:
        """The first schedule that breaks something; None if none does among the states that are visited."""
        try:
            first = self.first()
        except BrokenError as broken:
            return Found(broken.cause, ["all workers start"], [], broken.fragment, broken.values)
        came: dict[State, tuple[State, Move] | None] = {first: None}
        layers: list[deque[State]] = [deque([first])] + [deque() for _ in range(self.faults)]
        for layer in layers:
            while layer and len(came) < MOST_STATES:
                state = layer.popleft()
                for move in self.moves(state):
                    try:
                        after = self.after(state, move)
                    except BrokenError as broken:
                        return self.told(came, state, move, broken)
                    if after not in came:
                        came[after] = state, move
                        layers[after.faults].append(after)
        self.states = len(came)
        return None

    def told(
        self, came: Mapping[State, tuple[State, Move] | None], state: State, move: Move, broken: BrokenError
    ) -> Found:
        """What was found, and its schedule in words."""
        path, at = [(state, move)], state
        while (before := came[at]) is not None:
            path.append(before)
            at = before[0]
        path.reverse()
        story = [said(state, move) for state, move in path]
        arrivals = [each for state, move in path for each in arrived(state, move)]
        return Found(broken.cause, story, arrivals, broken.fragment, broken.values)


class BrokenError(Exception):
    """A network has done something wrong."""

    def __init__(self, cause: str, fragment: int | None, values: Values | None) -> None:
        super().__init__(cause)
        self.cause, self.fragment, self.values = cause, fragment, values


def put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    """Items with another one at a place."""
    return (*items[:at], item, *items[at + 1 :])


def take(state: State, move: Move) -> tuple[State, Agg]:
    channels = state.up if move.to_switch else state.down
    packet, *rest = channels[move.worker]
    left = put(channels, move.worker, tuple(rest))
    return (state._replace(up=left) if move.to_switch else state._replace(down=left)), packet


def release(state: State, move: Move) -> tuple[State, Agg]:
    """Take a packet that is held."""
    packet = state.held[move.number][2]
    return state._replace(held=state.held[: move.number] + state.held[move.number + 1 :]), packet


def arrived(state: State, move: Move) -> list[tuple[int, Agg]]:
    if not move.to_switch:
        return []
    packet = state.held[move.number][2] if move.what == "late" else state.up[move.worker][0]
    return ARRIVALS.get(move.what, 0) * [(move.worker, packet)]


ARRIVALS = {"arrive": 1, "late": 1, "copy": 1, "twice": 2, "lose": 0, "hold": 0}
"""How often a packet arrives by a move."""

SAID = {
    "arrive": "arrives",
    "lose": "is LOST",
    "twice": "arrives TWICE",
    "copy": "arrives, and a COPY of it is on its way",
    "hold": "is DELAYED",
    "late": "arrives LATE",
}


def said(state: State, move: Move) -> str:
    """A move in words."""
    if move.what == "timeout":
        return "nothing is on its way: workers that lack a result time out"
    if move.what == "impatient":
        return f"worker {move.worker} times out EARLY for slot {move.number}"
    channels = state.up if move.to_switch else state.down
    packet = state.held[move.number][2] if move.what == "late" else channels[move.worker][0]
    what = "gradient" if packet.kind == 1 else "result"
    of = f"worker {move.worker}'s {what}" if move.to_switch else f"the {what} for worker {move.worker}"
    return f"{of} (slot {packet.slot} round {packet.round}) {SAID[move.what]}"


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
