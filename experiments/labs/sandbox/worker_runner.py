"""One worker of a student, in a sandbox: Python that nobody trusts, asked what it does in a state.

A question is `["load", text, arguments]`, `["step", state, event]` or `["run", event]`. An event is `["start"]`,
`["receive", packet]` or `["timeout", slot]`. An answer is `["ok", [state, packets, results]]`, or the kind of an error
and its message. States are numbers that stand for pickled workers, which never leave this process.
"""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from inakit.experiments.labs.sandbox.frames import answer_all
from inakit.experiments.labs.sandbox.mistakes import MistakeError, module_of, said, told

MODULE, CLASS = "worker", "Worker"
MOST_PACKETS = 64
MOST_STATE_BYTES = 1 << 20
MOST_STATES = 100_000


class Packet(NamedTuple):
    """What workers and switches send to each other, as students see it."""

    kind: int
    worker: int
    slot: int
    round: int
    values: tuple[int, ...]


def packet_module() -> Any:
    """The module `packet`, which students import."""
    module: Any = types.ModuleType("packet")
    Packet.__module__ = "packet"
    module.Packet, module.GRADIENT, module.RESULT = Packet, 1, 2
    return module


class WorkerRunner:
    """The student's class, and the states in which its object has been."""

    def __init__(self) -> None:
        self.packets = packet_module()
        sys.modules["packet"] = self.packets
        self.states: list[bytes] = []
        self.numbers: dict[bytes, int] = {}
        self.running: Any = None

    def load(self, text: str, arguments: list[Any]) -> list[Any]:
        """Make a worker by the student's class; its first state."""
        module = module_of(text, MODULE)
        if not isinstance(getattr(module, CLASS, None), type):
            raise MistakeError(f"{MODULE}.py has no class {CLASS}")
        self.running = getattr(module, CLASS)(*arguments)
        return [self.number(self.running), [], self.results(self.running)]

    def step(self, state: int, event: list[Any]) -> list[Any]:
        worker = pickle.loads(self.states[state])
        packets = self.act(worker, event)
        return [self.number(worker), packets, self.results(worker)]

    def run(self, event: list[Any]) -> list[Any]:
        """What an event makes of the worker that was made first, which is never put back."""
        packets = self.act(self.running, event)
        return [0, packets, self.results(self.running)]

    def act(self, worker: Any, event: list[Any]) -> list[list[Any]]:
        """Call the student's method for an event; the packets that it returns."""
        name, *arguments = event
        if name == "receive":
            kind, sender, slot, number, values = arguments[0]
            arguments = [Packet(kind, sender, slot, number, tuple(values))]
        sent = getattr(worker, name)(*arguments)
        if not isinstance(sent, list) or len(sent) > MOST_PACKETS:
            raise MistakeError(f"{name}() returns {said(sent)}: expected a list of at most {MOST_PACKETS} packets")
        return [packet_of(name, each) for each in sent]

    def results(self, worker: Any) -> dict[str, list[int]]:
        found = getattr(worker, "results", None)
        if not isinstance(found, dict):
            raise MistakeError(f"worker.results is {said(found)}: expected a dict, from a fragment to its sum")
        return {str(whole("a fragment", key)): values_of("a result", value) for key, value in found.items()}

    def number(self, worker: Any) -> int:
        """The number of a state; a new state gets the next one."""
        try:
            state = pickle.dumps(worker, protocol=4)
        except Exception as error:
            raise MistakeError(f"the state of {CLASS} has to be plain data (numbers, lists, dicts): {error}") from None
        if len(state) > MOST_STATE_BYTES or len(self.states) > MOST_STATES:
            raise MistakeError(f"the state of {CLASS} grows without end")
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]


def packet_of(name: str, packet: Any) -> list[Any]:
    """A packet that the student's code returns, as JSON."""
    if not isinstance(packet, tuple) or len(packet) != len(Packet._fields):
        raise MistakeError(f"{name}() returns {said(packet)}: expected Packet({', '.join(Packet._fields)})")
    numbers = [whole(field, value) for field, value in zip(Packet._fields[:-1], packet[:-1], strict=True)]
    return [*numbers, values_of("the values of a packet", packet[-1])]


def values_of(what: str, values: Any) -> list[int]:
    """Eight numbers."""
    if not isinstance(values, list | tuple) or len(values) != 8:
        raise MistakeError(f"{what}: {said(values)}: expected 8 numbers")
    return [whole(what, each) for each in values]


def whole(what: str, value: Any) -> int:
    """A number of 32 bits without a sign."""
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise MistakeError(f"{what}: {said(value)}: expected a number from 0 to 2^32 - 1")
    return value


def answer_to(runner: WorkerRunner, question: list[Any]) -> list[Any]:
    calls: dict[str, Callable[..., Any]] = {"load": runner.load, "step": runner.step, "run": runner.run}
    try:
        return ["ok", calls[question[0]](*question[1:])]
    except Exception as error:
        return ["mistake", told(error, f"{MODULE}.py")]


def main(questions: int, answers: int) -> None:
    """Answer questions until there are no more."""
    answer_all(questions, answers, partial(answer_to, WorkerRunner()))
