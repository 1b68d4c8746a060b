"""The highest rate of every target, chain of switches and workload, and the seconds that each chain's set-up takes.

Two workers are at the first switch, the parameter server at the last. One process sends all packets, through packet
sockets in the workers' namespaces; the last switch's interface towards the server counts the arriving packets. Every
fragment crosses every switch and no link is shaped, so that only the switches and the sending process limit the rate.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from math import isnan, nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.table import Table

from inakit.experiments.run.console import figures
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.planner.install.ina_program import (
    ADMISSION,
    ADMIT,
    AGGREGATE,
    AGGREGATION,
    FORWARD,
    INA,
    INA_HW,
    IPV4_ROUTE,
    PIPELINE,
    PROGRAMS,
    SEND,
    SET_PIPELINE,
    DataPlaneProgram,
)
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.program.bmv2_json import check_sources
from inakit.switch.targets import TARGETS, Target
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.topo.live.netlink import index_of, inside, network_namespace, remove_shaping
from inakit.topo.live.network import Network
from inakit.topo.live.priority import on_endpoint_processor, steer_packets, steering_file
from inakit.traffic.sockets.packet_sockets import Messages, send_all
from inakit.traffic.wire.packet_format import FRAGMENT, FRAME, UDP_PORT, Frames, Kind, new_frames

WORKERS = ("w1", "w2")
SERVER = "ps"
UNSHAPED_BPS = 1e10
JOB = TREE = 1
SLOTS = 256
FRAMES_PER_CALL = 32


def chain(length: int) -> Fabric:
    """Build a fabric of `length` switches in a row: workers at the first, server at the last. Port 3 leads onwards."""
    names = [f"s{number}" for number in range(1, length + 1)]
    switches = tuple(Switch(name, 1, contiguous_pipelines(3, 1)) for name in names)
    onwards = [(a, b, 3, 1) for a, b in pairwise(names)]
    cables = [
        *((worker, "s1", 0, port) for port, worker in enumerate(WORKERS, start=1)),
        *onwards,
        (names[-1], SERVER, 3, 0),
    ]
    links = tuple(Link(a, b, at_a, at_b, UNSHAPED_BPS, UNSHAPED_BPS) for a, b, at_a, at_b in cables)
    return Fabric(f"chain of {length}", tuple(Host(name) for name in (*WORKERS, SERVER)), switches, links)


def entries_of(number: int, server_ipv4: int) -> SwitchEntries:
    """The entries of switch `number` of the chain, from 1. It aggregates its children under label 100 + number."""
    children = {1: 1, 2: 2} if number == 1 else {100 + number - 1: 1}
    tables = [TableEntry(PIPELINE, (port,), SET_PIPELINE, (0,)) for port in (1, 2, 3)]
    for bit, (label, port) in enumerate(children.items()):
        own = (1 << bit, (1 << len(children)) - 1, 0, SLOTS, 100 + number, SLOTS, 0)
        tables.append(TableEntry(ADMISSION, (port, Kind.GRADIENT, JOB, TREE, label), ADMIT))
        tables.append(TableEntry(AGGREGATION, (0, JOB, TREE, label), AGGREGATE, own))
    tables.append(TableEntry(FORWARD, (JOB, TREE, 100 + number), SEND, (3,)))
    tables.append(TableEntry(IPV4_ROUTE, (server_ipv4,), SEND, (3,)))
    return SwitchEntries(f"s{number}", tuple(tables))


class Bench:
    """A running chain, as a context manager. `network_s` and `entries_s` are the seconds that its set-up took."""

    def __init__(self, target: Target, length: int, program: DataPlaneProgram = INA) -> None:
        self.fabric = chain(length)
        node_class: Callable[..., Any] = target.node_class()
        self.network = Network(self.fabric, partial(node_class, program=program.path))
        self.network_s = self.entries_s = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            start = time.perf_counter()
            stack.enter_context(self.network)
            started = time.perf_counter()
            for number, switch in enumerate(self.network.switches.values(), start=1):
                switch.install(entries_of(number, self.network.addresses[SERVER].ipv4))
            self.network_s, self.entries_s = started - start, time.perf_counter() - started
            self._remove_shaping()
            self._leave_arrivals()
            self.sockets = [stack.enter_context(self._sender(worker)) for worker in WORKERS]
            last = self.network.interface(self.fabric.switches[-1].name, SERVER).name
            self.counter = Path(f"/sys/class/net/{last}/statistics/tx_packets")
            self._exits = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def _remove_shaping(self) -> None:
        for link in self.fabric.links:
            for node, peer in ((link.a, link.b), (link.b, link.a)):
                interface = self.network.interface(node, peer)
                with inside(interface.pid) as netlink:
                    remove_shaping(netlink, index_of(interface.name))

    def _leave_arrivals(self) -> None:
        """Turn packet steering off at the server: it has no reader, so the CPU that sends a packet can also drop it."""
        server = self.network.hosts[SERVER]
        if steering_file(server.interface, server.pid).exists():
            steer_packets(server.interface, None, server.pid)

    def _sender(self, worker: str) -> socket.socket:
        host = self.network.hosts[worker]
        with network_namespace(host.pid):
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sender.bind((host.interface, 0))
        return sender

    def frames(self, worker: str, udp_port: int) -> Frames:
        """The frames that one `sendmmsg` call sends. Their destination MAC address is no host's, so no host answers."""
        source, server = self.network.addresses[worker], self.network.addresses[SERVER]
        frames = new_frames(
            FRAMES_PER_CALL,
            src_mac=source.mac_text, dst_mac="02:ff:ff:ff:ff:ff",
            src_ip=source.ipv4_text, dst_ip=server.ipv4_text,
            ina={"kind": Kind.GRADIENT, "job": JOB, "tree": TREE, "workers": 1, "label": 1 + WORKERS.index(worker)},
        )  # fmt: skip
        frames["udp"]["dst_port"] = udp_port
        frames["values"] = np.arange(FRAGMENT.values)
        return frames

    def arrived(self) -> int:
        """The number of packets that the last switch has sent to the server since its interface was created."""
        return int(self.counter.read_text())


