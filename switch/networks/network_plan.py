"""A network of hosts and P4 switches as a course describes it, whatever format its file has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PlannedHost:
    """A host. `address`, such as 10.0.1.1/24, and `mac` are those of its first interface; None: none, any.

    `neighbors` are (IP, MAC) that it knows without asking. `commands` are run in it when the network is up.
    """

    name: str
    address: str | None = None
    mac: str | None = None
    gateway: str | None = None
    neighbors: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedSwitch:
    """A switch. `program` is BMv2 JSON or P4 source; `commands` and `runtime` are files that fill its tables.

    `cpu_port` is the port of packets from and to P4Runtime's clients. What is None is chosen when the network starts.
    """

    name: str
    program: Path | None = None
    commands: Path | None = None
    runtime: Path | None = None
    cpu_port: int | None = None
    priority_queues: int = 1
    device_id: int | None = None
    thrift_port: int | None = None
    grpc_port: int | None = None


@dataclass(frozen=True)
class LinkEnd:
    """An end of a link: a host or switch, and the number of its port.

    `mac`, `interface` (its name) and `address` (of a host's further interface) are those of the file, if it says any.
    """

    node: str
    port: int
    mac: str | None = None
    interface: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class PlannedLink:
    """A link with the options of Mininet's TCLink: `bw` in Mbit/s, `delay` such as 5ms, `loss` in percent."""

    one: LinkEnd
    other: LinkEnd
    options: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True)
class NetworkPlan:
    """Hosts, switches and links, in the order of the file. `scripts` are commands that the file wants run afterwards.

    With `know_each_other`, hosts of one subnet know each other's addresses without asking. `bystanders` are nodes that
    do nothing: the open ends of links stay with them. `notes` say what of the file has no effect, or another one.
    """

    hosts: tuple[PlannedHost, ...]
    switches: tuple[PlannedSwitch, ...]
    links: tuple[PlannedLink, ...]
    scripts: tuple[str, ...] = ()
    know_each_other: bool = False
    bystanders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
