"""A student's Python in its sandbox: a worker of lab 4, entries of lab 5, a planner of lab 6.

Each runner answers questions through its `calls`. The answer for an unusable file is `["refused", message]`, for a
mistake of the student's code `["mistake", message]`. Return values become plain data here; the grader checks them.

The modules that a student can import are imported when this module is: the process can read no file after that.
"""

from __future__ import annotations

import builtins
import importlib
import json
import pickle
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from inakit.experiments.labs.sandbox.untrusted import shown

IMPORTABLE = (
    "__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "io", "itertools", "json", "math",
    "numbers", "operator", "os", "pickle", "pprint", "queue", "random", "re", "statistics", "string", "struct", "sys",
    "textwrap", "time", "traceback", "types", "typing", "warnings",
)  # fmt: skip
"""The modules that a student can import, the same on every machine."""
LATER = ("collections.abc", "_strptime")
"""Modules that these import when they are used."""
for each in (*IMPORTABLE, *LATER):
    importlib.import_module(each)


MOST_ITEMS, MOST_DATA_BYTES = 10_000, 1 << 20


class MistakeError(Exception):
    """The student's code returns an invalid value."""


class RefusedError(Exception):
    """The student's file cannot be used."""


class StudentRunner:
    """Runs the file `<module>.py` of a student."""

    module: str
    offered: str = ""
    calls: dict[str, Callable[..., Any]]

    def run_file(self, text: str) -> Any:
        """Run the student's file; return its module."""
        module = types.ModuleType(self.module)
        sys.modules[self.module] = module
        vars(builtins)["__import__"] = self.imported
        exec(compile(text, f"{self.module}.py", "exec"), module.__dict__)
        return module

    def imported(self, name: str, *given: Any, **named: Any) -> Any:
        """Import a module; the student's file can import those of `IMPORTABLE` and the one of the task."""
        around = given[0] if given else named.get("globals")
        up = given[3] if len(given) > 3 else named.get("level", 0)
        may = {*IMPORTABLE, self.offered, self.module} - {""}
        known = not up and (name.partition(".")[0] in may or name in LATER)
        if not known and around is not None and around.get("__name__") == self.module:
            raise ModuleNotFoundError(f"No module named {name!r} here: there are {', '.join(sorted(may))}")
        return imported(name, *given, **named)

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
        return f"{where}{type(error).__name__}: {str(error)[:500]}"


imported = builtins.__import__


def as_data(what: str, value: Any) -> Any:
    """A value as plain data, as JSON has it: tuples become lists, and keys texts."""
    try:
        if isinstance(value, list | tuple | dict) and len(value) > MOST_ITEMS:
            raise MistakeError(f"{what} has {len(value)} items: at most {MOST_ITEMS} are read")
        written = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MistakeError(
            f"{what} is {shown(value)}: plain lists, dicts, texts and finite numbers are expected: {error}"
        ) from None
    if len(written) > MOST_DATA_BYTES:
        raise MistakeError(f"{what} has {len(written)} bytes: at most {MOST_DATA_BYTES} are read")
    return json.loads(written)


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


MOST_STATE_BYTES = 1 << 20
MOST_STATES = 100_000


class WorkerRunner(StudentRunner):
    """The student's class `Worker`, and all states that its object has had.

    An event is `["start"]`, `["receive", packet]` or `["timeout", slot]`. The answer to each call is the worker's
    state, the packets that it sends, and its results. A state is the number of a pickled worker, which never leaves
    this process.
    """

    module, offered = "worker", "packet"

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

    def act(self, worker: Any, event: list[Any]) -> Any:
        """Call the student's method for an event; return its packets."""
        name, *arguments = event
        if name == "receive":
            kind, sender, slot, number, values = arguments[0]
            arguments = [Packet(kind, sender, slot, number, tuple(values))]
        return as_data(f"what {name}() returns", getattr(worker, name)(*arguments))

    def results(self, worker: Any) -> Any:
        """The results of the student's object, by fragment."""
        return as_data("worker.results", getattr(worker, "results", None))

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


class EntriesRunner(StudentRunner):
    """The student's function `entries`, which returns the table entries of a plan for a switch.

    An answer has a row for each: `["entry", table, key, action, params]` or `["group", number, ports]`.
    """

    module, offered = "entries", "entry"

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

    def entries(self, plan: dict[str, Any], switch: str) -> Any:
        """The function's rows for a switch."""
        found = self.function(plan, switch)
        if not isinstance(found, list | tuple):
            raise MistakeError(f"entries() returns {shown(found)}: a list of entries is expected")
        return as_data("what entries() returns", [row_of(each) for each in found[:MOST_ITEMS]])


def row_of(each: Any) -> tuple[Any, ...]:
    """An entry or a group, with its kind."""
    if isinstance(each, Entry | Group):
        return ("entry" if isinstance(each, Entry) else "group", *each)
    raise MistakeError(f"entries() returns {shown(each)}: Entry(table, key, action, params) or Group(...) is expected")


# -- lab 6


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
        return as_data("what plan() returns", function(fabric, jobs))


RUNNERS = {"worker": WorkerRunner, "entries": EntriesRunner, "planner": PlannerRunner}


def runner(name: str) -> StudentRunner:
    """The runner of this name."""
    return RUNNERS[name]()
