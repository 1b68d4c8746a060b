"""Lab 4's network: its nodes, states, moves, faults and invariants, and the search for a schedule that breaks them.

The network is a star: workers, one switch, and a channel each way for each worker, first in, first out. Each node is an
automaton: a state, an event, the next state and the packets that are sent. It is either the student's, asked in its
sandbox, or the course's own, a model in a few lines.

Clocks stand still; workers time out when nothing is on its way any more. `inakit.experiments.state_explorer` tries
every order of arrivals, and every place for a number of faults. A long run with drawn faults follows, in which no node
is ever put back into a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np

from inakit.experiments.labs.course.aggregation import job_entries
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.grading.packets import GRADIENT, Agg, Values, agg_in, summed
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, python_paths
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.untrusted import is_whole
from inakit.experiments.state_explorer import BoolArray, Layer, StateExplorer, States, Successors
from inakit.topo.errors import InputError


class WorkerMistakeError(InputError):
    """A mistake of the student's worker: an exception, or a value that is no answer."""

    def __init__(self, message: str) -> None:
        super().__init__(message if message.startswith("worker.py") else f"worker.py: {message}")


class Event(NamedTuple):
    """An event at a node: `start`, `receive` of a packet at a port, or `timeout` of a slot (the number)."""

    name: str
    packet: Agg | None = None
    number: int = 0


class Step(NamedTuple):
    """The outcome of an event: the node's next state, the packets that it sends by each port, and its results."""

    state: Any
    sent: tuple[tuple[int, Agg], ...]
    results: Mapping[int, Values] = {}


class Node(Protocol):
    """A switch or a worker."""

    def first(self) -> Any:
        """The first state."""
        ...

    def step(self, state: Any, event: Event) -> Step:
        """Let an event happen to the node in a state."""
        ...


@dataclass(frozen=True)
class Fragments:
    """A job: for each worker its fragments, which share `pool` slots in turn."""

    pool: int
    values: tuple[tuple[Values, ...], ...]

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.values)

    @property
    def count(self) -> int:
        """How many fragments each has."""
        return len(self.values[0])

    def sum_of(self, fragment: int) -> Values:
        """The sum of a fragment over all workers."""
        return summed([own[fragment] for own in self.values])

    def gradient(self, worker: int, fragment: int) -> Agg:
        """The packet by which a worker sends a fragment."""
        number, slot = divmod(fragment, self.pool)
        return Agg(GRADIENT, worker, slot, number, self.values[worker][fragment])


# -- the course's own


class ModelWorker:
    """A worker as the task describes it. Its state is the results that it has."""

    def __init__(self, job: Fragments, worker: int) -> None:
        self.job, self.worker = job, worker

    def first(self) -> Any:
        return ()

    def step(self, state: Any, event: Event) -> Step:
        """Send the first fragments; take a result that is waited for, and send the slot's next; send again."""
        results = dict(state)
        match event:
            case Event("start"):
                due = list(range(min(self.job.pool, self.job.count)))
            case Event("receive", Agg(kind=2) as packet) if self.current(results, packet.slot) == self.fragment(packet):
                results[self.fragment(packet)] = packet.values
                due = [self.current(results, packet.slot)]
            case Event("timeout", _, slot):
                due = [self.current(results, slot)]
            case _:
                due = []
        sent = tuple((0, self.job.gradient(self.worker, each)) for each in due if each < self.job.count)
        return Step(tuple(sorted(results.items())), sent, results)

    def current(self, results: Mapping[int, Values], slot: int) -> int:
        """The fragment that a slot is at: the first one without a result."""
        return next(each for each in range(slot, self.job.count + self.job.pool, self.job.pool) if each not in results)

    def fragment(self, packet: Agg) -> int:
        """The fragment that a packet belongs to."""
        return packet.round * self.job.pool + packet.slot


