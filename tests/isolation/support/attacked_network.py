"""A network in this process in which hosts attack; its endpoints hear only what their sockets' filter accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from experiments.worlds.in_process import InProcessNetwork
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.install.plan_entries import entries
from planner.install.program import REJECTED
from traffic.endpoints.gradient import Gradients, RandomGradients
from traffic.endpoints.streams import StreamLayout, lay_out
from traffic.faults.hostile import Attack, hostile_frames
from traffic.measure.measured import Measured
from traffic.runs.closed_loop import Loop, ReliableOptions
from traffic.sockets.ports import Packets
from traffic.sockets.socket_filter import (
    INA_FILTER,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    LOAD_BYTE,
    LOAD_HALF,
    LOAD_LENGTH,
    RETURN,
)
from traffic.wire.packet_format import Event

PER_ROUND = 2
"""How many hostile frames each host sends in a round of the network, which makes some 10 Mbit/s."""
DIFFERENT = 800
"""How many different frames an attack has."""
STALL_S = 5.0
"""After this time of the network's own without a result a run has failed."""
Filter = Sequence[tuple[int, int, int, int]]


class AttackedNetwork(InProcessNetwork):
    """`attackers[host]` are the frames that a host sends, without end.

    `accepted`: the filter of endpoints' sockets; `refused`: how many packets it has kept from them.
    """

    def __init__(self, problem: Problem, plan: Plan, accepted: Filter = INA_FILTER) -> None:
        super().__init__(problem.fabric, entries(problem, plan))
        self.attackers: dict[str, Iterator[bytes]] = {}
        self.accepted, self.refused = accepted, 0
        self.per_round = PER_ROUND

    def advance(self) -> None:
        """Let a round pass, in which attackers send."""
        for host, frames in self.attackers.items():
            for _ in range(self.per_round):
                self.leave(host, next(frames))
        super().advance()

    def receive(self) -> Packets:
        """What has arrived and the filter accepts."""
        heard = [(host, packet) for host, packet in self.arrived if passes(self.accepted, packet)]
        self.refused += len(self.arrived) - len(heard)
        self.arrived = heard
        return super().receive()

    def rejected(self) -> dict[tuple[str, str], int]:
        """The number of packets that were not admitted, by switch and the neighbour that they came from."""
        found: dict[tuple[str, str], int] = {}
        for name, switch in self.switches.items():
            counts = switch.read_counter(REJECTED)[0]
            found |= {(name, self.peer_of[name, int(port)]): int(counts[port]) for port in counts.nonzero()[0]}
            assert int(counts.sum()) == self.events(name)[Event.REJECTED]
        return found


def passes(program: Filter, packet: bytes) -> bool:
    """Whether a socket with this filter hears a packet: an interpreter of the part of classic BPF that filters use."""
    accumulator = line = 0
    while True:
        code, if_true, if_false, operand = program[line]
        size = {LOAD_BYTE: 1, LOAD_HALF: 2}.get(code, 0)
        if code == RETURN:
            return operand > 0
        if size and operand + size > len(packet):
            return False
        if size:
            accumulator = int.from_bytes(packet[operand : operand + size], "big")
        elif code == LOAD_LENGTH:
            accumulator = len(packet)
        else:
            truth = {JUMP_EQUAL: accumulator == operand, JUMP_ANY_BIT: bool(accumulator & operand)}[code]
            line += if_true if truth else if_false
        line += 1


def attack(network: AttackedNetwork, layout: StreamLayout, attacks: Sequence[Attack], seed: int = 0) -> None:
    """Let the hosts attack from now on."""
    for each in attacks:
        network.attackers[each.host] = cycle(hostile_frames(layout, each, seed, DIFFERENT))


def run(
    network: AttackedNetwork,
    problem: Problem,
    plan: Plan,
    attacks: Sequence[Attack] = (),
    gradients: Gradients | None = None,
    seed: int = 0,
) -> Measured:
    """Run all jobs to their end."""
    layout = lay_out(problem, plan, network.hosts)
    attack(network, layout, attacks, seed)
    with network.endpoints(layout.hosts) as (ports, executor):
        loop = Loop(layout, ports, gradients or RandomGradients(), ReliableOptions(stall_s=STALL_S), executor)
        return loop.run(lambda _: None)


def exact_by_job(measured: Measured) -> Mapping[int, bool | None]:
    """Whether all sums of each job are exact."""
    return {job: measured.of_job(job).exact for job in sorted({each.job for each in measured.iterations})}
