"""A student's Python in its sandbox: a worker of lab 4, entries of lab 5, a planner of lab 6.

Each runner answers questions through its `calls`. The answer for an unusable file is `["refused", message]`, for a
mistake of the student's code `["mistake", message]`. Return values are checked here and again by the grader, since a
student's code can replace this module.
"""

from __future__ import annotations

import json
import pickle
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from inakit.experiments.labs.sandbox.untrusted import is_whole, shown


class MistakeError(Exception):
    """The student's code returns an invalid value."""


class RefusedError(Exception):
    """The student's file cannot be used."""


class StudentRunner:
    """Runs the file `<module>.py` of a student."""

    module: str
    calls: dict[str, Callable[..., Any]]

    def run_file(self, text: str) -> Any:
        """Run the student's file; return its module."""
        module = types.ModuleType(self.module)
        sys.modules[self.module] = module
        exec(compile(text, f"{self.module}.py", "exec"), module.__dict__)
        return module

    def explain(self, error: Exception) -> list[str]:
        """The answer for an exception that the student's code has raised."""
        return ["refused" if isinstance(error, RefusedError) else "mistake", self.message_of(error)]

    def message_of(self, error: Exception) -> str:
        """An exception in words, with the line of the student's file that raised it."""
        if isinstance(error, MistakeError | RefusedError):
            return str(error)
        if isinstance(error, MemoryError):
            return "it needs more memory than it may use"
        file = f"{self.module}.py"
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{file}:{line}: " if line else ""
        return f"{where}{type(error).__name__}: {str(error)[:200]}"


def offered_module(name: str, **contents: Any) -> None:
    """Make a module of this name importable for the student's code."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)


# -- lab 4


class Packet(NamedTuple):
    """A packet between workers and switches, as students see it."""

    kind: int
    worker: int
    slot: int
    round: int
    values: tuple[int, ...]


MOST_PACKETS = 64
MOST_STATE_BYTES = 1 << 20
MOST_STATES = 100_000
MOST_32_BITS = (1 << 32) - 1


class WorkerRunner(StudentRunner):
    """The student's class `Worker`, and all states that its object has had.

    An event is `["start"]`, `["receive", packet]` or `["timeout", slot]`. The answer to each call is the worker's
    state, the packets that it sends, and its results. A state is the number of a pickled worker, which never leaves
    this process.
    """

    module = "worker"

    def __init__(self) -> None:
        self.calls = {"load": self.load, "step": self.step, "run": self.run}
        Packet.__module__ = "packet"
        offered_module("packet", Packet=Packet, GRADIENT=1, RESULT=2)
        self.states: list[bytes] = []
        self.numbers: dict[bytes, int] = {}
        self.running: Any = None

    def load(self, text: str, arguments: list[Any]) -> list[Any]:
        """Make a worker with the student's class."""
        made = getattr(self.run_file(text), "Worker", None)
        if not isinstance(made, type):
            raise MistakeError("worker.py has no class Worker")
        self.running = made(*arguments)
        return [self.number(self.running), [], self.results(self.running)]

    def step(self, state: int, event: list[Any]) -> list[Any]:
        """Apply an event to the worker in a state."""
        worker = pickle.loads(self.states[state])
        packets = self.act(worker, event)
        return [self.number(worker), packets, self.results(worker)]

    def run(self, event: list[Any]) -> list[Any]:
        """Apply an event to the worker that was made first, which is never put back into a state."""
        packets = self.act(self.running, event)
        return [0, packets, self.results(self.running)]

    def act(self, worker: Any, event: list[Any]) -> list[list[Any]]:
        """Call the student's method for an event; return its packets."""
        name, *arguments = event
        if name == "receive":
            kind, sender, slot, number, values = arguments[0]
            arguments = [Packet(kind, sender, slot, number, tuple(values))]
        sent = getattr(worker, name)(*arguments)
        if not isinstance(sent, list) or len(sent) > MOST_PACKETS:
            raise MistakeError(f"{name}() returns {shown(sent)}: expected a list of at most {MOST_PACKETS} packets")
        packets = []
        for each in sent:
            if not isinstance(each, tuple) or len(each) != len(Packet._fields):
                raise MistakeError(f"{name}() returns {shown(each)}: expected Packet({', '.join(Packet._fields)})")
            numbers = [checked(field, value) for field, value in zip(Packet._fields[:-1], each[:-1], strict=True)]
            packets.append([*numbers, eight("the values of a packet", each[-1])])
        return packets

    def results(self, worker: Any) -> dict[str, list[int]]:
        """The results of the student's object, by fragment."""
        found = getattr(worker, "results", None)
        if not isinstance(found, dict):
            raise MistakeError(f"worker.results is {shown(found)}: expected a dict, from a fragment to its sum")
        return {str(checked("a fragment", key)): eight("a result", value) for key, value in found.items()}

    def number(self, worker: Any) -> int:
        """The number of the worker's state; a new state gets the next one."""
        try:
            state = pickle.dumps(worker, protocol=4)
        except Exception as error:
            raise MistakeError(f"the state of Worker has to be plain data (numbers, lists, dicts): {error}") from None
        if len(state) > MOST_STATE_BYTES or len(self.states) > MOST_STATES:
            raise MistakeError("the state of Worker grows without bound")
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]