class ModelSwitch:
    """A switch as the task describes it. Its state has for each slot and version the round, the senders and the sum."""

    def __init__(self, job: Fragments) -> None:
        self.job = job

    def first(self) -> Any:
        return ((0, frozenset(), (0,) * 8),) * (2 * self.job.pool)

    def step(self, state: Any, event: Event) -> Step:
        """Add new gradients, answer a worker that asks for a complete sum, and drop everything else."""
        packet = event.packet
        if packet is None or packet.kind != GRADIENT or packet.worker != event.number or packet.slot >= self.job.pool:
            return Step(state, ())
        at = 2 * packet.slot + packet.round % 2
        number, seen, total = state[at]
        if packet.round < number:
            return Step(state, ())
        if packet.round > number:
            seen, total = frozenset(), (0,) * 8
        full = self.job.workers
        if packet.worker in seen:
            answer = ((packet.worker, packet.result(total)),) if len(seen) == full else ()
            return Step(state, answer)
        seen, total = seen | {packet.worker}, summed([total, packet.values])
        after = (*state[:at], (packet.round, seen, total), *state[at + 1 :])
        everyone = tuple((port, packet.result(total)) for port in range(full)) if len(seen) == full else ()
        return Step(after, everyone)


# -- the student's


def student_limits() -> Limits:
    """The limits of a worker, and of a function that makes entries."""
    return Limits(cpu_s=8, wall_s=12.0, memory_bytes=256 * MIB, readable=python_paths())


class StudentWorker:
    """The student's worker, in a sandbox of its own: no two workers share anything."""

    def __init__(self, job: Fragments, worker: int, text: str) -> None:
        own = [worker, job.workers, job.pool, [list(values) for values in job.values[worker]]]
        errors = dict.fromkeys(("mistake", "refused"), WorkerMistakeError)
        module = "inakit.experiments.labs.sandbox.student_python"
        load = ("load", text, own)
        self.process = Sandboxed(module, student_limits(), errors, arguments=["worker"], load=load)
        self.start = step_in(self.process.start()).state

    def first(self) -> Any:
        """The state in which the student's class makes it."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """Call the student's method in a state."""
        return step_in(self.process.ask("step", state, as_json(event)))

    def run(self, event: Event) -> Step:
        """Let an event happen to the worker that was made first."""
        return step_in(self.process.ask("run", as_json(event)))

    def close(self) -> None:
        """End the process."""
        self.process.close()


def as_json(event: Event) -> list[Any]:
    """An event for the worker's process."""
    if event.name == "start":
        return ["start"]
    if event.packet is None:
        return ["timeout", event.number]
    each = event.packet
    return ["receive", [each.kind, each.worker, each.slot, each.round, list(each.values)]]


def step_in(answer: Any) -> Step:
    """The step that a worker's process answers; `EndedError` if it is none."""
    match answer:
        case [int() as state, list() as sent, dict() as results]:
            fragments = numbers_in([int(key) if key.isdecimal() and len(key) < 11 else -1 for key in results])
            values = (numbers_in(value, 8) for value in results.values())
            packets = tuple((0, packet_in(each)) for each in sent)
            return Step(state, packets, dict(zip(fragments, values, strict=True)))
    raise EndedError("its answer does not have the form of an answer")


def packet_in(document: Any) -> Agg:
    """A packet of the worker's process."""
    if not isinstance(document, list) or len(document) != 5:
        raise EndedError("its answer is no packet")
    kind, worker, slot, number = numbers_in(document[:4])
    return Agg(kind & 0xFF, worker & 0xFF, slot & 0xFFFF, number, numbers_in(document[4], 8))


def numbers_in(document: Any, count: int | None = None) -> Values:
    """Numbers of 32 bits of the worker's process, so many if `count` says so."""
    if not isinstance(document, list) or (count is not None and len(document) != count):
        raise EndedError("its answer is not a list of the length that it must have")
    if not all(is_whole(each, (1 << 32) - 1) for each in document):
        raise EndedError("its answer has something else than a number of 32 bits")
    return tuple(document)


