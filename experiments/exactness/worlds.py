"""Where a cell of the matrix is tried: on switches in this process, or on those of an emulated network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from experiments.exactness.virtual import Calendar, Inline, VirtualNetwork
from experiments.faults import FaultPlan
from planner.entries import entries
from planner.plan import Plan
from planner.problem import Problem
from switch.target import TARGETS, SwitchView, choose_target
from topo.errors import unknown_name
from traffic.faults import FaultyPorts
from traffic.gradient import RandomGradients
from traffic.layout import lay_out
from traffic.measure import Measured
from traffic.packet import Event
from traffic.port import host_ports
from traffic.reliable import Loop, ReliableOptions, run_reliable
from traffic.worker import WorkerOptions

GRADIENTS = RandomGradients(1)
STALL_S = 120.0
"""Neither a pause of seconds is a stall, nor that of 17 packets one comes through."""


@dataclass(frozen=True)
class Ran:
    """A run that has ended: what it measured, its loop, what befell its packets, and events that did not happen."""

    measured: Measured
    loop: Loop
    counts: Mapping[str, int]
    not_reached: tuple[str, ...]


@dataclass(frozen=True)
class World:
    """How a cell is run. `check` raises `MachineError` where this machine cannot.

    `rate_bps` is each worker's, `slots` each switch's: few enough for fragments to collide. `fragments` are those of
    a gradient. `timeouts` are the shortest and the longest; short ones, as fit short round trips, end the runs sooner
    in which most packets are lost.
    """

    run: Callable[[Problem, Plan, FaultPlan, ReliableOptions], Ran]
    check: Callable[[], object]
    rate_bps: float
    slots: int
    fragments: int
    timeouts: tuple[float, float]

    @property
    def options(self) -> ReliableOptions:
        shortest, longest = self.timeouts
        return ReliableOptions(WorkerOptions(min_timeout_s=shortest, first_timeout_s=longest), stall_s=STALL_S)


def in_process(problem: Problem, plan: Plan, faults: FaultPlan, options: ReliableOptions) -> Ran:
    """On a network in memory, in a time of its own. Raises `RunError` when the run stalls."""
    network = VirtualNetwork(problem, plan, faults)
    calendar = Calendar(network, faults)
    used = calendar.prepare(lay_out(problem, plan, network.hosts), network)
    loop = Loop(*used, GRADIENTS, options, Inline())
    loop.interference = calendar
    measured = loop.run(lambda _: None)
    counts = befallen(network.switches.values(), calendar.ports)
    return Ran(measured, loop, counts, tuple(map(str, calendar.pending)))


def emulated(target: str, problem: Problem, plan: Plan, faults: FaultPlan, options: ReliableOptions) -> Ran:
    """On a Mininet network of its own, so that no switch knows of an earlier run. Raises `RunError`."""
    from experiments.injection import Injection, Scene, faulty_entries  # noqa: PLC0415, needs Mininet
    from topo.network import Network  # noqa: PLC0415

    class Witness(Injection):
        """Keeps the loop, which knows every sum."""

        loop: Loop

        def act(self, loop: Loop, now: float) -> None:
            self.loop = loop
            super().act(loop, now)

    installed = faulty_entries(problem, plan, entries(problem, plan), faults)
    with Network(problem.fabric, choose_target(target).node_class()) as network:
        for name, switch in network.switches.items():
            switch.install(installed.of(name))
        hosts = host_ports(network.hosts.values())
        try:
            with Witness(Scene(network, hosts, problem, plan, installed), faults) as witness:
                measured = run_reliable(
                    hosts, problem, plan, options=options, gradients=GRADIENTS, interference=witness
                )
        finally:
            for switch in network.switches.values():
                switch.check()
        counts = befallen(network.switches.values(), witness.ports)
    return Ran(measured, witness.loop, counts, tuple(map(str, witness.pending)))


def befallen(switches: Iterable[SwitchView], ports: FaultyPorts) -> dict[str, int]:
    """What switches did to packets, and faults: since they were started, all together."""
    read = [switch.read_counter("InaIngress.events")[0] for switch in switches]
    counted = {event.name.lower(): sum(int(events[event]) for events in read) for event in Event}
    counted["lost"] += sum(int(switch.read_counter("InaEgress.lost")[0].sum()) for switch in switches)
    counted["doubled"] += int(ports.doubled.sum())
    return counted | {"unheard": int(ports.unheard.sum())}


def check_target(name: str) -> None:
    from topo.network import check_machine  # noqa: PLC0415, needs Mininet

    choose_target(name)
    check_machine()


WORLDS: Mapping[str, World] = {
    "process": World(in_process, lambda: None, 2e6, slots=32, fragments=400, timeouts=(0.08, 0.25)),
    "fast": World(
        partial(emulated, "fast"), partial(check_target, "fast"),
        16e6, slots=256, fragments=2000, timeouts=(0.04, 0.08),
    ),
    "bmv2": World(
        partial(emulated, "bmv2"), partial(check_target, "bmv2"),
        0.5e6, slots=32, fragments=200, timeouts=(0.08, 0.25),
    ),
}  # fmt: skip


def chosen_worlds(names: Iterable[str]) -> list[str]:
    """The worlds of these names; `auto` is every switch target that this machine has. Raises `InakitError`."""
    present = [name for name, target in TARGETS.items() if target.missing() is None]
    found = list(dict.fromkeys(each for name in names for each in (present if name == "auto" else [name])))
    for name in found:
        if name not in WORLDS:
            raise unknown_name("switch", name, [*WORLDS, "auto"])
        WORLDS[name].check()
    return found
