"""What queueing disciplines dropped, by interface: from one dump over netlink, without an object for every queue."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import nullcontext
from types import TracebackType
from typing import Self

from inakit.topo.live.namespaces import network_namespace

NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE, RTM_GETQDISC = 0x1, 0x300, 0x2, 0x3, 38
"""Of linux/netlink.h and linux/rtnetlink.h."""
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
QUEUE = struct.Struct("=BxxxiIII")  # struct tcmsg: family, interface, handle, parent, info
ATTRIBUTE = struct.Struct("=HH")  # struct rtattr: length, type
STATS2, STATS_QUEUE, DROPS_AT = 7, 3, 8  # TCA_STATS2, TCA_STATS_QUEUE, and `drops` in struct gnet_stats_queue
HOOK = 0xFFFF
"""The handle of clsact and ingress, which are no queues: what a switch's program consumes there counts as dropped."""
REQUEST = HEADER.pack(HEADER.size + QUEUE.size, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0)
REQUEST += QUEUE.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
ANSWER_BYTES = 1 << 16


class QueueReader:
    """Reads the queues of one network namespace: that of process `pid`, or this one's. A context manager.

    It knows the interfaces that are there when it is made.
    """

    def __init__(self, pid: int | None = None) -> None:
        with nullcontext() if pid is None else network_namespace(pid):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self.names = dict(socket.if_nameindex())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def drops(self) -> dict[str, int]:
        """Packets that the queues of each interface dropped.

        Parents also count what their children dropped, so the largest number of an interface is all of them.
        """
        self.socket.send(REQUEST)
        found: dict[str, int] = {}
        for message in self._messages():
            _, index, handle, _, _ = QUEUE.unpack_from(message)
            if handle >> 16 != HOOK and index in self.names:
                name = self.names[index]
                found[name] = max(found.get(name, 0), dropped(message))
        return found

    def _messages(self) -> Iterator[bytes]:
        """The contents of each message of the answer."""
        while True:
            data = self.socket.recv(ANSWER_BYTES)
            while data:
                length, kind, *_ = HEADER.unpack_from(data)
                if kind == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", data, HEADER.size)[0], "reading queues")
                if kind == NLMSG_DONE:
                    return
                yield data[HEADER.size : length]
                data = data[-(-length // 4) * 4 :]


def dropped(message: bytes) -> int:
    """The drops of the queue that a message is about; 0 for one without statistics."""
    stats = attribute(message[QUEUE.size :], STATS2)
    queue = attribute(stats, STATS_QUEUE)
    return int.from_bytes(queue[DROPS_AT : DROPS_AT + 4], "little") if queue else 0


def attribute(data: bytes, wanted: int) -> bytes:
    """The content of the attribute `wanted`; empty if it is not there."""
    at = 0
    while at < len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if kind == wanted:
            return data[at + ATTRIBUTE.size : at + length]
        at += -(-length // 4) * 4
    return b""
