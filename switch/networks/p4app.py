"""The network file of p4-utils: `p4app.json`, whose nodes get their ports and addresses by a strategy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from switch.networks.found_files import find_file
from switch.networks.network_plan import LinkEnd, NetworkPlan, PlannedHost, PlannedLink, PlannedSwitch
from topo.errors import unknown_name
from topo.files.reader import ParsedFile
from topo.files.validation import Record, validate

CPU_PORT = 510
LINK_OPTIONS = ("bw", "delay", "loss", "max_queue_size")
NOT_LINKS = ("auto_arp_tables", "auto_gw_arp", "weight")


class Lenient(Record):
    """A part of the file; it may have further keys."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class SwitchRecord(Lenient):
    """What the file says of a switch."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    program: StrictStr | None = Field(None, description="the name of a P4 program")
    cli_input: StrictStr | None = Field(None, description="the name of a file of simple_switch_CLI's commands")
    cpu_port: StrictBool = Field(False, description="true or false")
    priority_queues_num: StrictInt = Field(1, ge=1, description="a whole number, at least 1")


class TopologyRecord(Lenient):
    """Hosts, switches and links."""

    assignment_strategy: StrictStr | None = Field(None, description="l2, l3 or mixed")
    hosts: dict[str, dict[str, Any]] = Field(description="hosts by name")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    links: list[list[Any]] = Field(description='a list of links such as ["h1", "s1"] or ["s1", "s2", {"bw": 5}]')
    default: dict[str, Any] = Field({}, description="options of all links")


class ScriptRecord(Lenient):
    """A command that is run beside the network."""

    cmd: StrictStr = Field(description="a shell command")


class P4AppRecord(Lenient):
    """What the file says."""

    p4_src: StrictStr | None = Field(None, description="the name of a P4 program")
    topology: TopologyRecord = Field(description="an object with hosts, switches and links")
    exec_scripts: list[ScriptRecord] = Field([], description="a list of commands, each with its `cmd`")


@dataclass(frozen=True)
class Place:
    """A host, its number in its name (h3: 3; None for other names), its switch and that one's number."""

    host: str
    number: int | None
    switch: str
    switch_number: int


@dataclass(frozen=True)
class Addresses:
    """What a host gets: its IP, the bits of its subnet, and the IP of its gateway."""

    ip: str
    bits: int
    gateway: str | None = None

    def mac(self, side: int) -> str:
        """The MAC of the host (0) or of the switch's port (1), which p4-utils makes of the host's IP."""
        return ":".join(["00", f"{side:02x}", *(f"{int(part):02x}" for part in self.ip.split("."))])


def plan_of(file: ParsedFile) -> NetworkPlan:
    """The network of a file."""
    record = validate(file, P4AppRecord)
    topology = record.topology
    switches = tuple(switch_of(file, name, each, record.p4_src) for name, each in topology.switches.items())
    addresses = addresses_of(topology)
    switch_ends = {place.host: place.switch for place in places(topology)}
    hosts = tuple(host_of(name, addresses[name]) for name in topology.hosts if name in addresses)
    links = tuple(links_of(file, topology, addresses, switch_ends))
    know = bool(topology.default.get("auto_arp_tables", True))
    return NetworkPlan(hosts, switches, links, tuple(each.cmd for each in record.exec_scripts), know)


def switch_of(file: ParsedFile, name: str, record: SwitchRecord, p4_src: str | None) -> PlannedSwitch:
    """A switch; it runs its own program, or that of all."""
    named = record.p4_src or record.program or p4_src
    program = None if named is None else find_file(named, file.path)
    commands = None if record.cli_input is None else find_file(record.cli_input, file.path)
    cpu_port = CPU_PORT if record.cpu_port else None
    return PlannedSwitch(name, program, commands, None, cpu_port, record.priority_queues_num)


