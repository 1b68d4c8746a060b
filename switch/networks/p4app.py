"""The network file of p4-utils: `p4app.json`, whose nodes get their ports and addresses by a strategy.

There are two generations. Until 2020, ports are numbered in the order of the file's links and switches by their names,
and the default strategy is `mixed`. Since 2021 everything follows the order of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr, ValidationError

from inakit.switch.control.entry_files import Flag, Number, Part, told, unread
from inakit.switch.networks.network_plan import (
    PREFIX,
    STRATEGIES,
    Address,
    Addresses,
    Amount,
    Delay,
    Gateway,
    LinkEnd,
    Mac,
    NetworkPlan,
    PlannedHost,
    PlannedLink,
    PlannedSwitch,
    PortNumbers,
    address,
    addresses_of,
    find_file,
    find_program,
    mac_of,
    natural,
    places,
    switch_numbers,
    with_prefix,
)
from inakit.topo.errors import unknown_name
from inakit.topo.files.reader import ParsedFile, validate

AUTOMATIC = "auto"


def address_or_auto(value: Any) -> Any:
    """The text of an IP address, or `auto`, which is one of DHCP."""
    return value if value == AUTOMATIC else address(value)


class HostRecord(Part):
    """The record of a host."""

    ip: Annotated[str, BeforeValidator(address_or_auto)] | None = Field(
        None, description="an address such as 10.0.1.1/24, or auto"
    )
    mac: Mac | None = Field(None, description="an address such as 00:00:0a:00:01:01")
    gw: Gateway | None = Field(None, description="an IP address")
    defaultRoute: Gateway | None = Field(None, description="an address such as via 10.0.1.1")  # noqa: N815
    commands: list[StrictStr] | None = Field(None, description="a list of shell commands")


class SwitchRecord(Part):
    """The record of a switch."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    program: StrictStr | None = Field(None, description="the name of a P4 program")
    cli_input: StrictStr | None = Field(None, description="the name of a file of simple_switch_CLI's commands")
    cpu_port: Flag | None = Field(None, description="true or false")
    priority_queues_num: Number = Field(1, ge=1, description="a whole number, at least 1")
    device_id: Number | None = Field(None, description="a whole number")
    thrift_port: Number | None = Field(None, description="a port number")
    grpc_port: Number | None = Field(None, description="a port number")


class EndRecord(Part):
    """The record of the interface at one end of a link."""

    ip: Address | None = Field(None, description="an address such as 10.0.1.1/24")


class LinkRecord(Part):
    """The record of a link, or of the default of all links. `sw_ip` is the pretended address of a switch's port."""

    port1: Number | None = Field(None, description="a port number")
    port2: Number | None = Field(None, description="a port number")
    addr1: Mac | None = Field(None, description="a MAC address")
    addr2: Mac | None = Field(None, description="a MAC address")
    intfName1: StrictStr | None = Field(None, description="the name of an interface")  # noqa: N815
    intfName2: StrictStr | None = Field(None, description="the name of an interface")  # noqa: N815
    params1: EndRecord = Field(EndRecord(), description='an object such as {"ip": "10.0.1.1/24"}')
    params2: EndRecord = Field(EndRecord(), description='an object such as {"ip": "10.0.1.1/24"}')
    sw_ip1: Address | None = Field(None, description="an IP address")
    sw_ip2: Address | None = Field(None, description="an IP address")
    bw: Amount | None = Field(None, description="a number of Mbit/s")
    delay: Delay | None = Field(None, description="a number of milliseconds, or a text such as 5ms")
    loss: Amount | None = Field(None, description="a number of percent")
    max_queue_size: Number | None = Field(None, description="a number of packets")
    queue_length: Number | None = Field(None, description="a number of packets")

    @property
    def options(self) -> tuple[tuple[str, float | str], ...]:
        """The options of Mininet's link."""
        queue = self.queue_length if self.max_queue_size is None else self.max_queue_size
        given = {"bw": self.bw, "delay": self.delay, "loss": self.loss, "max_queue_size": queue}
        return tuple((name, value) for name, value in given.items() if value is not None)


