"""The nodes of lab 4's network as automata: a state, an event, the next state and the packets that are sent.

Each node is either the student's, asked in its sandbox, or the course's own, a model in a few lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from inakit.experiments.labs.course.aggregation import job_entries
from inakit.experiments.labs.grading.packets import GRADIENT, Agg, Values, agg_in, summed
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, python_paths
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.untrusted import is_whole
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
