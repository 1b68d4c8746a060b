"""The network file of p4lang's tutorials: `topology.json`, whose links name ports as `s1-p3`."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ConfigDict, Field, StrictInt, StrictStr

from switch.control.entry_files.runtime_json import program_named_by
from switch.networks.found_files import find_file, find_program
from switch.networks.network_plan import LinkEnd, NetworkPlan, PlannedHost, PlannedLink, PlannedSwitch
from topo.files.reader import ParsedFile
from topo.files.validation import Record, validate

PORT = re.compile(r"(?P<switch>.+)-p(?P<port>\d+)")
LINK = '["h1", "s1-p1"] or ["s1-p3", "s2-p1", DELAY, BANDWIDTH]'


class Lenient(Record):
    """A part of a file that may have further keys."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class HostRecord(Lenient):
    """What the file says of a host."""

    ip: StrictStr = Field(description="an address such as 10.0.1.1/24")
    mac: StrictStr = Field(description="an address such as 08:00:00:00:01:11")
    commands: list[StrictStr] = Field([], description="a list of shell commands")


class SwitchRecord(Lenient):
    """What the file says of a switch."""

    runtime_json: StrictStr | None = Field(None, description="the name of a file such as s1-runtime.json")
    cli_input: StrictStr | None = Field(None, description="the name of a file of simple_switch_CLI's commands")
    program: StrictStr | None = Field(None, description="the name of a compiled program")
    cpu_port: StrictInt | None = Field(None, description="a port number")
    priority_queues: StrictInt = Field(1, ge=1, description="a whole number, at least 1")


class TopologyRecord(Lenient):
    """What the file says."""

    hosts: dict[str, HostRecord] = Field(description="hosts by name")
    switches: dict[str, SwitchRecord] = Field(description="switches by name")
    links: list[list[Any]] = Field(description=f"a list of links such as {LINK}")


def plan_of(file: ParsedFile) -> NetworkPlan:
    """The network of a file."""
    record = validate(file, TopologyRecord)
    hosts = tuple(
        PlannedHost(name, host.ip, host.mac, "eth0", commands=tuple(host.commands))
        for name, host in record.hosts.items()
    )
    switches = tuple(switch_of(file, name, switch) for name, switch in record.switches.items())
    links = tuple(link_of(file, number, link) for number, link in enumerate(record.links))
    return NetworkPlan(hosts, switches, links)


def switch_of(file: ParsedFile, name: str, record: SwitchRecord) -> PlannedSwitch:
    """A switch. Its program is named by the file of its tables, or by the network file."""
    runtime = None if record.runtime_json is None else find_file(record.runtime_json, file.path)
    commands = None if record.cli_input is None else find_file(record.cli_input, file.path)
    named = record.program or (None if runtime is None else program_named_by(runtime))
    program = None if named is None else find_program(named, file.path)
    return PlannedSwitch(name, program, commands, runtime, record.cpu_port, record.priority_queues)


def link_of(file: ParsedFile, number: int, link: list[Any]) -> PlannedLink:
    """A link: two ends, then perhaps a delay (a number is in milliseconds) and a bandwidth in Mbit/s."""
    if not 2 <= len(link) <= 4 or not all(isinstance(end, str) for end in link[:2]):
        raise file.error(("links", number), f"{link!r}: expected {LINK}")
    one, other, delay, bandwidth = (*link, None, None)[:4]
    options: dict[str, float | str] = {}
    if delay not in (None, "0", 0):
        options["delay"] = delay if isinstance(delay, str) else f"{delay}ms"
    if bandwidth is not None:
        options["bw"] = float(bandwidth)
    return PlannedLink(end_of(one), end_of(other), tuple(options.items()))


def end_of(text: str) -> LinkEnd:
    """The end of a link: a port of a switch, or a host, which has port 0."""
    found = PORT.fullmatch(text)
    return LinkEnd(text, 0) if found is None else LinkEnd(found["switch"], int(found["port"]))
