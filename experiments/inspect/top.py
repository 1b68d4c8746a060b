"""`inakit top`: links, switches and processors of a running network, live in the terminal, the busiest first.

Rates, loads and drops are differences of two samples of counters that the kernel keeps anyway. A sample reads three
small files, and makes one netlink dump of the root namespace and one of each host. It does not involve the switches or
the process that runs the network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import zip_longest
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from inakit.topo.errors import InputError, MachineError, as_root
from inakit.topo.live.ledger import PortFacts, RunningNetwork, find_network, running_networks
from inakit.traffic.measure.counters import CpuTime, InterfaceCounters, QueueReader, interfaces, processor_times
from inakit.traffic.measure.verdict import Limits
from inakit.traffic.sockets.packet_sockets import backlog_drops


@dataclass(frozen=True)
class Sample:
    """The counters at one moment, `at_s` of the monotonic clock.

    `queues`: drops of the queue of each interface in the root namespace. `host_queues`: drops of each host's queues.
    `backlog`: the drops of each processor's input queue since the sampler began.
    """

    at_s: float
    interfaces: Mapping[str, InterfaceCounters]
    queues: Mapping[str, int]
    host_queues: Mapping[str, int]
    processors: Mapping[int, CpuTime]
    backlog: tuple[int, ...]


@dataclass(frozen=True)
class LinkRate:
    """One direction of a link: bits of frames per second, their share of the capacity, and all drops so far."""

    sender: str
    receiver: str
    rate_bps: float
    load: float
    drops: int


@dataclass(frozen=True)
class SwitchRate:
    """Packets per second into and out of a switch, and the drops of its ports and their queues so far."""

    name: str
    in_pps: float
    out_pps: float
    drops: int


@dataclass(frozen=True)
class ProcessorRate:
    """Shares of a processor's time since the last sample, and the drops of its input queue since the sampler began."""

    number: int
    role: str
    idle: float
    softirq: float
    drops: int


@dataclass(frozen=True)
class Rates:
    """The rates between two samples; the busiest links and switches come first."""

    links: tuple[LinkRate, ...]
    switches: tuple[SwitchRate, ...]
    processors: tuple[ProcessorRate, ...]


class Sampler:
    """Takes samples of a network. A context manager: it keeps a socket in the namespace of every host."""

    def __init__(self, network: RunningNetwork) -> None:
        self.network = network
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._queues = stack.enter_context(QueueReader())
            self._hosts = {
                name: stack.enter_context(QueueReader(host.pid)) for name, host in self.network.hosts.items()
            }
            self._exits = stack.pop_all()
        self._backlog = backlog_drops()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def sample(self) -> Sample:
        return Sample(
            at_s=time.monotonic(),
            interfaces=interfaces(),
            queues=self._queues.drops(),
            host_queues={name: sum(reader.drops().values()) for name, reader in self._hosts.items()},
            processors=processor_times(),
            backlog=tuple(now - then for now, then in zip(backlog_drops(), self._backlog, strict=True)),
        )


def rates(network: RunningNetwork, before: Sample, after: Sample) -> Rates:
    """The rates from `before` to `after`, without interfaces that have since disappeared."""
    links = sorted(link_rates(network, before, after), key=lambda link: (-link.load, link.sender, link.receiver))
    switches = sorted(switch_rates(network, before, after), key=lambda switch: (-switch.in_pps, switch.name))
    return Rates(tuple(links), tuple(switches), tuple(processor_rates(network, before, after)))


def link_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[LinkRate]:
    """Yield the rate of each direction of each link once: what a switch sends, or receives from a host."""
    seconds = after.at_s - before.at_s
    for switch, port, then, now in ports(network, before, after):
        sent_bps = 8 * (now.sent_bytes - then.sent_bytes) / seconds
        drops = now.send_drops + after.queues.get(port.interface, 0)
        yield LinkRate(switch, port.peer, sent_bps, sent_bps / port.out_bps, drops)
        if port.peer in network.hosts:
            received_bps = 8 * (now.received_bytes - then.received_bytes) / seconds
            drops = now.receive_drops + after.host_queues.get(port.peer, 0)
            yield LinkRate(port.peer, switch, received_bps, received_bps / port.in_bps, drops)


def switch_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[SwitchRate]:
    """Yield packets per second in and out of every switch between two samples, and the drops of its ports so far."""
    seconds = after.at_s - before.at_s
    received, sent, drops = (dict.fromkeys(network.switches, 0) for _ in range(3))
    for switch, port, then, now in ports(network, before, after):
        received[switch] += now.received_packets - then.received_packets
        sent[switch] += now.sent_packets - then.sent_packets
        drops[switch] += now.receive_drops + now.send_drops + after.queues.get(port.interface, 0)
    for name in network.switches:
        yield SwitchRate(name, received[name] / seconds, sent[name] / seconds, drops[name])


def ports(
    network: RunningNetwork, before: Sample, after: Sample
) -> Iterator[tuple[str, PortFacts, InterfaceCounters, InterfaceCounters]]:
    for name, switch in network.switches.items():
        for port in switch.ports:
            then, now = (sample.interfaces.get(port.interface) for sample in (before, after))
            if then is not None and now is not None:
                yield name, port, then, now


