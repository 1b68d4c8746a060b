"""What is graded: items with points, each a check of the submission, and findings: what is wrong, and what shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Exchange:
    """A packet that was sent to a port of a switch, and what the switch sent."""

    port: int
    packet: bytes
    got: tuple[tuple[int, bytes], ...]
    switch: str = ""


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
    """A submission does not do what an item asks for.

    `exchanges` lead to it; `expected` is what should have left for the last of them. `field` names what is wrong in
    what left, such as `values.v3`, or `port`, for the trace. `part` is what the submission keeps of the item's points.
    `got` is told in place of what left.
    """

    def __init__(
        self,
        cause: str,
        exchanges: tuple[Exchange, ...] = (),
        expected: tuple[tuple[int, bytes], ...] | tuple[str, ...] = (),
        field: str = "port",
        part: float = 0.0,
        got: tuple[str, ...] = (),
    ) -> None:
        super().__init__(cause)
        self.cause, self.exchanges, self.expected, self.field = cause, exchanges, expected, field
        self.part, self.got = part, got


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
