"""A lab is data: files that students hand in, and items with points, each a check of the submission.

A check raises `WrongError` with a finding: why the submission loses points, and what shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """Something that a submission has to do, its points, and the step of the lab's README that asks for it.

    `check` takes the lab's bench, and raises `WrongError` if the submission does not do it. `part` is the part of the
    submission that the check is about, in a lab that has several.
    """

    name: str
    title: str
    points: int
    step: str
    check: Callable[[Any], None]
    part: str = ""


@dataclass(frozen=True)
class Lab:
    """A lab: the name of its folder, its title, the hours that it takes, the files that are handed in, and the items.

    Without its only file, or with a program in it that does not load, a submission is not graded at all; in a lab of
    several files each item that needs the file says what is wrong. `begin` is called before the first item; it raises
    `InputError` for a submission that cannot be graded. `sandbox_only` says why no other target than the sandbox can
    run the lab, if none can.
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
    """Why an item has not all points. All texts are complete lines.

    `sent` are the packets in order, `expected` and `got` what should have left for the last of them and what did.
    """

    cause: str
    sent: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    task: tuple[str, ...] = ()


class WrongError(Exception):
    """A submission does not do what an item asks for; `part` is the part of the item's points that it keeps."""

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
    """An item and the points that a submission has for it; `finding` says why they are not all."""

    item: Item
    points: float
    finding: Finding | None = None

    @property
    def passed(self) -> bool:
        """Whether the item has all its points."""
        return self.points == self.item.points


@dataclass(frozen=True)
class Grade:
    """The result of a submission. `problem` says, in one sentence, why nothing could be graded."""

    lab: str
    seed: str
    graded: tuple[Graded, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """All points of the submission."""
        return sum(each.points for each in self.graded)

    @property
    def most(self) -> int:
        """The points that can be had."""
        return sum(each.item.points for each in self.graded)

    @property
    def complete(self) -> bool:
        """Whether nothing was found wrong, which items without points can tell, too."""
        return self.points == self.most and all(each.finding is None for each in self.graded)
