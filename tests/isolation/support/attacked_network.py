"""A network in virtual time in which hosts attack; its endpoints hear only what their sockets' filter accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from inakit.experiments.worlds.virtual import LiveVirtualNetwork
from inakit.experiments.worlds.world import Wiring
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import EVENTS, REJECTED
from inakit.planner.install.plan_entries import entries
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.gradient import Gradients, RandomGradients
from inakit.traffic.endpoints.streams import StreamLayout, lay_out
from inakit.traffic.faults.attacks import Attack, hostile_frames
from inakit.traffic.measure.measured import Measured
from inakit.traffic.sockets.packet_sockets import (
    INA_FILTER,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    LOAD_BYTE,
    LOAD_HALF,
    LOAD_LENGTH,
    RETURN,
)
from inakit.traffic.sockets.ports import RepeatedFrames
from inakit.traffic.wire.packet_format import Event

RATE_BPS = 10e6
"""What each hostile host sends unless a test says otherwise."""
DIFFERENT = 800
"""How many different frames an attack has."""
STALL_S = 5.0
"""After this time of the network's own without a result a run has failed."""
Filter = Sequence[tuple[int, int, int, int]]


class AttackedNetwork(LiveVirtualNetwork):
    """`attackers[host]` are the frames that a host sends over and over, `rate_bps` of them.

    `accepted`: the filter of endpoints' sockets.
    """

    def __init__(self, problem: Problem, plan: Plan, accepted: Filter = INA_FILTER) -> None:
        super().__init__(problem.fabric, entries(problem, plan), Wiring(), lambda _: None)
        self.engine.set_filter(range(len(self.hosts)), accepted)
        self.attackers: dict[str, Sequence[bytes]] = {}
        self.rate_bps = RATE_BPS

    @property
    def refused(self) -> int:
        """How many packets the filter has kept from the endpoints."""
        return int(self.engine.nodes["refused"].sum())

    def attacking(self) -> AbstractContextManager[Callable[[], None]]:
        """A context in which the attackers send."""
        port_of = {host.name: host for host in self.hosts}
        return self.repeating([
            RepeatedFrames(host, port_of[host], frames, self.rate_bps * len(frames) / (8 * sum(map(len, frames))))
            for host, frames in self.attackers.items()
        ])  # fmt: skip

    def events(self, switch: str) -> list[int]:
        """How often each event of the P4 program happened at a switch, by its number."""
        return [int(count) for count in self.switches[switch].read_counter(EVENTS)[0]]

    def rejected(self) -> dict[tuple[str, str], int]:
        """The number of packets that were not admitted, by switch and the neighbour that they came from."""
        found: dict[tuple[str, str], int] = {}
        peer_of = {(node, port): peer for (node, peer), port in self.fabric.port_numbers.items()}
        for name, switch in self.switches.items():
            counts = switch.read_counter(REJECTED)[0]
            found |= {(name, peer_of[name, int(port)]): int(counts[port]) for port in counts.nonzero()[0]}
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
        network.attackers[each.host] = hostile_frames(layout, each, seed, DIFFERENT)


def run(
    network: AttackedNetwork,
    problem: Problem,
    plan: Plan,
    attacks: Sequence[Attack] = (),
    gradients: Gradients | None = None,
    seed: int = 0,
) -> Measured:
    """Run all jobs to their end, which is that of the network, too."""
    layout = lay_out(problem, plan, network.hosts)
    attack(network, layout, attacks, seed)
    with network.engine, network.endpoints(layout.hosts) as (ports, executor), network.attacking():
        loop = ClosedLoop(layout, ports, gradients or RandomGradients(), ReliableOptions(stall_s=STALL_S), executor)
        return loop.run(lambda _: None)


def exact_by_job(measured: Measured) -> Mapping[int, bool | None]:
    """Whether all sums of each job are exact."""
    return {job: measured.of_job(job).exact for job in sorted({each.job for each in measured.iterations})}
