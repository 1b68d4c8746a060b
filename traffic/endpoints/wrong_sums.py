"""What is wrong with the sums of an iteration: elements that are not exact, wrong numbers of workers.

An iteration is exact if every worker holds the exact sum in every element, and if every sum that the endpoints used
says in its field `workers` how many workers it covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.core.plan import ROOT_LABEL
from traffic.endpoints.streams import StreamLayout, TreePart
from traffic.sockets.ports import BoolArray, IntArray
from traffic.wire.frames import Frames

NAMED = 5
"""How many of the hosts with wrong sums are named."""


@dataclass(frozen=True)
class Held:
    """The sums of a tree's fragments that a host holds, and what they should be; both (fragments, values)."""

    host: str
    part: TreePart
    sums: NDArray[np.int64]
    expected: NDArray[np.integer]


def wrong_sums(held: Iterable[Held]) -> str:
    """How many elements of a job's sums are wrong, where, and the first of them; empty where all are exact."""
    different = [each for each in held if not np.array_equal(each.sums, each.expected)]
    if not different:
        return ""
    wrong: dict[int, BoolArray] = {}
    for each in different:
        number = each.part.tree.number
        wrong[number] = wrong.get(number, False) | (each.sums != each.expected)
    elements = sum(int(mask.sum()) for mask in wrong.values())
    fragments = sum(int(mask.any(axis=1).sum()) for mask in wrong.values())
    return (
        f"{counted(elements, 'element')} in {counted(fragments, 'fragment')} {'is' if elements == 1 else 'are'} wrong "
        f"at {at_hosts([each.host for each in different])}; the first: {first_wrong(different[0])}"
    )


def first_wrong(held: Held) -> str:
    """The first wrong element of a host, counted in the job's whole gradient."""
    fragment, value = np.argwhere(held.sums != held.expected)[0].tolist()
    element = (held.part.start + fragment) * held.sums.shape[1] + value
    return (
        f"element {element} (tree {held.part.tree.number}, fragment {fragment}) at {held.host}, "
        f"expected {held.expected[fragment, value]}, got {held.sums[fragment, value]}"
    )


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def at_hosts(hosts: Iterable[str]) -> str:
    """How many hosts, and the names of the first."""
    names = list(dict.fromkeys(hosts))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{counted(len(names), 'host')} ({', '.join(names[:NAMED])}{more})"


@dataclass(frozen=True)
class Miscount:
    """The first sum of a tree that says a wrong number of workers: `said` instead of `covered`."""

    label: int
    fragment: int
    said: int
    covered: int


class Miscounts:
    """By tree, how many sums said a wrong number of workers, and the first of them."""

    def __init__(self, layout: StreamLayout) -> None:
        self.layout = layout
        self.counts = np.zeros(len(layout.parts), np.int64)
        self.first: dict[int, Miscount] = {}

    def note(self, wrong: BoolArray, heads: Frames, tree: IntArray, fragment: IntArray, covered: IntArray) -> None:
        """Take in the packets under the mask `wrong`, of which each in truth has `covered` so many workers."""
        ina = heads["ina"]
        for at in np.flatnonzero(wrong).tolist():
            found = Miscount(int(ina["label"][at]), int(fragment[at]), int(ina["workers"][at]), int(covered[at]))
            self.first.setdefault(int(tree[at]), found)
        self.counts += np.bincount(tree[wrong], minlength=len(self.counts))

    def take(self, job_index: int) -> str:
        """What was found in a job's sums since this was asked last; empty where all counts are right."""
        trees = self.layout.trees_of(job_index)
        number = int(self.counts[trees].sum())
        found = {tree: self.first.pop(tree) for tree in trees.tolist() if tree in self.first}
        self.counts[trees] = 0
        if not number:
            return ""
        tree, first = min(found.items())
        says = "sum says" if number == 1 else "sums say"
        return f"{number:,} {says} a wrong number of workers; the first: {described(self.layout.parts[tree], first)}"


def described(part: TreePart, miscount: Miscount) -> str:
    """Which sum, of whom, and both numbers."""
    tree = part.tree
    if miscount.label in tree.aggregator_of:
        sender = f"switch {tree.aggregator_of[miscount.label].switch}"
    else:
        sender = f"PS {tree.root}" if miscount.label == ROOT_LABEL else f"worker {tree.workers[miscount.label]}"
    return (
        f"tree {tree.number}, fragment {miscount.fragment}, from {sender} (label {miscount.label}), "
        f"says {miscount.said} and covers {miscount.covered}"
    )