class DefaultRecord(LinkRecord):
    """The record of options for all links and hosts."""

    auto_arp_tables: Flag = Field(True, description="true or false")
    auto_gw_arp: Flag = Field(True, description="true or false")


class TopologyRecord(Part):
    """Hosts, switches and links. Until 2020 they also held the keys of `default`."""

    assignment_strategy: StrictStr | None = Field(None, description="l2, l3, mixed or manual")
    hosts: dict[str, HostRecord] = Field(description="hosts by name")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    routers: dict[str, Any] = Field({}, description="routers by name")
    links: list[list[Any]] = Field(description='a list of links such as ["h1", "s1"] or ["s1", "s2", {"bw": 5}]')
    default: DefaultRecord = Field(DefaultRecord(), description="options of all links")
    auto_arp_tables: Flag | None = Field(None, description="true or false")
    auto_gw_arp: Flag | None = Field(None, description="true or false")
    default_bw: Amount | None = Field(None, description="a number of Mbit/s")
    default_delay: Delay | None = Field(None, description="a number of milliseconds, or a text such as 5ms")
    default_loss: Amount | None = Field(None, description="a number of percent")
    default_queue_length: Number | None = Field(None, description="a number of packets")


class ScriptRecord(Part):
    """A command that runs outside the network."""

    cmd: StrictStr = Field(description="a shell command")
    reboot_run: Any = Field(None, description="true or false")


class P4AppRecord(Part):
    """The whole file."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    program: StrictStr | None = Field(None, description="the name of a P4 program")
    cpu_port: Flag | None = Field(None, description="true or false")
    topology: TopologyRecord = Field(description="an object with hosts, switches and links")
    exec_scripts: list[ScriptRecord] | None = Field(None, description="a list of commands, each with its `cmd`")


BRIDGE = "sw-cpu"
"""The node at the other ends of CPU ports, where a controller sends and sniffs."""
UNTIL_2020 = ("program", "language", "compiler", "switch", "switch_cli", "topo_module", "topodb_module")
"""Keys that identify a p4-utils file from before 2021."""
MANUAL = "manual"
OPTIONS = {*LinkRecord.model_fields}
BEFORE_2021 = {
    "default_bw": "bw",
    "default_delay": "delay",
    "default_loss": "loss",
    "default_queue_length": "max_queue_size",
}
"""Keys of the topology itself until 2020, and the names of these options in links."""


@dataclass(frozen=True)
class AppLink:
    """A link of the file, or a CPU port's link: its nodes, and its options merged with those of all links."""

    one: str
    other: str
    record: LinkRecord

    @property
    def nodes(self) -> tuple[str, str]:
        """Both nodes."""
        return self.one, self.other

    def said(self, key: str, node: str) -> Any:
        """An option of the link's end at a node, from a key such as `port1` or `port2`."""
        return getattr(self.record, f"{key}{self.nodes.index(node) + 1}")


def plan_of(file: ParsedFile) -> NetworkPlan:
    app = P4App(file, validate(file, P4AppRecord))
    if app.topology.routers:
        raise file.error(("topology", "routers"), "FRR's routers are not run here: leave them and their links out")
    return app.plan()


