"""A whole network in this process: the endpoints of a run, real switches running `p4/ina.p4`, and a clock of its own.

A packet takes one round of `ROUND_S` for a link. Links lose, repeat and delay packets on request; everything is
decided by one seed, so that a run can be had again.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.entries import entries
from planner.plan import Plan
from planner.problem import Problem
from switch.fast.inprocess import InProcessSwitch
from switch.read import read_program
from topo.addresses import addresses
from traffic.layout import head_of
from traffic.packet import BARE_FRAME, FRAME, PROGRAM
from traffic.port import HostPort, IntArray, Outgoing, Packets

ROUND_S = 0.0005
AT_ONCE = 512
"""Packets that one call takes through a switch, so that their copies have room."""

Link = tuple[str, str]
Flight = tuple[str, int, bytes]
"""A packet that comes to a node by a port in some round."""


@dataclass(frozen=True)
class Faults:
    """Chances per link, and by how many rounds at most a delayed packet is late."""

    lose: float = 0.0
    repeat: float = 0.0
    delay: float = 0.0
    rounds: int = 8
    seed: int = 0


NO_FAULTS = Faults()


class VirtualNetwork:
    """The `Ports` of a plan's hosts. `at[round]` are things to be done then; `silent` hosts neither send nor hear."""

    def __init__(self, problem: Problem, plan: Plan, faults: Faults = NO_FAULTS) -> None:
        self.fabric, self.faults = problem.fabric, faults
        self.random = random.Random(faults.seed)
        program = read_program(PROGRAM)
        installed = entries(problem, plan)
        self.switches = {switch.switch: InProcessSwitch(program, switch.switch) for switch in installed.switches}
        for switch in installed.switches:
            self.switches[switch.switch].install(switch)
        self.peer_of = {(node, port): peer for (node, peer), port in self.fabric.port_numbers.items()}
        self.hosts = host_ports_of(problem)
        self.round = 0
        self.flights: dict[int, list[Flight]] = defaultdict(list)
        self.arrived: list[tuple[str, bytes]] = []
        self.at: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self.silent: set[str] = set()
        self.carried = 0

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
        if host not in self.silent:
            self.cross((host, self.fabric.tor_of(host)), packet)

    def cross(self, link: Link, packet: bytes) -> None:
        """Put a packet on a link, unless that loses it; perhaps twice, perhaps late."""
        faults, chance = self.faults, self.random.random
        self.carried += 1
        if faults.lose and chance() < faults.lose:
            return
        for _ in range(2 if faults.repeat and chance() < faults.repeat else 1):
            late = self.random.randrange(1, faults.rounds + 1) if faults.delay and chance() < faults.delay else 0
            node, peer = link
            self.flights[self.round + 1 + late].append((peer, self.fabric.port_numbers.get((peer, node), 0), packet))

    def advance(self) -> None:
        """One round: what has crossed a link comes to its end, and through the switch there."""
        self.round += 1
        for act in self.at.pop(self.round, ()):
            act()
        by_switch: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for node, port, packet in self.flights.pop(self.round, ()):
            if node in self.switches:
                by_switch[node].append((port, packet))
            elif node not in self.silent:
                self.arrived.append((node, packet))
        for switch, packets in by_switch.items():
            for start in range(0, len(packets), AT_ONCE):
                for port, packet in self.switches[switch].inject_all(packets[start : start + AT_ONCE]):
                    self.cross((switch, self.peer_of[switch, port]), packet)

    def wipe(self, switch: str) -> None:
        """A switch starts again: its entries are installed anew, its registers are empty."""
        running = self.switches[switch]
        for name in running.state.program.registers:
            running.state.column(name)[:] = 0

    def events(self, switch: str) -> list[int]:
        return [int(count) for count in self.switches[switch].read_counter("InaIngress.events")[0]]


def host_ports_of(problem: Problem) -> list[HostPort]:
    """The hosts of the jobs, as `lay_out` takes them."""
    used = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    names = [host.name for host in problem.fabric.hosts if host.name in used]
    found = addresses(problem.fabric)
    return [HostPort(name, 0, "eth0", found[name].mac_text, found[name].ipv4_text) for name in names]