def host_of(name: str, given: Addresses) -> PlannedHost:
    """A host, which knows the address of its gateway."""
    neighbors = () if given.gateway is None else ((given.gateway, given.mac(1)),)
    return PlannedHost(name, f"{given.ip}/{given.bits}", given.mac(0), f"{name}-eth0", given.gateway, neighbors)


def links_of(
    file: ParsedFile, topology: TopologyRecord, addresses: dict[str, Addresses], switch_ends: dict[str, str]
) -> Iterator[PlannedLink]:
    """The links, with ports as p4-utils numbers them: by the names of their nodes, those of switches from 1 on."""
    used: dict[str, set[int]] = {}

    def end(node: str, peer: str, given: object) -> LinkEnd:
        taken = used.setdefault(node, set())
        first = 0 if node in topology.hosts else 1
        port = given if isinstance(given, int) else next(n for n in range(first, 1 << 16) if n not in taken)
        taken.add(port)
        side = node in topology.switches and switch_ends.get(peer) == node
        mac = addresses[peer].mac(1) if side else None
        return LinkEnd(node, port, mac)

    for number, link in sorted(enumerate(topology.links), key=lambda each: natural(each[1][:2])):
        if len(link) not in (2, 3) or (len(link) == 3 and not isinstance(link[2], dict)):
            raise file.error(("topology", "links", number), f'{link!r}: expected ["h1", "s1"] or ["h1", "s1", {{...}}]')
        own = topology.default | (link[2] if len(link) == 3 else {})
        options = {name: option(name, own[name]) for name in LINK_OPTIONS if name in own}
        one, other = link[:2]
        yield PlannedLink(end(one, other, own.get("port1")), end(other, one, own.get("port2")), tuple(options.items()))


def option(name: str, value: Any) -> float | str:
    """An option of a link; a delay without a unit is in milliseconds."""
    return f"{value}ms" if name == "delay" and not isinstance(value, str) else value


def natural(names: Iterable[str]) -> list[list[str | int]]:
    """A key that sorts s2 before s10."""
    return [[int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)] for name in names]


def places(topology: TopologyRecord) -> list[Place]:
    """Where each host is, in the order of the links."""
    numbers = {name: number for number, name in enumerate(sorted(topology.switches, key=lambda n: natural([n])), 1)}
    found = []
    for one, other in (link[:2] for link in topology.links):
        host, switch = (one, other) if one in topology.hosts else (other, one)
        if host in topology.hosts and switch in topology.switches:
            number = re.fullmatch(r"h(\d+)", host)
            found.append(Place(host, int(number[1]) if number else None, switch, numbers[switch]))
    return found


def addresses_of(topology: TopologyRecord) -> dict[str, Addresses]:
    """The addresses of all hosts, by the strategy of the file."""
    strategy = topology.assignment_strategy or "l2"
    if strategy not in STRATEGIES:
        raise unknown_name("assignment strategy", strategy, STRATEGIES)
    found: dict[str, Addresses] = {}
    for place in sorted(places(topology), key=lambda each: each.number is None):
        taken = {each.ip for each in found.values()}
        numbers = range(1, 255) if place.number is None else (place.number,)
        found[place.host] = next(
            given for number in numbers if (given := STRATEGIES[strategy](place.switch_number, number)).ip not in taken
        )
    return found


def l2(_switch: int, host: int) -> Addresses:
    """All hosts are in one subnet."""
    return Addresses(f"10.0.{host >> 8}.{host & 0xFF}", 16)


def mixed(switch: int, host: int) -> Addresses:
    """The hosts of a switch are in one subnet."""
    subnet = f"10.{switch >> 8}.{switch & 0xFF}"
    return Addresses(f"{subnet}.{host}", 24, f"{subnet}.254")


def l3(switch: int, host: int) -> Addresses:
    """Each host has a subnet of its own."""
    return Addresses(f"10.{switch}.{host}.2", 24, f"10.{switch}.{host}.1")


STRATEGIES: dict[str, Callable[[int, int], Addresses]] = {"l2": l2, "mixed": mixed, "l3": l3}
