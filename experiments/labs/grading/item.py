"""What is graded: items with points, each a check that drives the submission and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inakit.experiments.labs.grading.finding import Finding


@dataclass(frozen=True)
class Item:
    """Something that a submission has to do, its points, and the step of the lab's README that asks for it.

    `check` takes the lab's bench, and raises `WrongError` if the submission does not do it.
    """

    name: str
    title: str
    points: int
    step: str
    check: Callable[[Any], None]


@dataclass(frozen=True)
class Graded:
    """An item and the points that a submission has for it; `finding` says why they are not all."""

    item: Item
    points: float
    finding: Finding | None = None


@dataclass(frozen=True)
class Grade:
    """The result of a submission. `problem` says, in one sentence, why nothing could be graded."""

    lab: str
    seed: str
    graded: tuple[Graded, ...]
    problem: str = ""
    notes: tuple[str, ...] = field(default=())

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
