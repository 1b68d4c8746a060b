"""The nodes of lab 4's network as automata: a state, an event, the next state and what is sent.

Each node is either the student's, asked in its sandbox, or the course's own, a model in a few lines. Every step of a
node is taken once, and then looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from inakit.experiments.labs.course.packets import GRADIENT, Agg, Values, agg_in, summed
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, printable, python_paths
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.switch.entries import SwitchEntries
from inakit.topo.errors import InputError


class WorkerMistakeError(InputError):
    """The student's worker cannot take a step: what it raises, or returns that is no answer."""


class Event(NamedTuple):
    """What happens to a node: `start`, `receive` of a packet at a port, or `timeout` of a slot (the number)."""

    name: str
    packet: Agg | None = None
    number: int = 0


class Step(NamedTuple):
    """What an event makes of a node: its state, what it sends by which port, and the results that it has."""

    state: Any
    sent: tuple[tuple[int, Agg], ...]
    results: Mapping[int, Values] = {}


class Node(Protocol):
    """A switch or a worker."""

    def first(self) -> Any:
        """The first state."""
        ...

    def step(self, state: Any, event: Event) -> Step: ...


@dataclass(frozen=True)
class Job:
    """What is summed: for each worker its fragments, which share `pool` slots in turn."""

    pool: int
    fragments: tuple[tuple[Values, ...], ...]

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.fragments)

    @property
    def count(self) -> int:
        """How many fragments each has."""
        return len(self.fragments[0])

    def sum_of(self, fragment: int) -> Values:
        return summed([own[fragment] for own in self.fragments])

    def gradient(self, worker: int, fragment: int) -> Agg:
        """The packet by which a worker sends a fragment."""
        number, slot = divmod(fragment, self.pool)
        return Agg(GRADIENT, worker, slot, number, self.fragments[worker][fragment])


# -- the course's own


class ModelWorker:
    """A worker as the task describes it. Its state is the results that it has."""

    def __init__(self, job: Job, worker: int) -> None:
        self.job, self.worker = job, worker

    def first(self) -> Any:
        """No results."""
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
    """A switch as the task describes it. Its state: for each slot and version the round, who has sent, and the sum."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def first(self) -> Any:
        """All slots empty."""
        return ((0, frozenset(), (0,) * 8),) * (2 * self.job.pool)

    def step(self, state: Any, event: Event) -> Step:
        """Add what is new, answer who asks for a sum that is complete, and drop all else."""
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


class StudentWorker:
    """The student's worker, in a sandbox of its own: no two workers share anything."""

    def __init__(self, job: Job, worker: int, text: str) -> None:
        self.process = Sandboxed("inakit.experiments.labs.sandbox.worker_runner", worker_limits())
        arguments = [worker, job.workers, job.pool, [list(values) for values in job.fragments[worker]]]
        try:
            self.start: int = self.ask("load", text, arguments).state
        except BaseException:
            self.close()
            raise

    def first(self) -> Any:
        """The state in which the student's class makes it."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """What the student's method makes of a state."""
        return self.ask("step", state, in_json(event))

    def run(self, event: Event) -> Step:
        """Let an event happen to the worker that was made first."""
        return self.ask("run", in_json(event))

    def ask(self, *question: Any) -> Step:
        """The answer to a question; `WorkerMistakeError` for a mistake of the student's code."""
        answer = self.process.ask(list(question))
        match answer:
            case ["ok", [int() as state, list() as sent, dict() as results]]:
                packets = tuple((0, packet_in(each)) for each in sent)
                return Step(state, packets, {whole(key): values_in(value) for key, value in results.items()})
            case ["mistake", str() as message]:
                told = printable(message)
                raise WorkerMistakeError(told if told.startswith("worker.py") else f"worker.py: {told}")
        raise EndedError("its answer is none")

    def close(self) -> None:
        """End the process."""
        self.process.close()


def worker_limits() -> Limits:
    """What a worker may use."""
    return Limits(cpu_s=8, wall_s=12.0, memory_bytes=256 * MIB, readable=python_paths())


def in_json(event: Event) -> list[Any]:
    """An event for the worker's process."""
    if event.name == "start":
        return ["start"]
    if event.packet is None:
        return ["timeout", event.number]
    each = event.packet
    return ["receive", [each.kind, each.worker, each.slot, each.round, list(each.values)]]


def packet_in(document: Any) -> Agg:
    """A packet of the worker's process; `EndedError` if it is none."""
    if not isinstance(document, list) or len(document) != 5:
        raise EndedError("its answer is no packet")
    kind, worker, slot, number = (whole(each) for each in document[:4])
    return Agg(kind & 0xFF, worker & 0xFF, slot & 0xFFFF, number, values_in(document[4]))


def values_in(document: Any) -> Values:
    """Eight numbers of the worker's process."""
    if not isinstance(document, list) or len(document) != 8:
        raise EndedError("its answer has no 8 values")
    return tuple(whole(each) for each in document)


def whole(value: Any) -> int:
    """A number of 32 bits of the worker's process."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise EndedError("its answer has something else than a number") from None
    if not 0 <= number < 1 << 32:
        raise EndedError("its answer has a number beyond 32 bits")
    return number


class StudentSwitch:
    """The student's program. A state of it is a number that its process gives to the content of all registers."""

    def __init__(self, switch: SandboxedSwitch, entries: SwitchEntries, ports: list[int]) -> None:
        self.switch, self.entries, self.ports = switch, entries, ports
        switch.fresh()
        switch.install(entries)
        self.start = switch.state()

    def first(self) -> Any:
        """Registers as the program starts."""
        return self.start

    def step(self, state: Any, event: Event) -> Step:
        """What the program makes of a packet."""
        assert event.packet is not None
        after, sent = self.switch.step(state, self.ports[event.number], event.packet.packed())
        return Step(after, self.packets(sent))

    def packets(self, sent: list[tuple[int, bytes]]) -> tuple[tuple[int, Agg], ...]:
        """The packets of aggregations that leave by workers' ports, by the worker there."""
        at = {port: worker for worker, port in enumerate(self.ports)}
        found = ((at[port], agg_in(packet)) for port, packet in sent if port in at)
        return tuple((worker, replace(packet)) for worker, packet in found if packet is not None)


class Remembered:
    """A node each of whose steps is taken once."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.steps: dict[tuple[Any, Event], Step] = {}

    def first(self) -> Any:
        """The first state."""
        return self.node.first()

    def step(self, state: Any, event: Event) -> Step:
        key = (state, event)
        if key not in self.steps:
            self.steps[key] = self.node.step(state, event)
        return self.steps[key]
