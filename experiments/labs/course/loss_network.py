"""Lab 4's network: its nodes, states, moves, faults and invariants, and the search for a schedule that breaks them.

The network is a star: workers, one switch, and for each worker a FIFO channel in each direction. Each node is an
automaton: a state and an event determine the next state and the packets sent. A node is either the student's, in its
sandbox, or the course's, a short model.

Clocks stand still; workers time out when no packet is in flight. `inakit.experiments.state_explorer` tries every order
of arrivals, and every position of a limited number of faults. A long run with random faults follows, in which no node
is reset to an earlier state.
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
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, Agg, Values, agg_in, summed
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import Sandboxed
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.untrusted import Reader, plain
from inakit.experiments.state_explorer import BoolArray, Layer, StateExplorer, States, Successors
from inakit.topo.errors import InputError


class WorkerMistakeError(InputError):
    """A mistake of the student's worker: an exception or an invalid value."""

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
        """Apply an event to the node in a state."""
        ...


@dataclass(frozen=True)
class Fragments:
    """A job: by worker, its fragments, which use `pool` slots in turn."""

    pool: int
    values: tuple[tuple[Values, ...], ...]

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self.values)

    @property
    def count(self) -> int:
        """The number of fragments of each worker."""
        return len(self.values[0])

    def sum_of(self, fragment: int) -> Values:
        """The sum of a fragment over all workers."""
        return summed([own[fragment] for own in self.values])

    def gradient(self, worker: int, fragment: int) -> Agg:
        """A worker's packet for a fragment."""
        number, slot = divmod(fragment, self.pool)
        return Agg(GRADIENT, worker, slot, number, self.values[worker][fragment])


# -- the course's nodes


class ModelWorker:
    """A worker that follows the task. Its state is its results."""

    def __init__(self, job: Fragments, worker: int) -> None:
        self.job, self.worker = job, worker

    def first(self) -> Any:
        return ()

    def step(self, state: Any, event: Event) -> Step:
        """Send the first fragments; take an expected result and send the slot's next fragment; retransmit."""
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
        """The current fragment of a slot: the first one without a result."""
        return next(each for each in range(slot, self.job.count + self.job.pool, self.job.pool) if each not in results)

    def fragment(self, packet: Agg) -> int:
        """The fragment that a packet belongs to."""
        return packet.round * self.job.pool + packet.slot


class ModelSwitch:
    """A switch that follows the task. Its state has the round, senders and sum of each slot and version."""

    def __init__(self, job: Fragments) -> None:
        self.job = job

    def first(self) -> Any:
        return ((0, frozenset(), (0,) * 8),) * (2 * self.job.pool)

    def step(self, state: Any, event: Event) -> Step:
        """Add new gradients, answer a worker that asks for a complete sum, and drop all other packets."""
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


# -- the student's nodes


def student_limits() -> Limits:
    """The limits of a worker, and of a function that returns entries."""
    return Limits(cpu_s=8, wall_s=12.0, memory_bytes=256 * MIB)


class StudentWorker:
    """The student's worker, in a separate sandbox: workers share no data."""

    def __init__(self, job: Fragments, worker: int, text: str) -> None:
        own = [worker, job.workers, job.pool, [list(values) for values in job.values[worker]]]
        errors = dict.fromkeys(("mistake", "refused"), WorkerMistakeError)
        module = "inakit.experiments.labs.sandbox.student_python"
        load = ("load", text, own)
        self.process = Sandboxed(module, student_limits(), errors, arguments=["worker"], load=load)
        self.start = step_in(self.process.start()).state

    def first(self) -> Any:
        """The initial state of an object of the student's class."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """Call the student's method in a state."""
        return step_in(self.process.ask("step", state, as_json(event)))

    def run(self, event: Event) -> Step:
        """Apply an event to the worker that was made first."""
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


READER = Reader(WorkerMistakeError)
MOST_PACKETS = 64


