"""A network of hosts and P4 switches from a course, independent of its file's format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_interface
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from inakit.topo.errors import InputError


@dataclass(frozen=True)
class PlannedHost:
    """A host. `address`, such as 10.0.1.1/24, and `mac` are those of its first interface (None: none, any).

    `neighbors` are (IP, MAC) pairs that it knows without asking. `commands` run in it once the network is up.
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

    `cpu_port` is the port of packets from and to P4Runtime's clients. Attributes that are None are chosen when the
    network starts.
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

    `mac`, `interface` (its name) and `address` (of a host's further interface) come from the file, if it has them.
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

    With `know_each_other`, hosts of one subnet know each other's addresses without asking. `bystanders` are nodes
    without a function, at the open ends of links. `notes` name parts of the file without effect.
    """

    hosts: tuple[PlannedHost, ...]
    switches: tuple[PlannedSwitch, ...]
    links: tuple[PlannedLink, ...]
    scripts: tuple[str, ...] = ()
    know_each_other: bool = False
    bystanders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


MOST_PORTS = 1 << 16
TAKEN_BY_LINUX = re.compile(r"[A-Za-z0-9_.-]{1,15}")
STEM_LENGTH = 6


class PortNumbers:
    """The ports of all nodes: the file's numbers, else the lowest free number; hosts' ports begin at 0.

    `given` holds the nodes and numbers of all ends of links; None means that the file gives no number.
    """

    def __init__(self, hosts: Collection[str], given: Iterable[tuple[str, int | None]]) -> None:
        self.hosts = hosts
        self.used: dict[str, set[int]] = {}
        for node, port in given:
            self.used.setdefault(node, set()).update(() if port is None else (port,))

    def take(self, node: str, given: int | None = None) -> int:
        """The number of the node's next port, or the `given` one."""
        if given is not None:
            return given
        used = self.used.setdefault(node, set())
        port = next(number for number in range(node not in self.hosts, MOST_PORTS) if number not in used)
        used.add(port)
        return port


def with_interfaces(plan: NetworkPlan) -> NetworkPlan:
    """The plan with a unique name for each interface; a note says where Mininet's own name is too long."""
    ends = [end for link in plan.links for end in (link.one, link.other)]
    names = {(end.node, end.port): end.interface or f"{end.node}-eth{end.port}" for end in ends}
    wrong = dict.fromkeys(node for (node, _), name in names.items() if not TAKEN_BY_LINUX.fullmatch(name))
    kept = {name for (node, _), name in names.items() if node not in wrong}
    notes = []
    for number, node in enumerate(wrong, start=1):
        stem = re.sub(r"[^A-Za-z0-9_.]", "_", node)[:STEM_LENGTH] + f"_{number}"  # the number makes it unique
        while any(name.startswith(f"{stem}-") for name in kept):
            stem += "_"
        names |= {(other, port): f"{stem}-eth{port}" for other, port in names if other == node}
        notes.append(
            f"the interfaces of '{node}' are {stem}-eth...: Linux takes 15 characters of letters, digits, _ . -"
        )

    def named(end: LinkEnd) -> LinkEnd:
        return replace(end, interface=names[end.node, end.port])

    links = tuple(replace(link, one=named(link.one), other=named(link.other)) for link in plan.links)
    return replace(plan, links=links, notes=(*plan.notes, *notes))


DELAY = re.compile(r"\d+(\.\d+)? ?(s|secs?|ms|msecs?|us|usecs?|ns|nsecs?)?")
MAC = re.compile(r"([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}")


def amount(value: Any) -> Any:
    """The number in a text such as "0.5"; any other value unchanged."""
    return float(value) if isinstance(value, str) else value


def delay(value: Any) -> Any:
    """A delay for `tc`: a number is in milliseconds; a text must have a unit, since `tc` would read microseconds."""
    if isinstance(value, str) and DELAY.fullmatch(value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return f"{value}ms"
    raise ValueError(value)


def address(value: Any) -> Any:
    """The text of an IP address, with or without a prefix. Raises `ValueError` for any other text."""
    if isinstance(value, str):
        ip_interface(value)
    return value


def gateway(value: Any) -> Any:
    """The IP address in a text such as "via 10.0.1.1", or alone."""
    return str(ip_address(value.removeprefix("via ").strip())) if isinstance(value, str) else value


def mac(value: Any) -> Any:
    """The text of a MAC address. Raises `ValueError` for any other text."""
    if isinstance(value, str) and not MAC.fullmatch(value):
        raise ValueError(value)
    return value


Amount = Annotated[float, BeforeValidator(amount)]
Delay = Annotated[str, BeforeValidator(delay)]
Address = Annotated[str, BeforeValidator(address)]
Gateway = Annotated[str, BeforeValidator(gateway)]
Mac = Annotated[str, BeforeValidator(mac)]


def with_prefix(given: str, bits: int) -> str:
    """An address with a prefix: its own, or one of `bits` bits."""
    return given if "/" in given else f"{given}/{bits}"


PREFIX = 24
"""The prefix length that p4-utils assumes for an address without a prefix."""
ANYWHERE = 8
"""The prefix length of hosts' subnet if the file names no strategy."""


@dataclass(frozen=True)
class Place:
    """A host, the number in its name (h3: 3; None for other names), and the number of its first switch."""

    host: str
    number: int | None
    switch_number: int


@dataclass(frozen=True)
class Addresses:
    """The addresses of a host: its own with the prefix length, and the IP of its gateway."""

    address: str
    gateway: str | None = None

    @property
    def ip(self) -> str:
        """The address without the prefix length."""
        return self.address.partition("/")[0]

    def mac(self, side: int) -> str:
        """The MAC of the host (0) or of the switch's port (1), which p4-utils derives from the host's IP."""
        return mac_of(self.ip, side)


def mac_of(ip: str, side: int) -> str:
    """The MAC that p4-utils derives from an IP for its node (0), or for the node's neighbour (1)."""
    return ":".join(["00", f"{side:02x}", *(f"{part:02x}" for part in ip_interface(ip).packed[-4:])])


MOST_HOSTS = 1 << 16
STRATEGIES: dict[str | None, Callable[[int, int], Addresses]] = {
    # all hosts are in one subnet
    "l2": lambda _switch, host: Addresses(f"10.0.{host >> 8}.{host & 0xFF}/16"),
    # the hosts of a switch are in one subnet
    "mixed": lambda switch, host: Addresses(
        f"10.{switch >> 8}.{switch & 0xFF}.{host}/{PREFIX}", f"10.{switch >> 8}.{switch & 0xFF}.254"
    ),
    # each host has a subnet of its own
    "l3": lambda switch, host: Addresses(f"10.{switch}.{host}.2/{PREFIX}", f"10.{switch}.{host}.1"),
    # without a strategy all hosts are in 10.0.0.0/8, for any names
    None: lambda _switch, host: Addresses(f"10.{host >> 16}.{host >> 8 & 0xFF}.{host & 0xFF}/{ANYWHERE}"),
}
"""The address of a host and of its gateway, from the numbers of its switch and of itself."""


def natural(names: Iterable[str]) -> list[list[str | int]]:
    """A key that sorts s2 before s10."""
    return [[int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)] for name in names]


def switch_numbers(names: Collection[str], own: Mapping[str, int]) -> dict[str, int]:
    """The switches' numbers: their own if they have any, else the lowest free ones, in the order of names."""
    found = dict(own)
    for name in sorted(names, key=lambda each: natural([each])):
        if name not in found:
            found[name] = next(number for number in range(1, len(names) + 1) if number not in found.values())
    return found


def places(hosts: Collection[str], numbers: Mapping[str, int], links: Sequence[tuple[str, str]]) -> list[Place]:
    """The place of each host, in the order of the links; a host's first link counts."""
    found: dict[str, Place] = {}
    for one, other in links:
        host, switch = (one, other) if one in hosts else (other, one)
        if host in hosts and switch in numbers and host not in found:
            number = re.fullmatch(r"h(\d+)", host)
            found[host] = Place(host, int(number[1]) if number else None, numbers[switch])
    return list(found.values())


def addresses_of(strategy: str | None, given: Mapping[str, str], found: Sequence[Place]) -> dict[str, Addresses]:
    """The addresses of hosts by their places; addresses from the file stay. `manual` adds no others."""
    own = {host: Addresses(with_prefix(address, PREFIX)) for host, address in given.items()}
    if strategy == "manual":
        return own
    for place in sorted(found, key=lambda each: strategy is not None and each.number is None):
        if place.host in own:
            continue
        fixed, taken = None if strategy is None else place.number, {each.ip for each in own.values()}
        for number in range(1, MOST_HOSTS) if fixed is None else (fixed,):
            address = STRATEGIES[strategy](place.switch_number, number)
            if max(map(int, address.ip.split("."))) < 256 and address.ip not in taken:
                own[place.host] = address
                break
        else:
            where = f"host '{place.host}' at switch number {place.switch_number}"
            raise InputError(f"{where}: {strategy} has no free address")
    return own


def find_file(name: str, beside: Path) -> Path:
    """The file that `beside` names: in its own folder, the parent folder, or the working folder."""
    folders = [beside.parent, beside.resolve().parent.parent, Path.cwd()]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{beside} names '{name}', which is in none of {', '.join(dict.fromkeys(map(str, folders)))}")


def find_program(name: str, beside: Path) -> Path | None:
    """The compiled program or source that `beside` names; None if it is missing, since it may be compiled later."""
    try:
        return find_file(name, beside)
    except InputError:
        return None
