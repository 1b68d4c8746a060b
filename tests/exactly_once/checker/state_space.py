"""The states of a whole network, many at a time.

A state is a column of words: the content of every channel, the number of every node's state, the packets that were
held back (`late`), and for each slot the number of rounds of timeouts in which no worker has learned anything
(`rounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
from automata import BYTE, CLOCK, Automaton, Words, channels_of, push
from endpoint_nodes import nodes_of
from events import FAULTS, KINDS, NETWORK_FAULTS, OF_LATE, Act, Event
from late_packets import ENTRIES, entries_of
from partial_order import Upwards, check_endpoints, check_mute, check_places, check_timeouts, chosen_places, places_of
from small_networks import Setting

from inakit.experiments.state_explorer import BoolArray, Layer, Numbers, States
from inakit.planner.core.plan import ROOT_LABEL
from inakit.switch.program.program import Program

PATIENCE = 6
"""Rounds of timeouts, with no fault in between, within which some worker must learn something."""


class Space:
    """The state space of one setting with faults of these kinds. `ordered=False` tries every order of events."""

    def __init__(
        self, program: Program, setting: Setting, kinds: Iterable[str] = NETWORK_FAULTS, *, ordered: bool = True
    ) -> None:
        self.setting, self.ordered = setting, ordered
        self.nodes = nodes_of(program, setting)
        self.names = list(self.nodes)
        self.workers = sorted({worker for job in setting.problem.jobs for worker in job.workers})
        self.servers = sorted({server for job in setting.problem.jobs for server in job.servers})
        self.channels = channels_of(setting, self.workers)
        self.links = [number for number, channel in enumerate(self.channels) if channel.source != CLOCK]
        self.clock_of = {(c.target, c.slot): n for n, c in enumerate(self.channels) if c.source == CLOCK}
        self.slot_of = np.array([channel.slot for channel in self.channels])
        self.of_slot = [np.flatnonzero(self.slot_of == slot) for slot in range(setting.slots)]
        self.automata = {name: self.automaton(name) for name in self.nodes}
        # Where the words of a state are: those of channels come first.
        self.node_word = {name: len(self.channels) + position for position, name in enumerate(self.names)}
        self.late = len(self.channels) + len(self.nodes)
        self.rounds = self.late + 1
        self.note_faults({act for kind in kinds for act in KINDS[kind]})

    def automaton(self, name: str) -> Automaton:
        """The automaton of a node, with its output channels."""
        ports = self.setting.problem.fabric.port_numbers
        outputs: dict[int, list[int]] = {}
        for number in self.links:
            channel = self.channels[number]
            if channel.source == name:
                outputs.setdefault(ports[name, channel.target], []).append(number)
        return Automaton(name, self.nodes[name], self.channels, outputs)

    def note_faults(self, faults: set[Act]) -> None:
        """Note which events may happen with these kinds of faults, and at which places."""
        self.events = [event for event in self.all_events() if event.act not in FAULTS or event.act in faults]
        self.hurried, wiped, restarted = (act in faults for act in (Act.HURRY, Act.WIPE, Act.RESTART))
        self.forgetful = [*self.workers, *self.servers * (not restarted)]
        whole = [*self.workers * self.hurried, *list(self.setting.entries) * wiped, *self.servers * restarted]
        self.apart = not (wiped or restarted)  # what happens in one slot does not touch the others
        self.places = places_of(self.setting, self.channels, self.links, whole)
        self.upwards = Upwards(self.channels, self.links, self.places)
        # The clock's channels lead to the places of the workers.
        self.place_of = np.zeros(len(self.channels), np.int64)
        for number, place in enumerate(self.places):
            self.place_of[list(place.channels)] = number
            if place.node in self.workers:
                self.place_of[[self.clock_of[place.node, self.channels[link].slot] for link in place.channels]] = number

    def all_events(self) -> Iterator[Event]:
        """Every event that any kind of fault allows."""
        for act in (Act.ARRIVE, Act.LOSE, Act.DUPLICATE, Act.DELAY):
            yield from (Event(act, number) for number in self.links)
        yield from (Event(act, position) for act in OF_LATE for position in range(ENTRIES))
        yield from (Event(Act.HURRY, clock) for clock in self.clock_of.values())
        yield from (Event(Act.WIPE, self.names.index(switch)) for switch in self.setting.entries)
        yield from (Event(Act.RESTART, self.names.index(server)) for server in self.servers)
        yield from (Event(Act.EXPIRE, slot) for slot in range(self.setting.slots))

    @cached_property
    def label_names(self) -> dict[tuple[int, int, int], str]:
        """The node that each (job, tree, label) stands for."""
        names: dict[tuple[int, int, int], str] = {}
        for job, tree in self.setting.trees:
            labels = tree.workers | {each.label: each.switch for each in tree.aggregators} | {ROOT_LABEL: tree.root}
            names |= {(job, tree.number, label): name for label, name in labels.items()}
        return names

    def check(self) -> None:
        """Raise `AssertionError` unless what the nodes were seen to do justifies every order that was left out."""
        check_places(self.places, self.automata)
        check_endpoints(self.places, self.automata, self.forgetful)
        for name in self.workers:
            check_mute(self.automata[name], self.links)
            clocks = [self.clock_of[name, slot] for slot in range(self.setting.slots)]
            check_timeouts(self.automata[name], [n for n in self.links if self.channels[n].target == name], clocks)

    # -- states

    def first(self) -> States:
        """The first state, (words, 1): every worker has sent its first fragments."""
        state = np.zeros((self.rounds + 1, 1), np.uint64)
        for name, automaton in self.automata.items():
            number, bursts = automaton.start()
            state[self.node_word[name]] = number
            for channel, burst in bursts.items():
                state[channel] = burst
        return state

    def waiting(self, states: States, slot: int) -> dict[str, BoolArray]:
        """For each worker, in which states it has sent a fragment of a slot and lacks its sum, (states,)."""
        return {name: self.automata[name].awaiting[states[self.node_word[name]], slot] for name in self.workers}

    def someone_waits(self, states: States, slot: int) -> BoolArray:
        """In which states some worker lacks the sum of what it has sent in a slot, (states,)."""
        waits: BoolArray = np.logical_or.reduce(list(self.waiting(states, slot).values()))
        return waits

    def silent(self, states: States, slot: int) -> BoolArray:
        """In which states nothing of a slot is on its way, except packets that were held back: (states,)."""
        filled: BoolArray = np.logical_or.reduce(states[self.of_slot[slot]] != 0)
        return ~filled

    def rounds_of(self, states: States, slot: int) -> Words:
        """The number of rounds of timeouts in which nobody has learned a sum of the slot, (states,)."""
        rounds: Words = states[self.rounds] >> BYTE * np.uint64(slot) & np.uint64(0xFF)
        return rounds

    def without_progress(self, states: States, layer: Layer) -> BoolArray:
        """In which states no worker learns a sum any more or, without faults, in which one has timed out, (states,)."""
        stuck = np.zeros(states.shape[1], np.bool_)
        for slot in range(self.setting.slots):
            rounds = self.rounds_of(states, slot)
            layer.rounds = max(layer.rounds, int(rounds.max(initial=0)))
            stuck |= (rounds >= PATIENCE) & self.silent(states, slot) & self.someone_waits(states, slot)
        if not layer.faults and not self.setting.collides:
            stuck |= states[self.rounds] > 0
        return stuck

    def over(self, states: States) -> BoolArray:
        """In which states every worker has every sum and nothing is on its way, (states,)."""
        lacks = [self.automata[name].unfinished[states[self.node_word[name]]] for name in self.workers]
        more = [*(states[channel] != 0 for channel in self.links), states[self.late] != 0]
        over: BoolArray = ~np.logical_or.reduce([*lacks, *more])
        return over

    # -- what is enough to try

    def chosen(self, states: States) -> tuple[Numbers, Numbers]:
        """The place and the slot, (states,) each, at which it is enough to go on; -1 where all places must be tried."""
        filled = states[: len(self.channels)] != 0
        nowhere = np.full(filled.shape[1], -1)
        if not self.ordered:
            return nowhere, nowhere
        if self.hurried:  # a worker may send again at any time, so nobody is mute
            return chosen_places(self.places, filled, np.zeros_like(filled)), nowhere
        late = np.zeros_like(filled)
        for entry in entries_of(states[self.late]):
            here = np.flatnonzero(entry)
            late[(entry[here] >> BYTE).astype(np.int64), here] = True
        mute = {name: self.automata[name].mute[states[self.node_word[name]]] for name in self.workers}
        slots = nowhere
        if self.apart:
            slots = np.where(np.logical_and.reduce(list(mute.values())), self.first_slot(states, filled | late), -1)
            filled &= (slots < 0) | (slots == self.slot_of[:, None])
        return chosen_places(self.places, filled, self.upwards.dry(filled, late, mute)), slots

    def first_slot(self, states: States, busy: BoolArray) -> Numbers:
        """The first slot in which something may happen, (states,); -1 for none."""
        first = np.full(states.shape[1], -1)
        for slot in reversed(range(self.setting.slots)):
            first[np.logical_or.reduce(busy[self.of_slot[slot]]) | self.someone_waits(states, slot)] = slot
        return first

    def step(self, channel: int, states: States, packets: Words) -> BoolArray:
        """Let `packets[state]` come out of a channel into its node; changes `states` in place.

        Returns where that made the node take a wrong sum for complete, (states,).
        """
        target = self.channels[channel].target
        automaton, word = self.automata[target], self.node_word[target]
        before = states[word].copy()
        outcome = automaton.outcome(channel, before, packets)
        states[word] = automaton.following[outcome]
        for output, bursts in automaton.bursts.items():
            states[output] = push(states[output], bursts[outcome])
        if target in self.workers and channel in self.links:
            self.reset_rounds(states, self.slot_of[channel], before != states[word])
        wrong: BoolArray = automaton.wrong[states[word]]
        return wrong

    def reset_rounds(self, states: States, slot: int, where: BoolArray | slice = slice(None)) -> None:
        """Count rounds of timeouts of a slot from 0 again, because something of it has changed."""
        states[self.rounds, where] &= ~(np.uint64(0xFF) << BYTE * np.uint64(slot))
