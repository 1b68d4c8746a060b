"""Formats of a grade: text with findings, and JSON, Gradescope, GitHub and JUnit for other programs."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace

from inakit.experiments.labs.grading.lab import Finding, Grade, Graded
from inakit.experiments.labs.sandbox.untrusted import lines_printable
from inakit.topo.errors import unknown_name

VERSION = 1
FORMULA = re.compile("(^|(?<=[;|\n]))(?=[=+@\uff1d\uff0b\uff0d\uff20-])")
"""The beginning of a formula: after some characters programs begin a new cell, whatever the separator is."""


def text_of(grade: Grade) -> str:
    """The whole grade as text."""
    return "".join(f"{line}\n" for line, _ in lines_of(grade))


def without_commands(text: str) -> str:
    """A text in which GitHub's runners find no commands, which are lines that begin with two colons."""
    return re.sub(r"^([ \t]*)(?=::|##\[)", r"\1\\", text, flags=re.M)


Cells = dict[str, object]
"""A row of a table, by column."""


def lines_of(grade: Grade) -> Iterator[tuple[str, Cells]]:
    """The whole grade, line by line, with the cells of each item's row in a table."""
    sure = [each for each in grade.graded if not each.failed]
    points = f"{grade.points:g} of {sum(each.item.points for each in sure)} points" if sure else "the grader failed"
    others = "; the other items could not be graded" if sure and grade.failed else ""
    yield f"lab {grade.lab}: {points}{others}", {}
    yield from ((without_commands(f"note: {note}"), {}) for note in grade.notes)
    yield "", {}
    if grade.problem:
        whole = {"item": "all", "points": 0, "most": grade.most, "title": "", "cause": grade.problem}
        yield without_commands(indented(f"nothing could be graded: {grade.problem}")), whole
        return
    width = max(len(graded.item.name) for graded in grade.graded)
    for graded in grade.graded:
        points = "?" if graded.failed else f"{graded.points:g}"
        yield (
            f"  {graded.item.name:{width}}  {points:>4} of {graded.item.points:2}  {graded.item.title}",
            {
                "item": graded.item.name,
                "points": None if graded.failed else graded.points,
                "most": graded.item.points,
                "title": graded.item.title,
                "cause": graded.finding.cause if graded.finding else "",
            },
        )
    for items, finding in told_once(grade):
        yield "", {}
        yield from ((without_commands(line), {}) for line in finding_lines(items, finding))


def told_once(grade: Grade) -> Iterator[tuple[list[Graded], Finding]]:
    """Findings with their items: a finding that several items share appears once, without the task."""
    causes: dict[Finding, list[Graded]] = {}
    for each in grade.graded:
        if each.finding is not None:
            causes.setdefault(replace(each.finding, task=()), []).append(each)
    for finding, found in causes.items():
        yield found, found[0].finding if len(found) == 1 and found[0].finding else finding


def finding_lines(graded: Sequence[Graded], finding: Finding) -> Iterator[str]:
    """The reason why items lack points."""
    yield indented(f"{', '.join(each.item.name for each in graded)}: {finding.cause}")
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


def indented(text: str) -> str:
    """A text whose lines after the first are indented, so that none looks like a line of the report."""
    return text.replace("\n", "\n    ")


def output(graded: Graded) -> str:
    """The finding of an item; empty if the item has full points."""
    return "" if graded.finding is None else "\n".join(finding_lines([graded], graded.finding))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV whose cells are printable and no formulas, which spreadsheets would compute."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(FORMULA.sub("'", lines_printable(str(cell))) for cell in row)
    return text.getvalue()


def as_json(grade: Grade) -> str:
    """The whole grade as JSON."""
    items = [
        {
            "name": each.item.name,
            "title": each.item.title,
            "points": None if each.failed else each.points,
            "most": each.item.points,
            "finding": None if each.finding is None else asdict(each.finding),
        }
        for each in grade.graded
    ]
    points = None if grade.failed else grade.points
    head = {"version": VERSION, "lab": grade.lab, "points": points, "most": grade.most}
    return dumped(head | {"problem": grade.problem, "notes": list(grade.notes), "items": items})


VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
"""When Gradescope shows the tests' results to students."""


def as_gradescope(grade: Grade, visibility: str = VISIBILITIES[0]) -> str:
    """The `results.json` of a Gradescope autograder. Raises `InputError` for an unknown visibility."""
    if visibility not in VISIBILITIES:
        raise unknown_name("visibility", visibility, VISIBILITIES)
    tests = [
        {
            "name": f"{each.item.name}: {each.item.title}",
            "score": each.points,
            "max_score": each.item.points,
            "status": "passed" if each.passed else "failed",
            "output": output(each),
        }
        for each in grade.graded
    ]
    return dumped(
        {
            "score": grade.points,
            "output": grade.problem or "\n".join(grade.notes),
            "visibility": visibility,
            "tests": tests,
        }
    )


README = "README.md"


def line_of_task(graded: Graded) -> int:
    """The line of the README with the step of an item that lacks points; 0 if it is unknown."""
    task = graded.finding.task if graded.finding is not None else ()
    return int(task[0].split(":")[1]) if task else 0


def as_classroom(grade: Grade) -> str:
    """A test runner's result in the form of GitHub Classroom's autograding reporter."""
    tests = [
        {
            "name": each.item.name,
            "status": "pass" if each.passed else "fail",
            "score": each.points,
            "max_score": each.item.points,
            "message": output(each) or grade.problem,
            "filename": README,
            "line_no": line_of_task(each),
        }
        for each in grade.graded
    ]
    status = "error" if grade.problem else "pass" if grade.points == grade.most else "fail"
    return dumped({"version": 1, "status": status, "max_score": grade.most, "tests": tests})


def as_junit(grade: Grade) -> str:
    """JUnit's XML: a test case for each item."""
    failed = sum(not each.passed for each in grade.graded)
    suite = ET.Element("testsuite", name=grade.lab, tests=str(len(grade.graded)), failures=str(failed), errors="0")
    for each in grade.graded:
        case = ET.SubElement(suite, "testcase", classname=grade.lab, name=each.item.name)
        if not each.passed:
            message = each.finding.cause if each.finding is not None else grade.problem
            ET.SubElement(case, "failure", message=message).text = output(each)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def dumped(document: dict[str, object]) -> str:
    """JSON with one line for each value."""
    return json.dumps(document, indent=2) + "\n"


FORMATS: dict[str, Callable[[Grade], str]] = {
    "text": text_of,
    "json": as_json,
    "gradescope": as_gradescope,
    "classroom": as_classroom,
    "junit": as_junit,
}
