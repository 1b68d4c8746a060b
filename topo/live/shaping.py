"""The rates, queues and delays of links: HTB, and a queue behind it, set by tc over netlink."""

from __future__ import annotations

import errno
import math
from typing import TYPE_CHECKING

from inakit.topo.errors import MachineError

if TYPE_CHECKING:
    from pyroute2 import IPRoute

SMALLEST_FRAME = 60
LARGEST_FRAME = 1514
BURST_S = 0.01
"""A shaper may send the bytes of this much time at once, which makes up for late timers on a busy machine."""
HTB_ROOT, HTB_CLASS, QUEUE = 0x50000, 0x50001, 0x100000
"""Handles of the shaper of an interface, of its one class, and of the queue in which packets wait for it."""


def shape(netlink: IPRoute, index: int, rate_bps: float, queue_packets: int, delay_s: float = 0.0) -> None:
    """Let interface `index` send at most `rate_bps` (bits of L2 frames), after a queue and a delay.

    HTB's quantum is set explicitly: it has no effect with a single class, and the value that the kernel would derive
    from the rate makes it warn above 16 Mbit/s. Raises `MachineError` when the kernel lacks a qdisc.
    """
    add_qdisc(netlink, "htb", index, handle=HTB_ROOT, default=HTB_CLASS & 0xFFFF)
    set_rate(netlink, index, rate_bps, "add-class")
    kind, options = queue(rate_bps, queue_packets, delay_s)
    add_qdisc(netlink, kind, index, **options)


def let_pass(netlink: IPRoute, index: int, rate_bps: float, queue_packets: int, delay_s: float, *, up: bool) -> None:
    """Let a shaper that `shape` made with these values send again, or, with `up` false, drop all that comes to it."""
    kind, options = queue(rate_bps, queue_packets, delay_s)
    netlink.tc("change", kind, index, **(options if up else options | {"limit": 0}))


def queue(rate_bps: float, queue_packets: int, delay_s: float) -> tuple[str, dict[str, float]]:
    """The qdisc in which packets wait for a shaper, and its options.

    With a delay the queue is longer by the packets that are under way during it.
    """
    place = {"handle": QUEUE, "parent": HTB_CLASS}
    if delay_s > 0:
        under_way = math.ceil(rate_bps * delay_s / (8 * SMALLEST_FRAME))
        return "netem", {**place, "delay": round(delay_s * 1e6), "limit": queue_packets + under_way}
    return "pfifo", {**place, "limit": queue_packets}


def set_rate(netlink: IPRoute, index: int, rate_bps: float, command: str = "change-class") -> None:
    """Let a shaper send at another rate. Packets that wait in its queue stay there."""
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
        if error.code == errno.ENOENT:
            raise missing_qdisc(kind) from error
        raise


def missing_qdisc(kind: str) -> MachineError:
    """The error for a qdisc that the kernel lacks, with what to do about it."""
    if kind == "netem":
        return MachineError("this kernel has no netem, which delays packets: set the delay of every link to 0")
    return MachineError(f"this kernel has no qdisc '{kind}': load the module sch_{kind}")


def remove_shaping(netlink: IPRoute, index: int) -> None:
    """Remove all qdiscs of an interface, if it has any."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415, it takes long to import

    try:
        netlink.tc("del", index=index, parent=0xFFFFFFFF)
    except NetlinkError as error:
        if error.code != errno.ENOENT:
            raise