def step_in(answer: Any) -> Step:
    """The step in the answer of a worker's process. Raises `WorkerMistakeError`."""
    state, sent, results = READER.items("the answer", answer, "parts", 3, 3)
    packets = READER.items("what a method returns", sent, "packets", MOST_PACKETS)
    sums = READER.mapping("worker.results", results, "sums, by fragment,").items()
    return Step(
        READER.whole("the state", state),
        tuple((0, packet_in(each)) for each in packets),
        {READER.whole("a fragment", plain(key)): eight("a result", each) for key, each in sums},
    )


def packet_in(document: Any) -> Agg:
    """A packet in the answer of the worker's process."""
    *numbers, values = READER.items("a packet", document, "parts: kind, worker, slot, round, values", 5, 5)
    kind, worker, slot, number = READER.wholes("the head of a packet", numbers)
    return Agg(kind & 0xFF, worker & 0xFF, slot & 0xFFFF, number, eight("the values of a packet", values))


def eight(where: str, values: Any) -> Values:
    """The eight numbers of a packet or of a result."""
    return READER.wholes(where, values, length=8, least=8)


class StudentSwitch:
    """The student's program. Its state is a number that identifies the contents of all registers."""

    def __init__(self, switch: SandboxedSwitch, ports: Sequence[int]) -> None:
        self.switch, self.ports, self.entries = switch, ports, job_entries(ports)
        self.worker_at = {port: worker for worker, port in enumerate(ports)}
        switch.fresh()
        switch.install(self.entries)
        self.start = switch.state()

    def first(self) -> Any:
        """The state of the registers at the program's start."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """Send a packet to the program in a state. The step has only packets of aggregations at workers' ports."""
        assert event.packet is not None
        after, sent = self.switch.step(state, self.ports[event.number], event.packet.packed())
        found = ((self.worker_at[port], agg_in(packet)) for port, packet in sent if port in self.worker_at)
        return Step(after, tuple((worker, packet) for worker, packet in found if packet is not None))


MOST_STATES = 12_000
"""The limit of states that an exploration visits: a step of a student's node is slow."""
MOST_WAITING = 16
MOST_ROUNDS = 3
"""The number of rounds of timeouts without a new result after which the job counts as stuck."""


class BrokenError(WrongError):
    """A broken invariant of the network; `got` is the wrong sum of a fragment, if that is the fault."""

    def __init__(self, cause: str, fragment: int | None = None, got: Values | None = None) -> None:
        super().__init__(cause)
        self.fragment, self.got = fragment, got


def judge_results(job: Fragments, worker: int, step: Step) -> None:
    """Raise `BrokenError` for a result that is not the sum."""
    for fragment, values in step.results.items():
        if fragment >= job.count:
            raise BrokenError(f"worker {worker} has a result of fragment {fragment}, which does not exist")
        if values != job.sum_of(fragment):
            raise BrokenError(f"worker {worker} has a wrong sum of fragment {fragment}", fragment, values)


def judge_sent(job: Fragments, worker: int, event: Event, before: int, step: Step) -> None:
    """Raise `BrokenError` for packets that the event gives no reason to send; `before` results were there before it."""
    if event.name == "receive" and len(step.results) == before and step.sent:
        assert event.packet is not None
        what = "a result that it does not wait for" if event.packet.kind == RESULT else "a packet that is no result"
        raise BrokenError(f"worker {worker} sends {len(step.sent)} packets after {what}")
    if event.name == "timeout":
        for _, packet in step.sent:
            fragment = packet.round * job.pool + packet.slot
            if packet.slot != event.number:
                raise BrokenError(f"worker {worker} sends to slot {packet.slot} at the timeout of slot {event.number}")
            if fragment in step.results:
                raise BrokenError(f"worker {worker} sends fragment {fragment} at a timeout, though it has its result")
        if len(step.sent) > 1:
            raise BrokenError(f"worker {worker} sends {len(step.sent)} packets at the timeout of slot {event.number}")


@dataclass
class Schedule:
    """The events that break an invariant, in words, and the packets that came to the switch."""

    broken: BrokenError
    story: list[str]
    arrivals: list[tuple[int, Agg]]


