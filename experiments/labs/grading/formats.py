"""A grade as text, with all that shows what failed, and as other programs read it: JSON, Gradescope, GitHub, JUnit."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from inakit.experiments.labs.grading.items import Finding, Grade, Graded


def text_of(grade: Grade) -> str:
    """The whole grade."""
    return "\n".join(lines_of(grade)) + "\n"


def lines_of(grade: Grade) -> Iterator[str]:
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


VERSION = 1


def as_json(grade: Grade) -> str:
    items = [
        {
            "name": each.item.name,
            "title": each.item.title,
            "points": each.points,
            "most": each.item.points,
            "finding": None if each.finding is None else asdict(each.finding),
        }
        for each in grade.graded
    ]
    head = {"version": VERSION, "lab": grade.lab, "seed": grade.seed, "points": grade.points, "most": grade.most}
    return dumped(head | {"problem": grade.problem, "notes": list(grade.notes), "items": items})


def as_gradescope(grade: Grade) -> str:
    """The `results.json` of a Gradescope autograder."""
    tests = [
        {
            "name": f"{each.item.name}: {each.item.title}",
            "score": each.points,
            "max_score": each.item.points,
            "status": "passed" if passed(each) else "failed",
            "output": output(each),
        }
        for each in grade.graded
    ]
    return dumped({"score": grade.points, "output": grade.problem or "\n".join(grade.notes), "tests": tests})


def as_classroom(grade: Grade) -> str:
    """What GitHub Classroom's autograding reporter takes as the result of a test runner."""
    tests = [
        {
            "name": each.item.name,
            "status": "pass" if passed(each) else "fail",
            "score": each.points,
            "max_score": each.item.points,
            "message": output(each) or grade.problem,
        }
        for each in grade.graded
    ]
    status = "error" if grade.problem else "pass" if grade.points == grade.most else "fail"
    return dumped({"version": 1, "status": status, "max_score": grade.most, "tests": tests})


def as_junit(grade: Grade) -> str:
    """JUnit's XML: a test case for each item."""
    failed = sum(not passed(each) for each in grade.graded)
    suite = ET.Element("testsuite", name=grade.lab, tests=str(len(grade.graded)), failures=str(failed), errors="0")
    for each in grade.graded:
        case = ET.SubElement(suite, "testcase", classname=grade.lab, name=each.item.name)
        if not passed(each):
            message = each.finding.cause if each.finding is not None else grade.problem
            ET.SubElement(case, "failure", message=in_xml(message)).text = in_xml(output(each))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def in_xml(text: str) -> str:
    """A text without characters that XML does not have."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def passed(graded: Graded) -> bool:
    """Whether an item has all its points."""
    return graded.points == graded.item.points


def output(graded: Graded) -> str:
    """What is said about an item; nothing, if it has all points."""
    return "" if graded.finding is None else "\n".join(finding_lines([graded], graded.finding))


def dumped(document: Any) -> str:
    """JSON, with a line for each value."""
    return json.dumps(document, indent=2) + "\n"


FORMATS: dict[str, Callable[[Grade], str]] = {
    "text": text_of,
    "json": as_json,
    "gradescope": as_gradescope,
    "classroom": as_classroom,
    "junit": as_junit,
}
