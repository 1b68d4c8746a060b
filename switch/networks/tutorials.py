"""The network file of p4lang's tutorials: `topology.json`, whose links name ports as `s1-p3`.

Until 2018 hosts were a list of names, and ports and addresses followed from the names of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr

from inakit.switch.control.entry_files import Number, Part, program_named_by, told, unread
from inakit.switch.networks.network_plan import (
    Address,
    LinkEnd,
    Mac,
    NetworkPlan,
    PlannedHost,
    PlannedLink,
    PlannedSwitch,
    PortNumbers,
    amount,
    delay,
    find_file,
    find_program,
    with_prefix,
)
from inakit.topo.files.reader import ParsedFile, validate

PORT = re.compile(r"(?P<switch>.+)-p(?P<port>\d+)")
LINK = '["h1", "s1-p1"] or ["s1-p3", "s2-p1", DELAY, BANDWIDTH]'
MOST = 255
MININETS_PREFIX = 8
"""The prefix length that Mininet assumes for an address without a prefix."""


class HostRecord(Part):
    """The record of a host."""

    ip: Address | None = Field(None, description="an address such as 10.0.1.1/24")
    mac: Mac | None = Field(None, description="an address such as 08:00:00:00:01:11")
    commands: list[StrictStr] | None = Field(None, description="a list of shell commands")


class SwitchRecord(Part):
    """The record of a switch."""

    runtime_json: StrictStr | None = Field(None, description="the name of a file such as s1-runtime.json")
    cli_input: StrictStr | None = Field(None, description="the name of a file of simple_switch_CLI's commands")
    program: StrictStr | None = Field(None, description="the name of a compiled program")
    cpu_port: Number | None = Field(None, description="a port number")
    priority_queues: Number = Field(1, ge=1, description="a whole number, at least 1")
    device_id: Number | None = Field(None, description="a whole number")
    thrift_port: Number | None = Field(None, description="a port number")
    grpc_port: Number | None = Field(None, description="a port number")


def by_name(hosts: Any) -> Any:
    """Hosts by name; a list of names becomes hosts without settings."""
    return {name: {} for name in hosts} if isinstance(hosts, list) else hosts


class TopologyRecord(Part):
    """The whole file."""

    program: StrictStr | None = Field(None, description="the name of a compiled program")
    hosts: Annotated[dict[str, HostRecord], BeforeValidator(by_name)] = Field(description="hosts by name")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    links: list[list[Any]] = Field(description=f"a list of links such as {LINK}")


@dataclass(frozen=True)
class ReadLink:
    """A link in the file: its ends' nodes and port numbers, which can be None."""

    one: tuple[str, int | None]
    other: tuple[str, int | None]
    options: tuple[tuple[str, float | str], ...]


def plan_of(file: ParsedFile) -> NetworkPlan:
    record = validate(file, TopologyRecord)
    switches = tuple(switch_of(file, name, each, record.program) for name, each in record.switches.items())
    read = [
        read_link(file, number, link, {*record.hosts, *record.switches}) for number, link in enumerate(record.links)
    ]
    if isinstance(file.document["hosts"], list):
        return replace(
            plan_of_2018(file, [*record.hosts], read), switches=switches, notes=told(file.path, unread(record))
        )
    hosts = []
    for name, each in record.hosts.items():
        address = None if each.ip is None else with_prefix(each.ip, MININETS_PREFIX)
        hosts.append(PlannedHost(name, address, each.mac, commands=tuple(each.commands or ())))
    ports = PortNumbers(record.hosts, (end for link in read for end in (link.one, link.other)))
    links = tuple(planned(link, ports, record.hosts) for link in read)
    return NetworkPlan(tuple(hosts), switches, links, notes=told(file.path, unread(record)))


