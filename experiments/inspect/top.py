"""`inakit top`: links, switches and processors of a running network, live in the terminal, the busiest first."""

from __future__ import annotations

import os
import time
from math import inf
from pathlib import Path

from rich.console import Console
from rich.live import Live

from inakit.experiments.inspect.rates import Sampler, rates
from inakit.experiments.inspect.screen import HEAD_LINES, screen, widths_of, widths_within
from inakit.topo.errors import InputError, MachineError, as_root
from inakit.topo.live.running import RunningNetwork, find_network, running_networks

LEAST_INTERVAL_S = 0.1
NICENESS = 10


def top(console: Console, run: str | None, interval_s: float, *, once: bool) -> None:
    """Watch a network until it ends or Ctrl-C; without a terminal, or for `once`, print one interval.

    Without `run`, the next network of the same process is watched when one ends. Raises `InakitError`.
    """
    if not LEAST_INTERVAL_S <= interval_s < inf:
        raise InputError(f"interval {interval_s:g}: at least {LEAST_INTERVAL_S:g} s is expected")
    network = find_network(run)
    if os.geteuid() != 0:
        raise MachineError(f"looking into the hosts of a network needs root: {as_root()}")
    lower_own_priority(network)
    if once or not console.is_terminal:
        print_once(network, interval_s)
        return
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            watch_all(live, network, interval_s, follow=run is None)
    except KeyboardInterrupt:
        return


def lower_own_priority(network: RunningNetwork) -> None:
    """Run only on the processors of switches, and there with low priority, so that the network is not disturbed."""
    allowed = os.sched_getaffinity(0).intersection(network.switch_processors)
    if allowed:
        os.sched_setaffinity(0, allowed)
    os.nice(NICENESS)


def print_once(network: RunningNetwork, interval_s: float) -> None:
    """Print the rates of one interval, with a line for every link, switch and processor."""
    with Sampler(network) as sampler:
        before = sampler.sample()
        time.sleep(interval_s)
        found = rates(network, before, sampler.sample())
    rows = max(len(found.links), len(found.switches)) + len(found.processors) + HEAD_LINES
    print(screen(network, found, widths_of(found), 6 * rows).plain)


def watch_all(live: Live, network: RunningNetwork, interval_s: float, *, follow: bool) -> None:
    """Watch one network and, with `follow`, the later networks of the same process."""
    watched: RunningNetwork | None = network
    while watched is not None:
        watch(live, watched, interval_s)
        watched = next_network(network.owner, interval_s) if follow else None


def watch(live: Live, network: RunningNetwork, interval_s: float) -> None:
    """Show one interval after another until the network ends."""
    with Sampler(network) as sampler:
        before = sampler.sample()
        while network.up:
            time.sleep(interval_s)
            after = sampler.sample()
            found, size = rates(network, before, after), live.console.size
            live.update(screen(network, found, widths_within(size.width), size.height), refresh=True)
            before = after


def next_network(owner: int, interval_s: float) -> RunningNetwork | None:
    """Wait for the next network of process `owner`, and return it; None if the process ends without one."""
    while Path(f"/proc/{owner}").exists():
        for network in running_networks():
            if network.owner == owner:
                return network
        time.sleep(interval_s)
    return None
