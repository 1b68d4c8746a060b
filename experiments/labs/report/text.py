"""A grade as text: a line for each item, and for what failed all that shows it."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.labs.grading.finding import Finding
from experiments.labs.grading.item import Grade, Graded


def text_of(grade: Grade) -> str:
    """The whole grade."""
    return "\n".join(lines_of(grade)) + "\n"


def lines_of(grade: Grade) -> Iterator[str]:
    """The lines of a grade."""
    yield f"lab {grade.lab}, seed {grade.seed}: {number(grade.points)} of {grade.most} points"
    yield from (f"note: {note}" for note in grade.notes)
    if grade.problem:
        yield ""
        yield f"nothing could be graded: {grade.problem}"
        return
    yield ""
    width = max(len(graded.item.name) for graded in grade.graded)
    for graded in grade.graded:
        item = graded.item
        yield f"  {item.name:{width}}  {number(graded.points):>4} of {item.points:2}  {item.title}"
    for graded in grade.graded:
        if graded.finding is not None:
            yield ""
            yield from finding_lines(graded, graded.finding)


def finding_lines(graded: Graded, finding: Finding) -> Iterator[str]:
    """Why an item has not all points."""
    yield f"{graded.item.name}: {finding.cause}"
    parts = {
        "sent": finding.sent,
        "expected": finding.expected,
        "got": finding.got,
        "what the program did with the last packet": finding.trace,
        "the task": finding.task,
    }
    for heading, lines in parts.items():
        if lines:
            yield f"  {heading}"
            yield from (f"    {line}" for line in lines)


def number(points: float) -> str:
    """Points without a fraction of 0."""
    return f"{points:g}"