PLAIN_PORT = 9
SUMMING = f"{FRAGMENT.values}-element aggregation"
BURST_S = 0.001
"""Each kernel call hands over a worker's packets of this many seconds, but at most `FRAMES_PER_CALL`."""
QUIET_S, QUIET_PER_SWITCH_S = 0.06, 0.01
PATIENCE_S = 15.0


@dataclass(frozen=True)
class Workload:
    """The packets that workers send, the packets that reach the server for each packet sent, and the program."""

    name: str
    udp_port: int
    yield_per_packet: float
    program: DataPlaneProgram = INA


WORKLOADS = (
    Workload("plain forwarding", PLAIN_PORT, 1.0),
    Workload(SUMMING, UDP_PORT, 1 / len(WORKERS)),
    Workload(f"{SUMMING}, {INA_HW.name}", UDP_PORT, 1 / len(WORKERS), INA_HW),
)


@dataclass(frozen=True)
class RateTrial:
    """The result of one trial: packets per second into the first switch, and the share of packets lost, from 0 to 1."""

    rate_pps: float
    loss: float


RunTrial = Callable[[float, float | None], RateTrial]
"""A function that runs a trial, given its seconds and its packets per second (None: at full speed)."""


class Sender:
    """Sends fragments in order of their numbers. The workers take turns, and all send the same fragments.

    Numbers rise from trial to trial, because `ina_hw` keeps a finished sum in its slot until a newer fragment comes.
    """

    def __init__(self, bench: Bench, workload: Workload) -> None:
        self.sockets = bench.sockets
        self.frames = [bench.frames(worker, workload.udp_port) for worker in WORKERS]
        self.messages = [Messages() for _ in WORKERS]
        for messages, frames in zip(self.messages, self.frames, strict=True):
            messages.point_at(frames, FRAME.itemsize)
            frames["ina"]["seq"] = frames["ina"]["slot"] = np.arange(FRAMES_PER_CALL)

    def send_for(self, seconds: float, rate_pps: float | None) -> int:
        """Send at `rate_pps` packets per second, or at full speed; return the number of packets sent."""
        start, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            if rate_pps is not None and sent > elapsed * rate_pps:
                time.sleep(sent / rate_pps - elapsed)
            sent += self._send_once(burst_of(rate_pps))
        return sent

    def _send_once(self, burst: int) -> int:
        for worker, sender, messages, frames in zip(WORKERS, self.sockets, self.messages, self.frames, strict=True):
            send_all(sender.fileno(), messages.address, burst, worker)
            ina = frames["ina"]
            ina["seq"] += burst
            ina["slot"] = ina["seq"] % SLOTS
        return burst * len(WORKERS)


def burst_of(rate_pps: float | None) -> int:
    """The packets that a worker hands to the kernel in one call: few at low rates, to spare slow switches' queues."""
    if rate_pps is None:
        return FRAMES_PER_CALL
    return min(FRAMES_PER_CALL, max(1, int(rate_pps * BURST_S / len(WORKERS))))


def run_trial(bench: Bench, workload: Workload, sender: Sender, seconds: float, rate_pps: float | None) -> RateTrial:
    """Send, wait until no more packets arrive, and count. Time spent in or before queues is sending time."""
    with on_endpoint_processor():
        before, start = bench.arrived(), time.perf_counter()
        sent = sender.send_for(seconds, rate_pps)
        expected = before + round(sent * workload.yield_per_packet)
        arrived, last_arrival = wait_for_arrivals(bench, expected)
    for switch in bench.network.switches.values():
        switch.check()
    return RateTrial(sent / (last_arrival - start), 1 - (arrived - before) / (expected - before))


