"""A course's network in Mininet: hosts in namespaces, and switches of the kit."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from pathlib import Path
from random import randbytes
from typing import TYPE_CHECKING, Any

from inakit.switch.networks.network_plan import LinkEnd, NetworkPlan, PlannedHost, PlannedSwitch
from inakit.switch.program.p4_source import compiled
from inakit.topo.errors import InputError, MachineError
from inakit.topo.live.ledger import Ledger, clean_dead_runs, interface_names
from inakit.topo.live.needs import check_machine, check_programs
from inakit.topo.live.signals import interrupts_held

if TYPE_CHECKING:
    from mininet.net import Mininet

    from inakit.switch.networks.served_node import ServedNode

THRIFT_PORT = 9090
GRPC_PORT = 9559
NETEM_OPTIONS = ("delay", "loss", "max_queue_size")
"""Options of links that need Linux's qdisc netem, which some kernels lack."""


@dataclass(frozen=True)
class Doors:
    """The protocols that the switches serve; the first switch has the first port of each, the others follow."""

    thrift: bool = False
    grpc: bool = False

    def thrift_port(self, switch: PlannedSwitch, place: int) -> int | None:
        """The Thrift port of a switch: its own, or one by its place, counted from 0."""
        return (switch.thrift_port or THRIFT_PORT + place) if self.thrift else None

    def grpc_address(self, switch: PlannedSwitch, place: int) -> str | None:
        """The P4Runtime address of a switch: at its own port, or at one by its place, counted from 0."""
        return f"0.0.0.0:{switch.grpc_port or GRPC_PORT + place}" if self.grpc else None


