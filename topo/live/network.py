"""A fabric as a running Mininet network: hosts in namespaces, shaped links, and switches of a given class.

    with Network(fabric, switch_class) as network:
        network.hosts["h1"].pid, network.switches["leaf1"], network.interface("leaf1", "h1").name

The switch class is a `mininet.node.Switch` and is constructed as `switch_class(name, fabric_switch=..., ledger=...,
run_dir=..., dpid=..., inNamespace=False)`. Its ports have the numbers of the fabric; it attaches to `self.intfs[port]`
in `start(controllers)` and detaches in `stop(deleteIntfs)`. If it has a method `handle()`, its return value is passed
on to other processes (`inakit.topo.live.ledger`).

With an interconnect (`inakit.topo.fabric.circuits`) optical ports are joined to one more switch, which `circuit_class`
makes and which is not among `switches`; an optical link of the fabric then exists only while it has a circuit.

Leaving the block in any way removes everything; `inakit.topo.live.ledger` describes the cleanup after `kill -9`.

Mininet is imported when a network is built, so that this module can be imported without it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inakit.topo.errors import FabricError
from inakit.topo.fabric.circuits import INTERCONNECT, Interconnect, cables, with_ports
from inakit.topo.fabric.fabric import PREFIX_LENGTH, QUEUE_PACKETS, Address, Fabric, Link, Switch, addresses
from inakit.topo.live.ledger import (
    GracePeriods,
    HostFacts,
    Ledger,
    PortFacts,
    RunningNetwork,
    SwitchFacts,
    announced,
    clean_dead_runs,
    write_facts,
)
from inakit.topo.live.needs import check_fabric, check_machine
from inakit.topo.live.netlink import add_neighbors, index_of, inside, interface_name, set_rate, set_up
from inakit.topo.live.priority import endpoint_processor, steer_packets, switch_processors
from inakit.topo.live.signals import interrupts_held, signals_unwind

if TYPE_CHECKING:
    from mininet.net import Mininet

HOST_INTERFACE = "eth0"


@dataclass(frozen=True)
class Interface:
    """An interface in the namespace of process `pid`, or in the root namespace for None."""

    name: str
    pid: int | None


@dataclass(frozen=True)
class RunningHost:
    """A host of a running network. `pid` is its shell, in its network namespace."""

    name: str
    pid: int
    interface: str
    address: Address
    node: Any


class Network:
    """A fabric running in Mininet. A context manager; the network exists only inside its block."""

    def __init__(
        self,
        fabric: Fabric,
        switch_class: Callable[..., Any],
        *,
        run_dir: Path | None = None,
        queue_packets: int = QUEUE_PACKETS,
        interconnect: Interconnect | None = None,
        circuit_class: Callable[..., Any] | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`switch_class` makes the switches; `run_dir` is the folder for their logs; queues are in packets.

        Raises `FabricError` for a switch with a latency, which emulated networks cannot model.

        `progress` is called from time to time with the fraction of the nodes and links that are up.
        """
        check_latencies(fabric)
        self.fabric = fabric
        self.cables = cables(fabric, interconnect)
        self.addresses = addresses(fabric)
        self.hosts: dict[str, RunningHost] = {}
        self.switches: dict[str, Any] = {}
        self.circuit_switch: Any = None
        self.ledger: Ledger
        self.grace_periods: GracePeriods
        self.mininet: Mininet
        self._switch_class = switch_class
        self._interconnect, self._circuit_class = interconnect, circuit_class
        self._run_dir = run_dir
        self._queue_packets = queue_packets
        self._progress, self._steps = progress, 0
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Build and start everything. Raises `MachineError` before anything is created if a requirement is not met."""
        check_machine()
        check_fabric(self.fabric)
        clean_dead_runs()
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def interface(self, node: str, peer: str) -> Interface:
        """The interface of `node` on its link to `peer`."""
        return self.interface_at(node, self.fabric.port_numbers[node, peer])

    def interface_at(self, node: str, port: int) -> Interface:
        """The interface of `node` at port number `port`."""
        mininet_node = self.mininet[node]
        return Interface(mininet_node.intfs[port].name, mininet_node.pid if mininet_node.inNamespace else None)

    def ports(self, node: str) -> dict[int, Link]:
        """The cables that are plugged into `node`, by its ports."""
        return {port: link for link in self.cables for name, port, _ in link.ends if name == node}

    def set_link(self, node: str, peer: str, *, up: bool) -> None:
        """Let a link carry packets, or drop all packets sent over it, in both directions.

        Packets that wait in the link's queue are not lost. Interfaces stay up and attached to their switches, because
        BMv2 can stop receiving for good from an interface that was down.
        """
        for one, other in ((node, peer), (peer, node)):
            self.mininet[one].intfs[self.fabric.port_numbers[one, other]].let_pass(up=up)

    def set_capacities(self, fabric: Fabric, interconnect: Interconnect | None = None) -> None:
        """Set links to the capacities of `fabric`, which differs from this network's fabric in capacities only.

        Optical ports get the rates of `interconnect`, which differs from the network's interconnect in rates only;
        without one they keep their rates.
        """
        self._interconnect = interconnect or self._interconnect
        rates: dict[int | None, list[tuple[str, float]]] = defaultdict(list)
        self.cables = cables(fabric, self._interconnect)
        for node, port, rate_bps in (end for link in self.cables for end in link.ends if end[0] != INTERCONNECT):
            interface = self.interface_at(node, port)
            rates[interface.pid].append((interface.name, rate_bps))
        for pid, shapers in rates.items():
            with inside(pid) as netlink:
                for name, rate_bps in shapers:
                    set_rate(netlink, index_of(name), rate_bps)
        self.fabric = fabric
        write_facts(self.ledger.folder, self.facts())

    def facts(self) -> RunningNetwork:
        """The facts of this network that other processes can read while it is up."""
        return RunningNetwork(
            id=self.ledger.id,
            fabric=self.fabric.name,
            owner=os.getpid(),
            endpoint_processors=(endpoint_processor(),),
            switch_processors=tuple(switch_processors()),
            hosts={host.name: HostFacts(host.pid, host.interface) for host in self.hosts.values()},
            switches={
                name: SwitchFacts(self._ports_of(name), dict(node.handle()) if hasattr(node, "handle") else {})
                for name, node in self.switches.items()
            },
        )

    def _ports_of(self, switch: str) -> tuple[PortFacts, ...]:
        """The ports of `switch` that have a link, by number."""
        return tuple(
            PortFacts(
                number=number,
                interface=self.interface_at(switch, number).name,
                peer=link.peer_of(switch),
                out_bps=link.capacity_ab_bps if link.a == switch else link.capacity_ba_bps,
                in_bps=link.capacity_ba_bps if link.a == switch else link.capacity_ab_bps,
            )
            for number, link in sorted(self.ports(switch).items())
        )

    def popen(self, host: str, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start `command` in the namespace of `host`; a command that still runs at the end is killed then."""
        process: subprocess.Popen[bytes] = self.mininet[host].popen(command, **options)
        self.ledger.record("pid", process.pid)
        self._exits.callback(process.wait)
        self._exits.callback(process.kill)
        return process

    def _start(self) -> None:
        self._exits.enter_context(signals_unwind())
        self.ledger = self._exits.enter_context(Ledger.open())
        self.grace_periods = GracePeriods(self.ledger)
        self.grace_periods.expedite()
        self.mininet = empty_mininet()
        self._exits.callback(self._stop_nodes)
        self._build()
        self.mininet.build()  # as Mininet's `start` does without a controller
        for switch in self.mininet.switches:
            switch.start([])
            self._step()
        self._exits.enter_context(announced(self.ledger.folder, self.facts()))
        self._exits.callback(self.grace_periods.expedite)
        self.grace_periods.relax()

    def _step(self) -> None:
        """Report that one more node or link is up."""
        self._steps += 1
        self._progress(self._steps / (2 * (len(self.addresses) + len(self.fabric.switches)) + len(self.cables) + 2))

    def _close(self) -> None:
        with interrupts_held():
            self._exits.close()

    def _build(self) -> None:
        for name in self.addresses:
            self._add_host(name)
        for number, switch in enumerate(self.fabric.switches, start=1):
            plugged = with_ports(switch, self.ports(switch.name))
            self.switches[switch.name] = self._add_switch(plugged, number, self._switch_class)
        if self._interconnect is not None:
            ports = tuple(self._interconnect.port_of.values())
            switch = Switch(INTERCONNECT, 1, (ports,), ina=False)
            self.circuit_switch = self._add_switch(switch, len(self.switches) + 1, self._circuit_class)
        group = random.randrange(1 << 16, 1 << 31)
        self.ledger.record("group", group)
        for link in self.cables:
            self._add_link(link, group)
        for host in self.hosts.values():
            self._introduce(host)

    def _add_host(self, name: str) -> None:
        node = self.mininet.addHost(name, ip=None)
        self.ledger.record("pid", node.pid)
        self.hosts[name] = RunningHost(name, node.pid, HOST_INTERFACE, self.addresses[name], node)
        self._step()

    def _add_switch(self, switch: Switch, number: int, switch_class: Callable[..., Any] | None) -> Any:
        node = self.mininet.addSwitch(
            switch.name,
            cls=switch_class,
            dpid=f"{number:x}",
            fabric_switch=switch,
            ledger=self.ledger,
            run_dir=self._run_dir,
        )
        self.ledger.record("pid", node.pid)
        self._step()
        return node

    def _add_link(self, link: Link, group: int) -> None:
        mac_a, mac_b = (self._mac(node, port) for node, port in ((link.a, link.a_port), (link.b, link.b_port)))
        common = {"max_queue_size": self._queue_packets, "delay": f"{link.delay_s}s" if link.delay_s else None}
        self.mininet.addLink(
            link.a, link.b, link.a_port, link.b_port, group=group,
            intfName1=self._interface_name(link.a, link.a_port), addr1=mac_a,
            intfName2=self._interface_name(link.b, link.b_port), addr2=mac_b,
            params1={"bw": link.capacity_ab_bps / 1e6, "ip": self._ip(link.a), **common},
            params2={} if link.b == INTERCONNECT else
            {"bw": link.capacity_ba_bps / 1e6, "ip": self._ip(link.b), **common},
        )  # fmt: skip
        self._step()

    def _interface_name(self, node: str, port: int) -> str:
        if node in self.hosts:
            return HOST_INTERFACE
        return interface_name(self.ledger.id, node, int(self.mininet[node].dpid, 16), port)

    def _mac(self, node: str, port: int) -> str:
        """A host's MAC address, or a readable address made of a switch's number and the port."""
        if node in self.addresses:
            return self.addresses[node].mac_text
        number = int(self.mininet[node].dpid, 16)
        return f"06:00:{number >> 8:02x}:{number & 255:02x}:{port >> 8:02x}:{port & 255:02x}"

    def _ip(self, node: str) -> str | None:
        return f"{self.addresses[node].ipv4_text}/{PREFIX_LENGTH}" if node in self.addresses else None

    def _introduce(self, host: RunningHost) -> None:
        """Give `host` the neighbour entries of all others, and set its loopback up."""
        with inside(host.pid) as netlink:
            set_up(netlink, index_of("lo"))
            if host.node.intfs:
                others = (address for name, address in self.addresses.items() if name != host.name)
                add_neighbors(index_of(host.interface), others)
                # Otherwise the processor of the sending switch handles the host's received packets. Some kernels lack
                # RPS.
                with suppress(OSError):
                    steer_packets(host.interface, endpoint_processor(), host.pid)
        self._step()

    def _stop_nodes(self) -> None:
        """Stop the switches, then end all shells: signal all, then wait for each."""
        nodes = [*self.mininet.switches, *self.mininet.hosts]
        with ExitStack() as stack:
            for node in nodes:
                stack.callback(node.terminate)
            stack.callback(hang_up, nodes)
            for switch in self.mininet.switches:
                stack.callback(switch.stop, deleteIntfs=False)


def check_latencies(fabric: Fabric) -> None:
    """Raise `FabricError` for a switch with a latency."""
    for switch in fabric.switches:
        if switch.latency_s:
            raise FabricError(
                f"switch '{switch.name}' has a latency of {switch.latency_s:g} s, which emulated networks do not have: "
                "run in virtual time (--switch virtual), or omit the latency"
            )


def empty_mininet() -> Mininet:
    """A Mininet without nodes, made without calling its `init`, which changes limits of the whole machine."""
    from mininet.net import Mininet  # noqa: PLC0415

    from inakit.topo.live.wires import FabricHost, FabricLink  # noqa: PLC0415

    initialised, Mininet.inited = Mininet.inited, True
    try:
        return Mininet(host=FabricHost, link=FabricLink, intf=None, controller=None, build=False)
    finally:
        Mininet.inited = initialised


def hang_up(nodes: list[Any]) -> None:
    """Send SIGHUP to the shells of all nodes, so that they end side by side."""
    for node in nodes:
        if node.shell and node.shell.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(node.shell.pid, signal.SIGHUP)