class StudentSwitch:
    """The student's program. A state of it is a number that its process gives to the content of all registers."""

    def __init__(self, switch: SandboxedSwitch, ports: Sequence[int]) -> None:
        self.switch, self.ports, self.entries = switch, ports, job_entries(ports)
        self.worker_at = {port: worker for worker, port in enumerate(ports)}
        switch.fresh()
        switch.install(self.entries)
        self.start = switch.state()

    def first(self) -> Any:
        """Registers as the program starts."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """Send a packet to the program in a state. Only packets of aggregations count, at workers' ports."""
        assert event.packet is not None
        after, sent = self.switch.step(state, self.ports[event.number], event.packet.packed())
        found = ((self.worker_at[port], agg_in(packet)) for port, packet in sent if port in self.worker_at)
        return Step(after, tuple((worker, packet) for worker, packet in found if packet is not None))


MOST_STATES = 12_000
"""The most states that an exploration visits: a step of a student's node takes long."""
MOST_WAITING = 16
MOST_ROUNDS = 3
"""After so many rounds of timeouts without a new result, none will come."""


class BrokenError(WrongError):
    """Something that must not happen in a network; `got` is the wrong sum of a fragment, if it is one."""

    def __init__(self, cause: str, fragment: int | None = None, got: Values | None = None) -> None:
        super().__init__(cause)
        self.fragment, self.got = fragment, got


def judge_results(job: Fragments, worker: int, step: Step) -> None:
    """Raise `BrokenError` for a result that is not the sum."""
    for fragment, values in step.results.items():
        if fragment >= job.count:
            raise BrokenError(f"worker {worker} has a result of fragment {fragment}, which there is not")
        if values != job.sum_of(fragment):
            raise BrokenError(f"worker {worker} has a wrong sum of fragment {fragment}", fragment, values)


@dataclass
class Schedule:
    """The events that break something, in words, and the packets that came to the switch on the way."""

    broken: BrokenError
    story: list[str]
    arrivals: list[tuple[int, Agg]]


class Fault(StrEnum):
    """The faults of a schedule, in which packets otherwise arrive in turn."""

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
"""The move that each fault makes with the packet at the head of a channel, and whether that leads to the switch."""
LOSING = {Fault.LOST_GRADIENT, Fault.LOST_RESULT, Fault.LATE_GRADIENT, Fault.LATE_RESULT}
"""The faults after which workers may have to time out."""
WORDS = {
    "arrive": (1, "arrives"),
    "lose": (0, "is LOST"),
    "twice": (2, "arrives TWICE"),
    "copy": (1, "arrives, and a COPY of it is on its way"),
    "hold": (0, "is DELAYED"),
    "late": (1, "arrives LATE"),
}
"""How often a packet arrives by a move, and the move in words."""
TIMEOUTS = "nothing is on its way: workers that lack a result time out"

Channels = tuple[tuple[Agg, ...], ...]


class State(NamedTuple):
    """A state of the network. `held` are packets that arrive at any later time; `rounds` counts timeouts in vain."""

    switch: Any
    workers: tuple[Any, ...]
    up: Channels
    down: Channels
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


