"""The states that were visited: their fingerprints, and how each was reached first."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from state_space import States

Prints = NDArray[np.uint64]


@dataclass
class Batch:
    """States, (words, n), and for each the number of the state and of the event that it comes from, (n,)."""

    states: States
    parents: NDArray[np.int64]
    events: NDArray[np.int16]

    def where(self, mask: NDArray[np.generic]) -> Batch:
        """The states under a mask, or at these indices."""
        return Batch(self.states[:, mask], self.parents[mask], self.events[mask])


class History:
    """How each visited state was reached first; states are numbered in the order of their visit."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.parents: list[NDArray[np.int32]] = []
        self.events: list[NDArray[np.int16]] = []
        self.count = 0

    def add(self, batch: Batch) -> NDArray[np.int64]:
        """Add a batch of visited states, and return their numbers, (n,)."""
        self.starts.append(self.count)
        self.parents.append(batch.parents.astype(np.int32))
        self.events.append(batch.events)
        self.count += len(batch.parents)
        return np.arange(self.starts[-1], self.count)

    def events_to(self, number: int) -> list[int]:
        """The numbers of the events that lead from the first state to this one."""
        events: list[int] = []
        while number > 0:
            part = bisect_right(self.starts, number) - 1
            events.append(int(self.events[part][number - self.starts[part]]))
            number = int(self.parents[part][number - self.starts[part]])
        return events[::-1]


class Seen:
    """64-bit fingerprints of states, in sorted runs of growing size.

    Two states with the same fingerprint are taken for one. Among a hundred million states the chance of that is 3 in
    10,000.
    """

    def __init__(self) -> None:
        self.runs: list[Prints] = []

    def unseen(self, prints: Prints) -> NDArray[np.int64]:
        """The indices of the fingerprints that were not seen before; of equal ones, the first."""
        unique, first = np.unique(prints, return_index=True)
        new = np.ones(len(unique), np.bool_)
        for run in self.runs:
            place = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            new &= run[place] != unique
        return np.sort(first[new])

    def add(self, prints: Prints) -> None:
        """Note fingerprints, none of which was seen before."""
        run = np.sort(prints)
        while self.runs and len(self.runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate((self.runs.pop(), run)), kind="stable")
        if run.size:
            self.runs.append(run)


def fingerprints(states: States) -> Prints:
    """A hash of the words of each state, (states,)."""
    prints = np.zeros(states.shape[1], np.uint64)
    for word in states:
        prints ^= word
        prints *= np.uint64(0x9E3779B97F4A7C15)
        prints ^= prints >> np.uint64(29)
        prints *= np.uint64(0xBF58476D1CE4E5B9)
        prints ^= prints >> np.uint64(32)
    return prints