def switch_of(file: ParsedFile, name: str, record: SwitchRecord, of_all: str | None) -> PlannedSwitch:
    """A switch. The file of its tables, or the network file, names its program."""
    runtime = None if record.runtime_json is None else find_file(record.runtime_json, file.path)
    commands = None if record.cli_input is None else find_file(record.cli_input, file.path)
    named = record.program or (None if runtime is None else program_named_by(runtime)) or of_all
    program = None if named is None else find_program(named, file.path)
    doors = (record.device_id, record.thrift_port, record.grpc_port)
    return PlannedSwitch(name, program, commands, runtime, record.cpu_port, record.priority_queues, *doors)


def read_link(file: ParsedFile, number: int, link: list[Any], nodes: set[str]) -> ReadLink:
    """A link: two ends, then an optional delay (a number is in milliseconds) and a bandwidth in Mbit/s."""
    if not 2 <= len(link) <= 4 or not all(isinstance(end, str) for end in link[:2]):
        raise file.error(("links", number), f"{link!r}: expected {LINK}")
    one, other, *more = link
    kinds: tuple[tuple[str, Callable[[Any], Any]], ...] = (("delay", delay), ("bw", amount))
    options: dict[str, float | str] = {}
    for (name, kind), value in zip(kinds, more, strict=False):
        try:
            if value is not None:
                options[name] = kind(value)
        except (ValueError, TypeError):
            raise file.error(("links", number), f"{value!r} is no {name}: expected {LINK}") from None
    if options.get("delay") in ("0", "0ms"):
        del options["delay"]
    return ReadLink(end_of(one, nodes), end_of(other, nodes), tuple(options.items()))


def end_of(text: str, nodes: set[str]) -> tuple[str, int | None]:
    """The node and the port in the text of a link's end: a switch can have a port, a host has none."""
    found = None if text in nodes else PORT.fullmatch(text)
    return (text, None) if found is None else (found["switch"], int(found["port"]))


def planned(link: ReadLink, ports: PortNumbers, hosts: dict[str, HostRecord]) -> PlannedLink:
    """A link with its port numbers; a host's first interface is called eth0."""

    def end(node: str, given: int | None) -> LinkEnd:
        port = ports.take(node, given)
        return LinkEnd(node, port, interface="eth0" if node in hosts and port == 0 else None)

    return PlannedLink(end(*link.one), end(*link.other), link.options)


def plan_of_2018(file: ParsedFile, hosts: list[str], read: list[ReadLink]) -> NetworkPlan:
    """The hosts and links of a file of 2017 or 2018: ports and addresses follow from the names of links' ends."""
    ordered = [(sorted((link.one, link.other), key=itemgetter(0)), link.options) for link in read]
    ordered.sort(key=lambda each: (each[0][0][0] not in hosts, "".join(node for node, _ in each[0])))
    ports = PortNumbers(hosts, (end for ends, _ in ordered for end in ends))
    found: dict[str, PlannedHost] = {}
    links = []
    for (one, other), options in ordered:
        mac = None
        if one[0] in hosts:
            host = host_of_2018(file, one[0], other[0])
            mac, found[host.name] = host.mac, host
        ends = [LinkEnd(node, ports.take(node, given), mac) for node, given in (one, other)]
        links.append(PlannedLink(ends[0], ends[1], options))
    return NetworkPlan(tuple(found.get(name, PlannedHost(name)) for name in hosts), (), tuple(links))


def host_of_2018(file: ParsedFile, host: str, switch: str) -> PlannedHost:
    """A host with addresses derived from the numbers in its own name and in its switch's."""
    numbers = [re.search(r"\d+", name) for name in (switch, host)]
    if any(found is None or int(found[0]) > MOST for found in numbers):
        raise file.error(("hosts",), f"'{host}' at '{switch}': expected names such as h1 and s1, which give addresses")
    at, own = (int(found[0]) for found in numbers if found is not None)
    mac, gateway = f"00:00:00:00:{at:02x}:{own:02x}", f"10.0.{own}.254"
    return PlannedHost(host, f"10.0.{at}.{own}/24", mac, gateway, ((gateway, mac),))