class RunningNetwork:
    """The network of a plan, while the block runs. Needs root. At the start, switches have their entries.

    Switches' interfaces have the names that courses use, such as s1-eth1, so only one such network can run at a time.
    """

    def __init__(self, plan: NetworkPlan, doors: Doors = Doors()) -> None:
        self.plan, self.doors = plan, doors
        self.skipped: list[str] = []
        self.net: Mininet
        self.exits = ExitStack()

    def __enter__(self) -> RunningNetwork:
        """Build and start everything; remove it all if that fails."""
        clean_dead_runs()
        check_names_free(self.plan)
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything, in any state of the network."""
        with interrupts_held():
            self.exits.close()

    @property
    def switches(self) -> list[ServedNode]:
        """The switches, in the order of the plan."""
        return [self.net[switch.name] for switch in self.plan.switches]

    def start(self) -> None:
        """Build and start everything."""
        from mininet.net import Mininet  # noqa: PLC0415, only where a network is built

        ledger = self.exits.enter_context(Ledger.open())
        scratch = Path(self.exits.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        programs = {}
        for planned in self.plan.switches:
            if planned.program is None:
                raise InputError(f"switch '{planned.name}' has no compiled program yet: compile it, or give --program")
            programs[planned.name] = compiled(planned.program)
        for name in root_interfaces(self.plan):
            ledger.record("interface", name)
        self.net = Mininet(controller=None, build=False)
        self.add_nodes(programs, scratch)
        for node in self.net.values():
            ledger.record("pid", node.pid)
        for link in self.plan.links:
            self.add_link(link.one, link.other, dict(link.options))
        self.net.build()
        self.skipped += undelayed(self.net, self.plan)
        for switch in self.switches:
            self.exits.callback(switch.close)  # before the ledger removes their interfaces
            switch.start()
        for host in self.plan.hosts:
            self.set_up_host(host)
        for switch in self.switches:
            self.skipped += switch.fill()

    def add_nodes(self, programs: dict[str, Path], scratch: Path) -> None:
        """Add hosts and switches. Switches publish their notifications in the folder `scratch`."""
        from inakit.switch.networks.served_node import Bystander, CourseHost, ServedNode  # noqa: PLC0415, needs Mininet

        for name in self.plan.bystanders:
            self.net.addSwitch(name, cls=Bystander, dpid="f" * 16)
        for host in self.plan.hosts:
            self.net.addHost(host.name, cls=CourseHost, ip=host.address, mac=host.mac)
        for place, switch in enumerate(self.plan.switches):
            self.net.addSwitch(
                switch.name,
                cls=ServedNode,
                planned=switch,
                program=programs[switch.name],
                number=place + 1,
                notifications=f"ipc://{scratch}/{place}-notifications.ipc",
                thrift_port=self.doors.thrift_port(switch, place),
                grpc_address=self.doors.grpc_address(switch, place),
            )

    def add_link(self, one: LinkEnd, other: LinkEnd, options: dict[str, Any]) -> None:
        """Add a link; shape it if it has options."""
        from mininet.link import Link, TCLink  # noqa: PLC0415

        given: dict[str, Any] = {"cls": TCLink if options else Link} | options
        for number, end in enumerate((one, other), start=1):
            a_mac = ":".join(["02", *(f"{part:02x}" for part in randbytes(5))])  # local, for one interface
            given |= {f"port{number}": end.port, f"intfName{number}": end.interface}
            given |= {f"addr{number}": end.mac or a_mac}  # Mininet takes two or none
            given |= {f"params{number}": {"ip": end.address}} if end.address else {}
        self.net.addLink(one.node, other.node, **given)

    def set_up_host(self, host: PlannedHost) -> None:
        """Give a host its gateway and its neighbours, and run its commands."""
        node = self.net[host.name]
        if host.gateway is not None and node.intfs:
            node.cmd(f"ip route replace default via {host.gateway} dev {node.defaultIntf()} onlink")
        for address, mac in (*host.neighbors, *(self.neighbors_of(host) if self.plan.know_each_other else ())):
            node.setARP(address, mac)
        for command in host.commands:
            node.cmd(command)

    def neighbors_of(self, host: PlannedHost) -> list[tuple[str, str]]:
        """(IP, MAC) of the other hosts in a host's subnet."""

        def addresses(*, own: bool) -> list[tuple[IPv4Interface | IPv6Interface, str | None]]:
            ends = [end for link in self.plan.links for end in (link.one, link.other)]
            given = [(each.name, each.address, each.mac) for each in self.plan.hosts]
            given += [(end.node, end.address, end.mac) for end in ends]
            return [(ip_interface(ip), mac) for name, ip, mac in given if ip and (name == host.name) is own]

        subnets = {address.network for address, _ in addresses(own=True)}
        return [(str(ip.ip), mac) for ip, mac in addresses(own=False) if mac and ip.network in subnets]

    def lost(self) -> float:
        """The percentage of pings between all pairs of hosts without an answer."""
        percent: float = self.net.pingAll()
        return percent


def undelayed(net: Mininet, plan: NetworkPlan) -> list[str]:
    """A line about links whose delay, loss and queue have no effect; Mininet reports only that `tc` failed."""
    without = []
    for link, made in zip(plan.links, net.links, strict=True):
        wanted = [name for name, _ in link.options if name in NETEM_OPTIONS]
        if wanted and "netem" not in made.intf1.node.cmd(f"tc qdisc show dev {made.intf1.name}"):
            without.append(f"{link.one.node} - {link.other.node} ({', '.join(wanted)})")
    return [f"this kernel has no netem, so these have no effect: {'; '.join(without)}"] if without else []


def root_interfaces(plan: NetworkPlan) -> list[str]:
    """The interfaces in the root namespace: those of switches."""
    hosts = {host.name for host in plan.hosts}
    ends = [end for link in plan.links for end in (link.one, link.other) if end.node not in hosts]
    return [end.interface for end in ends if end.interface is not None]


def check_names_free(plan: NetworkPlan) -> None:
    """Raise `MachineError` if an interface of the network already exists."""
    taken = sorted(set(root_interfaces(plan)) & interface_names())
    if taken:
        raise MachineError(
            f"interfaces {', '.join(taken)} already exist: end the other network, or remove the remains of one "
            f"that was killed with `sudo ip link delete {taken[0]}`"
        )


def check_mininet() -> None:
    """Raise `MachineError` unless Mininet can create nodes and links here, for which it runs shell commands."""
    check_machine()
    check_programs("ip", "tc", "ifconfig")
