"""What every world offers: a network that is up, whose hosts send and receive and whose switches run the P4 program.

A new world is one file beside this one, with a class that has the members of `World`, and one line in
`inakit.experiments.worlds.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeGuard

from inakit.experiments.inspect.capture import Counts, Place
from inakit.planner.install.ina_program import DataPlaneProgram
from inakit.switch.circuit_switch import CircuitSwitch
from inakit.switch.entries import Entries
from inakit.switch.running_switch import RunningSwitch
from inakit.topo.fabric.circuits import Interconnect
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.engine import Hops, Series
from inakit.traffic.measure.counters import Watched
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.replay import Replayer
from inakit.traffic.sockets.ports import HostPort, Ports, RepeatedFrames


@dataclass(frozen=True)
class Observation:
    """What is to be noted.

    `interval_s`: the length of an interval of links' series, of which there is room for `points`; where time goes
    beyond them, intervals become longer. `every`: fragments whose sequence number it divides are followed, with at most
    `hops` hops of packets in all.
    """

    interval_s: float
    points: int
    every: int
    hops: int


@dataclass(frozen=True)
class Noted:
    """What has been noted. `links` has the two ends of each link, and `rates_bps` its rate, both by its number."""

    links: Sequence[tuple[str, str]]
    rates_bps: Sequence[float]
    series: Series
    hops: Hops


Endpoints = AbstractContextManager[tuple[Ports, Executor]]
"""A context in which the ports of hosts are open; the executor runs what may take long beside them."""


class Feature(StrEnum):
    """Optional features of a world."""

    REPLAY = "mode replay"
    CAPTURES = "captures of packets"
    TRAFFIC = "background traffic and hostile hosts"
    CIRCUITS = "circuit switches"
    OBSERVATION = "series of queues, links and workers"
    MANY_COPIES = "copies of a packet by more ports than the embedded switch takes"


@dataclass(frozen=True)
class Wiring:
    """How a network is built, apart from what its fabric says.

    With an `interconnect` its optical links exist only as circuits. `queue_packets` is the length of the queue before
    every link; None is the world's own. Switches that write logs write them to `folder`.
    """

    interconnect: Interconnect | None = None
    queue_packets: int | None = None
    folder: Path | None = None


class Beside(Protocol):
    """Carries out actions on a network while a run goes on in it."""

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin` soon, and `end` after `lasting_s` seconds of the network's time; for None, after the run.

        The run does not wait for either. The future has the error that one of them raised.
        """
        ...


class LiveNetwork(Protocol):
    """A network that is up, with table entries in its switches."""

    @property
    def fabric(self) -> Fabric:
        """The fabric, with the capacities that its links have now."""
        ...

    @property
    def hosts(self) -> Sequence[HostPort]:
        """All hosts of the fabric."""
        ...

    @property
    def switches(self) -> Mapping[str, RunningSwitch]:
        """The switches by name, running the program."""
        ...

    @property
    def circuits(self) -> CircuitSwitch | None:
        """What sets the circuits of the network's interconnect; None without one."""
        ...

    def endpoints(self, hosts: Sequence[HostPort]) -> Endpoints:
        """The ports of these hosts, in their order."""
        ...

    def replaying(self, hosts: Sequence[HostPort]) -> AbstractContextManager[Replayer]:
        """A context in which these hosts send pcaps, and their ports are open, in their order."""
        ...

    def repeating(self, traffic: Sequence[RepeatedFrames]) -> AbstractContextManager[None]:
        """A context in which hosts send frames over and over, beside whatever else they do."""
        ...

    def monitor(self) -> Monitor:
        """A context manager that watches the network from before the first packet of a run to after its last."""
        ...

    def capturing(self, places: Sequence[Place], folder: Path | None) -> AbstractContextManager[Mapping[str, Counts]]:
        """Keep the packets of switch ports as files in `folder`; gives their counts when the block is over."""
        ...

    def observing(self, asked: Observation | None) -> AbstractContextManager[Noted | None]:
        """Note what is asked for; gives what has been noted when the block is over. None notes nothing."""
        ...

    def beside(self) -> AbstractContextManager[Beside]:
        """A context for actions beside a run. Leaving the block ends all that lasts until the end of the run."""
        ...

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take the link between two nodes down or up. A link that is down loses what is sent over it either way."""
        ...

    def settle(self, switch: str) -> None:
        """Return when a switch whose links are down has nothing left to work on."""
        ...

    def interface_name(self, node: str, peer: str) -> str:
        """What the monitor calls the interface by which `node` sends to `peer`."""
        ...


class World(Protocol):
    """A kind of network in which a plan can be run."""

    @property
    def name(self) -> str:
        """What the command line calls the world."""
        ...

    @property
    def program(self) -> DataPlaneProgram:
        """The data-plane program that its switches run."""
        ...

    @property
    def features(self) -> frozenset[Feature]:
        """The optional features that the world has."""
        ...

    @property
    def real_time(self) -> bool:
        """Whether its time is this machine's, whose processors then limit what can be run."""
        ...

    def check(self) -> None:
        """Raise `MachineError` where this machine lacks what the world needs."""
        ...

    def check_fabric(self, fabric: Fabric) -> None:
        """Raise `MachineError` where this machine cannot hold so large a network, `FabricError` for an unfit one."""
        ...

    def check_tools(self, needed: Collection[Feature]) -> None:
        """Raise `MachineError` where this machine lacks a tool that one of these features needs."""
        ...

    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> AbstractContextManager[LiveNetwork]:
        """A network of the fabric with these entries in its switches, up until the block ends.

        `progress` is told the fraction that is set up.
        """
        ...


class RealTimeNetwork(LiveNetwork, Protocol):
    """A network in real time, whose rates can be changed while it is up."""

    def set_capacities(self, fabric: Fabric, interconnect: Interconnect | None = None) -> None:
        """Give every link the capacity that it has in `fabric`, and every optical port its rate in `interconnect`."""
        ...

    def watched(self) -> Watched:
        """The interfaces of all hosts and of all switch ports."""
        ...


class RealTimeWorld(World, Protocol):
    """A world whose networks run in real time."""

    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> AbstractContextManager[RealTimeNetwork]:
        """As in `World`."""
        ...


def in_real_time(world: World) -> TypeGuard[RealTimeWorld]:
    """Whether a world's time is this machine's."""
    return world.real_time
