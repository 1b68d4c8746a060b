"""What each event makes of the states of a network, for many states at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from automata import BYTE, Words
from events import FAULTS, OF_LATE, OF_NODE, Act, Event
from late_packets import entries_of, with_entry, words_of
from nodes import TIMEOUT
from partial_order import below
from state_space import Space

from inakit.experiments.state_explorer import BoolArray, Numbers, States, Successors

FIRST = np.uint64(0xFF)

Happening = Callable[[Space, int, States], BoolArray]
"""Changes states in place; returns where it made a node take a wrong sum for complete, (states,)."""


class NetworkSpace(Space):
    """The state space of a setting, with what its events lead to, for `StateExplorer`."""

    def successors(self, states: States, *, faults: bool) -> Iterator[Successors]:
        """For each event, the successors of those states in which it may happen and has to be tried."""
        chosen_place, chosen_slot = self.chosen(states)
        for number, event in enumerate(self.events):
            if event.act not in FAULTS or faults:
                possible, place, slot = where_possible(self, event, states)
                possible = possible & ((chosen_place < 0) | (chosen_place == place))
                parents = np.flatnonzero(possible & ((chosen_slot < 0) | (chosen_slot == slot)))
                if parents.size:
                    after = states[:, parents]
                    wrong = happen(self, event, after)
                    events = np.full(len(parents), number, np.int16)
                    yield Successors(events, after, parents, np.full(len(parents), event.act in FAULTS), wrong)


def where_possible(space: Space, event: Event, states: States) -> tuple[BoolArray, Numbers | int, Numbers | int]:
    """In which states an event may happen, (states,), and its place and slot; -1 if it belongs to no single one."""
    at = event.at
    if event.act is Act.EXPIRE:
        return space.silent(states, at) & space.someone_waits(states, at), -1, at
    if event.act in OF_NODE:
        name = space.names[at]
        return states[space.node_word[name]] != 0, space.places.index(below(space.places, name)), -1
    if event.act in OF_LATE:
        entry = entries_of(states[space.late])[at]
        return entry != 0, space.place_of[entry >> BYTE], space.slot_of[entry >> BYTE]
    place, slot = int(space.place_of[at]), int(space.slot_of[at])
    possible = space.waiting(states, slot)[space.channels[at].target] if event.act is Act.HURRY else states[at] != 0
    return possible, place, slot


def happen(space: Space, event: Event, states: States) -> BoolArray:
    """Let an event happen in all of `states`, which change in place; returns what a `Happening` does."""
    if event.act in OF_NODE:
        states[space.rounds] = 0
    elif event.act in FAULTS and event.act not in OF_LATE:
        space.reset_rounds(states, space.slot_of[event.at])
    wrong = HAPPENINGS[event.act](space, event.at, states)
    if states[space.late].any():
        forget_useless(space, states)
    return wrong


def arrive(space: Space, channel: int, states: States) -> BoolArray:
    """The oldest packet of a channel comes to its node."""
    packets = states[channel] & FIRST
    states[channel] >>= BYTE
    return space.step(channel, states, packets)


def lose(space: Space, channel: int, states: States) -> BoolArray:
    """The oldest packet of a channel is gone."""
    del space
    states[channel] >>= BYTE
    return np.zeros(states.shape[1], np.bool_)


def duplicate(space: Space, channel: int, states: States) -> BoolArray:
    """The oldest packet of a channel comes to its node, and a copy is held back."""
    hold_back(space, channel, states)
    return arrive(space, channel, states)


def delay(space: Space, channel: int, states: States) -> BoolArray:
    """The oldest packet of a channel is held back."""
    hold_back(space, channel, states)
    return lose(space, channel, states)


def hold_back(space: Space, channel: int, states: States) -> None:
    """Add the oldest packet of a channel, which stays there, to those that are held back."""
    states[space.late] = with_entry(states[space.late], channel, states[channel] & FIRST)


def arrive_late(space: Space, position: int, states: States) -> BoolArray:
    """The packet at a position among those held back comes to its node."""
    entries = entries_of(states[space.late])
    entry = entries[position].copy()
    entries[position] = 0
    states[space.late] = words_of(entries)
    return arrive_from(space, entry, states)


def arrive_late_again(space: Space, position: int, states: States) -> BoolArray:
    """A copy of the packet at a position among those held back comes to its node."""
    return arrive_from(space, entries_of(states[space.late])[position], states)


def arrive_from(space: Space, entry: Words, states: States) -> BoolArray:
    """Packets that were held back, of one channel in some states and of another in others, come to their nodes."""
    wrong = np.zeros(len(entry), np.bool_)
    for channel in np.unique(entry >> BYTE).tolist():
        here = entry >> BYTE == channel
        space.reset_rounds(states, space.slot_of[channel], here)
        wrong |= in_some(here, states, partial(space.step, channel, packets=entry[here] & FIRST))
    return wrong


def forget_useless(space: Space, states: States) -> None:
    """Forget packets that were held back and that their endpoint, in its state, has no use for any more."""
    entries = entries_of(states[space.late])
    for entry in entries:
        for channel in np.unique(entry[entry != 0] >> BYTE).tolist():
            target = space.channels[channel].target
            if target in space.forgetful:
                here = np.flatnonzero(entry >> BYTE == channel)
                now = states[space.node_word[target], here]
                entry[here[space.automata[target].useless(channel, now, entry[here] & FIRST)]] = 0
    states[space.late] = words_of(entries)


def hurry(space: Space, clock: int, states: States) -> BoolArray:
    """A worker times out in a slot, and sends again what it waits for there."""
    timeout = space.channels[clock].number(TIMEOUT)
    return space.step(clock, states, np.full(states.shape[1], timeout, np.uint64))


def expire(space: Space, slot: int, states: States) -> BoolArray:
    """All workers that wait for the slot time out, and a round has passed."""
    wrong = np.zeros(states.shape[1], np.bool_)
    for worker, waits in space.waiting(states, slot).items():
        wrong |= in_some(waits, states, partial(hurry, space, space.clock_of[worker, slot]))
    states[space.rounds] += np.uint64(1) << BYTE * np.uint64(slot)
    return wrong


def forget_all(space: Space, node: int, states: States) -> BoolArray:
    """Put a PS, or a switch with its entries, back into its first state."""
    states[space.node_word[space.names[node]]] = 0
    return np.zeros(states.shape[1], np.bool_)


def in_some(mask: BoolArray, states: States, change: Callable[[States], BoolArray]) -> BoolArray:
    """Apply `change` to the states under a mask; returns what a `Happening` does, for all states."""
    wrong = np.zeros(len(mask), np.bool_)
    some = states[:, mask]
    wrong[mask] = change(some)
    states[:, mask] = some
    return wrong


HAPPENINGS: dict[Act, Happening] = {
    Act.ARRIVE: arrive,
    Act.LATE: arrive_late,
    Act.EXPIRE: expire,
    Act.LOSE: lose,
    Act.DUPLICATE: duplicate,
    Act.LATE_DUPLICATE: arrive_late_again,
    Act.DELAY: delay,
    Act.HURRY: hurry,
    Act.WIPE: forget_all,
    Act.RESTART: forget_all,
}
