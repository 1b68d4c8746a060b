"""What is done to a network while gradients cross it: faults of every link, and events at a time of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from experiments.exactness.networks import SERVER, last_switch
from experiments.exactness.virtual import NO_FAULTS, ROUND_S, Faults, VirtualNetwork
from traffic.reliable import Loop

Event = Callable[[VirtualNetwork, Loop], None]

WIPES_S, PAUSE_S, PAUSED_S, RESTART_S = (0.2, 0.3), 0.2, 5.0, 0.2
PAUSED = "w1"


@dataclass(frozen=True)
class Condition:
    """Faults all the time, and what `prepare` puts on the network's calendar."""

    faults: Faults = NO_FAULTS
    prepare: Event | None = None


def wipe_switches(network: VirtualNetwork, _: Loop) -> None:
    """The top switch, and then one at the leaves, forget everything while fragments are under way."""
    for switch, at_s in zip(("s1", last_switch(network.switches)), WIPES_S, strict=True):
        network.at[round(at_s / ROUND_S)].append(partial(network.wipe, switch))


def pause_worker(network: VirtualNetwork, _: Loop) -> None:
    """One worker neither sends nor hears anything for 5 s."""
    network.at[round(PAUSE_S / ROUND_S)].append(partial(network.silent.add, PAUSED))
    network.at[round((PAUSE_S + PAUSED_S) / ROUND_S)].append(partial(network.silent.remove, PAUSED))


def restart_server(network: VirtualNetwork, loop: Loop) -> None:
    """The PS forgets all that it has summed."""
    server = [host.name for host in loop.layout.hosts].index(SERVER)
    network.at[round(RESTART_S / ROUND_S)].append(partial(loop.servers.restart, server))


CONDITIONS = {
    "no loss": Condition(),
    "1 % loss": Condition(Faults(lose=0.01)),
    "10 % loss": Condition(Faults(lose=0.1)),
    "30 % loss": Condition(Faults(lose=0.3)),
    "duplicates": Condition(Faults(repeat=0.1)),
    "reordering": Condition(Faults(delay=0.1)),
    "switches wiped": Condition(prepare=wipe_switches),
    "worker paused": Condition(prepare=pause_worker),
    "PS restarted": Condition(Faults(lose=0.01), restart_server),
    "all at once": Condition(Faults(lose=0.05, repeat=0.05, delay=0.05), restart_server),
}
HEAVY = {"30 % loss": 6}
"""Conditions that are tried with so many times fewer fragments: of eight links in a row a packet survives 6 %."""
