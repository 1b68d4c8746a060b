"""Explores the states of a network of automata: every order of events, and every place for up to a number of faults.

A `Space` defines the events that can happen in a state and their outcomes. The explorer visits each state once, ordered
by the number of faults that lead to it, then by the number of events, and stops at the first error: an event that does
something wrong, a state from which no event leads on, a state without progress. So an error is found with the fewest
faults, and with the fewest events among these.

States are handled many at a time, as arrays: a state is a column of 64-bit words. Lab 4 explores programs of students
with it, `tests/exactly_once` the kit's own program and endpoints.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

States = NDArray[np.uint64]
"""(words, states)"""
BoolArray = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Prints = NDArray[np.uint64]
Event_co = TypeVar("Event_co", covariant=True)

CHUNK = 1 << 17
"""The approximate number of states that are expanded at a time."""


class Successors(NamedTuple):
    """The outcomes of events: the numbers of the events, the resulting states, and the columns of their predecessors.

    `faulty` marks the events that are faults, `wrong` those that did something wrong. All but `states` are (n,).
    """

    events: NDArray[np.int16]
    states: States
    parents: Numbers
    faulty: BoolArray
    wrong: BoolArray


@dataclass
class Layer:
    """Counts of the states that this number of faults leads to, and no smaller one.

    `depth`: the most events after the last fault. `rounds`: the most rounds of timeouts in which no worker got a sum.
    """

    faults: int
    states: int = 0
    transitions: int = 0
    depth: int = 0
    rounds: int = 0
    seconds: float = 0.0


class Space(Protocol[Event_co]):
    """The states of a network, and the events between them."""

    @property
    def events(self) -> Sequence[Event_co]:
        """The events, by their numbers."""
        ...

    def first(self) -> States:
        """The first state, (words, 1)."""
        ...

    def successors(self, states: States, *, faults: bool) -> Iterator[Successors]:
        """The outcomes of all possible events; of faults only if `faults` is set."""
        ...

    def over(self, states: States) -> BoolArray:
        """The states in which no event has to happen any more, as a mask (states,)."""
        ...

    def without_progress(self, states: States, layer: Layer) -> BoolArray:
        """The states that show a lack of progress, as a mask (states,)."""
        ...

    def check(self) -> None:
        """Raise `AssertionError` unless the exploration justifies every order that was left out."""
        ...


@dataclass
class Found(Generic[Event_co]):
    """An error in words, and the events that lead to it from the first state."""

    what: str
    events: list[Event_co]


@dataclass
class Batch:
    """States, (words, n), and for each the numbers of its predecessor and of the event between them, (n,)."""

    states: States
    parents: Numbers
    events: NDArray[np.int16]

    def where(self, mask: NDArray[np.generic]) -> Batch:
        """The states under a mask, or at these indices."""
        return Batch(self.states[:, mask], self.parents[mask], self.events[mask])


class StateExplorer(Generic[Event_co]):
    """An exploration of the states of a space. `layers` has its counts."""

    def __init__(self, space: Space[Event_co]) -> None:
        self.space = space
        self.seen = Seen()
        self.layers: list[Layer] = []
        self.history = History()
        self.found: Found[Event_co] | None = None

    def run(self, faults: int) -> Found[Event_co] | None:
        """Visit all states that up to `faults` faults lead to, or stop at the first error."""
        frontier = [Batch(self.space.first(), np.array([-1]), np.array([-1], np.int16))]
        for used in range(faults + 1):
            self.layers.append(Layer(used))
            began = time.perf_counter()
            frontier = self.visit(self.layers[-1], frontier, last=used == faults)
            self.layers[-1].seconds = time.perf_counter() - began
            if self.found:
                return self.found
        self.space.check()
        return None

    def visit(self, layer: Layer, frontier: list[Batch], *, last: bool) -> list[Batch]:
        """Visit all states that the frontier leads to without a fault; return those that one more fault leads to."""
        faulty: list[Batch] = []
        known = Seen()  # the fingerprints of the states in `faulty`
        while frontier:
            following: list[Batch] = []
            for batch in frontier:
                for after, by_fault in self.expand(batch, layer, faults=not last):
                    if not by_fault.all():
                        following += self.fresh(after.where(~by_fault) if by_fault.any() else after, None)
                    if by_fault.any():
                        faulty += self.fresh(after if by_fault.all() else after.where(by_fault), known)
                if self.found:
                    return []
            frontier = merged(following)
            layer.depth += 1
        return merged(faulty)

    def fresh(self, batch: Batch, known: Seen | None) -> list[Batch]:
        """Return the states of a batch that were not visited and are not `known`: one batch, or none."""
        prints = fingerprints(batch.states)
        new = self.seen.unseen(prints)
        if known is not None:
            new = new[known.unseen(prints[new])]
            known.add(prints[new])
        return [batch.where(new)] if new.size else []

    def expand(self, batch: Batch, layer: Layer, *, faults: bool) -> Iterator[tuple[Batch, BoolArray]]:
        """Visit the new states of a batch; yield the successors, and a mask of the events that are faults."""
        prints = fingerprints(batch.states)
        new = self.seen.unseen(prints)
        self.seen.add(prints[new])
        batch = batch.where(new)
        numbers = self.history.add(batch)
        layer.states += len(numbers)
        stuck = self.space.without_progress(batch.states, layer)
        if stuck.any():
            what = "no progress" if layer.faults else "a timeout though nothing was lost"
            self.found = Found(what, self.events_to(numbers[stuck][0]))
        dead = ~self.space.over(batch.states)
        for events, states, parents, faulty, wrong in self.space.successors(batch.states, faults=faults):
            if self.found:
                return
            layer.transitions += len(parents)
            dead[parents[~faulty]] = False
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                self.found = Found(
                    "a wrong sum", [*self.events_to(numbers[parents[at]]), self.space.events[int(events[at])]]
                )
            yield Batch(states, numbers[parents], events), faulty
        if dead.any() and not self.found:
            self.found = Found("a dead end", self.events_to(numbers[dead][0]))

    def events_to(self, number: np.int64) -> list[Event_co]:
        """The events that lead from the first state to the state with this number."""
        return [self.space.events[event] for event in self.history.events_to(int(number))]


def merged(batches: list[Batch]) -> list[Batch]:
    """Merge the states into batches of about `CHUNK`."""
    chunks: list[Batch] = []
    start = total = 0
    for end, batch in enumerate(batches, start=1):
        total += len(batch.parents)
        if total >= CHUNK or end == len(batches):
            some = batches[start:end]
            chunks.append(
                Batch(
                    np.concatenate([each.states for each in some], axis=1),
                    np.concatenate([each.parents for each in some]),
                    np.concatenate([each.events for each in some]),
                )
            )
            start, total = end, 0
    return chunks


class History:
    """The predecessor and event by which each visited state was reached first; states are numbered as visited."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.parents: list[NDArray[np.int32]] = []
        self.events: list[NDArray[np.int16]] = []
        self.count = 0

    def add(self, batch: Batch) -> Numbers:
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

    Two states with the same fingerprint count as one. Among a hundred million states the probability of that is 3 in
    10,000; states of one word all have different fingerprints.
    """

    def __init__(self) -> None:
        self.runs: list[Prints] = []

    def unseen(self, prints: Prints) -> Numbers:
        """The indices of the fingerprints that were not seen before; of equal ones, the first."""
        unique, first = np.unique(prints, return_index=True)
        new = np.ones(len(unique), np.bool_)
        for run in self.runs:
            place = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            new &= run[place] != unique
        return np.sort(first[new])

    def add(self, prints: Prints) -> None:
        """Add fingerprints, none of which was seen before."""
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
