"""The world of emulated networks: Mininet hosts, shaped links, and switches of one target, in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inakit.experiments.inspect.capture import Counts, Place, capturing, check_tcpdump
from inakit.experiments.worlds.world import Feature, Noted, Observation, Wiring
from inakit.planner.install.ina_program import INA, RECEIVED, DataPlaneProgram
from inakit.switch.circuit_switch import CircuitSwitch, circuit_class
from inakit.switch.entries import Entries
from inakit.switch.targets import TARGETS, Target, choose_target
from inakit.topo.errors import MachineError
from inakit.topo.fabric.circuits import Interconnect
from inakit.topo.fabric.fabric import QUEUE_PACKETS, Fabric
from inakit.topo.live.needs import check_fabric, check_machine, missing_for_networks
from inakit.topo.live.network import Network, check_latencies
from inakit.traffic.closed_loop import on_sockets
from inakit.traffic.faults.background import repeating
from inakit.traffic.measure.counters import Watched
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.replay import Replayer, with_tcpreplay
from inakit.traffic.sockets.ports import HostPort, Ports, RepeatedFrames, host_ports
from inakit.traffic.sockets.tcpreplay import check_tcpreplay

BUILDING = 0.9
"""The approximate share of the set-up time for nodes and links; the rest is for table entries."""
QUIET_S = 0.02
"""A switch that has received no packets for this time, in seconds, has processed all packets."""
AT_ONCE = 16
"""The maximum number of simultaneous actions; further actions wait."""


class Threads:
    """Actions of limited duration on a network: a thread begins each action, waits, and ends it (a `Beside`)."""

    def __init__(self, executor: ThreadPoolExecutor, over: threading.Event) -> None:
        self._executor, self._over = executor, over

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Threads]:
        """Yield the threads. Leaving the block ends all actions, and waits until they have ended."""
        over = threading.Event()
        with ThreadPoolExecutor(AT_ONCE) as executor:
            try:
                yield cls(executor, over)
            finally:
                over.set()

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin`, and `end` after `lasting_s` seconds or, if the run ends earlier or for None, after the run."""

        def work() -> None:
            begin()
            self._over.wait(lasting_s)
            end()

        return self._executor.submit(work)


@dataclass(frozen=True)
class EmulatedWorld:
    """Emulated networks whose switches run on the target called `name`."""

    name: str
    real_time: bool = True
    program: DataPlaneProgram = INA

    @property
    def features(self) -> frozenset[Feature]:
        """All features except observation; only bmv2, the reference, copies packets to any number of ports."""
        lacking = {Feature.OBSERVATION} if self.name == "bmv2" else {Feature.OBSERVATION, Feature.MANY_COPIES}
        return frozenset(Feature) - lacking

    @property
    def target(self) -> Target:
        return TARGETS[self.name]

    def node_class(self) -> Callable[..., Any]:
        """The Mininet switch class of the target, running the program."""
        made: Callable[..., Any] = self.target.node_class()
        return partial(made, program=self.program.path)

    def missing(self) -> str | None:
        """The missing requirement for emulating such networks on this machine, in words, or None."""
        return self.target.missing() or missing_for_networks()

    def check(self) -> None:
        """Raise `MachineError` if the target or Mininet cannot run, `InputError` for a stale P4 program."""
        with or_virtual():
            choose_target(self.name, self.program.path)
            check_machine()

    def check_fabric(self, fabric: Fabric) -> None:
        """Raise `MachineError` if the network is too large, `FabricError` if a switch has a latency."""
        check_latencies(fabric)
        with or_virtual():
            check_fabric(fabric)

    def check_tools(self, needed: Collection[Feature]) -> None:
        """Raise `MachineError` without tcpreplay, which sends replays and other traffic, or without tcpdump."""
        if Feature.REPLAY in needed or Feature.TRAFFIC in needed:
            check_tcpreplay()
        if Feature.CAPTURES in needed:
            check_tcpdump()

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[EmulatedNetwork]:
        """Yield the network, which is up during the block. Raises `MachineError` if this machine cannot build it."""
        with Network(
            fabric,
            self.node_class(),
            run_dir=wiring.folder,
            queue_packets=wiring.queue_packets or QUEUE_PACKETS,
            interconnect=wiring.interconnect,
            circuit_class=circuit_class(self.target) if wiring.interconnect else None,
            progress=lambda done: progress(BUILDING * done),
        ) as network:
            panel = wiring.interconnect
            circuits = None if panel is None else CircuitSwitch(panel, network.circuit_switch)
            for number, (name, switch) in enumerate(network.switches.items()):
                progress(BUILDING + (1 - BUILDING) * number / len(network.switches))
                switch.install(installed.of(name))
            yield EmulatedNetwork(network, circuits)