def wait_for_arrivals(bench: Bench, expected: int) -> tuple[int, float]:
    """Wait until all packets have arrived or no more do. Return their number, and the time of the last arrival."""
    last_count, last_time = bench.arrived(), time.perf_counter()
    deadline, quiet_s = last_time + PATIENCE_S, QUIET_S + QUIET_PER_SWITCH_S * len(bench.network.switches)
    while last_count < expected and (now := time.perf_counter()) < min(last_time + quiet_s, deadline):
        time.sleep(0.002)
        if (count := bench.arrived()) != last_count:
            last_count, last_time = count, now
    return last_count, last_time


LOSS_LIMITS = (0.002, 0.0)
TRIAL_S = 0.4
CONFIRMATION_S = 0.8
STEP = 0.9
"""The ratio of each rate of the search to the next higher one."""
STEPS = 85


def highest_rates(trial: RunTrial, limits: Sequence[float] = LOSS_LIMITS) -> list[float]:
    """For each loss limit, loosest first, the highest rate in packets per second that keeps within it; 0 if none does.

    The search tries full speed first, and then its measured rate times 1, `STEP`, `STEP`**2 and so on. Bisection with
    short trials finds the highest of these rates that keeps to the loosest limit. From there the search goes down
    step by step, with longer trials, until one of them keeps to each limit in turn.
    """
    flat_out = trial(TRIAL_S, None)
    rates = [None, *(flat_out.rate_pps * STEP**step for step in range(STEPS))]
    step = 0 if flat_out.loss <= limits[0] else bisect_rates(trial, rates, limits[0])
    carried: list[RateTrial] = []
    for limit in limits:
        while step < len(rates) and not any(result.loss <= limit for result in carried):
            asked = rates[step]  # a higher measured rate counts as this one
            result = trial(CONFIRMATION_S, asked)
            carried.append(RateTrial(min(asked or result.rate_pps, result.rate_pps), result.loss))
            step += 1
    return [max((result.rate_pps for result in carried if result.loss <= limit), default=0.0) for limit in limits]


def bisect_rates(trial: RunTrial, rates: Sequence[float | None], limit: float) -> int:
    """Return the index, from 1, of the first of the falling `rates` within the limit; that of the last if none is."""
    low, high = 1, len(rates) - 1
    while low < high:
        middle = (low + high) // 2
        if trial(TRIAL_S, rates[middle]).loss <= limit:
            high = middle
        else:
            low = middle + 1
    return low


CHAIN_LENGTHS = (1, 5, 15, 45)


@dataclass(frozen=True)
class Case:
    """A workload on a chain of `switches` switches."""

    target: Target
    switches: int
    workload: Workload

    def rates(self, rates_pps: Sequence[float | None]) -> tuple[Measurement, ...]:
        limits = zip(LOSS_LIMITS, rates_pps, strict=True)
        return tuple(
            Measurement(self.target.name, self.workload.name, self.switches, limit, rate) for limit, rate in limits
        )

    def __str__(self) -> str:
        return f"{self.target.name}, chain of {self.switches}, {self.workload.name}"


@dataclass(frozen=True)
class Measurement:
    """The highest rate of one workload at one loss limit, in packets per second into the first switch.

    The rate is None if measuring failed.
    """

    target: str
    workload: str
    switches: int
    loss_limit: float
    rate_pps: float | None


@dataclass(frozen=True)
class SetUp:
    """Seconds to start a chain's network with its switches, and to fill their tables."""

    target: str
    switches: int
    network_s: float
    entries_s: float


@dataclass(frozen=True)
class ChainRates:
    """The results of a case: a rate for each loss limit, and the set-up of its chain."""

    rates: tuple[Measurement, ...]
    set_up: SetUp

    def __str__(self) -> str:
        words = {limit: f"loss ≤ {limit:.1%}" if limit else "no loss" for limit in LOSS_LIMITS}
        return "; ".join(f"{each.rate_pps:,.0f} packets/s ({words[each.loss_limit]})" for each in self.rates)


@dataclass(frozen=True)
class Findings:
    """The results of a bench: every highest rate, every set-up time, and the cases that failed, with the reason."""

    rates: tuple[Measurement, ...]
    set_ups: tuple[SetUp, ...]
    failed: tuple[tuple[Case, str], ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row[Case, ChainRates]]) -> Findings:
        """The results of the rows that were measured. Set-up is that of the first workload."""
        nothing = [None] * len(LOSS_LIMITS)
        return cls(
            tuple(rate for row in rows for rate in (row.found.rates if row.found else row.asked.rates(nothing))),
            tuple(row.found.set_up for row in rows if row.found and row.asked.workload is WORKLOADS[0]),
            tuple((row.asked, row.error) for row in rows if row.error is not None),
        )