@dataclass(frozen=True)
class P4App:
    """A file, and the network that it defines."""

    file: ParsedFile
    record: P4AppRecord

    @property
    def topology(self) -> TopologyRecord:
        """Hosts, switches and links."""
        return self.record.topology

    @cached_property
    def old(self) -> bool:
        """Whether the file is of the generation until 2020."""
        return any(key in self.file.document for key in UNTIL_2020) or self.topology.assignment_strategy == MANUAL

    @cached_property
    def strategy(self) -> str | None:
        """The strategy for addresses; None: consecutive addresses."""
        named = self.topology.assignment_strategy or ("mixed" if self.old else None)
        known = [*(name for name in STRATEGIES if name), MANUAL]
        if named is not None and named not in known:
            raise unknown_name("assignment strategy", named, known)
        return named

    def plan(self) -> NetworkPlan:
        topology = self.topology
        links = tuple(self.planned_links())
        switches = tuple(self.switch_of(name, each) for name, each in topology.switches.items())
        hosts = tuple(self.host_of(name, each) for name, each in topology.hosts.items())
        scripts = tuple(each.cmd for each in self.record.exec_scripts or ())
        bystanders = (BRIDGE,) if any(link.other == BRIDGE for link in self.links) else ()
        return NetworkPlan(
            hosts, switches, links, scripts, self.of_all("auto_arp_tables"), bystanders, tuple(self.notes())
        )

    def of_all(self, key: str) -> bool:
        """Whether an option is set for all hosts; until 2020 it was in the topology itself."""
        old: bool | None = getattr(self.topology, key)
        return bool(getattr(self.topology.default, key) if old is None else old)

    @cached_property
    def own_links(self) -> list[AppLink]:
        """The links of the file, in its order."""
        return [self.read_link(number, link) for number, link in enumerate(self.topology.links)]

    def read_link(self, number: int, link: list[Any]) -> AppLink:
        """A link with its own options."""
        place = ("topology", "links", number)
        one, other, own = (*link, {})[:3] if 2 <= len(link) <= 3 else (None, None, None)
        if not isinstance(one, str) or not isinstance(other, str) or not isinstance(own, dict):
            raise self.file.error(place, f'{link!r}: expected ["h1", "s1"] or ["h1", "s1", {{...}}]')
        try:
            return AppLink(one, other, LinkRecord.model_validate(own))
        except ValidationError as error:
            mistake = error.errors(include_url=False)[0]
            expected = LinkRecord.model_fields[str(mistake["loc"][0])].description
            raise self.file.error((*place, 2, *mistake["loc"]), f"{mistake['input']!r}: expected {expected}") from error

    @cached_property
    def links(self) -> list[AppLink]:
        """All links, with CPU ports', in the order of port numbers, with the options of all links."""
        old = self.topology.model_dump(include={*BEFORE_2021}, exclude_none=True)
        of_all = {BEFORE_2021[name]: value for name, value in old.items()}
        of_all |= self.topology.default.model_dump(include=OPTIONS, exclude_unset=True)
        read = [
            AppLink(*link.nodes, LinkRecord.model_validate(of_all | link.record.model_dump(exclude_unset=True)))
            for link in self.own_links
        ]
        for name, switch in self.topology.switches.items():
            if self.record.cpu_port if switch.cpu_port is None else switch.cpu_port:
                names = LinkRecord(intfName1=f"{name}-cpu-eth0", intfName2=f"{name}-cpu-eth1")
                read.append(AppLink(name, BRIDGE, names))
        return read if self.old else sorted(read, key=lambda each: natural(each.nodes))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of switches, which are their device ids and determine addresses."""
        own = {name: each.device_id for name, each in self.topology.switches.items() if each.device_id is not None}
        if self.old:
            own = {
                name: int(n[0]) for name in self.topology.switches if name[0] == "s" and (n := re.search(r"\d+", name))
            }
        return switch_numbers(self.topology.switches, own)

    @cached_property
    def first_links(self) -> dict[str, AppLink]:
        """The link of each host's first interface."""
        return {node: link for link in reversed(self.links) for node in link.nodes if node in self.topology.hosts}

    @cached_property
    def addresses(self) -> dict[str, Addresses]:
        """The addresses of hosts: those in the file, and those of the strategy."""
        given: dict[str, str | None] = {}
        for name, host in self.topology.hosts.items():
            link = self.first_links.get(name)
            given[name] = host.ip or (link.said("params", name).ip if link else None)
        said = {name: address for name, address in given.items() if address not in (None, AUTOMATIC)}
        ends = [link.nodes for link in self.links]
        found = places(self.topology.hosts, self.numbers, ends)
        return addresses_of(self.strategy, said, [each for each in found if given[each.host] != AUTOMATIC])

    def planned_links(self) -> Iterator[PlannedLink]:
        given = ((node, link.said("port", node)) for link in self.links for node in link.nodes)
        ports = PortNumbers(self.topology.hosts, given)
        for link in self.links:
            one, other = (self.end(link, node, ports.take(node, link.said("port", node))) for node in link.nodes)
            yield PlannedLink(one, other, link.record.options)

    def end(self, link: AppLink, node: str, port: int) -> LinkEnd:
        """An end of a link. The addresses of a host's first interface are the host's."""
        mac, interface = link.said("addr", node), link.said("intfName", node)
        if node not in self.topology.hosts:
            return LinkEnd(node, port, mac or self.switch_mac(link, node), interface)
        if self.first_links[node] is link:
            return LinkEnd(node, port, interface=interface)
        address = link.said("params", node).ip
        return LinkEnd(node, port, mac, interface, address and with_prefix(address, PREFIX))

    def switch_mac(self, link: AppLink, switch: str) -> str | None:
        """The MAC of a switch's port, derived from its own IP or from that of the host at the other end."""
        peer = link.other if switch == link.one else link.one
        own = self.switch_ip(link, switch)
        if own is not None and self.strategy == MANUAL:
            return mac_of(own.partition("/")[0], 0)
        return self.addresses[peer].mac(1) if peer in self.addresses and self.first_links[peer] is link else None

    def switch_ip(self, link: AppLink, switch: str) -> str | None:
        """The IP that a switch's port pretends to have: the link's, or, if all is manual, the switch's."""
        peer = link.other if switch == link.one else link.one
        record = self.topology.switches.get(switch)
        own = record.model_extra.get(peer) if record and record.model_extra and self.strategy == MANUAL else None
        ip: str | None = own or link.said("sw_ip", switch)
        return ip

    def host_of(self, name: str, record: HostRecord) -> PlannedHost:
        """A host, which knows its gateway's address without asking."""
        given, link = self.addresses.get(name), self.first_links.get(name)
        address, theirs, derived = (given.address, given.gateway, given.mac(0)) if given else (None, None, None)
        mac = record.mac or (link.said("addr", name) if link else None) or derived
        gateway = record.gw or record.defaultRoute or theirs
        neighbors: tuple[tuple[str, str], ...] = ()
        if gateway and link and self.of_all("auto_gw_arp"):
            # The gateway is a neighbor if it is the port of the switch; until 2020 it always was
            switch = link.other if link.one == name else link.one
            seeming, known = self.switch_ip(link, switch), link.said("addr", switch) or self.switch_mac(link, switch)
            if known and (self.old or gateway in (theirs, seeming and seeming.partition("/")[0])):
                neighbors = ((gateway, known),)
        return PlannedHost(name, address, mac, gateway, neighbors, tuple(record.commands or ()))

    def switch_of(self, name: str, record: SwitchRecord) -> PlannedSwitch:
        """A switch with its own program, or the common one."""
        named = record.p4_src or record.program or self.record.p4_src or self.record.program
        program = None if named is None else find_program(named, self.file.path)
        commands = None if record.cli_input is None else find_file(record.cli_input, self.file.path)
        doors = (self.numbers[name], record.thrift_port, record.grpc_port)
        return PlannedSwitch(name, program, commands, None, None, record.priority_queues_num, *doors)

    def notes(self) -> Iterator[str]:
        """Notes on the parts of the file that have no effect here."""
        manual = {f"topology.switches.*.{name}" for name in (*self.topology.hosts, *self.topology.switches)}
        keys = [
            *unread(self.record),
            *(key for link in self.own_links for key in unread(link.record, "topology.links.")),
        ]
        yield from told(self.file.path, [key for key in keys if self.strategy != MANUAL or key not in manual])
        for name, host in self.topology.hosts.items():
            if host.ip == AUTOMATIC:
                yield f"{self.file.path}: host '{name}' has no address: no DHCP client is started here"
        for link in self.links:
            for node in link.nodes:
                if self.first_links.get(node, link) is not link and not link.said("params", node).ip:
                    which = " - ".join(link.nodes)
                    yield f"{self.file.path}: link {which}: this further interface of '{node}' has no address"
