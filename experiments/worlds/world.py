"""The interface of all worlds: a running network whose hosts send and receive and whose switches run the P4 program.

To add a world, write a class with the members of `World` in a file beside this one, and add a line to
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
    """The observation of a run: series of links, and followed fragments.

    `interval_s`: the length of the links' intervals, at most `points` of them; a longer run makes the intervals longer.
    `every`: a fragment is followed if `every` divides its sequence number, with at most `hops` packet hops in all.
    """

    interval_s: float
    points: int
    every: int
    hops: int


@dataclass(frozen=True)
class Noted:
    """The observations of a run. `links` has the two ends of each link, and `rates_bps` its rate, by its number."""

    links: Sequence[tuple[str, str]]
    rates_bps: Sequence[float]
    series: Series
    hops: Hops


Endpoints = AbstractContextManager[tuple[Ports, Executor]]
"""A context in which the ports of hosts are open; the executor runs lengthy work beside them."""


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
    """The options for building a network that are not part of its fabric.

    With an `interconnect` its optical links exist only as circuits. `queue_packets` is the length of the queue before
    every link; None selects the world's default. `folder` is the folder of the switches' logs, if they write any.
    """

    interconnect: Interconnect | None = None
    queue_packets: int | None = None
    folder: Path | None = None


class Beside(Protocol):
    """Carries out actions on a network during a run."""

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin` soon, and `end` after `lasting_s` seconds of the network's time; for None, after the run.

        The run does not wait for either function. The future holds an error that one of them raised.
        """
        ...


class LiveNetwork(Protocol):
    """A network that is up, with table entries in its switches."""

    @property
    def fabric(self) -> Fabric:
        """The fabric, with its links' current capacities."""
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
        """The circuit switch of the network's interconnect; None without an interconnect."""
        ...

    def endpoints(self, hosts: Sequence[HostPort]) -> Endpoints:
        """The ports of these hosts, in their order."""
        ...

    def replaying(self, hosts: Sequence[HostPort]) -> AbstractContextManager[Replayer]:
        """A context in which these hosts send pcaps, and their ports are open, in their order."""
        ...

    def repeating(self, traffic: Sequence[RepeatedFrames]) -> AbstractContextManager[Callable[[], None]]:
        """A context in which hosts send frames repeatedly, beside all other traffic. Its value ends that earlier."""
        ...

    def watched(self) -> Watched:
        """The counters of all hosts and of all switch ports."""
        ...

    def monitor(self) -> Monitor:
        """A context manager that watches the network from before the first packet of a run to after its last."""
        ...

    def capturing(self, places: Sequence[Place], folder: Path | None) -> AbstractContextManager[Mapping[str, Counts]]:
        """Write the packets of switch ports to files in `folder`; yield a mapping that gets their counts at the end."""
        ...

    def observing(self, asked: Observation | None) -> AbstractContextManager[Noted | None]:
        """Record the requested observations; yield an object that has them after the block. None records nothing."""
        ...

    def beside(self) -> AbstractContextManager[Beside]:
        """A context for actions beside a run. Leaving the block ends all actions in progress."""
        ...

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take the link between two nodes down or up. A link that is down loses all packets of both directions."""
        ...

    def settle(self, switch: str) -> None:
        """Return when a switch whose links are down has processed all packets."""
        ...

    def interface_name(self, node: str, peer: str) -> str:
        """The monitor's name for the interface by which `node` sends to `peer`."""
        ...


class World(Protocol):
    """A kind of network in which a plan can be run."""

    @property
    def name(self) -> str:
        """The world's name on the command line."""
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
        """Whether runs take place in real time, so that this machine's processors limit them."""
        ...

    def check(self) -> None:
        """Raise `MachineError` if this machine lacks a requirement of the world."""
        ...

    def check_fabric(self, fabric: Fabric) -> None:
        """Raise `MachineError` if the network is too large for this machine, `FabricError` for an unsuitable fabric."""
        ...

    def check_tools(self, needed: Collection[Feature]) -> None:
        """Raise `MachineError` if this machine lacks a tool that one of these features needs."""
        ...

    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> AbstractContextManager[LiveNetwork]:
        """A context with a network of the fabric that has these entries in its switches.

        `progress` gets the fraction that is set up.
        """
        ...


class RealTimeNetwork(LiveNetwork, Protocol):
    """A network in real time, whose rates can be changed while it is up."""

    def set_capacities(self, fabric: Fabric, interconnect: Interconnect | None = None) -> None:
        """Set every link to its capacity in `fabric`, and every optical port to its rate in `interconnect`."""
        ...


class RealTimeWorld(World, Protocol):
    """A world whose networks run in real time."""

    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> AbstractContextManager[RealTimeNetwork]:
        """See `World.up`."""
        ...


def in_real_time(world: World) -> TypeGuard[RealTimeWorld]:
    """Whether a world runs in real time."""
    return world.real_time
