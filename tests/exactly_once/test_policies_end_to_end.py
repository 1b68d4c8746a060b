"""Every slot policy over one to three levels, under every fault, on real switches in this process: exact sums."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import pytest
from virtual import ROUND_S, Faults, VirtualNetwork

from experiments.exactness.networks import case
from planner.policies import POLICIES
from traffic.gradient import RandomGradients
from traffic.layout import lay_out
from traffic.measure import Measured
from traffic.packet import Event
from traffic.reliable import Loop, ReliableOptions

LEVELS = (1, 2, 3)
FRAGMENTS, FEW = 400, 60
STALL_S = 120
"""Of the network's own time. With 30 % loss on each of eight links one round trip in seventeen succeeds."""
Act = Callable[[VirtualNetwork, Loop], None]


class Inline(Executor):
    """Runs what is submitted at once, so that a test is the same every time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future


def nothing(network: VirtualNetwork, loop: Loop) -> None:
    """No event besides what links do."""


def wipe(network: VirtualNetwork, _: Loop) -> None:
    """The top switch and one at the leaves forget everything while fragments are under way."""
    for switch, at_s in (("s1", 0.2), (max(network.switches, key=lambda name: int(name[1:])), 0.3)):
        network.at[round(at_s / ROUND_S)].append(partial(network.wipe, switch))


def pause(network: VirtualNetwork, _: Loop) -> None:
    """One worker is silent for 5 s."""
    network.at[round(0.2 / ROUND_S)].append(lambda: network.silent.add("w1"))
    network.at[round(5.2 / ROUND_S)].append(lambda: network.silent.remove("w1"))


def restart(network: VirtualNetwork, loop: Loop) -> None:
    """The PS forgets what it has summed."""
    server = [host.name for host in loop.layout.hosts].index("ps")
    network.at[round(0.2 / ROUND_S)].append(lambda: loop.servers.restart(server))


CONDITIONS: dict[str, tuple[Faults, Act]] = {
    "no loss": (Faults(), nothing),
    "1 % loss": (Faults(lose=0.01), nothing),
    "10 % loss": (Faults(lose=0.1), nothing),
    "30 % loss": (Faults(lose=0.3), nothing),
    "duplicates": (Faults(repeat=0.1), nothing),
    "reordering": (Faults(delay=0.1), nothing),
    "switch wiped": (Faults(), wipe),
    "worker paused": (Faults(), pause),
    "PS restarted": (Faults(lose=0.01), restart),
    "everything": (Faults(lose=0.05, repeat=0.05, delay=0.05), restart),
}


def run(
    policy: str, levels: int, faults: Faults, act: Act, fragments: int = FRAGMENTS
) -> tuple[Measured, VirtualNetwork]:
    problem, plan = case(policy, levels, fragments=fragments)
    network = VirtualNetwork(problem, plan, faults)
    loop = Loop(
        lay_out(problem, plan, network.hosts), network, RandomGradients(1), ReliableOptions(stall_s=STALL_S), Inline()
    )
    act(network, loop)
    return loop.run(lambda _: None), network


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_sums_are_exact(policy: str, condition: str, levels: int) -> None:
    fragments = FEW if condition == "30 % loss" else FRAGMENTS
    measured, network = run(policy, levels, *CONDITIONS[condition], fragments)
    assert measured.exact
    assert sum(network.events(switch)[Event.ADDED] for switch in network.switches) > 0