class Network:
    """A job on nodes, and the faults that a schedule may have: how many, and of which kinds.

    `only_behind`: of the workers that lack a result, only those with the fewest results time out. This is a `Space` of
    the explorer, whose states have one word, the number of a `State`. Every step of a node is taken once.
    """

    def __init__(
        self,
        job: Fragments,
        switch: Node,
        workers: Sequence[Node],
        kinds: frozenset[Fault] = frozenset(),
        faults: int = 0,
        *,
        only_behind: bool = False,
    ) -> None:
        self.job, self.switch, self.workers = job, switch, workers
        self.kinds, self.faults, self.only_behind = kinds, faults, only_behind
        self.step_switch = cache(switch.step)
        self.step_worker = [cache(worker.step) for worker in workers]
        self.states: list[State] = []
        self.numbers: dict[State, int] = {}
        self.events: list[Move] = []
        self.event_numbers: dict[Move, int] = {}
        self.broken: BrokenError | None = None

    # -- steps

    def started(self) -> State:
        """The state in which all workers have started."""
        nothing: Channels = ((),) * self.job.workers
        first = tuple(worker.first() for worker in self.workers)
        state = State(self.switch.first(), first, nothing, nothing, done=(0,) * self.job.workers)
        for worker in range(self.job.workers):
            state = self.of_worker(state, worker, Event("start"))
        return state

    def of_worker(self, state: State, worker: int, event: Event) -> State:
        """Let an event happen to a worker. Raises `BrokenError` if that breaks an invariant."""
        try:
            step = self.step_worker[worker](state.workers[worker], event)
        except WorkerMistakeError as mistake:
            raise BrokenError(f"worker {worker}: {mistake}") from None
        judge_results(self.job, worker, step)
        for _, packet in step.sent:
            before = packet.round * self.job.pool + packet.slot - self.job.pool
            if before >= 0 and before not in step.results:
                what = f"round {packet.round} of slot {packet.slot}"
                raise BrokenError(f"worker {worker} sends {what} without a result of the round before")
        done = len(step.results)
        return state._replace(
            workers=put(state.workers, worker, step.state),
            up=put(state.up, worker, (*state.up[worker], *(packet for _, packet in step.sent))),
            done=put(state.done, worker, done),
            rounds=0 if done > state.done[worker] else state.rounds,
        )

    def of_switch(self, state: State, worker: int, packet: Agg) -> State:
        """Let a packet come to the switch."""
        step = self.step_switch(state.switch, Event("receive", packet, worker))
        down = list(state.down)
        for port, sent in step.sent:
            down[port] = (*down[port], sent)
        if max(map(len, down)) > MOST_WAITING:
            raise BrokenError("the switch sends more and more packets")
        return state._replace(switch=step.state, down=tuple(down))

    # -- moves

    def moves(self, state: State) -> Iterator[Move]:
        """The moves in a state. A worker gets its results at once, unless a fault may happen to them."""
        for number, (to_switch, worker, packet) in enumerate(state.held):
            fragment = packet.round * self.job.pool + packet.slot
            if Fault.OLD_GRADIENT not in self.kinds or min(state.done) > fragment:
                yield Move("late", worker, to_switch, number)
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
        if state.faults < self.faults:
            for fault, (what, leads_to_switch) in AT_CHANNELS.items():
                if fault in self.kinds and leads_to_switch == to_switch:
                    yield Move(what, worker, to_switch, fault=fault)

    def after(self, state: State, move: Move) -> State:
        """The state that a move leads to; raises `BrokenError`."""
        if move.fault is not None:
            state = state._replace(faults=state.faults + 1)
        if move.what == "timeout":
            return self.timeout(state)
        if move.what == "impatient":
            return self.of_worker(state, move.worker, Event("timeout", None, move.number))
        packet = packet_of(state, move)
        if move.what == "late":
            state = state._replace(held=state.held[: move.number] + state.held[move.number + 1 :])
        elif move.to_switch:
            state = state._replace(up=put(state.up, move.worker, state.up[move.worker][1:]))
        else:
            state = state._replace(down=put(state.down, move.worker, state.down[move.worker][1:]))
        if move.what in ("hold", "copy"):
            state = state._replace(held=(*state.held, (move.to_switch, move.worker, packet)))
        for _ in range(WORDS[move.what][0]):
            if move.to_switch:
                state = self.of_switch(state, move.worker, packet)
            else:
                state = self.of_worker(state, move.worker, Event("receive", packet))
        return state

    def timeout(self, state: State) -> State:
        """Let all workers that lack a result time out for each slot."""
        last = state.done.index(min(state.done))
        if not self.kinds & LOSING:
            raise BrokenError(f"worker {last} lacks a result, though nothing was lost")
        if state.rounds >= MOST_ROUNDS:
            some = f"{self.job.count - state.done[last]} of {self.job.count} results"
            raise BrokenError(f"worker {last} never gets {some}, however long it waits")
        state = state._replace(rounds=state.rounds + 1)
        most = min(state.done) if self.only_behind else self.job.count - 1
        for worker in range(self.job.workers):
            if state.done[worker] <= most:
                for slot in range(self.job.pool):
                    state = self.of_worker(state, worker, Event("timeout", None, slot))
        return state

    # -- the space of states

    def number(self, state: State) -> int:
        """The number of a state; a new one gets the next."""
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]

    def first(self) -> States:
        """The first state."""
        return np.array([[self.number(self.started())]], np.uint64)

    def successors(self, states: States, *, faults: bool) -> Iterator[Successors]:
        """The states that moves lead to, up to the first move that breaks something."""
        del faults  # a state knows how many it has had
        found: list[tuple[int, int, int, bool]] = []
        for column, state in enumerate(self.states[number] for number in states[0].tolist()):
            if self.broken is None and len(self.states) < MOST_STATES:
                found += self.moved(column, state)
        if found:
            events, after, parents, faulty = (np.array(each) for each in zip(*found, strict=True))
            wrong = np.zeros(len(events), np.bool_)
            wrong[-1] = self.broken is not None
            yield Successors(events.astype(np.int16), after.astype(np.uint64)[np.newaxis], parents, faulty, wrong)

    def moved(self, column: int, state: State) -> Iterator[tuple[int, int, int, bool]]:
        """For each move its number, that of the state that it leads to, the column, and whether it is a fault."""
        for move in self.moves(state):
            number = self.event_numbers.setdefault(move, len(self.events))
            if number == len(self.events):
                self.events.append(move)
            try:
                yield number, self.number(self.after(state, move)), column, move.fault is not None
            except BrokenError as broken:
                self.broken = broken
                yield number, 0, column, move.fault is not None
                return

    def over(self, states: States) -> BoolArray:
        """All states: a worker that lacks something times out, and a timeout in vain breaks something."""
        return np.ones(states.shape[1], np.bool_)

    def without_progress(self, states: States, layer: Layer) -> BoolArray:
        """None: see `over`."""
        del layer
        return np.zeros(states.shape[1], np.bool_)

    def check(self) -> None:
        """Nothing: a channel is first in, first out, and all other orders are tried."""

    def explore(self) -> Schedule | None:
        """The first schedule that breaks something; None if none does among the states that are visited."""
        try:
            state = self.started()
        except BrokenError as broken:
            return Schedule(broken, ["all workers start"], [])
        found = StateExplorer(self).run(self.faults)
        if found is None:
            return None
        assert self.broken is not None
        schedule = Schedule(self.broken, [], [])
        for number, move in enumerate(found.events, 1):
            schedule.story.append(in_words(state, move))
            if move.to_switch:
                schedule.arrivals += WORDS[move.what][0] * [(move.worker, packet_of(state, move))]
            if number < len(found.events):
                state = self.after(state, move)
        return schedule


