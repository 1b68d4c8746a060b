"""Links by netlink, with no process per step: network namespaces, veth pairs, addresses, rates and queues."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import math
import os
import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inakit.topo.errors import MachineError, RunError
from inakit.topo.fabric.fabric import Address

if TYPE_CHECKING:
    from pyroute2 import IPRoute


# -- Network namespaces: the calling thread enters that of another process, and comes back.

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_namespace(pid: int) -> Iterator[None]:
    """Run the block, in this thread, in the network namespace of process `pid`: its sockets are made there.

    Needs root. Raises `RunError` where the process is gone, `MachineError` where its namespace cannot be entered.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(entered(pid))
        except FileNotFoundError as error:
            raise RunError(f"process {pid} is gone, and its host with it: start the network again") from error
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise MachineError(f"cannot enter a network namespace: {why}; run as root") from error
        yield


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Like `network_namespace`, but raises the system's `OSError`."""
    home = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        target = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            set_namespace(target)
        finally:
            os.close(target)
        yield
    finally:
        set_namespace(home)
        os.close(home)


def set_namespace(descriptor: int) -> None:
    """Move the calling thread to the network namespace of an open file. Raises `OSError`."""
    if libc.setns(descriptor, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


def new_namespace() -> None:
    """Move the calling thread to a network namespace of its own. Raises `OSError`."""
    if libc.unshare(CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")


# -- The kernel's side of a link: veth pairs, addresses and neighbours over netlink, with no process per step.

SIOCETHTOOL = 0x8946
OFFLOADS = {"rx": 0x15, "tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""ethtool's commands that set one offload each."""
NLM_F_REQUEST, NLM_F_REPLACE, NLM_F_CREATE, RTM_NEWNEIGH = 0x1, 0x100, 0x400, 28
"""Constants of linux/netlink.h and linux/rtnetlink.h."""
NETLINK_HEADER = 16
NUD_PERMANENT = 0x80
NEIGHBORS_PER_BATCH = 1000
NAME_LIMIT = 15
"""The longest interface name in characters (IFNAMSIZ without its terminator)."""


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
    first, second = (
        {"ifname": end.interface, "address": end.mac, "group": group}
        | ({} if end.pid is None else {"net_ns_pid": end.pid})
        for end in (a, b)
    )
    with inside(None) as netlink:
        netlink.link("add", kind="veth", num_tx_queues=1, num_rx_queues=1, peer=second, **first)


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
    """Switch off IPv6, whose neighbour discovery would send packets."""
    ipv6 = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1")


def add_neighbors(index: int, known: Iterable[Address]) -> None:
    """Add permanent neighbour entries in the calling thread's namespace, so that no host ever asks by ARP.

    A network has as many entries as pairs of hosts, so messages are sent in batches, and the kernel answers failures
    only. Raises `OSError` for a failure. pyroute2 encodes an entry in 1.6 ms: it would take half an hour for the
    million entries of a fat-tree with k = 16 (320 switches, 1,024 hosts); this encoding takes a second.
    """
    messages = []
    for address in known:
        # RTM_NEWNEIGH: netlink header, ndmsg, and the attributes NDA_DST and NDA_LLADDR.
        attributes = struct.pack("=HH4s", 8, 1, address.ipv4.to_bytes(4, "big"))
        attributes += struct.pack("=HH6s2x", 10, 2, address.mac.to_bytes(6, "big"))
        entry = struct.pack("=BxxxiHBB", socket.AF_INET, index, NUD_PERMANENT, 0, 0) + attributes
        flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE
        messages.append(struct.pack("=IHHII", NETLINK_HEADER + len(entry), RTM_NEWNEIGH, flags, 0, 0) + entry)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        for first in range(0, len(messages), NEIGHBORS_PER_BATCH):
            netlink.send(b"".join(messages[first : first + NEIGHBORS_PER_BATCH]))
            with suppress(BlockingIOError):
                answer = netlink.recv(65536, socket.MSG_DONTWAIT)
                code = -struct.unpack_from("=i", answer, NETLINK_HEADER)[0]
                raise OSError(code, f"neighbour entries refused: {os.strerror(code)}")


def set_up(netlink: IPRoute, index: int, **options: int) -> None:
    """Set an interface up, with options such as its `mtu`."""
    netlink.link("set", index=index, state="up", **options)


def interface_name(network: str, node: str, number: int, port: int) -> str:
    """The name of a switch's interface; if it is too long, the switch's number and a dot replace the switch's name.

    No switch's name has a dot, so that the two kinds of names cannot collide.
    """
    name = f"{network}-{node}-{port}"
    return name if len(name) <= NAME_LIMIT else f"{network}-{number:x}.{port}"


# -- The rates, queues and delays of links: HTB with a queue behind it, configured over netlink.

SMALLEST_FRAME = 60
LARGEST_FRAME = 1514
BURST_S = 0.01
"""The burst of a shaper in seconds of its rate, which compensates for late timers on a busy machine."""
HTB_ROOT, HTB_CLASS, QUEUE = 0x50000, 0x50001, 0x100000
"""Handles of the shaper of an interface, of its one class, and of the queue in which packets wait for it."""


def shape(netlink: IPRoute, index: int, rate_bps: float, queue_packets: int, delay_s: float = 0.0) -> None:
    """Limit interface `index` to `rate_bps` (bits of L2 frames), after a queue and a delay.

    HTB's quantum is set explicitly: it has no effect with a single class, and the value that the kernel would derive
    from the rate makes it warn above 16 Mbit/s. Raises `MachineError` when the kernel lacks a qdisc.
    """
    add_qdisc(netlink, "htb", index, handle=HTB_ROOT, default=HTB_CLASS & 0xFFFF)
    set_rate(netlink, index, rate_bps, "add-class")
    kind, options = queue(rate_bps, queue_packets, delay_s)
    add_qdisc(netlink, kind, index, **options)


def let_pass(netlink: IPRoute, index: int, rate_bps: float, queue_packets: int, delay_s: float, *, up: bool) -> None:
    """Let a shaper that `shape` made with these values send again, or, with `up` false, drop all packets."""
    kind, options = queue(rate_bps, queue_packets, delay_s)
    netlink.tc("change", kind, index, **(options if up else options | {"limit": 0}))


def queue(rate_bps: float, queue_packets: int, delay_s: float) -> tuple[str, dict[str, float]]:
    """The qdisc in which packets wait for a shaper, and its options.

    With a delay the queue is longer by the packets in flight during the delay.
    """
    place = {"handle": QUEUE, "parent": HTB_CLASS}
    if delay_s > 0:
        under_way = math.ceil(rate_bps * delay_s / (8 * SMALLEST_FRAME))
        return "netem", {**place, "delay": round(delay_s * 1e6), "limit": queue_packets + under_way}
    return "pfifo", {**place, "limit": queue_packets}


def set_rate(netlink: IPRoute, index: int, rate_bps: float, command: str = "change-class") -> None:
    """Change a shaper's rate. Packets in its queue stay there."""
    rate = round(rate_bps / 8)
    burst = max(2 * LARGEST_FRAME, round(rate * BURST_S))
    netlink.tc(
        command, "htb", index, HTB_CLASS,
        parent=HTB_ROOT, rate=rate, burst=burst, cburst=burst, quantum=LARGEST_FRAME,
    )  # fmt: skip


def add_qdisc(netlink: IPRoute, kind: str, index: int, **options: float) -> None:
    """Add a qdisc to an interface. Raises `MachineError` when the kernel lacks it."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415, it takes long to import

    try:
        netlink.tc("add", kind, index, **options)
    except NetlinkError as error:
        if error.code != errno.ENOENT:
            raise
        if kind == "netem":
            way = "this kernel has no netem, which delays packets: set the delay of every link to 0"
            raise MachineError(way) from error
        raise MachineError(f"this kernel has no qdisc '{kind}': load the module sch_{kind}") from error


def remove_shaping(netlink: IPRoute, index: int) -> None:
    """Remove all qdiscs of an interface, if it has any."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415, it takes long to import

    try:
        netlink.tc("del", index=index, parent=0xFFFFFFFF)
    except NetlinkError as error:
        if error.code != errno.ENOENT:
            raise
