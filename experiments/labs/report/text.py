"""A grade as text: a line for each item, and for what failed all that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inakit.experiments.labs.grading.finding import Finding
from inakit.experiments.labs.grading.item import Grade, Graded


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
    for items, finding in told_once(grade):
        yield ""
        yield from finding_lines(items, finding)


def told_once(grade: Grade) -> Iterator[tuple[list[Graded], Finding]]:
    """Findings with their items: what several have in common is told once, without the task."""
    causes: dict[Finding, list[Graded]] = {}
    for each in grade.graded:
        if each.finding is not None:
            causes.setdefault(replace(each.finding, task=()), []).append(each)
    for finding, found in causes.items():
        yield found, found[0].finding if len(found) == 1 and found[0].finding else finding


def finding_lines(graded: Sequence[Graded], finding: Finding) -> Iterator[str]:
    """Why items have not all points."""
    yield f"{', '.join(each.item.name for each in graded)}: {finding.cause}"
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
