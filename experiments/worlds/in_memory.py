"""What networks in this process have in common: no threads, no processors to be judged, and clocks of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from types import TracebackType
from typing import Any, Self

from experiments.worlds.world import Feature
from switch.circuit_switch import CircuitSwitch
from switch.entries import Entries
from switch.fast.load.in_process_switch import InProcessSwitch
from switch.program.read import read_program
from switch.program.source_hashes import check_sources
from switch.running_switch import PROGRAM
from topo.fabric.addresses import addresses
from topo.fabric.fabric import Fabric
from traffic.measure.kernel_counters import InterfaceCounters
from traffic.measure.monitor import Monitor
from traffic.measure.processor_seconds import Second
from traffic.measure.snapshots import Snapshot, Watched, switch_counters
from traffic.measure.verdict import Cause, Limits
from traffic.sockets.ports import HostPort


@dataclass(frozen=True)
class WorldInMemory:
    """A world of networks in this process, whose switches run the compiled P4 program."""

    name: str
    features: frozenset[Feature] = frozenset()
    real_time: bool = False

    def check(self) -> None:
        """Raise `InputError` for a P4 program whose sources have changed since it was compiled."""
        check_sources(PROGRAM)

    def check_tools(self, needed: Collection[Feature]) -> None:
        """Do nothing: the world does everything itself."""


class NetworkInMemory:
    """A network without processes: the `Beside` of a run in it is the network itself.

    Its time is a whole number, of which `moments` gives how many a second has.
    """

    circuits: CircuitSwitch | None = None

    def __init__(self, fabric: Fabric, installed: Entries, progress: Callable[[float], None] = lambda _: None) -> None:
        self.fabric, self.cables = fabric, fabric.links
        self.switches: dict[str, InProcessSwitch] = {}
        program = read_program(PROGRAM)
        for number, switch in enumerate(installed.switches):
            self.switches[switch.switch] = InProcessSwitch(program, switch.switch)
            self.switches[switch.switch].install(switch)
            progress(number / len(installed.switches))
        self.hosts = host_ports_of(fabric)
        self.listening: Sequence[HostPort] = self.hosts
        self.lasting: list[Lasting] = []

    @property
    def moment(self) -> int:
        """The time."""
        raise NotImplementedError

    def moments(self, seconds: float) -> int:
        """How much of the network's time so many seconds are."""
        raise NotImplementedError

    def now(self) -> float:
        """Seconds since the network came up."""
        raise NotImplementedError

    def interfaces(self) -> dict[str, InterfaceCounters]:
        """The counters of every port, by the monitor's name for it."""
        raise NotImplementedError

    def queue_drops(self) -> dict[str, int]:
        """How many packets the queue of every port dropped, by the monitor's name for the port."""
        raise NotImplementedError

    def interface_name(self, node: str, peer: str) -> str:
        """The monitor's name for the port by which `node` sends to `peer`, such as "s1-2"."""
        return port_name(node, self.fabric.port_numbers[node, peer])

    def monitor(self) -> Monitor:
        """A monitor of the counters of links and switches only."""
        return CountingMonitor(CountedNetwork.of(self))

    @contextmanager
    def beside(self) -> Iterator[Self]:
        """The network itself. Leaving the block ends everything that still lasts."""
        try:
            yield self
        finally:
            self.end_due(inf)

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin` now, and `end` `lasting_s` seconds later: at once for 0, after the run for None."""
        begin()
        future: Future[None] = Future()
        until = inf if lasting_s is None else self.moment + self.moments(lasting_s)
        self.lasting.append(Lasting(until, end, future))
        self.end_due(self.moment)
        return future

    def end_due(self, now: float) -> None:
        """End everything that lasts until the moment `now` or an earlier one."""
        for each in [each for each in self.lasting if each.until <= now]:
            self.lasting.remove(each)
            each.end()
            each.over.set_result(None)

    def settle(self, switch: str) -> None:
        """Do nothing: a switch takes no time."""

    def problems(self) -> Mapping[str, int]:
        """Empty: nothing can go wrong with ports in memory."""
        return {}


@dataclass(frozen=True)
class Lasting:
    """Something that lasts until a moment: `end` ends it, and `over` is then resolved."""

    until: float
    end: Callable[[], None]
    over: Future[None]


class Inline(Executor):
    """Does work at once when it is submitted, so that a run is the same every time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Do the work now, and return a future that already has its result."""
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future


@dataclass(frozen=True)
class CountedNetwork(Watched):
    """The counters of a network in memory, named by node and port."""

    network: NetworkInMemory = field(kw_only=True)

    @classmethod
    def of(cls, network: NetworkInMemory) -> CountedNetwork:
        """The counters of all hosts and switches of a network."""
        ports: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        peers: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        for link in network.cables:
            for node, port, _ in link.ends:
                if node in ports:
                    ports[node][port], peers[node][port] = port_name(node, port), link.peer_of(node)
        return cls(network.hosts, network.switches, ports, peers, network=network)

    def links(self) -> dict[str, InterfaceCounters]:
        """The counters of every port."""
        return self.network.interfaces()

    def snapshot(self) -> Snapshot:
        """All counters of the network now, in its own time."""
        return Snapshot(
            at_s=self.network.now(),
            backlog=(),
            interfaces=self.links(),
            queues=self.network.queue_drops(),
            switches={name: switch_counters(switch, self.ports[name]) for name, switch in self.switches.items()},
        )


class CountingMonitor(Monitor):
    """Takes the counters before and after a run. It watches no processors, because they do not affect such a run."""

    def __enter__(self) -> Self:
        self.before = self.watched.snapshot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.after = self.watched.snapshot()

    @property
    def seconds(self) -> Sequence[Second]:
        """Empty: the processors of this machine are not watched."""
        return ()

    def overloaded_so_far(self, planned_s: float | None = None, limits: Limits | None = None) -> tuple[Cause, ...]:
        """Empty: a network with a clock of its own is never overloaded."""
        _ = planned_s, limits
        return ()


def port_name(node: str, port: int) -> str:
    """The monitor's name for a port, such as "s1-2"."""
    return f"{node}-{port}"


def host_ports_of(fabric: Fabric) -> list[HostPort]:
    """The ports of the fabric's hosts, as `lay_out` takes them; there are no processes or interfaces behind them."""
    found = addresses(fabric)
    names = [host.name for host in fabric.hosts]
    return [HostPort(name, 0, "eth0", found[name].mac_text, found[name].ipv4_text) for name in names]