def processor_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[ProcessorRate]:
    """Yield the idle share of each processor between two samples, and its role."""
    # Both /proc/net/softnet_stat and /proc/stat have a row for each processor that is online, in the same order.
    dropped = dict(zip(after.processors, after.backlog, strict=False))
    for number, now in after.processors.items():
        then = before.processors[number]
        passed = max(1, now.total - then.total)
        softirq = (now.softirq - then.softirq) / passed
        uses = {"endpoints": network.endpoint_processors, "switches": network.switch_processors}
        role = ", ".join(use for use, processors in uses.items() if number in processors)
        yield ProcessorRate(number, role, now.idle_since(then), softirq, dropped.get(number, 0))


FULL_LOAD = 0.95
"""A link with at least this load is highlighted."""
LEAST_IDLE = Limits().free
"""A processor with a lower idle share is highlighted: if the emulation causes it, a run is OVERLOADED."""
FIGURES = 22
"""The number of characters of the figures that follow a link's or a switch's name."""
GAP = "  "
HEAD_LINES = 3
"""The number of lines of the screen besides the rows of processors, links and switches."""


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
    """The widths of the lists of links and of switches on a screen of this many columns."""
    right = FIGURES + max(8, (columns - 2 * FIGURES - len(GAP)) * 3 // 8)
    return columns - len(GAP) - right, right


def widths_of(found: Rates) -> tuple[int, int]:
    """The widths of the lists of links and of switches at which no name is cut."""
    left = max((len(link_name(link)) for link in found.links), default=0)
    right = max((len(switch.name) for switch in found.switches), default=0)
    return left + FIGURES, right + FIGURES


def processor_line(processor: ProcessorRate) -> Text:
    """A processor's line, red if its idle share is below `LEAST_IDLE`."""
    text = (
        f"CPU {processor.number:<3} {processor.role:20} idle {processor.idle:4.0%}  "
        f"softirq {processor.softirq:4.0%}  drops {processor.drops}"
    )
    return Text(text, style="red" if processor.idle < LEAST_IDLE else "")


def link_lines(links: tuple[LinkRate, ...], width: int) -> list[Text]:
    """A heading, and a line for each direction of a link: Mbit/s of frames, share of the capacity, drops so far."""
    name = width - FIGURES
    lines = [Text(f"{'link':{name}}{'Mbit/s':>9}{'load':>6}{'drops':>7}", style="bold")]
    for link in links:
        style = "red" if link.drops else "yellow" if link.load >= FULL_LOAD else ""
        figures = f"{link.rate_bps / 1e6:9.3f}{link.load:6.0%}{link.drops:7}"
        lines.append(Text(f"{cut(link_name(link), name):{name}}{figures}", style=style))
    return lines


def link_name(link: LinkRate) -> str:
    return f"{link.sender} → {link.receiver}"


def switch_lines(switches: tuple[SwitchRate, ...], width: int) -> list[Text]:
    """A heading, and a line for each switch: packets per second in and out, drops of its ports so far."""
    name = width - FIGURES
    lines = [Text(f"{'switch':{name}}{'in/s':>8}{'out/s':>8}{'drops':>6}", style="bold")]
    for switch in switches:
        figures = f"{switch.in_pps:8.0f}{switch.out_pps:8.0f}{switch.drops:6}"
        lines.append(Text(f"{cut(switch.name, name):{name}}{figures}", style="red" if switch.drops else ""))
    return lines


def cut(text: str, width: int) -> str:
    """Cut the text to at most `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


LEAST_INTERVAL_S = 0.1
NICENESS = 10


def top(console: Console, run: str | None, interval_s: float, *, once: bool) -> None:
    """Watch a network until it ends or Ctrl-C; without a terminal, or with `once`, print one interval.

    Without `run`, the next network of the same process is watched after one ends. Raises `InakitError`.
    """
    if not LEAST_INTERVAL_S <= interval_s < inf:
        raise InputError(f"interval {interval_s:g}: at least {LEAST_INTERVAL_S:g} s is expected")
    network = find_network(run)
    if os.geteuid() != 0:
        raise MachineError(f"looking into the hosts of a network needs root: {as_root()}")
    allowed = os.sched_getaffinity(0).intersection(network.switch_processors)
    if allowed:
        os.sched_setaffinity(0, allowed)
    os.nice(NICENESS)
    if once or not console.is_terminal:
        print_once(network, interval_s)
        return
    watched: RunningNetwork | None = network
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while watched is not None:
            watch(live, watched, interval_s)
            watched = next_network(network.owner, interval_s) if run is None else None


def print_once(network: RunningNetwork, interval_s: float) -> None:
    """Print the rates of one interval, with a line for every link, switch and processor."""
    with Sampler(network) as sampler:
        before = sampler.sample()
        time.sleep(interval_s)
        found = rates(network, before, sampler.sample())
    rows = max(len(found.links), len(found.switches)) + len(found.processors) + HEAD_LINES
    print(screen(network, found, widths_of(found), 6 * rows).plain)


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
