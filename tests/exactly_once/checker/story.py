"""A sequence of events in words: what came where, what was done with it, and what left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from endpoint_nodes import head_in
from events import OF_LATE, OF_NODE, Act, Event
from late_packets import entries_of
from moves import FIRST, happen
from nodes import TIMEOUT, SwitchNode
from state_space import Space

from inakit.experiments.state_explorer import States
from inakit.traffic.wire.packet_format import Flag, Kind


def story(space: Space, events: Sequence[Event]) -> str:
    """One line per event, from the first state on."""
    states = space.first()
    lines = []
    for number, event in enumerate(events, start=1):
        lines.append(f"{number:3}. {'; '.join(sentences(space, event, states))}")
        happen(space, event, states)
    return "\n".join([*lines, *(f"     {complaint}" for complaint in complaints(space, states))])


def sentences(space: Space, event: Event, states: States) -> Iterator[str]:
    """What happens when an event comes to one state, a clause at a time."""
    if event.act is Act.EXPIRE:
        yield f"slot {event.at}: {event.act.value}"
    elif event.act is Act.HURRY:
        yield f"{space.channels[event.at].target} {event.act.value}"
    elif event.act in OF_NODE:
        yield f"{space.names[event.at]} {event.act.value}"
    else:
        channel, packet = carried(space, event, states)
        link = space.channels[channel]
        yield f"{link.source} -> {link.target}: {words(space, link.packets[packet])} {event.act.value}"
        if event.act not in (Act.LOSE, Act.DELAY):
            automaton = space.automata[link.target]
            state = automaton.states[int(states[space.node_word[link.target], 0])]
            if isinstance(automaton.node, SwitchNode):
                yield ", ".join(automaton.node.events(state, link.in_port, link.packets[packet]))
            step = automaton.node.step(state, link.in_port, link.packets[packet])
            for port, packet_out in step.sent:
                yield f"{space.channels[automaton.output(port, packet_out)].target} is sent {words(space, packet_out)}"


def carried(space: Space, event: Event, states: States) -> tuple[int, int]:
    """The channel and the number of the packet that an event is about."""
    if event.act in OF_LATE:
        entry = int(entries_of(states[space.late])[event.at, 0])
        return entry >> 8, entry & 0xFF
    return event.at, int(states[event.at, 0] & FIRST)


def words(space: Space, packet: bytes) -> str:
    """A packet in words: its kind, fragment and sender, and what its flags say."""
    if packet == TIMEOUT:
        return "timeout"
    ina = head_in(packet)
    who = space.label_names[int(ina["job"]), int(ina["tree"]), int(ina["label"])]
    job = [f"of job {int(ina['job'])}"] if len(space.setting.problem.jobs) > 1 else []
    flags = [flag.name.lower() for flag in Flag if ina["flags"] & flag and flag.name]
    bits = [f"of children {int(ina['bitmap']):b}"] if ina["flags"] & Flag.PARTIAL else []
    return " ".join([Kind(ina["kind"]).name.lower(), f"{int(ina['seq'])} of {who}", *job, *flags, *bits])


def complaints(space: Space, states: States) -> Iterator[str]:
    """What is wrong in a state, and who still waits in it."""
    for name, automaton in space.automata.items():
        state = int(states[space.node_word[name], 0])
        if automaton.complaints[state]:
            yield automaton.complaints[state]
        if automaton.lacks[state]:
            yield f"{name} waits"
