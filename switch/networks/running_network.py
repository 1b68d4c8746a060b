"""A course's network in Mininet: hosts in namespaces, and switches of the kit."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path
from typing import TYPE_CHECKING, Any

from switch.networks.compiled_programs import compiled
from switch.networks.network_plan import LinkEnd, NetworkPlan, PlannedHost, PlannedSwitch
from topo.errors import InputError, MachineError

if TYPE_CHECKING:
    from mininet.net import Mininet

    from switch.networks.served_node import ServedNode

THRIFT_PORT = 9090
GRPC_PORT = 9559


@dataclass(frozen=True)
class Doors:
    """Which protocols the switches speak; the first switch has the first port of each, the others the next ones."""

    thrift: bool = False
    grpc: bool = False

    def thrift_port(self, place: int) -> int | None:
        """The port of Thrift of the switch at this place, counted from 0."""
        return THRIFT_PORT + place if self.thrift else None

    def grpc_address(self, place: int) -> str | None:
        """The address of P4Runtime of the switch at this place, counted from 0."""
        return f"0.0.0.0:{GRPC_PORT + place}" if self.grpc else None


class RunningNetwork:
    """The network of a plan, while the block runs. Needs root. Switches have their entries when it begins."""

    def __init__(self, plan: NetworkPlan, doors: Doors = Doors()) -> None:
        self.plan, self.doors = plan, doors
        self.skipped: list[str] = []
        self.net: Mininet
        self.exits = ExitStack()

    def __enter__(self) -> RunningNetwork:
        """Build and start everything; what has been built goes if that fails."""
        try:
            self.start()
        except BaseException:
            self.exits.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.exits.close()

    @property
    def switches(self) -> list[ServedNode]:
        """The switches, in the order of the plan."""
        return [self.net[switch.name] for switch in self.plan.switches]

    def start(self) -> None:
        """Build and start everything."""
        from mininet.net import Mininet  # noqa: PLC0415, only where a network is built

        scratch = Path(self.exits.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        programs = {switch.name: program_of(switch, scratch) for switch in self.plan.switches}
        self.net = Mininet(controller=None, build=False)
        self.exits.callback(self.net.stop)
        self.add_nodes(programs)
        for link in self.plan.links:
            self.add_link(link.one, link.other, dict(link.options))
        self.net.build()
        for switch in self.switches:
            self.exits.callback(switch.close)  # before their interfaces go
        self.net.start()
        for host in self.plan.hosts:
            self.set_up_host(host)
        for switch in self.switches:
            self.skipped += switch.fill()

    def add_nodes(self, programs: dict[str, Path]) -> None:
        """Add hosts and switches."""
        from switch.networks.served_node import CourseHost, ServedNode  # noqa: PLC0415, needs Mininet

        for host in self.plan.hosts:
            self.net.addHost(host.name, cls=CourseHost, ip=host.address, mac=host.mac)
        for place, switch in enumerate(self.plan.switches):
            self.net.addSwitch(
                switch.name,
                cls=ServedNode,
                planned=switch,
                program=programs[switch.name],
                number=place + 1,
                thrift_port=self.doors.thrift_port(place),
                grpc_address=self.doors.grpc_address(place),
            )

    def add_link(self, one: LinkEnd, other: LinkEnd, options: dict[str, Any]) -> None:
        """Add a link, shaped if it has options."""
        from mininet.link import Link, TCLink  # noqa: PLC0415

        names = {f"intfName{n}": name for n, end in ((1, one), (2, other)) if (name := self.interface_of(end))}
        macs = {f"addr{n}": end.mac for n, end in ((1, one), (2, other)) if end.mac is not None}
        kind = TCLink if options else Link
        self.net.addLink(one.node, other.node, port1=one.port, port2=other.port, cls=kind, **names, **macs, **options)

    def interface_of(self, end: LinkEnd) -> str | None:
        """The name of a host's first interface; None where Mininet's own name does."""
        return next((each.interface for each in self.plan.hosts if each.name == end.node and end.port == 0), None)

    def set_up_host(self, host: PlannedHost) -> None:
        """Give a host its gateway and its neighbours, and run its commands."""
        node = self.net[host.name]
        if host.gateway is not None:
            node.cmd(f"ip route replace default via {host.gateway}")
        for address, mac in (*host.neighbors, *(self.neighbors_of(host) if self.plan.know_each_other else ())):
            node.setARP(address, mac)
        for command in host.commands:
            node.cmd(command)

    def neighbors_of(self, host: PlannedHost) -> list[tuple[str, str]]:
        """(IP, MAC) of the other hosts in a host's subnet."""
        own = ip_interface(host.address)
        others = [(ip_interface(each.address), each.mac) for each in self.plan.hosts if each.name != host.name]
        return [(str(address.ip), mac) for address, mac in others if address.network == own.network]

    def lost(self) -> float:
        """The percentage of pings between all pairs of hosts that get no answer."""
        percent: float = self.net.pingAll()
        return percent


def program_of(switch: PlannedSwitch, scratch: Path) -> Path:
    """The compiled program of a switch."""
    if switch.program is None:
        raise InputError(f"switch '{switch.name}' has no compiled program yet: compile it, or give --program")
    return compiled(switch.program, scratch)


def check_mininet() -> None:
    """Raise `MachineError` if Mininet is not installed."""
    try:
        import mininet.net  # noqa: F401, PLC0415
    except ImportError as error:
        raise MachineError("Mininet is not installed: apt install mininet, then run the kit's `make setup`") from error
