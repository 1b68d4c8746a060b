"""The check of an iteration's sums: inexact elements, and wrong numbers of workers.

An iteration is exact if every worker holds the exact sum in every element, and if the field `workers` of every sum that
the endpoints used is the number of workers that it covers, or the value for uncounted sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL
from inakit.traffic.endpoints.streams import TreePart
from inakit.traffic.sockets.ports import BoolArray

NAMED = 5
"""The most hosts with wrong sums that a message names."""


@dataclass(frozen=True)
class Held:
    """Sums of a tree's fragments, from fragment `first` of the tree on, that a host holds, and the expected ones.

    `sums` and `expected` are (fragments, values).
    """

    host: str
    part: TreePart
    sums: NDArray[np.int64]
    expected: NDArray[np.integer]
    first: int = 0

    def first_wrong(self) -> str:
        """The first wrong element, counted in the job's whole gradient."""
        at, value = np.argwhere(self.sums != self.expected)[0].tolist()
        fragment = self.first + at
        element = (self.part.start + fragment) * self.sums.shape[1] + value
        return (
            f"element {element} (tree {self.part.tree.number}, fragment {fragment}) at {self.host}, "
            f"expected {self.expected[at, value]}, got {self.sums[at, value]}"
        )


class WrongSums:
    """The wrong sums of a job: `note` checks them piece by piece, `text` describes them."""

    def __init__(self) -> None:
        self.wrong: dict[tuple[int, int], BoolArray] = {}
        self.hosts: list[str] = []
        self.first = ""

    def note(self, held: Held) -> None:
        """Compare the sums that a host holds with the expected ones."""
        if np.array_equal(held.sums, held.expected):
            return
        place = held.part.tree.number, held.first
        self.wrong[place] = self.wrong.get(place, False) | (held.sums != held.expected)
        self.hosts.append(held.host)
        self.first = self.first or held.first_wrong()

    def text(self) -> str:
        """A text with the number of wrong elements, their hosts, and the first one; empty if all are exact."""
        if not self.wrong:
            return ""
        elements = sum(int(mask.sum()) for mask in self.wrong.values())
        fragments = sum(int(mask.any(axis=1).sum()) for mask in self.wrong.values())
        return (
            f"{counted(elements, 'element')} in {counted(fragments, 'fragment')} {'is' if elements == 1 else 'are'} "
            f"wrong at {at_hosts(self.hosts)}; the first: {self.first}"
        )


def wrong_sums(held: Iterable[Held]) -> str:
    """A text about wrong sums of all hosts; empty if all are exact."""
    found = WrongSums()
    for each in held:
        found.note(each)
    return found.text()


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def at_hosts(hosts: Iterable[str]) -> str:
    """The number of hosts, and the names of the first ones."""
    names = list(dict.fromkeys(hosts))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{counted(len(names), 'host')} ({', '.join(names[:NAMED])}{more})"


def described(part: TreePart, label: int, fragment: int, said: int, covered: int) -> str:
    """A text with a sum that states a wrong number of workers, its sender, and both numbers."""
    tree = part.tree
    if label in tree.aggregator_of:
        sender = f"switch {tree.aggregator_of[label].switch}"
    else:
        sender = f"PS {tree.root}" if label == ROOT_LABEL else f"worker {tree.workers[label]}"
    return f"tree {tree.number}, fragment {fragment}, from {sender} (label {label}), says {said} and covers {covered}"
