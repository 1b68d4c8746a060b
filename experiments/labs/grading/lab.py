"""A lab is data: files that students hand in, and items with points, each a check of the submission.

A check raises `WrongError` with a finding: the reason for lost points, and the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from inakit.experiments.labs.sandbox.untrusted import lines_printable, printable


@dataclass(frozen=True)
class Item:
    """A requirement on a submission, its points, and the step of the lab's README that states it.

    `check` takes the lab's bench, and raises `WrongError` if the submission fails. `part` is the tested part of the
    submission, in a lab with several parts.
    """

    name: str
    title: str
    step: str
    check: Callable[[Any], None]
    part: str = ""
    points: int = 0


def scored(lab: str, *items: Item) -> tuple[Item, ...]:
    """The items of a lab with their points, which the file `labs/points.yml` has for exactly these items, in order."""
    points = yaml.safe_load((Path(__file__).parents[3] / "labs" / "points.yml").read_text())[lab]
    assert list(points) == [each.name for each in items], f"labs/points.yml has {list(points)} for {lab}"
    return tuple(replace(each, points=points[each.name]) for each in items)


@dataclass(frozen=True)
class Lab:
    """A lab: the name of its folder, its title, its hours, the files to hand in, and the items.

    In a lab of one file, a submission without this file, or whose program does not load, is not graded; in a lab of
    several files each item that needs the file reports the problem. `begin` is called before the first item; it raises
    `InputError` for a submission that cannot be graded. `sandbox_only` is the reason why only the sandbox can run the
    lab; it is empty otherwise.
    """

    name: str
    title: str
    hours: str
    files: tuple[str, ...]
    items: tuple[Item, ...]
    sandbox_only: str = ""
    begin: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class Finding:
    """The reason why an item lacks points. All texts are complete lines, in which nothing of a student's is obeyed.

    `sent` are the packets in order; `expected` and `got` are the expected and the actual packets for the last one.
    """

    cause: str
    sent: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    task: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cause", lines_printable(self.cause))
        for name in (each.name for each in fields(self)[1:]):
            object.__setattr__(self, name, tuple(map(printable, getattr(self, name))))


class WrongError(Exception):
    """A submission fails an item; `part` is the fraction of the item's points that it keeps."""

    def __init__(
        self,
        cause: str,
        *,
        sent: Sequence[str] = (),
        expected: Sequence[str] = (),
        got: Sequence[str] = (),
        trace: Sequence[str] = (),
        part: float = 0.0,
    ) -> None:
        super().__init__(cause)
        self.finding, self.part = Finding(cause, tuple(sent), tuple(expected), tuple(got), tuple(trace)), part

    @property
    def cause(self) -> str:
        """The reason, in a sentence."""
        return self.finding.cause


@dataclass(frozen=True)
class Graded:
    """An item and a submission's points for it; `finding` explains missing points.

    Where the grader `failed`, there are no points to be told.
    """

    item: Item
    points: float
    finding: Finding | None = None
    failed: bool = False

    @property
    def passed(self) -> bool:
        """Whether the item has full points."""
        return self.points == self.item.points


@dataclass(frozen=True)
class Grade:
    """The result of a submission. `problem` is the reason, in one sentence, why nothing could be graded."""

    lab: str
    graded: tuple[Graded, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", lines_printable(self.problem))
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))

    @property
    def failed(self) -> str:
        """What the grader failed at, in a sentence; empty if it did not fail."""
        found = dict.fromkeys(each.finding.cause for each in self.graded if each.failed and each.finding is not None)
        return "; ".join(found)

    @property
    def points(self) -> float:
        """The sum of the submission's points."""
        return sum(each.points for each in self.graded)

    @property
    def most(self) -> int:
        """The maximum number of points."""
        return sum(each.item.points for each in self.graded)

    @property
    def complete(self) -> bool:
        """Whether no item has a finding, including items that carry no points."""
        return self.points == self.most and all(each.finding is None for each in self.graded)
