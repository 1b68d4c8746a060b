"""A network of hosts and P4 switches as a course describes it, whatever format its file has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PlannedHost:
    """A host. `address` is such as 10.0.1.1/24; `neighbors` are (IP, MAC) that it knows without asking.

    `commands` are run in it when the network is up. `interface` is the name of its first interface.
    """

    name: str
    address: str
    mac: str
    interface: str
    gateway: str | None = None
    neighbors: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedSwitch:
    """A switch. `program` is BMv2 JSON or P4 source; `commands` and `runtime` are files that fill its tables."""

    name: str
    program: Path | None = None
    commands: Path | None = None
    runtime: Path | None = None
    cpu_port: int | None = None
    priority_queues: int = 1


@dataclass(frozen=True)
class LinkEnd:
    """An end of a link: a host or switch, the number of its port, and the address of its interface, if it matters."""

    node: str
    port: int
    mac: str | None = None


@dataclass(frozen=True)
class PlannedLink:
    """A link with the options of Mininet's TCLink: `bw` in Mbit/s, `delay` such as 5ms, `loss` in percent."""

    one: LinkEnd
    other: LinkEnd
    options: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True)
class NetworkPlan:
    """Hosts, switches and links, in the order of the file. `scripts` are commands that the file wants run afterwards.

    With `know_each_other`, hosts of one subnet know each other's addresses without asking.
    """

    hosts: tuple[PlannedHost, ...]
    switches: tuple[PlannedSwitch, ...]
    links: tuple[PlannedLink, ...]
    scripts: tuple[str, ...] = ()
    know_each_other: bool = False
