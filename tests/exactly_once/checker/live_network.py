"""A network of nodes that are never put back into a state, with which the tables are compared."""

from __future__ import annotations

from endpoint_nodes import nodes_of
from events import OF_LATE, Act, Event
from nodes import TIMEOUT
from state_space import Space
from story import carried

from inakit.experiments.state_explorer import States
from inakit.switch.program.program import Program

ACTING = (Act.ARRIVE, Act.DUPLICATE, *OF_LATE)


class LiveNetwork:
    """The nodes of a space's setting, each started once, and the packets between them."""

    def __init__(self, program: Program, space: Space) -> None:
        self.space = space
        self.nodes = nodes_of(program, space.setting)
        self.contents: dict[int, list[bytes]] = {link: [] for link in space.links}
        for name, node in self.nodes.items():
            self.send(name, node.start())

    def send(self, name: str, sent: list[tuple[int, bytes]]) -> None:
        """Put what a node sends into its output channels."""
        for port, packet in sent:
            self.contents[self.space.automata[name].output(port, packet)].append(packet)

    def happen(self, event: Event, before: States) -> None:
        """Let an event happen as it does in the space, which is in the state `before`."""
        if event.act is Act.EXPIRE:
            for name, waits in self.space.waiting(before, event.at).items():
                self.send(name, self.nodes[name].act(event.at, TIMEOUT) if waits[0] else [])
        elif event.act is Act.HURRY:
            clock = self.space.channels[event.at]
            self.send(clock.target, self.nodes[clock.target].act(clock.slot, TIMEOUT))
        else:
            number, packet = carried(self.space, event, before)
            channel = self.space.channels[number]
            if event.act not in OF_LATE:
                self.contents[number].pop(0)
            if event.act in ACTING:
                sent = self.nodes[channel.target].act(channel.in_port, channel.packets[packet])
                self.send(channel.target, sent)

    def contents_in(self, states: States) -> dict[int, list[bytes]]:
        """The packets in each channel of one state, the oldest first."""
        numbers = {link: int(states[link, 0]).to_bytes(8, "little").rstrip(b"\0") for link in self.space.links}
        return {link: [self.space.channels[link].packets[n] for n in found] for link, found in numbers.items()}
