"""A student's function that makes table entries of a plan, in a sandbox.

A question is `["load", text]` or `["entries", plan, switch]`. An answer is `["ok", rows]`, where a row is
`["entry", table, key, action, params]` or `["group", number, ports]`, or `["mistake", message]`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from inakit.experiments.labs.sandbox.frames import answer_all
from inakit.experiments.labs.sandbox.mistakes import MistakeError, module_of, said, told

MODULE, FUNCTION = "entries", "entries"
MOST_ROWS = 2000
MOST_ITEMS = 64


class Entry(NamedTuple):
    """An entry of a table, as students write it."""

    table: str
    key: tuple[int, ...]
    action: str
    params: tuple[int, ...] = ()


class Group(NamedTuple):
    """A multicast group, as students write it."""

    number: int
    ports: tuple[int, ...]


def entry_module() -> Any:
    """The module `entry`, which students import."""
    module: Any = types.ModuleType("entry")
    module.Entry, module.Group = Entry, Group
    return module


class EntriesRunner:
    """The student's function."""

    def __init__(self) -> None:
        sys.modules["entry"] = entry_module()
        self.function: Any = None

    def load(self, text: str) -> list[Any]:
        """Run the student's file."""
        self.function = getattr(module_of(text, MODULE), FUNCTION, None)
        if not callable(self.function):
            raise MistakeError(f"{MODULE}.py has no function {FUNCTION}(plan, switch)")
        return []

    def entries(self, plan: dict[str, Any], switch: str) -> list[list[Any]]:
        """What the function returns for a switch."""
        found = self.function(plan, switch)
        if not isinstance(found, list | tuple):
            raise MistakeError(f"{FUNCTION}() returns {said(found)}: expected a list of entries")
        if len(found) > MOST_ROWS:
            raise MistakeError(f"{FUNCTION}() returns {len(found)} entries: expected at most {MOST_ROWS}")
        return [row_of(each) for each in found]


def row_of(each: Any) -> list[Any]:
    """An entry or a group as JSON."""
    match each:
        case Entry(str() as table, key, str() as action, params):
            return ["entry", table, numbers("the key", key), action, numbers("the parameters", params)]
        case Group(number, ports):
            return ["group", numbers("the number", [number])[0], numbers("the ports", ports)]
    raise MistakeError(f"{FUNCTION}() returns {said(each)}: expected Entry(table, key, action, params) or Group(...)")


def numbers(what: str, found: Any) -> list[int]:
    """A short list of whole numbers."""
    if not isinstance(found, list | tuple) or len(found) > MOST_ITEMS:
        raise MistakeError(f"{what} is {said(found)}: expected a list or tuple of at most {MOST_ITEMS} numbers")
    for each in found:
        if type(each) is not int or not 0 <= each < 1 << 16:
            raise MistakeError(f"{what} has {said(each)}: expected a number from 0 to 65535")
    return list(found)


def answer_to(runner: EntriesRunner, question: list[Any]) -> list[Any]:
    calls: dict[str, Callable[..., Any]] = {"load": runner.load, "entries": runner.entries}
    try:
        return ["ok", calls[question[0]](*question[1:])]
    except Exception as error:
        return ["mistake", told(error, f"{MODULE}.py")]


def main(questions: int, answers: int) -> None:
    """Answer questions until there are no more."""
    answer_all(questions, answers, partial(answer_to, EntriesRunner()))
