"""The counters of a network in virtual time, before and after a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.topo.fabric.fabric import Link
from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, Watched, switch_counters
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.measure.processors import Second
from inakit.traffic.measure.verdict import Cause, Limits
from inakit.traffic.sockets.ports import HostPort


class Counted(Protocol):
    """A network whose ports count."""

    @property
    def hosts(self) -> Sequence[HostPort]:
        """The hosts' ports."""
        ...

    @property
    def switches(self) -> Mapping[str, InProcessSwitch]:
        """The switches of the fabric, by name."""
        ...

    @property
    def cables(self) -> Sequence[Link]:
        """The links, or what takes their place on a patch panel."""
        ...

    def now(self) -> float:
        """Seconds since the network came up."""
        ...

    def interfaces(self) -> dict[str, InterfaceCounters]:
        """The counters of every port, by the monitor's name for it."""
        ...

    def queue_drops(self) -> dict[str, int]:
        """How many packets the queue of every port dropped, by the monitor's name for the port."""
        ...


@dataclass(frozen=True)
class CountedNetwork(Watched):
    """The counters of a network, named by node and port."""

    network: Counted = field(kw_only=True)

    @classmethod
    def of(cls, network: Counted) -> CountedNetwork:
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
