"""A whole network in this process: the endpoints of a run, real switches running `p4/ina.p4`, and a clock of its own.

A packet takes one round of `ROUND_S` for a link. What is lost, doubled or overtaken is so by the switches' own fault
tables, as in an emulated network, and all of it is decided by one seed, so that a run can be had again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from math import inf
from typing import Any

import numpy as np

from experiments.exactness.ran import Ran, befallen
from experiments.faults.faults_file import Event, FaultPlan
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.install.fault_entries import doubled_by_hosts, with_faults
from planner.install.plan_entries import entries
from switch.entries import SwitchEntries
from switch.fast.load.in_process import InProcessSwitch
from switch.program.read import read_program
from topo.fabric.addresses import addresses
from traffic.endpoints.gradient import Gradients
from traffic.endpoints.streams import Layout, lay_out
from traffic.faults.endpoint_faults import FaultyPorts
from traffic.runs.closed_loop import Loop, ReliableOptions
from traffic.sockets.batches import head_of
from traffic.sockets.ports import HostPort, IntArray, Outgoing, Packets, Ports
from traffic.wire.packet import BARE_FRAME, FRAME, PROGRAM

ROUND_S = 0.0005
AT_ONCE = 512
"""Packets that one call takes through a switch, so that their copies have room."""

Flight = tuple[str, int, bytes]
"""A packet that comes to a node by a port in some round."""

NO_FAULTS = FaultPlan()


class VirtualNetwork:
    """The `Ports` of a plan's hosts, in which the faults of links happen. Its events are a `Calendar`'s."""

    def __init__(self, problem: Problem, plan: Plan, faults: FaultPlan = NO_FAULTS) -> None:
        self.fabric = problem.fabric
        self.installed = with_faults(problem.fabric, entries(problem, plan), faults.links, faults.seed)
        program = read_program(PROGRAM)
        self.switches = {switch.switch: InProcessSwitch(program, switch.switch) for switch in self.installed.switches}
        for switch in self.installed.switches:
            self.switches[switch.switch].install(switch)
        self.peer_of = {(node, port): peer for (node, peer), port in self.fabric.port_numbers.items()}
        self.hosts = host_ports_of(problem)
        self.round = 0
        self.flights: dict[int, list[Flight]] = defaultdict(list)
        self.arrived: list[tuple[str, bytes]] = []

    # -- as `Ports`

    def now(self) -> float:
        return self.round * ROUND_S

    def sleep(self, seconds: float) -> None:
        for _ in range(max(1, round(seconds / ROUND_S))):
            self.advance()

    def problems(self) -> Mapping[str, int]:
        return {}

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        for batch in batches:
            sender = np.repeat(np.arange(len(batch.counts)), batch.counts)
            for host, row in zip(sender.tolist(), batch.rows.tolist(), strict=True):
                head = batch.heads[row].tobytes()
                self.leave(self.hosts[host].name, head + batch.values[row].tobytes())
        return [batch.counts.copy() for batch in batches]

    def receive(self) -> Packets:
        numbers = {host.name: number for number, host in enumerate(self.hosts)}
        arrived = [(numbers[host], packet) for host, packet in self.arrived]
        self.arrived.clear()
        whole = [packet.ljust(FRAME.itemsize, b"\0") for _, packet in arrived]
        frames = np.frombuffer(b"".join(whole), FRAME)
        heads = head_of(frames) if len(frames) else np.zeros(0, BARE_FRAME)
        return Packets(heads, frames["values"].astype(np.int32), np.array([host for host, _ in arrived], np.int64))

    # -- the network

    def leave(self, host: str, packet: bytes) -> None:
        self.cross(host, self.fabric.tor_of(host), packet)

    def cross(self, node: str, peer: str, packet: bytes) -> None:
        """Put a packet on a link."""
        self.flights[self.round + 1].append((peer, self.fabric.port_numbers.get((peer, node), 0), packet))

    def advance(self) -> None:
        """One round: what has crossed a link comes to its end, and through the switch there."""
        self.round += 1
        by_switch: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for node, port, packet in self.flights.pop(self.round, ()):
            if node in self.switches:
                by_switch[node].append((port, packet))
            else:
                self.arrived.append((node, packet))
        for switch, packets in by_switch.items():
            for start in range(0, len(packets), AT_ONCE):
                for port, packet in self.switches[switch].inject_all(packets[start : start + AT_ONCE]):
                    self.cross(switch, self.peer_of[switch, port], packet)

    def wipe(self, name: str) -> None:
        """A switch starts again: its entries are installed anew, its registers are as they were at first."""
        self.switches[name].wipe()
        self.switches[name].install(SwitchEntries(name, registers=self.installed.of(name).registers))

    def events(self, switch: str) -> list[int]:
        return [int(count) for count in self.switches[switch].read_counter("InaIngress.events")[0]]


class Calendar:
    """Applies the events of a fault plan in the network's own time, as `Interference` of `traffic.runs.closed_loop`."""

    def __init__(self, network: VirtualNetwork, faults: FaultPlan) -> None:
        self.network, self.faults = network, faults
        self.pending = list(faults.events)
        self.ports: FaultyPorts

    def prepare(self, layout: Layout, ports: Ports) -> tuple[Layout, Ports]:
        doubled = doubled_by_hosts(self.network.fabric, self.faults.links)
        self.ports = FaultyPorts(ports, [host.name for host in layout.hosts], doubled, self.faults.seed)
        return layout, self.ports

    def act(self, loop: Loop, now: float) -> None:
        for event in [event for event in self.pending if event.at.has_come(loop, now)]:
            self.pending.remove(event)
            ACTIONS[event.kind](self, event, loop, now)

    def restart(self, event: Event, loop: Loop, _now: float) -> None:
        """A switch loses its registers, a parameter server its sums, at once."""
        (name,) = event.nodes
        if name in self.network.switches:
            self.network.wipe(name)
        else:
            loop.servers.restart(self.ports.index[name])

    def pause(self, event: Event, _loop: Loop, now: float) -> None:
        self.ports.silence(event.nodes[0], now + (inf if event.lasting_s is None else event.lasting_s))


ACTIONS: Mapping[str, Callable[[Calendar, Event, Loop, float], None]] = {
    "restart": Calendar.restart,
    "pause": Calendar.pause,
    "kill": Calendar.pause,
}


class Inline(Executor):
    """Runs what is submitted at once, so that a run is the same every time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future


def run_virtual(problem: Problem, plan: Plan, faults: FaultPlan, gradients: Gradients, options: ReliableOptions) -> Ran:
    """Run on a network of its own. Raises `RunError` when the run stalls."""
    network = VirtualNetwork(problem, plan, faults)
    calendar = Calendar(network, faults)
    used = calendar.prepare(lay_out(problem, plan, network.hosts), network)
    loop = Loop(*used, gradients, options, Inline())
    loop.interference = calendar
    measured = loop.run(lambda _: None)
    counts = befallen(network.switches.values(), calendar.ports)
    return Ran(measured, counts, tuple(map(str, calendar.pending)))


def host_ports_of(problem: Problem) -> list[HostPort]:
    """The hosts of the jobs, as `lay_out` takes them."""
    used = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    names = [host.name for host in problem.fabric.hosts if host.name in used]
    found = addresses(problem.fabric)
    return [HostPort(name, 0, "eth0", found[name].mac_text, found[name].ipv4_text) for name in names]
