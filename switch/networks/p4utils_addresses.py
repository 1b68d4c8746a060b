"""The addresses that p4-utils gives hosts: by the strategy of the file, from the names of hosts and switches."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface

from inakit.switch.networks.parts import with_prefix
from inakit.topo.errors import InputError

PREFIX = 24
"""The bits of a subnet that p4-utils takes for an address without a prefix."""
ANYWHERE = 8
"""The bits of the subnet of hosts for which the file has no strategy."""


@dataclass(frozen=True)
class Place:
    """A host, its number in its name (h3: 3; None for other names), and the number of its first switch."""

    host: str
    number: int | None
    switch_number: int


@dataclass(frozen=True)
class Addresses:
    """What a host gets: its address with the bits of its subnet, and the IP of its gateway."""

    address: str
    gateway: str | None = None

    @property
    def ip(self) -> str:
        """The address without the bits of its subnet."""
        return self.address.partition("/")[0]

    def mac(self, side: int) -> str:
        """The MAC of the host (0) or of the switch's port (1), which p4-utils makes of the host's IP."""
        return mac_of(self.ip, side)


def mac_of(ip: str, side: int) -> str:
    """The MAC that p4-utils makes of an IP for the node that has it (0), or for its neighbour (1)."""
    return ":".join(["00", f"{side:02x}", *(f"{part:02x}" for part in ip_interface(ip).packed[-4:])])


def l2(_switch: int, host: int) -> Addresses:
    """All hosts are in one subnet."""
    return Addresses(f"10.0.{host >> 8}.{host & 0xFF}/16")


def mixed(switch: int, host: int) -> Addresses:
    """The hosts of a switch are in one subnet."""
    subnet = f"10.{switch >> 8}.{switch & 0xFF}"
    return Addresses(f"{subnet}.{host}/{PREFIX}", f"{subnet}.254")


def l3(switch: int, host: int) -> Addresses:
    """Each host has a subnet of its own."""
    return Addresses(f"10.{switch}.{host}.2/{PREFIX}", f"10.{switch}.{host}.1")


def anywhere(_switch: int, host: int) -> Addresses:
    """All hosts are in 10.0.0.0/8, whatever their names."""
    return Addresses(f"10.{host >> 16}.{host >> 8 & 0xFF}.{host & 0xFF}/{ANYWHERE}")


MOST_HOSTS = 1 << 16
STRATEGIES: dict[str, Callable[[int, int], Addresses]] = {"l2": l2, "mixed": mixed, "l3": l3}


def natural(names: Iterable[str]) -> list[list[str | int]]:
    """A key that sorts s2 before s10."""
    return [[int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)] for name in names]


def switch_numbers(names: Collection[str], own: Mapping[str, int]) -> dict[str, int]:
    """The switches' numbers: their own, where they have any, else the lowest that are free, in the order of names."""
    found = dict(own)
    for name in sorted(names, key=lambda each: natural([each])):
        if name not in found:
            found[name] = next(number for number in range(1, len(names) + 1) if number not in found.values())
    return found


def places(hosts: Collection[str], numbers: Mapping[str, int], links: Sequence[tuple[str, str]]) -> list[Place]:
    """Where each host is, in the order of the links; its first link counts."""
    found: dict[str, Place] = {}
    for one, other in links:
        host, switch = (one, other) if one in hosts else (other, one)
        if host in hosts and switch in numbers and host not in found:
            number = re.fullmatch(r"h(\d+)", host)
            found[host] = Place(host, int(number[1]) if number else None, numbers[switch])
    return list(found.values())


def addresses_of(strategy: str | None, given: Mapping[str, str], found: Sequence[Place]) -> dict[str, Addresses]:
    """The addresses of hosts by their places; those that the file itself gives stay. `manual` adds no others."""
    own = {host: Addresses(with_prefix(address, PREFIX)) for host, address in given.items()}
    if strategy == "manual":
        return own
    for place in sorted(found, key=lambda each: strategy is not None and each.number is None):
        if place.host not in own:
            own[place.host] = next_address(strategy, place, {each.ip for each in own.values()})
    return own


def next_address(strategy: str | None, place: Place, taken: Collection[str]) -> Addresses:
    """The address of a host at its place: that of its number, or the first that is not taken."""
    give = anywhere if strategy is None else STRATEGIES[strategy]
    fixed = None if strategy is None else place.number
    for number in range(1, MOST_HOSTS) if fixed is None else (fixed,):
        address = give(place.switch_number, number)
        if max(map(int, address.ip.split("."))) < 256 and address.ip not in taken:
            return address
    raise InputError(f"host '{place.host}' at switch number {place.switch_number}: {strategy} has no address left")