class Fault(StrEnum):
    """The faults of a schedule; without a fault, packets arrive in order."""

    LOST_GRADIENT = "lost gradient"
    LOST_RESULT = "lost result"
    GRADIENT_TWICE = "gradient twice"
    RESULT_TWICE = "result twice"
    COPY_OF_GRADIENT = "copy of a gradient, at any time"
    COPY_OF_RESULT = "copy of a result, at any time"
    OLD_GRADIENT = "copy of a gradient, when all have its result"
    LATE_GRADIENT = "late gradient"
    LATE_RESULT = "late result"
    NO_RESULT = "a packet of another kind before a result"
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
    Fault.NO_RESULT: ("stray", False),
}
"""By fault, its move on the packet at the head of a channel, and whether this channel leads to the switch."""
LOSING = {Fault.LOST_GRADIENT, Fault.LOST_RESULT, Fault.LATE_GRADIENT, Fault.LATE_RESULT}
"""The faults after which workers can need timeouts."""
WORDS = {
    "arrive": (1, "arrives"),
    "lose": (0, "is LOST"),
    "twice": (2, "arrives TWICE"),
    "copy": (1, "arrives, and a COPY of it is on its way"),
    "hold": (0, "is DELAYED"),
    "late": (1, "arrives LATE"),
    "stray": (1, "arrives after a GRADIENT for the same slot and round"),
}
"""By move, the number of times that the packet arrives, and the move in words."""
TIMEOUTS = "nothing is on its way: workers that lack a result time out"

Channels = tuple[tuple[Agg, ...], ...]


class State(NamedTuple):
    """A state of the network. `held` are packets that arrive at any later time; `rounds` counts futile timeouts."""

    switch: Any
    workers: tuple[Any, ...]
    up: Channels
    down: Channels
    held: tuple[tuple[bool, int, Agg], ...] = ()
    done: tuple[int, ...] = ()
    faults: int = 0
    rounds: int = 0


class Move(NamedTuple):
    """A possible event: of the packet at the head of a channel, of a held packet, or of a worker.

    `to_switch` and `worker` name the channel; `fault` is None for a move without a fault.
    """

    what: str
    worker: int
    to_switch: bool = False
    number: int = 0
    fault: Fault | None = None