def put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    """Items with another one at a place."""
    return (*items[:at], item, *items[at + 1 :])


def packet_of(state: State, move: Move) -> Agg:
    """The packet to which a move happens."""
    if move.what == "late":
        return state.held[move.number][2]
    return (state.up if move.to_switch else state.down)[move.worker][0]


def in_words(state: State, move: Move) -> str:
    """A move in words."""
    if move.what == "timeout":
        return TIMEOUTS
    if move.what == "impatient":
        return f"worker {move.worker} times out EARLY for slot {move.number}"
    packet = packet_of(state, move)
    what = "gradient" if packet.kind == 1 else "result"
    of = f"worker {move.worker}'s {what}" if move.to_switch else f"the {what} for worker {move.worker}"
    return f"{of} (slot {packet.slot} round {packet.round}) {WORDS[move.what][1]}"


# -- a long run

MOST_EVENTS = 4000
MOST_ROUNDS_OF_A_RUN = 40


@dataclass
class LongRun:
    """A run of a job to its end. Of the packets on their way a drawn `share` meets with a fault.

    `packets` has how many packets each worker has sent, `first` how many of them at the start, `arrivals` those that
    came to the switch, and `found` what went wrong.
    """

    job: Fragments
    switch: Node
    workers: Sequence[Node]
    random: Random
    share: float
    story: list[str] = field(default_factory=list)
    arrivals: list[tuple[int, Agg]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    found: Schedule | None = None

    def __post_init__(self) -> None:
        self.switch_state = self.switch.first()
        self.states = [worker.first() for worker in self.workers]
        self.results = [0] * len(self.workers)
        self.packets = [0] * len(self.workers)
        self.waiting: deque[tuple[bool, int, Agg]] = deque()

    def go(self) -> LongRun:
        """Run until all have all results, or something is wrong."""
        try:
            for worker in range(self.job.workers):
                self.of_worker(worker, Event("start"))
            self.first = list(self.packets)
            self.go_on()
        except BrokenError as broken:
            told = BrokenError(f"in a long run: {broken}", broken.fragment, broken.got)
            self.found = Schedule(told, self.story, self.arrivals)
        return self

    def go_on(self) -> None:
        """Let packets arrive, and workers time out when nothing is on its way."""
        rounds = 0
        for _ in range(MOST_EVENTS):
            if self.waiting:
                self.arrive()
            elif min(self.results) == self.job.count:
                return
            else:
                rounds += 1
                if rounds > MOST_ROUNDS_OF_A_RUN:
                    raise BrokenError("some worker never gets all results, however long it waits")
                self.story.append(TIMEOUTS)
                for worker in [n for n, results in enumerate(self.results) if results < self.job.count]:
                    for slot in range(self.job.pool):
                        self.of_worker(worker, Event("timeout", None, slot))
        raise BrokenError(f"after {MOST_EVENTS} packets some worker still lacks a result")

    def of_worker(self, worker: int, event: Event) -> None:
        """Let an event happen to a worker."""
        node = self.workers[worker]
        try:
            step = node.run(event) if isinstance(node, StudentWorker) else node.step(self.states[worker], event)
        except WorkerMistakeError as mistake:
            raise BrokenError(f"worker {worker}: {mistake}") from None
        judge_results(self.job, worker, step)
        self.states[worker], self.results[worker] = step.state, len(step.results)
        self.packets[worker] += len(step.sent)
        self.waiting.extend((True, worker, packet) for _, packet in step.sent)

    def arrive(self) -> None:
        """Let the next packet arrive, unless it meets with a fault: lost, doubled, or put back behind the others."""
        to_switch, worker, packet = self.waiting.popleft()
        what = "gradient of" if to_switch else "result for"
        named = f"{what} worker {worker} (slot {packet.slot} round {packet.round})"
        drawn = self.random.random() if self.share else 1.0
        if drawn < self.share / 3:
            self.story.append(f"{named} is LOST")
            return
        if drawn < self.share and len(self.waiting) < MOST_WAITING * self.job.workers:
            late = drawn < 2 * self.share / 3
            self.story.append(f"{named} is {'DELAYED' if late else 'DOUBLED, a copy is late'}")
            self.waiting.append((to_switch, worker, packet))
            if late:
                return
        self.story.append(f"{named} arrives")
        if not to_switch:
            self.of_worker(worker, Event("receive", packet))
            return
        self.arrivals.append((worker, packet))
        step = self.switch.step(self.switch_state, Event("receive", packet, worker))
        self.switch_state = step.state
        self.waiting.extend((False, port, sent) for port, sent in step.sent)
