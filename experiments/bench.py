"""Packets per second that each installed switch target carries without loss, side by side.

One process sends, from packet sockets in the workers' namespaces and as fast as it is told, so every
figure includes the sender's share of the machine. What arrives is counted by the last interface, and no
link is shaped: the switches are all there is to measure.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from switch.entries import SwitchEntries, TableEntry
from switch.target import TARGETS, Target
from topo.errors import MachineError, RunError
from topo.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from topo.netlink import index_of, inside, remove_shaping
from topo.network import Network
from traffic.packet import FRAGMENT, FRAME, UDP_PORT, Frames, Kind, new_frames
from traffic.sockets import Messages, libc, network_namespace

CHAIN_LENGTHS = (1, 5)
WORKERS = ("w1", "w2")
SERVER = "ps"
UNSHAPED_BPS = 1e10
JOB = TREE = 1
SLOTS = 256
PLAIN_PORT = 9

LOSS_LIMITS = (0.002, 0.0)
TRIAL_S = 0.4
CONFIRMATION_S = 0.8
STEP = 0.9
"""Each rate that is tried is this share of the one above it."""
STEPS = 70
FRAMES_PER_CALL = 32
QUIET_S = 0.06
PATIENCE_S = 5.0


# ---- the network -------------------------------------------------------------------------------


def chain(length: int) -> Fabric:
    """Two workers at the first of `length` switches in a row, the server at the last. Port 3 leads on."""
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
    """Entries of the switch at place `number`, from 1: it aggregates its children under the label 100 + number."""
    children = {1: 1, 2: 2} if number == 1 else {100 + number - 1: 1}
    tables = [TableEntry("InaIngress.pipeline", (port,), "InaIngress.set_pipeline", (0,)) for port in (1, 2, 3)]
    for bit, (label, port) in enumerate(children.items()):
        own = (1 << bit, (1 << len(children)) - 1, 0, SLOTS, 100 + number, 0)
        tables.append(TableEntry("InaIngress.admission", (port, Kind.GRADIENT, JOB, TREE, label), "InaIngress.admit"))
        tables.append(TableEntry("InaIngress.aggregation", (0, JOB, TREE, label), "InaIngress.aggregate", own))
    tables.append(TableEntry("InaIngress.forward", (JOB, TREE, 100 + number), "InaIngress.send", (3,)))
    tables.append(TableEntry("InaIngress.ipv4_route", (server_ipv4,), "InaIngress.send", (3,)))
    return SwitchEntries(f"s{number}", tuple(tables))


class Bench:
    """A running chain. A context manager."""

    def __init__(self, target: Target, length: int) -> None:
        self.fabric = chain(length)
        self.network = Network(self.fabric, target.node_class())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.network)
            for number, switch in enumerate(self.network.switches.values(), start=1):
                switch.install(entries_of(number, self.network.addresses[SERVER].ipv4))
            self._remove_shaping()
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

    def _sender(self, worker: str) -> socket.socket:
        host = self.network.hosts[worker]
        with network_namespace(host.pid):
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sender.bind((host.interface, 0))
        return sender

    def frames(self, worker: str, udp_port: int) -> Frames:
        """Frames that one call sends. No host has their MAC address, so that nobody answers them."""
        source, server = self.network.addresses[worker], self.network.addresses[SERVER]
        frames = new_frames(
            FRAMES_PER_CALL,
            src_mac=source.mac_text, dst_mac="02:ff:ff:ff:ff:ff",
            src_ip=source.ipv4_text, dst_ip=server.ipv4_text,
        )  # fmt: skip
        frames["udp"]["dst_port"] = udp_port
        ina = frames["ina"]
        ina["kind"], ina["job"], ina["tree"], ina["workers"] = Kind.GRADIENT, JOB, TREE, 1
        ina["label"] = 1 + WORKERS.index(worker)
        frames["values"] = np.arange(FRAGMENT.values)
        return frames

    def arrived(self) -> int:
        return int(self.counter.read_text())


# ---- one trial ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """What the workers send, and how many packets reach the server for each that a worker sends."""

    name: str
    udp_port: int
    yield_per_packet: float


WORKLOADS = (
    Workload("plain forwarding", PLAIN_PORT, 1.0),
    Workload(f"{FRAGMENT.values}-element aggregation", UDP_PORT, 1 / len(WORKERS)),
)


@dataclass(frozen=True)
class Trial:
    """What came of sending for a while: packets per second into the first switch, and the share lost."""

    rate_pps: float
    loss: float


RunTrial = Callable[[float, float | None], Trial]
"""Sends for so many seconds at so many packets per second, or (None) flat out."""


class Sender:
    """Sends fragments in order, the same ones from every worker in turn."""

    def __init__(self, bench: Bench, workload: Workload) -> None:
        self.sockets = bench.sockets
        self.frames = [bench.frames(worker, workload.udp_port) for worker in WORKERS]
        self.messages = [Messages() for _ in WORKERS]
        for messages, frames in zip(self.messages, self.frames, strict=True):
            messages.point_at(frames, FRAME.itemsize)
            frames["ina"]["seq"] = frames["ina"]["slot"] = np.arange(FRAMES_PER_CALL)

    def send_for(self, seconds: float, rate_pps: float | None) -> int:
        """Send at `rate_pps` packets per second, or flat out; return how many packets that were."""
        start, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            if rate_pps is not None and sent > elapsed * rate_pps:
                time.sleep(sent / rate_pps - elapsed)
            sent += self._send_once()
        return sent

    def _send_once(self) -> int:
        sent = 0
        for sender, messages, frames in zip(self.sockets, self.messages, self.frames, strict=True):
            done = libc.sendmmsg(sender.fileno(), messages.address, FRAMES_PER_CALL, 0)
            if done != FRAMES_PER_CALL:
                raise RunError(f"the kernel took {done} of {FRAMES_PER_CALL} packets of a worker: is its link up?")
            sent += done
            ina = frames["ina"]
            ina["seq"] += FRAMES_PER_CALL
            ina["slot"] = ina["seq"] % SLOTS
        return sent


def run_trial(bench: Bench, workload: Workload, sender: Sender, seconds: float, rate_pps: float | None) -> Trial:
    """Send, wait until nothing arrives any more, and count. Time in queues counts as sending time."""
    before, start = bench.arrived(), time.perf_counter()
    sent = sender.send_for(seconds, rate_pps)
    expected = before + round(sent * workload.yield_per_packet)
    arrived, last_arrival = wait_for_arrivals(bench, expected)
    for switch in bench.network.switches.values():
        switch.check()
    return Trial(sent / (last_arrival - start), 1 - (arrived - before) / (expected - before))


def wait_for_arrivals(bench: Bench, expected: int) -> tuple[int, float]:
    """The count of arrivals when all have arrived or no more do, and when the last one did."""
    last_count, last_time = bench.arrived(), time.perf_counter()
    deadline = last_time + PATIENCE_S
    while last_count < expected and (now := time.perf_counter()) < min(last_time + QUIET_S, deadline):
        time.sleep(0.002)
        if (count := bench.arrived()) != last_count:
            last_count, last_time = count, now
    return last_count, last_time


# ---- the search --------------------------------------------------------------------------------


def highest_rates(trial: RunTrial, limits: Sequence[float] = LOSS_LIMITS) -> list[float]:
    """For each loss limit, loosest first, the highest rate in packets per second that keeps to it; 0 if none does.

    Rates are flat out, and geometric steps below what that gave. Bisection with short trials finds where the
    loosest limit holds; from there single steps lead down until a longer trial confirms, for each limit in turn.
    """
    flat_out = trial(TRIAL_S, None)
    rates = [None, *(flat_out.rate_pps * STEP**step for step in range(STEPS))]
    step = 0 if flat_out.loss <= limits[0] else bisect_rates(trial, rates, limits[0])
    carried: list[Trial] = []
    for limit in limits:
        while step < len(rates) and not any(result.loss <= limit for result in carried):
            carried.append(carried_at(trial, rates[step]))
            step += 1
    return [max((result.rate_pps for result in carried if result.loss <= limit), default=0.0) for limit in limits]


def carried_at(trial: RunTrial, rate_pps: float | None) -> Trial:
    """A longer trial, which cannot have carried more than was asked for."""
    result = trial(CONFIRMATION_S, rate_pps)
    return Trial(min(rate_pps or result.rate_pps, result.rate_pps), result.loss)


def bisect_rates(trial: RunTrial, rates: Sequence[float | None], limit: float) -> int:
    """The first of the falling `rates` that keeps to the limit, or the last of all."""
    low, high = 1, len(rates) - 1
    while low < high:
        middle = (low + high) // 2
        if trial(TRIAL_S, rates[middle]).loss <= limit:
            high = middle
        else:
            low = middle + 1
    return low


# ---- all of it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """The highest rate of one workload at one loss limit, in packets per second into the first switch."""

    target: str
    workload: str
    switches: int
    loss_limit: float
    rate_pps: float


def installed_targets() -> list[Target]:
    """The targets that this machine can run."""
    reasons = {target.name: target.missing() for target in TARGETS.values()}
    if all(reasons.values()):
        raise MachineError("; ".join(f"{name} cannot run here: {reason}" for name, reason in reasons.items()))
    return [TARGETS[name] for name, reason in reasons.items() if reason is None]


def run_bench(targets: Sequence[Target], console: Console) -> list[Measurement]:
    """Measure every workload on every chain and target. Needs root."""
    found = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(targets) * len(CHAIN_LENGTHS) * len(WORKLOADS) * len(LOSS_LIMITS))
        for target in targets:
            for length in CHAIN_LENGTHS:
                for measurement in measure_chain(target, length):
                    found.append(measurement)
                    progress.update(task, advance=1, description=f"{target.name}, chain of {length}")
    return found


def measure_chain(target: Target, length: int) -> Iterator[Measurement]:
    with Bench(target, length) as bench:
        for workload in WORKLOADS:
            sender = Sender(bench, workload)

            def trial(
                seconds: float, rate: float | None, workload: Workload = workload, sender: Sender = sender
            ) -> Trial:
                return run_trial(bench, workload, sender, seconds, rate)

            for limit, rate in zip(LOSS_LIMITS, highest_rates(trial), strict=True):
                yield Measurement(target.name, workload.name, length, limit, rate)


def bench_table(measurements: Sequence[Measurement]) -> Table:
    """One row for each workload and chain, one column for each target, and their ratio to the first."""
    targets = list(dict.fromkeys(m.target for m in measurements))
    table = Table(
        title="Packets per second into the first switch",
        caption=f"{FRAGMENT.wire_bytes}-byte packets of {len(WORKERS)} workers; one process sends, its CPU included",
    )
    for heading in ("workload", "switches", "loss"):
        table.add_column(heading)
    for target in targets:
        table.add_column(target, justify="right")
    for target in targets[1:]:
        table.add_column(f"{target} : {targets[0]}", justify="right")
    rates = {(m.workload, m.switches, m.loss_limit, m.target): m.rate_pps for m in measurements}
    for workload, switches, limit in dict.fromkeys((m.workload, m.switches, m.loss_limit) for m in measurements):
        row = [rates[workload, switches, limit, target] for target in targets]
        ratios = [f"{rate / row[0]:.1f}" if row[0] else "-" for rate in row[1:]]
        loss = f"≤ {limit:.1%}" if limit else "none"
        table.add_row(workload, str(switches), loss, *(f"{rate:,.0f}" for rate in row), *ratios)
    return table
