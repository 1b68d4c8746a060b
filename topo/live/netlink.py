"""The kernel's side of a link: veth pairs, addresses and neighbours over netlink, with no process per step."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inakit.topo.fabric.addresses import Address
from inakit.topo.live.namespaces import entered

if TYPE_CHECKING:
    from pyroute2 import IPRoute

SIOCETHTOOL = 0x8946
OFFLOADS = {"rx": 0x15, "tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""ethtool's commands that set one offload each."""
NLM_F_REQUEST, NLM_F_REPLACE, NLM_F_CREATE, RTM_NEWNEIGH = 0x1, 0x100, 0x400, 28
"""Of linux/netlink.h and linux/rtnetlink.h."""
NETLINK_HEADER = 16
NUD_PERMANENT = 0x80
NEIGHBORS_PER_BATCH = 1000
NAME_LIMIT = 15
"""Characters of an interface's name (IFNAMSIZ without its terminator)."""


@dataclass(frozen=True)
class End:
    """One end of a veth pair. `pid` is a process in the namespace of this end; None is the root namespace."""

    interface: str
    mac: str
    pid: int | None


@contextmanager
def inside(pid: int | None) -> Iterator[IPRoute]:
    """A netlink socket of the network namespace of `pid`, with the calling thread in that namespace."""
    from pyroute2 import IPRoute  # noqa: PLC0415, it takes long to import

    if pid is None:
        with IPRoute() as netlink:
            yield netlink
        return
    with entered(pid), IPRoute() as netlink:
        yield netlink


def create_pair(a: End, b: End, group: int) -> None:
    """Create a veth pair, each end in its namespace, both in the device group `group`."""
    first, second = (link_request(end, group) for end in (a, b))
    with inside(None) as netlink:
        netlink.link("add", kind="veth", num_tx_queues=1, num_rx_queues=1, peer=second, **first)


def link_request(end: End, group: int) -> dict[str, object]:
    """One end of a veth pair as netlink's request takes it."""
    namespace = {} if end.pid is None else {"net_ns_pid": end.pid}
    return {"ifname": end.interface, "address": end.mac, "group": group, **namespace}


def index_of(interface: str) -> int:
    """The kernel's number of `interface` in the calling thread's namespace."""
    return socket.if_nametoindex(interface)


def silence(interface: str) -> None:
    """Switch off IPv6 and offloads, so that the interface sends frames exactly as written and none of its own."""
    switch_off_ipv6(interface)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, SIOCETHTOOL, request)


def switch_off_ipv6(interface: str) -> None:
    """Switch off IPv6, whose discovery would send packets of its own."""
    ipv6 = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1")


def add_neighbors(index: int, known: Iterable[Address]) -> None:
    """Add permanent neighbour entries in the calling thread's namespace, so that no host ever asks by ARP.

    A network has as many entries as pairs of hosts, so messages are sent in batches, and the kernel answers failures
    only. Raises `OSError` for one.
    """
    messages = [neighbor_request(index, address) for address in known]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        for first in range(0, len(messages), NEIGHBORS_PER_BATCH):
            netlink.send(b"".join(messages[first : first + NEIGHBORS_PER_BATCH]))
            with suppress(BlockingIOError):
                answer = netlink.recv(65536, socket.MSG_DONTWAIT)
                code = -struct.unpack_from("=i", answer, NETLINK_HEADER)[0]
                raise OSError(code, f"neighbour entries refused: {os.strerror(code)}")


def neighbor_request(index: int, address: Address) -> bytes:
    """The message RTM_NEWNEIGH: netlink header, ndmsg, and the attributes NDA_DST and NDA_LLADDR."""
    attributes = struct.pack("=HH4s", 8, 1, address.ipv4.to_bytes(4, "big"))
    attributes += struct.pack("=HH6s2x", 10, 2, address.mac.to_bytes(6, "big"))
    entry = struct.pack("=BxxxiHBB", socket.AF_INET, index, NUD_PERMANENT, 0, 0) + attributes
    flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE
    return struct.pack("=IHHII", NETLINK_HEADER + len(entry), RTM_NEWNEIGH, flags, 0, 0) + entry


def set_address(netlink: IPRoute, index: int, ipv4: str) -> None:
    """Give an interface the address `ipv4`, which has a prefix length as in 10.0.0.1/8."""
    address, _, prefix_length = ipv4.partition("/")
    netlink.addr("replace", index=index, address=address, prefixlen=int(prefix_length))


def set_up(netlink: IPRoute, index: int, **options: int) -> None:
    """Set an interface up, with options such as its `mtu`."""
    netlink.link("set", index=index, state="up", **options)


def interface_name(network: str, node: str, number: int, port: int) -> str:
    """The name of a switch's interface; a name that is too long has the switch's number and a point instead.

    No switch's name has a point, so that the two kinds of names are never the same.
    """
    name = f"{network}-{node}-{port}"
    return name if len(name) <= NAME_LIMIT else f"{network}-{number:x}.{port}"