def checked(what: str, value: Any) -> int:
    """A whole number of 32 bits."""
    if not is_whole(value, MOST_32_BITS):
        raise MistakeError(f"{what}: {shown(value)}: expected a number from 0 to 2^32 - 1")
    return int(value)


def eight(what: str, values: Any) -> list[int]:
    """The eight numbers of a packet or of a result."""
    if not isinstance(values, list | tuple) or len(values) != 8:
        raise MistakeError(f"{what}: {shown(values)}: expected 8 numbers")
    return [checked(what, each) for each in values]


# -- lab 5


class Entry(NamedTuple):
    """A table entry, as students write it."""

    table: str
    key: tuple[int, ...]
    action: str
    params: tuple[int, ...] = ()


class Group(NamedTuple):
    """A multicast group, as students write it."""

    number: int
    ports: tuple[int, ...]


MOST_ROWS = 2000
MOST_NUMBERS = 64
MOST_16_BITS = (1 << 16) - 1


class EntriesRunner(StudentRunner):
    """The student's function `entries`, which returns the table entries of a plan for a switch.

    An answer has a row for each: `["entry", table, key, action, params]` or `["group", number, ports]`.
    """

    module = "entries"

    def __init__(self) -> None:
        self.calls = {"load": self.load, "entries": self.entries}
        offered_module("entry", Entry=Entry, Group=Group)
        self.function: Any = None

    def load(self, text: str) -> list[Any]:
        """Run the student's file."""
        self.function = getattr(self.run_file(text), "entries", None)
        if not callable(self.function):
            raise MistakeError("entries.py has no function entries(plan, switch)")
        return []

    def entries(self, plan: dict[str, Any], switch: str) -> list[list[Any]]:
        """The function's rows for a switch."""
        found = self.function(plan, switch)
        if not isinstance(found, list | tuple):
            raise MistakeError(f"entries() returns {shown(found)}: expected a list of entries")
        if len(found) > MOST_ROWS:
            raise MistakeError(f"entries() returns {len(found)} entries: expected at most {MOST_ROWS}")
        return [row_of(each) for each in found]


def row_of(each: Any) -> list[Any]:
    """An entry or a group as JSON."""
    match each:
        case Entry(str() as table, key, str() as action, params):
            return ["entry", table, numbers("the key", key), action, numbers("the parameters", params)]
        case Group(number, ports):
            return ["group", *numbers("the number", [number]), numbers("the ports", ports)]
    raise MistakeError(f"entries() returns {shown(each)}: expected Entry(table, key, action, params) or Group(...)")


def numbers(what: str, found: Any) -> list[int]:
    """A short list of whole numbers of 16 bits."""
    if not isinstance(found, list | tuple) or len(found) > MOST_NUMBERS:
        raise MistakeError(f"{what} is {shown(found)}: expected a list or tuple of at most {MOST_NUMBERS} numbers")
    for each in found:
        if not is_whole(each, MOST_16_BITS):
            raise MistakeError(f"{what} has {shown(each)}: expected a number from 0 to {MOST_16_BITS}")
    return list(found)


# -- lab 6


MOST_PLAN_BYTES = 1 << 20


class PlannerRunner(StudentRunner):
    """The student's function `plan`; its file runs again for each plan."""

    module = "planner"

    def __init__(self) -> None:
        self.calls = {"plan": self.plan}

    def plan(self, text: str, fabric: dict[str, Any], jobs: list[dict[str, Any]]) -> Any:
        """The function's trees in the form of JSON; the grader judges them."""
        try:
            function = getattr(self.run_file(text), "plan", None)
            if not callable(function):
                raise MistakeError("planner.py has no function plan(fabric, jobs)")
        except Exception as error:
            raise RefusedError(self.message_of(error)) from None
        trees = function(fabric, jobs)
        try:
            written = json.dumps(trees, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise MistakeError(
                f"plan() returns {shown(trees)}: expected plain lists, dicts, texts and numbers: {error}"
            ) from None
        if len(written) > MOST_PLAN_BYTES:
            raise MistakeError(f"plan() returns {len(written)} bytes: at most {MOST_PLAN_BYTES} are read")
        return json.loads(written)


RUNNERS = {"worker": WorkerRunner, "entries": EntriesRunner, "planner": PlannerRunner}


def runner(name: str) -> StudentRunner:
    """The runner of this name."""
    return RUNNERS[name]()
