"""A student's planner in a sandbox: Python that nobody trusts, asked for one plan.

A question is `[text, fabric, jobs]`, where `text` is the student's file. An answer is `["ok", trees]`, or
`["mistake", message]`, or `["refused", message]` for a file without a planner. All are JSON; what the trees say is
judged by who asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from inakit.experiments.labs.sandbox.frames import answer_all
from inakit.experiments.labs.sandbox.mistakes import MistakeError, module_of, said, told

MODULE, FUNCTION = "planner", "plan"
FILE = f"{MODULE}.py"
MOST_BYTES = 1 << 20


def loaded(text: str) -> Callable[[Any, Any], Any]:
    """The student's function."""
    function: Callable[[Any, Any], Any] | None = getattr(module_of(text, MODULE), FUNCTION, None)
    if not callable(function):
        raise MistakeError(f"{FILE} has no function {FUNCTION}(fabric, jobs)")
    return function


def plain(trees: Any) -> Any:
    """Trees as JSON has them, without numbers that are none."""
    try:
        written = json.dumps(trees, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MistakeError(
            f"{FUNCTION}() returns {said(trees)}: plain lists, dicts, texts and numbers: {error}"
        ) from None
    if len(written) > MOST_BYTES:
        raise MistakeError(f"{FUNCTION}() returns {len(written)} bytes: at most {MOST_BYTES} are read")
    return json.loads(written)


def answer_to(question: list[Any]) -> list[Any]:
    text, fabric, jobs = question
    kind = "refused"
    try:
        function = loaded(text)
        kind = "mistake"
        return ["ok", plain(function(fabric, jobs))]
    except Exception as error:
        return [kind, told(error, FILE)]


def main(questions: int, answers: int) -> None:
    """Answer questions until there are no more."""
    answer_all(questions, answers, answer_to)
