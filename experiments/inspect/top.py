"""`inakit top`: links, switches and processors of a running network, live in the terminal, the busiest first."""

from __future__ import annotations

import os
import time
from itertools import zip_longest
from math import inf
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from experiments.inspect.rates import LinkRate, ProcessorRate, Rates, Sampler, SwitchRate, rates
from topo.errors import InputError, MachineError
from topo.live.running import RunningNetwork, find_network, running_networks
from traffic.measure.verdict import Limits

LEAST_INTERVAL_S = 0.1
NICENESS = 10
FULL_LOAD = 0.95
"""From this load on a link is highlighted."""
LEAST_IDLE = Limits().free
"""Below this idle share a processor is highlighted: if it is the emulation's own work, a run is OVERLOADED by it."""
FIGURES = 22
"""Columns of the figures behind a link's or a switch's name."""
GAP = "  "
HEAD_LINES = 3
"""Lines that are no row of a processor, a link or a switch."""


def top(console: Console, run: str | None, interval_s: float, *, once: bool) -> None:
    """Watch a network until it ends or Ctrl-C; without a terminal, or for `once`, print one interval.

    Without `run`, the next network of the same process is watched when one ends. Raises `InakitError`.
    """
    if not LEAST_INTERVAL_S <= interval_s < inf:
        raise InputError(f"interval {interval_s:g}: at least {LEAST_INTERVAL_S:g} s is expected")
    network = find_network(run)
    if os.geteuid() != 0:
        raise MachineError("looking into the hosts of a network needs root: run the same command with sudo")
    stay_out_of_the_way(network)
    if once or not console.is_terminal:
        print_once(network, interval_s)
        return
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            watch_all(live, network, interval_s, follow=run is None)
    except KeyboardInterrupt:
        return


def stay_out_of_the_way(network: RunningNetwork) -> None:
    """Leave the endpoints their processor, and let others go first on those of switches."""
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
    """Watch one network, and, to follow its process, those that it starts after it."""
    watched: RunningNetwork | None = network
    while watched is not None:
        watch(live, watched, interval_s)
        watched = next_network(network.owner, interval_s) if follow else None


def watch(live: Live, network: RunningNetwork, interval_s: float) -> None:
    """Show an interval after the other until the network ends."""
    with Sampler(network) as sampler:
        before = sampler.sample()
        while network.up:
            time.sleep(interval_s)
            after = sampler.sample()
            found, size = rates(network, before, after), live.console.size
            live.update(screen(network, found, widths_within(size.width), size.height), refresh=True)
            before = after


def next_network(owner: int, interval_s: float) -> RunningNetwork | None:
    """The network that process `owner` has next; None when it ends without one."""
    while Path(f"/proc/{owner}").exists():
        for network in running_networks():
            if network.owner == owner:
                return network
        time.sleep(interval_s)
    return None


# ---- the screen ---------------------------------------------------------------------------------


def screen(network: RunningNetwork, found: Rates, widths: tuple[int, int], rows: int) -> Text:
    """The busiest processors above, links to the left and switches to the right, in `rows` lines."""
    processors = sorted(found.processors, key=lambda processor: processor.idle)[: max(2, rows // 6)]
    room = rows - HEAD_LINES - len(processors)
    left, right = widths
    title = f"{network.fabric}: {len(network.switches)} switches, {len(network.hosts)} hosts; network {network.id}"
    lists = zip_longest(link_lines(found.links[:room], left), switch_lines(found.switches[:room], right))
    lines = [
        Text(cut(title, left + len(GAP) + right), style="bold"),
        *map(processor_line, processors),
        Text(),
        *(Text.assemble(link or " " * left, GAP, switch or "") for link, switch in lists),
    ]
    return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)


def widths_within(columns: int) -> tuple[int, int]:
    """How wide the lists of links and of switches are on a screen of so many columns."""
    right = FIGURES + max(8, (columns - 2 * FIGURES - len(GAP)) * 3 // 8)
    return columns - len(GAP) - right, right


def widths_of(found: Rates) -> tuple[int, int]:
    """The same where nothing is to be cut."""
    left = max((len(link_name(link)) for link in found.links), default=0)
    right = max((len(switch.name) for switch in found.switches), default=0)
    return left + FIGURES, right + FIGURES


def processor_line(processor: ProcessorRate) -> Text:
    """A processor's line, red where it was hardly ever idle."""
    text = (
        f"CPU {processor.number:<3} {processor.role:20} idle {processor.idle:4.0%}  "
        f"softirq {processor.softirq:4.0%}  drops {processor.drops}"
    )
    return Text(text, style="red" if processor.idle < LEAST_IDLE else "")


def link_lines(links: tuple[LinkRate, ...], width: int) -> list[Text]:
    """Mbit/s of frames, share of the capacity, and drops so far of each direction."""
    name = width - FIGURES
    lines = [Text(f"{'link':{name}}{'Mbit/s':>9}{'load':>6}{'drops':>7}", style="bold")]
    for link in links:
        style = "red" if link.drops else "yellow" if link.load >= FULL_LOAD else ""
        figures = f"{link.rate_bps / 1e6:9.3f}{link.load:6.0%}{link.drops:7}"
        lines.append(Text(f"{cut(link_name(link), name):{name}}{figures}", style=style))
    return lines


def link_name(link: LinkRate) -> str:
    """Who sends to whom over a link."""
    return f"{link.sender} → {link.receiver}"


def switch_lines(switches: tuple[SwitchRate, ...], width: int) -> list[Text]:
    """Packets per second in and out, and drops so far of each switch's ports."""
    name = width - FIGURES
    lines = [Text(f"{'switch':{name}}{'in/s':>8}{'out/s':>8}{'drops':>6}", style="bold")]
    for switch in switches:
        figures = f"{switch.in_pps:8.0f}{switch.out_pps:8.0f}{switch.drops:6}"
        lines.append(Text(f"{cut(switch.name, name):{name}}{figures}", style="red" if switch.drops else ""))
    return lines


def cut(text: str, width: int) -> str:
    """The text in at most `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
