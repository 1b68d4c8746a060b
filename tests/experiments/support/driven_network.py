"""A network in virtual time whose hosts send what a test gives them, packet by packet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld, drain
from inakit.experiments.worlds.world import Wiring
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import EVENTS
from inakit.planner.install.plan_entries import entries
from inakit.traffic.wire.packet_format import FRAME, Event, Frames


@contextmanager
def driven_network(problem: Problem, plan: Plan) -> Iterator[LiveVirtualNetwork]:
    """The plan's network, all of whose hosts listen."""
    with VirtualWorld().up(problem.fabric, entries(problem, plan), Wiring(), lambda _: None) as network:
        network.endpoints(network.hosts)
        yield network


def send_from(network: LiveVirtualNetwork, host: str, frames: Frames) -> None:
    """Put whole frames on a host's link, now."""
    links = np.full(len(frames), network.network.uplink(host), np.uint32)
    network.engine.send(links, np.full(len(frames), FRAME.itemsize, np.uint32), frames)


def pass_on(network: LiveVirtualNetwork) -> None:
    """Let everything arrive that is under way."""
    drain(network.engine)


def count(network: LiveVirtualNetwork, event: Event) -> int:
    """How often an event of the P4 program happened, over all switches."""
    return sum(int(switch.read_counter(EVENTS)[0][event]) for switch in network.switches.values())