@contextmanager
def or_virtual() -> Iterator[None]:
    """Add to a `MachineError` of the block the advice to run in virtual time."""
    try:
        yield
    except MachineError as error:
        raise MachineError(f"{error}; or run in virtual time, which does not need it: --switch virtual") from error


def emulated_world(switch: str) -> EmulatedWorld:
    """Return the world whose switches run on the named target, after a check of this machine; `auto` prefers bmv2.

    Raises `InputError` for an unknown target or a stale P4 program, `MachineError` if this machine cannot run it.
    """
    world = EmulatedWorld(choose_target(switch).name)
    world.check()
    return world


class EmulatedNetwork:
    """A Mininet network that is up. `circuits` sets the circuits of its interconnect; None if it has none."""

    def __init__(self, network: Network, circuits: CircuitSwitch | None) -> None:
        self.network, self.circuits = network, circuits
        self.hosts = host_ports(network.hosts.values())
        self.switches = network.switches

    @property
    def fabric(self) -> Fabric:
        """The fabric with its links' current capacities."""
        return self.network.fabric

    def set_capacities(self, fabric: Fabric, interconnect: Interconnect | None = None) -> None:
        """Set every link to its capacity in `fabric`, and every optical port to its rate in `interconnect`."""
        self.network.set_capacities(fabric, interconnect)

    @contextmanager
    def endpoints(self, hosts: Sequence[HostPort]) -> Iterator[tuple[Ports, Executor]]:
        """Packet sockets in the hosts' namespaces, opened and closed with expedited RCU grace periods."""
        waits = self.network.grace_periods
        with ExitStack() as stack:
            stack.callback(waits.relax)
            waits.expedite()
            sockets = stack.enter_context(on_sockets(hosts))
            stack.callback(waits.expedite)
            waits.relax()
            yield sockets

    def replaying(self, hosts: Sequence[HostPort]) -> AbstractContextManager[Replayer]:
        """Tcpreplay and packet sockets in the hosts' namespaces."""
        return with_tcpreplay(hosts)

    def repeating(self, traffic: Sequence[RepeatedFrames]) -> AbstractContextManager[Callable[[], None]]:
        """Tcpreplay in the hosts' namespaces."""
        return repeating(traffic)

    def monitor(self) -> Monitor:
        """A monitor of every interface, queue and processor."""
        return Monitor(self.watched())

    def watched(self) -> Watched:
        """The interfaces of all hosts and of all switch ports."""
        network = self.network
        cables = {name: network.ports(name) for name in network.switches}
        ports = {
            name: {port: network.interface_at(name, port).name for port in found} for name, found in cables.items()
        }
        peers = {name: {port: link.peer_of(name) for port, link in found.items()} for name, found in cables.items()}
        return Watched(self.hosts, network.switches, ports, peers)

    @contextmanager
    def capturing(self, places: Sequence[Place], folder: Path | None) -> Iterator[Mapping[str, Counts]]:
        """Capture with tcpdump."""
        if not places or folder is None:
            yield {}
            return
        with capturing(self.network, places, folder) as captured:
            yield captured

    def observing(self, asked: Observation | None) -> AbstractContextManager[Noted | None]:
        """Record nothing: only virtual time has this feature."""
        _ = asked
        return nullcontext()

    def beside(self) -> AbstractContextManager[Threads]:
        """Threads that act on the network during a run."""
        return Threads.running()

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Let the link carry packets, or drop all packets sent over it, in both directions."""
        self.network.set_link(a, b, up=up)

    def settle(self, switch: str) -> None:
        """Wait until the switch's program has received no packets for `QUIET_S` seconds."""
        before = -1
        while (received := int(self.switches[switch].read_counter(RECEIVED)[0].sum())) != before:
            before = received
            time.sleep(QUIET_S)

    def interface_name(self, node: str, peer: str) -> str:
        """The name of the node's interface to `peer`; the names of hosts' interfaces are `host:interface`."""
        name = self.network.interface(node, peer).name
        return f"{node}:{name}" if node in self.network.hosts else name
