"""A grade as other programs read it: JSON of the kit, of Gradescope and of GitHub Classroom, and JUnit's XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from inakit.experiments.labs.grading.item import Grade, Graded
from inakit.experiments.labs.report.text import finding_lines, text_of

VERSION = 1


def as_json(grade: Grade) -> str:
    """All of a grade."""
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