def targets_here() -> list[Target]:
    """Return the targets that this machine can run. Raises `InputError` for a stale P4 program."""
    for program in PROGRAMS.values():
        check_sources(program.path)
    return [target for target in TARGETS.values() if target.missing() is None]


def lacking() -> list[str]:
    """A line for each target that cannot run here, with the reason."""
    reasons = {target.name: target.missing() for target in TARGETS.values()}
    return [f"{name} cannot run here: {reason}" for name, reason in reasons.items() if reason is not None]


def run_bench(
    targets: Sequence[Target],
    console: Console,
    show: Callable[[Findings], None],
    lengths: Sequence[int] = CHAIN_LENGTHS,
) -> Findings:
    """Measure every workload on every chain and target, print each result, and `show` all at the end. Needs root.

    After an error or an interrupt `show` gets the results so far. Targets take turns, so that compared results are near
    each other in time.
    """
    cases = [Case(target, length, work) for length, work, target in product(lengths, WORKLOADS, targets)]

    def shown(rows: Sequence[Row[Case, ChainRates]]) -> Findings:
        findings = Findings.of(rows)
        show(findings)
        return findings

    return measure_rows(cases, measure_case, str, shown, console)


def measure_case(case: Case) -> ChainRates:
    """Set up the chain, and find the highest rate of the workload for every loss limit. Raises `InakitError`."""
    with Bench(case.target, case.switches, case.workload.program) as bench:
        rates = highest_rates(partial(run_trial, bench, case.workload, Sender(bench, case.workload)))
        set_up = SetUp(case.target.name, case.switches, bench.network_s, bench.entries_s)
        return ChainRates(case.rates(rates), set_up)


def print_findings(console: Console, findings: Findings) -> None:
    """Print the tables of measured rates and set-up times, and the reasons why other cases failed."""
    if findings.rates:
        console.print(rate_table(findings), set_up_table(findings))
    for case, error in findings.failed:
        console.print(f"{case} {FAILED}: {error}", highlight=False, markup=False, soft_wrap=True)


def rate_table(findings: Findings) -> Table:
    """A row for each workload, loss limit and chain; a column for each target, and for its ratio to the first one."""
    rates = findings.rates
    targets = list(dict.fromkeys(m.target for m in rates))
    columns = figures("switches", *targets, *(f"{each} : {targets[0]}" for each in targets[1:]))
    title = "Packets per second into the first switch"
    table = Table("workload", "loss", *columns, title=title, caption=CAPTION, caption_justify="left")
    found = {(m.workload, m.loss_limit, m.switches, m.target): m.rate_pps for m in rates}
    groups = list(dict.fromkeys((m.workload, m.loss_limit) for m in rates))
    lengths = list(dict.fromkeys(m.switches for m in rates))
    for workload, limit in groups:
        for place, length in enumerate(lengths):
            row = [found.get((workload, limit, length, target), NOT_MEASURED) for target in targets]
            heads = ("", "") if place else (workload, f"≤ {limit:.1%}" if limit else "none")
            ratios = (ratio(rate, row[0]) for rate in row[1:])
            cells = [*heads, str(length), *map(number, row), *ratios]
            table.add_row(*cells, end_section=length == lengths[-1])
    return table


FAILED, NOT_MEASURED = "failed", nan
CAPTION = (
    f"{FRAGMENT.wire_bytes}-byte packets of {len(WORKERS)} workers through a chain of switches; every packet "
    "passes all of them; no link is shaped. One process sends; its processor time is included."
)


def number(rate: float | None) -> str:
    """Format a rate; a dash for a rate that was not measured."""
    if rate is None:
        return FAILED
    return "-" if isnan(rate) else f"{rate:,.0f}"


def ratio(rate: float | None, reference: float | None) -> str:
    """Format a rate divided by the reference rate; a dash if either is missing or the reference is 0."""
    return "-" if rate is None or not reference or isnan(rate / reference) else f"{rate / reference:.1f}"


def set_up_table(findings: Findings) -> Table:
    """A table of the seconds to set up each chain: a row for each length, a column for each target."""
    targets = list(dict.fromkeys(each.target for each in findings.set_ups))
    title = "Set-up: seconds for the network with its switches + their entries"
    table = Table(*figures("switches", *targets), title=title)
    found = {(each.switches, each.target): f"{each.network_s:.1f} + {each.entries_s:.2f}" for each in findings.set_ups}
    for length in dict.fromkeys(each.switches for each in findings.set_ups):
        table.add_row(str(length), *(found.get((length, target), "-") for target in targets))
    return table
