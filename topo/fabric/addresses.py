"""Which MAC and IPv4 address each host has: a pure function of the fabric, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric

NETWORK = 10 << 24
PREFIX_LENGTH = 8
HOSTS_PER_BLOCK = 254
"""Hosts have the numbers 1 to 254 of each block 10.x.y; .0 and .255 stay unused because they read like networks."""
MAX_HOSTS = HOSTS_PER_BLOCK << 16
LOCAL_MAC = 0x0200 << 32


@dataclass(frozen=True)
class Address:
    """A host's addresses: numbers as table entries take them, and texts as people read them."""

    mac: int
    ipv4: int

    @property
    def mac_text(self) -> str:
        """The MAC address as in 02:00:0a:00:00:01."""
        return ":".join(f"{byte:02x}" for byte in self.mac.to_bytes(6, "big"))

    @property
    def ipv4_text(self) -> str:
        """The IPv4 address as in 10.0.0.1."""
        return ".".join(str(byte) for byte in self.ipv4.to_bytes(4, "big"))


def addresses(fabric: Fabric) -> dict[str, Address]:
    """10.x.y.z and 02:00:0a:xx:yy:zz for every host, in the order of `fabric.hosts`: 10.0.0.1 is the first.

    Raises `FabricError` for more hosts than the network 10.0.0.0/8 has addresses.
    """
    if len(fabric.hosts) > MAX_HOSTS:
        raise FabricError(f"fabric '{fabric.name}' has {len(fabric.hosts)} hosts: 10.0.0.0/8 addresses {MAX_HOSTS}")
    return {host.name: address(index) for index, host in enumerate(fabric.hosts)}


def address(index: int) -> Address:
    """The addresses of the host at this index, from 0, of `fabric.hosts`."""
    block, number = divmod(index, HOSTS_PER_BLOCK)
    ipv4 = NETWORK | block << 8 | number + 1
    return Address(LOCAL_MAC | ipv4, ipv4)
