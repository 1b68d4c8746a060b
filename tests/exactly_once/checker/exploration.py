"""Visits all states to which up to a number of faults can lead a network, and looks for states that must not be.

These are states with a wrong sum, states from which nothing leads on, states in which no worker has learned a sum for
several rounds of timeouts, and, without faults, states after a timeout. States are visited in the order of the number
of faults that lead to them, and then of the number of events, so that what is found first took the fewest faults. A
state is visited once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from events import FAULTS, Event
from moves import successors
from numpy.typing import NDArray
from state_space import Space, States
from visited import Batch, History, Seen, fingerprints

CHUNK = 1 << 17
"""About how many states are expanded at a time."""


@dataclass
class Layer:
    """Counts of the states that this number of faults leads to, and no smaller one.

    `depth`: the most events after the last fault. `rounds`: the most rounds of timeouts in which no worker learned a
    sum.
    """

    faults: int
    states: int = 0
    transitions: int = 0
    depth: int = 0
    rounds: int = 0
    seconds: float = 0.0


@dataclass
class Found:
    """Something that must not be, in words, and the events that lead to it from the first state."""

    what: str
    events: list[Event]


class Exploration:
    """An exploration of the states of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.seen = Seen()
        self.layers: list[Layer] = []
        self.history = History()
        self.number_of = {event: number for number, event in enumerate(space.events)}
        self.found: Found | None = None

    def run(self, faults: int) -> Found | None:
        """Visit all states that up to `faults` faults lead to, or stop at the first thing that must not be."""
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
        """Visit all states that the frontier leads to without a fault; returns those that one fault more leads to."""
        faulty: list[Batch] = []
        known = Seen()  # the fingerprints of the states in `faulty`
        while frontier and not self.found:
            following: list[Batch] = []
            for batch in frontier:
                for event, reached in self.expand(batch, layer, faults=not last):
                    if event.act in FAULTS:
                        faulty += self.fresh(reached, known)
                    else:
                        following += self.fresh(reached, None)
            frontier = merged(following)
            layer.depth += 1
        return merged(faulty)

    def fresh(self, batch: Batch, known: Seen | None) -> list[Batch]:
        """The states of a batch that were not visited and are not `known`: one batch, or none."""
        prints = fingerprints(batch.states)
        new = self.seen.unseen(prints)
        if known is not None:
            new = new[known.unseen(prints[new])]
            known.add(prints[new])
        return [batch.where(new)] if new.size else []

    def expand(self, batch: Batch, layer: Layer, *, faults: bool) -> Iterator[tuple[Event, Batch]]:
        """Visit those states of a batch that were not visited before, and yield what each event makes of them."""
        prints = fingerprints(batch.states)
        new = self.seen.unseen(prints)
        self.seen.add(prints[new])
        batch = batch.where(new)
        numbers = self.history.add(batch)
        layer.states += len(numbers)
        self.check_progress(batch.states, numbers, layer)
        dead = ~self.space.over(batch.states)
        for event, states, parents, wrong in successors(self.space, batch.states, faults=faults):
            if self.found:
                return
            layer.transitions += len(parents)
            dead[parents] &= event.act in FAULTS
            if wrong.any():
                at = int(parents[np.flatnonzero(wrong)[0]])
                self.found = Found("a wrong sum", [*self.events_to(int(numbers[at])), event])
            yield event, Batch(states, numbers[parents], np.full(len(parents), self.number_of[event], np.int16))

        if dead.any() and not self.found:
            self.found = Found("a dead end", self.events_to(int(numbers[np.flatnonzero(dead)[0]])))

    def check_progress(self, states: States, numbers: NDArray[np.int64], layer: Layer) -> None:
        """Note a state in which no worker learns a sum any more or, without faults, in which one has timed out."""
        stuck = self.space.stuck(states)
        for slot in range(self.space.setting.slots):
            layer.rounds = max(layer.rounds, int(self.space.rounds_of(states, slot).max(initial=0)))
        if not layer.faults and not self.space.setting.collides:
            stuck |= states[self.space.rounds] > 0
        if stuck.any() and not self.found:
            what = "no progress" if layer.faults else "patience lost though nothing was"
            self.found = Found(what, self.events_to(int(numbers[np.flatnonzero(stuck)[0]])))

    def events_to(self, number: int) -> list[Event]:
        """The events that lead from the first state to the state with this number."""
        return [self.space.events[event] for event in self.history.events_to(number)]


def merged(batches: list[Batch]) -> list[Batch]:
    """The same states in batches of about `CHUNK`."""
    chunks: list[Batch] = []
    start = total = 0
    for end, batch in enumerate(batches, start=1):
        total += len(batch.parents)
        if total >= CHUNK or end == len(batches):
            chunks.append(joined(batches[start:end]))
            start, total = end, 0
    return chunks


def joined(batches: list[Batch]) -> Batch:
    """All states in one batch."""
    return Batch(
        np.concatenate([batch.states for batch in batches], axis=1),
        np.concatenate([batch.parents for batch in batches]),
        np.concatenate([batch.events for batch in batches]),
    )
