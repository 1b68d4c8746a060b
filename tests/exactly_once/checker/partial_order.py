"""Which orders of events need not be tried, because other orders lead to the same states (partial-order reduction).

Events commute if they happen at different nodes, if they bring packets of different slots to one node, or if one comes
to a switch from below, where gradients are summed, and the other from above, from where results only pass through. So
each node, slot and direction is a *place*, with channels into it.

If all channels into a place have a packet, it is enough to go on with what may happen at this place: nothing elsewhere
changes that, and it changes nothing elsewhere (a persistent set). An empty channel may be ignored if it is dry: if it
stays empty until nothing is on its way anywhere, because all who could send by it have sent all that they have. Other
empty channels may still get a packet that comes first, so then everything that may happen anywhere is tried. Every
cycle of states has a state in which nothing is on its way. There everything is tried, so no event is put off for ever.

Once all workers have sent all fragments, slots no longer depend on one another, and are explored one after the other.
Packets that were held back and that their endpoint has no use for any more are forgotten.

All of this rests on how nodes behave. The functions `check_...` check that behaviour in the nodes' tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from automata import Automaton, Channel, push
from small_networks import Setting

from inakit.experiments.state_explorer import BoolArray, Numbers


class Place(NamedTuple):
    """A node, or one direction of a switch, for one slot: the channels by which packets come there."""

    node: str
    channels: tuple[int, ...]
    from_above: bool = False


def places_of(setting: Setting, channels: Sequence[Channel], links: Iterable[int], whole: Sequence[str]) -> list[Place]:
    """All places, those with few channels first.

    A node in `whole` has one place for all slots, because some event happens to all of them at once.
    """
    above = {pair for _, tree in setting.trees for pair in tree.result_parents.items() if not setting.both_ways}
    found: dict[tuple[str, int, bool], list[int]] = {}
    for number in links:
        channel = channels[number]
        down = channel.target in setting.entries and (channel.target, channel.source) in above
        slot = 0 if channel.target in whole and not down else channel.slot
        found.setdefault((channel.target, slot, down), []).append(number)
    places = [Place(node, tuple(numbers), down) for (node, _, down), numbers in found.items()]
    return sorted(places, key=lambda place: len(place.channels))


def below(places: Sequence[Place], switch: str) -> Place:
    """The one place of a switch to which all its gradients come."""
    (place,) = (place for place in places if place.node == switch and not place.from_above)
    return place


def chosen_places(places: Sequence[Place], filled: BoolArray, dry: BoolArray) -> Numbers:
    """The place at which it is enough to go on in each state, (states,); -1 for none.

    `filled` and `dry`, (channels, states), say which channels have a packet, and which stay empty.
    """
    chosen = np.full(filled.shape[1], -1)
    settled = filled | dry
    for number, place in reversed(list(enumerate(places))):
        into = list(place.channels)
        chosen[settled[into].all(axis=0) & filled[into].any(axis=0)] = number
    return chosen


class Upwards:
    """The channels towards the root. `before[channel]` are the channels whose packets may lead to a packet in it."""

    def __init__(self, channels: Sequence[Channel], links: Iterable[int], places: Sequence[Place]) -> None:
        from_above = {number for place in places if place.from_above for number in place.channels}
        targets = {channels[number].target for number in from_above}
        up = [number for number in links if number not in from_above and channels[number].target in targets]
        self.before = {
            number: [each for each in up if channels[each].target == channels[number].source
                     and channels[each].slot == channels[number].slot]
            for number in up
        }  # fmt: skip
        self.source = {number: channels[number].source for number in up}

    def dry(self, filled: BoolArray, late: BoolArray, mute: Mapping[str, BoolArray]) -> BoolArray:
        """Which channels stay empty until nothing is on its way, (channels, states).

        `late`, (channels, states), says for which channels a packet is held back; `mute` which workers send nothing.
        """
        dry = np.zeros_like(filled)

        def settle(number: int) -> BoolArray:
            source, before = self.source[number], self.before[number]
            silent = mute[source] if source in mute else ~late[before].any(axis=0)
            settled: BoolArray = np.logical_and.reduce([~filled[number], silent, *map(settle, before)])
            dry[number] = settled
            return settled

        for number in self.before:
            settle(number)
        return dry


def check_places(places: Sequence[Place], automata: Mapping[str, Automaton]) -> None:
    """Check that what comes to two places of one node commutes."""
    for one, other in combinations(places, 2):
        if one.node == other.node:
            for channels in product(one.channels, other.channels):
                check_commute(automata[one.node], *channels)


def check_timeouts(worker: Automaton, links: Iterable[int], clocks: Iterable[int]) -> None:
    """Check that a timeout in one slot commutes with what comes for other slots, and with their timeouts."""
    for clock in clocks:
        for other in (*links, *clocks):
            if worker.channels[other].slot != worker.channels[clock].slot:
                check_commute(worker, clock, other)


def check_commute(node: Automaton, a: int, b: int) -> None:
    """Check that packets by channel `a` and by channel `b` commute, in all states in which both were seen.

    Both orders must lead to the same state and send the same by each channel.
    """
    seen_a, seen_b = (node.table(channel)[: len(node.states)] >= 0 for channel in (a, b))
    state, p, q = (each.astype(np.uint64) for each in np.nonzero(seen_a[:, :, None] & seen_b[:, None, :]))
    orders = []
    for first, then in (((a, p), (b, q)), ((b, q), (a, p))):
        early = node.outcome(first[0], state, first[1])
        middle, bursts = node.following[early], {number: each[early] for number, each in node.bursts.items()}
        late = node.outcome(then[0], middle, then[1])
        orders.append([node.following[late], *(push(bursts[number], node.bursts[number][late]) for number in bursts)])
    same = all(np.array_equal(ab, ba) for ab, ba in zip(*orders, strict=True))
    assert same, f"what {node.name} gets by channels {a} and {b} does not commute: they belong to one place"


def check_endpoints(places: Sequence[Place], automata: Mapping[str, Automaton], forgetful: Sequence[str]) -> None:
    """Check that a packet which a forgetful endpoint forgets in a state is useless in all states that follow."""
    for place in places:
        if place.node in forgetful:
            node = automata[place.node]
            known = [step for channel in node.tables for _, steps in steps_by_packet(node, channel) for step in steps]
            edges = {(state, after) for state, after, _ in known if state != after}
            for channel in place.channels:
                for packet, steps in list(steps_by_packet(node, channel)):
                    check_useless(node, channel, packet, {state for state, *_ in steps}, edges)


def check_mute(worker: Automaton, links: Iterable[int]) -> None:
    """Check that a mute worker sends nothing and stays mute, whatever comes."""
    for channel in links:
        for packet, steps in steps_by_packet(worker, channel):
            for state, after, bursts in steps:
                silent = worker.mutes[after] and not any(bursts)
                assert silent or not worker.mutes[state], f"{worker.name} answers packet {packet} of channel {channel}"


def check_useless(node: Automaton, channel: int, packet: int, states: set[int], edges: set[tuple[int, int]]) -> None:
    """Check that a packet which is useless in one of `states` is so in all states that `edges` lead to from there."""

    def useless(state: int) -> bool:
        return bool(node.useless(channel, np.array([state], np.uint64), np.array([packet], np.uint64))[0])

    reached = list(filter(useless, states))
    for state in reached:  # the loop adds to the list
        for after in {after for before, after in edges if before == state} - set(reached):
            assert useless(after), f"{node.name} forgot packet {packet} of channel {channel}, which would have mattered"
            reached.append(after)


def steps_by_packet(node: Automaton, channel: int) -> Iterator[tuple[int, list[tuple[int, int, tuple[int, ...]]]]]:
    """For each packet that has come by a channel, all steps (state, next state, bursts)."""
    table = node.table(channel)
    for packet in np.flatnonzero((table >= 0).any(axis=0)).tolist():
        states = np.flatnonzero(table[:, packet] >= 0)
        outcomes = [node.outcomes[outcome] for outcome in table[states, packet]]
        yield packet, [(state, each[0], each[1:]) for state, each in zip(states.tolist(), outcomes, strict=True)]