class Network:
    """A job on nodes, and the number and kinds of faults that a schedule can have.

    With `only_behind`, only the workers with the fewest results time out. This is a `Space` of the explorer, whose
    states have one word, the number of a `State`. Every step of a node is computed once.
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
        """Apply an event to a worker. Raises `BrokenError` if that breaks an invariant."""
        try:
            step = self.step_worker[worker](state.workers[worker], event)
        except WorkerMistakeError as mistake:
            raise BrokenError(f"worker {worker}: {mistake}") from None
        judge_results(self.job, worker, step)
        judge_sent(self.job, worker, event, state.done[worker], step)
        for _, packet in step.sent:
            before = packet.round * self.job.pool + packet.slot - self.job.pool
            if before >= 0 and before not in step.results:
                what = f"round {packet.round} of slot {packet.slot}"
                raise BrokenError(f"worker {worker} sends {what} without a result of the round before")
        if len(state.up[worker]) > MOST_PACKETS:
            raise BrokenError(f"worker {worker} sends more and more packets")
        done = len(step.results)
        return state._replace(
            workers=put(state.workers, worker, step.state),
            up=put(state.up, worker, (*state.up[worker], *(packet for _, packet in step.sent))),
            done=put(state.done, worker, done),
            rounds=0 if done > state.done[worker] else state.rounds,
        )

    def of_switch(self, state: State, worker: int, packet: Agg) -> State:
        """Deliver a packet to the switch."""
        step = self.step_switch(state.switch, Event("receive", packet, worker))
        down = list(state.down)
        for port, sent in step.sent:
            down[port] = (*down[port], sent)
        if max(map(len, down)) > MOST_WAITING:
            raise BrokenError("the switch sends more and more packets")
        return state._replace(switch=step.state, down=tuple(down))

    # -- moves

    def moves(self, state: State) -> Iterator[Move]:
        """The moves in a state. A worker gets its results at once, unless a fault can hit them."""
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
        """The faults that can hit the packet at the head of a channel."""
        if state.faults < self.faults:
            for fault, (what, leads_to_switch) in AT_CHANNELS.items():
                if fault in self.kinds and leads_to_switch == to_switch:
                    yield Move(what, worker, to_switch, fault=fault)

    def after(self, state: State, move: Move) -> State:
        """The state after a move; raises `BrokenError`."""
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
        if move.what == "stray":
            fragment = packet.round * self.job.pool + packet.slot
            state = self.of_worker(state, move.worker, Event("receive", self.job.gradient(packet.worker, fragment)))
        for _ in range(WORDS[move.what][0]):
            if move.to_switch:
                after = self.of_switch(state, move.worker, packet)
                if move.what == "late" and self.is_over(state, packet) and after.down != state.down:
                    what = f"round {packet.round}, whose version has a newer round"
                    raise BrokenError(f"the switch sends a packet after worker {move.worker}'s gradient of {what}")
                state = after
            else:
                state = self.of_worker(state, move.worker, Event("receive", packet))
        return state

    def is_over(self, state: State, packet: Agg) -> bool:
        """Whether the version of a packet surely has a newer round (known where the job has one slot)."""
        return self.job.pool == 1 and Fault.OLD_GRADIENT in self.kinds and max(state.done) > packet.round + 2

    def timeout(self, state: State) -> State:
        """Apply the timeouts of all slots to all workers that lack a result."""
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
        """The number of a state; a new state gets the next number."""
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]

    def first(self) -> States:
        """The first state."""
        return np.array([[self.number(self.started())]], np.uint64)

    def successors(self, states: States, *, faults: bool) -> Iterator[Successors]:
        """The states after each move, up to the first move that breaks an invariant."""
        del faults  # a state counts its faults
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
        """By move: its number, the number of its next state, the column, and whether it is a fault."""
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
        """All states: a worker without a result times out, and a futile timeout breaks an invariant."""
        return np.ones(states.shape[1], np.bool_)

    def without_progress(self, states: States, layer: Layer) -> BoolArray:
        """No state: see `over`."""
        del layer
        return np.zeros(states.shape[1], np.bool_)

    def check(self) -> None:
        """No check is needed: channels are FIFO, and all other orders are tried."""

    def explore(self) -> Schedule | None:
        """The first schedule that breaks an invariant; None if no visited state has one."""
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
    """The items with one of them replaced."""
    return (*items[:at], item, *items[at + 1 :])


def packet_of(state: State, move: Move) -> Agg:
    """The packet of a move."""
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
    """A run of a job to its end. A random `share` of the packets in flight meets with a fault.

    `packets` has the number of packets that each worker has sent, `first` the number sent at the start, `arrivals` the
    packets that came to the switch, and `found` the fault.
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
        """Run until all workers have all results, or until a fault is found."""
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
        """Deliver packets, and let workers time out when no packet is in flight."""
        rounds = 0
        for _ in range(MOST_EVENTS):
            if self.waiting:
                self.arrive()
            elif min(self.results) == self.job.count:
                return
            else:
                rounds += 1
                if rounds > MOST_ROUNDS_OF_A_RUN:
                    raise BrokenError("a worker never gets all results, however long it waits")
                self.story.append(TIMEOUTS)
                for worker in [n for n, results in enumerate(self.results) if results < self.job.count]:
                    for slot in range(self.job.pool):
                        self.of_worker(worker, Event("timeout", None, slot))
        raise BrokenError(f"after {MOST_EVENTS} packets a worker still lacks a result")

    def of_worker(self, worker: int, event: Event) -> None:
        """Apply an event to a worker."""
        node = self.workers[worker]
        try:
            step = node.run(event) if isinstance(node, StudentWorker) else node.step(self.states[worker], event)
        except WorkerMistakeError as mistake:
            raise BrokenError(f"worker {worker}: {mistake}") from None
        judge_results(self.job, worker, step)
        judge_sent(self.job, worker, event, self.results[worker], step)
        self.states[worker], self.results[worker] = step.state, len(step.results)
        self.packets[worker] += len(step.sent)
        self.waiting.extend((True, worker, packet) for _, packet in step.sent)

    def arrive(self) -> None:
        """Deliver the next packet, unless a fault hits it: loss, duplication, or a move behind the others."""
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
