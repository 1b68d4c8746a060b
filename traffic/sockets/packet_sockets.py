"""Packet sockets in the network namespaces of many hosts, all owned by this process.

Frames leave in batches by `sendmmsg`. They pass the host's own queueing
discipline, like an application's frames, so that its rate limit applies and a full queue refuses more. Frames arrive in
rings.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import MachineError, RunError
from inakit.topo.live.netlink import network_namespace
from inakit.traffic.sockets.ports import Driven, HostPort, IntArray
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, UDP_PORT, Kind, offset_of

# -- The processors' input queues: their lengths, their drops, and the wait for room.
#
# Every packet that crosses a veth waits in the input queue of one processor, and is dropped when a thousand
# (net.core.netdev_max_backlog) wait already. A real link does not lose packets in this way, so senders wait for room.

SOFTNET = Path("/proc/net/softnet_stat")
DROPPED, LENGTH = 1, 11

AT_ONCE = 128
"""The most packets sent between two checks of the queues, counting all copies of results."""
ROOM, ROOM_FOR_COPIES = 500, 250
"""The longest queue to which packets are added. On its way to many workers one packet becomes many, so results, which
the network copies, wait for a shorter queue than gradients.
"""
PAUSE_S = 0.0001
"""The time in seconds between two checks of queues that are too long."""
PATIENCE_S = 0.05
"""After this time in seconds a sender continues although a queue is too long."""


def rows(text: str) -> list[list[str]]:
    """One row per processor, in hexadecimal columns."""
    return [line.split() for line in text.splitlines()]


def backlog_drops() -> tuple[int, ...]:
    """Packets that each processor dropped because its input queue was full."""
    return tuple(int(row[DROPPED], 16) for row in rows(SOFTNET.read_text()))


class Backlog:
    """Lets a sender wait until the input queues have room. A context manager.

    `waited_s`: the total waiting time. Kernels before 5.10 do not report the lengths of queues; there is no wait on
    them.
    """

    def __init__(self) -> None:
        self.descriptor = os.open(SOFTNET, os.O_RDONLY)
        self.unseen = 0
        self.waited_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def longest(self) -> int:
        """Packets in the longest input queue."""
        text = os.pread(self.descriptor, 1 << 16, 0).decode()
        return max(int(row[LENGTH], 16) if len(row) > LENGTH else 0 for row in rows(text))

    def admit(self, packets: int, copies: int) -> None:
        """Wait until the queues have room for `packets`, each with `copies` made by the network.

        Returns after `PATIENCE_S` even without room.
        """
        self.unseen += packets * copies
        if self.unseen < AT_ONCE:
            return
        self.unseen = packets * copies
        room = ROOM if copies == 1 else ROOM_FOR_COPIES
        if self.longest() <= room:
            return
        start = time.monotonic()
        while self.longest() > room and time.monotonic() - start < PATIENCE_S:
            time.sleep(PAUSE_S)
        self.waited_s += time.monotonic() - start


# -- Batches of packets by `sendmmsg`: the kernel reads the frames of many packets from NumPy arrays.
#
# Every batch of the kit leaves by `send_batch` or `send_all`. The kernel takes fewer packets than it is given
# whenever a queue on their way is full: that is back pressure, and the rest goes later.

BATCH = 8192
"""The most packets of a batch."""
STUCK_S = 10.0
"""The time in seconds without an accepted packet after which a sender gives up."""

# struct iovec and struct mmsghdr of a 64-bit kernel.
IOVEC = np.dtype([("base", np.uint64), ("length", np.uint64)])
MMSGHDR = np.dtype(
    {
        "names": ["iov", "iov_count", "length"],
        "formats": [np.uint64, np.uint64, np.uint32],
        "offsets": [16, 24, 56],
        "itemsize": 64,
    }
)

libc = ctypes.CDLL(None, use_errno=True)
libc.sendmmsg.restype = ctypes.c_int
libc.sendmmsg.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Messages:
    """`BATCH` message headers for `sendmmsg`."""

    def __init__(self) -> None:
        self.vectors = np.zeros(BATCH, IOVEC)
        self.headers = np.zeros(BATCH, MMSGHDR)
        self.headers["iov"] = self.vectors.ctypes.data + np.arange(BATCH, dtype=np.uint64) * self.vectors.strides[0]
        self.headers["iov_count"] = 1
        self.address = self.headers.ctypes.data

    def point_at(self, array: NDArray[np.generic], lengths: NDArray[np.integer] | int) -> None:
        """Message i is the first `lengths[i]` bytes of row i of `array`."""
        # The kernel gets addresses, so every row must be one piece of memory.
        assert array[:1].flags.c_contiguous
        self.vectors["base"][: len(array)] = array.ctypes.data + np.arange(len(array)) * array.strides[0]
        self.vectors["length"][: len(array)] = lengths


class Taken(NamedTuple):
    """The number of packets of a batch that the kernel took; `full`: a full queue refused the next one."""

    packets: int
    full: bool = False


def send_batch(descriptor: int, address: int, packets: int, host: str) -> Taken:
    """Give the kernel the packets whose headers are at `address`, as many as it takes now.

    A call that takes fewer does not report why, so the rest is offered again, until all are taken or none is. Raises
    `RunError`, which names the host, if the link is down or the socket fails.
    """
    sent = 0
    while sent < packets:
        count = libc.sendmmsg(descriptor, address + sent * MMSGHDR.itemsize, packets - sent, socket.MSG_DONTWAIT)
        if count < 0:
            code = ctypes.get_errno()
            if code not in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
                raise RunError(f"host '{host}' cannot send: {os.strerror(code)}")
            return Taken(sent, code == errno.ENOBUFS)
        sent += count
    return Taken(sent)


def send_all(descriptor: int, address: int, packets: int, host: str, stuck_s: float = STUCK_S) -> None:
    """Give the kernel all packets whose headers are at `address`, and wait for room if it has none.

    Raises `RunError` as `send_batch` does, and if no packet has been taken for `stuck_s`.
    """
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    last_s, left = time.monotonic(), packets
    while left:
        taken = send_batch(descriptor, address + (packets - left) * MMSGHDR.itemsize, left, host)
        left -= taken.packets
        now_s = time.monotonic()
        if taken.packets:
            last_s = now_s
        elif now_s - last_s > stuck_s:
            raise RunError(f"host '{host}' cannot send: its link has taken no packet for {stuck_s:g} s")
        if taken.full:
            time.sleep(PAUSE_S)  # a socket is writable even if the queue behind it is full
        elif left:
            room.poll(1e3 * stuck_s)


# -- Receive rings of many packet sockets, side by side in memory.
#
# The kernel writes packets that arrive into a socket's ring (packet(7), PACKET_RX_RING with TPACKET_V2) and marks their
# slots; reading takes no system call. The rings are mapped one behind the other: slot `s` of socket `i` is row `i *
# slots + s` of one array. Slots of rings are unrelated to slots of switches.

SOL_PACKET = 263
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10
TPACKET_V2 = 1

FRAME_AT = 66
"""The offset of a packet in its slot: behind struct tpacket2_hdr and sockaddr_ll, rounded up as in the kernel."""
SLOT_BYTES = 512
BLOCK_BYTES = 1 << 16
SLOTS_IN_ALL = 1 << 18
"""The approximate number of slots of all rings together, 128 MB, unless `LEAST_SLOTS` in each are more."""
MOST_SLOTS, LEAST_SLOTS = 1 << 12, 1 << 9

MAP_FIXED = 0x10
FAILED = ctypes.c_void_p(-1).value


def slots_per_ring(sockets: int) -> int:
    """The number of slots of each ring: a power of two, as the kernel requires."""
    fair = SLOTS_IN_ALL // max(sockets, 1)
    return max(LEAST_SLOTS, min(MOST_SLOTS, 1 << max(fair, 1).bit_length() - 1))


class ReceiveRings:
    """The rings of bound packet sockets, until `close`, which comes before the sockets are closed.

    `position`: the number of packets taken from each socket's ring, (sockets,).
    """

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self.slots = slots_per_ring(len(sockets))
        self.ring_bytes = self.slots * SLOT_BYTES
        self.total = self.ring_bytes * len(sockets)
        self.position = np.zeros(len(sockets), np.int64)
        # The whole range first, then each ring over its part of it.
        self.address = map_memory(None, self.total, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        try:
            for number, opened in enumerate(sockets):
                self.map_ring(number, opened)
        except BaseException:
            self.close()
            raise

    def map_ring(self, number: int, opened: socket.socket) -> None:
        """Create a socket's ring, and map it over the socket's part of the memory."""
        opened.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        request = struct.pack("@4I", BLOCK_BYTES, self.ring_bytes // BLOCK_BYTES, SLOT_BYTES, self.slots)
        opened.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        map_memory(
            self.address + number * self.ring_bytes, self.ring_bytes, mmap.MAP_SHARED | MAP_FIXED, opened.fileno()
        )

    def close(self) -> None:
        """Unmap the memory."""
        if self.total:
            libc.munmap(self.address, self.total)
            self.total = 0

    def take(self, endpoints: Driven, now_ps: int) -> None:
        """Give endpoints all packets that have arrived, those of each socket in their order."""
        places = self.address, self.position.ctypes.data, self.slots, SLOT_BYTES, FRAME_AT
        endpoints.library.rings_take(endpoints.address, *places, now_ps)


def map_memory(address: int | None, size: int, flags: int, descriptor: int) -> int:
    """Map memory as mmap(2) does, at a chosen address, which Python's `mmap` does not offer; returns the address.

    Raises `MachineError`.
    """
    mapped = libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    if mapped == FAILED:
        code = ctypes.get_errno()
        raise MachineError(f"cannot map {size >> 10} kB of receive rings: {os.strerror(code)}; end what takes memory")
    return int(mapped)


# -- The filter of endpoints' sockets, which receive INA frames only. In classic BPF, which the kernel runs for each
# frame.

ETH_P_IP = 0x0800
FRAGMENT_OFFSET = 0x1FFF
SO_ATTACH_FILTER = 26

Line = tuple[int, int, int, int]
"""A line of a program: its code, the lines to skip if its test is true, and if it is false, and its operand."""
LOAD_BYTE, LOAD_HALF, LOAD_LENGTH = 0x30, 0x28, 0x80
JUMP_EQUAL, JUMP_ANY_BIT, RETURN = 0x15, 0x45, 0x06


def ina_filter() -> list[Line]:
    """The program that accepts whole INA frames over UDP over IPv4 without options: of notices and questions the heads.

    It accepts no frames that the switches' parser treats as other IPv4, because these cross switches without admission.
    """
    tests = [
        (LOAD_HALF, offset_of("ethernet", "ethertype"), JUMP_EQUAL, ETH_P_IP),
        (LOAD_BYTE, offset_of("ipv4", "version_ihl"), JUMP_EQUAL, 0x45),
        (LOAD_HALF, offset_of("ipv4", "ip_flags_fragment_offset"), JUMP_ANY_BIT, FRAGMENT_OFFSET),
        (LOAD_BYTE, offset_of("ipv4", "protocol"), JUMP_EQUAL, socket.IPPROTO_UDP),
        (LOAD_HALF, offset_of("udp", "dst_port"), JUMP_EQUAL, UDP_PORT),
    ]
    end = 2 * len(tests) + 7
    program = []
    for number, (load, offset, test, value) in enumerate(tests):
        out = end - (2 * number + 2)
        program += [(load, 0, 0, offset), (test, *((0, out) if test == JUMP_EQUAL else (out, 0)), value)]
    return [
        *program,
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_EQUAL, 4, 0, FRAME.itemsize),
        (JUMP_EQUAL, 0, 4, BARE_FRAME.itemsize),
        (LOAD_BYTE, 0, 0, offset_of("ina", "kind")),
        (JUMP_EQUAL, 1, 0, Kind.NOTICE),
        (JUMP_EQUAL, 0, 1, Kind.QUESTION),
        (RETURN, 0, 0, FRAME.itemsize),
        (RETURN, 0, 0, 0),
    ]


INA_FILTER = ina_filter()


def attach_filter(opened: socket.socket, program: Sequence[Line]) -> None:
    """Attach a classic BPF program to a socket, which then receives only accepted frames."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    opened.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


# -- The sockets.

SO_SNDBUFFORCE = 32

TICK_S = 0.001
"""The interval at which endpoints act in real time, in seconds: a timer for each packet would cost more."""
REST_S = 0.0001
"""The least sleep after each tick, in seconds, for other threads on the processor of the endpoints."""
SEND_BUFFER_FRAMES = 384
"""The most frames in a host's own queue. More would only age there; the rest waits here."""
FRAME_TRUESIZE = 1 << 10
"""The kernel's charge to a socket for one frame: its bytes and its bookkeeping, rounded up."""


def open_socket(host: HostPort) -> socket.socket:
    """Open a raw socket at a host's interface that receives INA frames only. The caller is in its namespace."""
    # Protocol 0 receives nothing until the filter is attached; and a single protocol, unlike ETH_P_ALL, does not
    # receive the host's own frames.
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except OSError as error:
        way = "run as root (CAP_NET_RAW), on a kernel with CONFIG_PACKET, or in virtual time (--switch virtual)"
        raise MachineError(f"host '{host.name}': cannot listen: {error.strerror}: {way}") from error
    try:
        opened.setblocking(False)
        # The kernel doubles the given size.
        opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_FRAMES * FRAME_TRUESIZE // 2)
        attach_filter(opened, INA_FILTER)
        opened.bind((host.interface, ETH_P_IP))
    except OSError as error:
        opened.close()
        raise RunError(f"host '{host.name}': cannot listen at '{host.interface}': {error.strerror}") from error
    return opened


def open_sink(port: int = UDP_PORT) -> socket.socket:
    """Open a UDP socket that is bound to a port and drops all packets.

    Without it the host's kernel would answer every gradient with "port unreachable".
    """
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    attach_filter(sink, [(RETURN, 0, 0, 0)])
    sink.bind(("", port))
    return sink


class SocketPorts:
    """The `Ports` of real hosts. A context manager: leaving it closes every socket."""

    def __init__(self, hosts: Sequence[HostPort]) -> None:
        self.hosts = tuple(hosts)
        self.opened_ns = time.monotonic_ns()
        self.copies = np.ones(len(hosts), np.int64)
        self.outboxes = np.zeros(0, np.void)
        self.full = np.zeros(len(hosts), np.int64)
        self.lost = np.zeros(len(hosts), np.int64)
        with ExitStack() as stack:
            self.backlog = stack.enter_context(Backlog())
            self.sockets = [self.open(host, stack) for host in hosts]
            self.descriptors = [opened.fileno() for opened in self.sockets]
            self.rings = ReceiveRings(self.sockets)
            stack.callback(self.rings.close)
            stack.callback(self.free_outboxes)
            self.resources = stack.pop_all()

    def open(self, host: HostPort, stack: ExitStack) -> socket.socket:
        """Open a socket at a host's interface, which the stack closes."""
        with network_namespace(host.pid):
            stack.enter_context(open_sink())
            return stack.enter_context(open_socket(host))

    def free_outboxes(self) -> None:
        """Free the memory of packets that wait to be sent."""
        for host in range(len(self.outboxes)):
            self.attached.library.outbox_free(self.outboxes.ctypes.data + host * self.outboxes.itemsize)

    def __enter__(self) -> SocketPorts:
        return self

    def __exit__(self, *_: object) -> None:
        self.resources.close()

    # -- as `Ports`

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        """Give packets and time to these endpoints from now on. With `mute` they send nothing."""
        self.attached, library = endpoints, endpoints.library
        if not len(self.outboxes):
            self.outboxes = np.zeros(len(self.hosts), endpoints.outbox)
        endpoints.hosts["way"] = np.arange(len(self.hosts))
        send = library.endpoints_mute if mute else library.outbox_put
        endpoints.all["send"] = ctypes.cast(send, ctypes.c_void_p).value or 0
        endpoints.all["context"] = self.outboxes.ctypes.data
        # On its way to many workers one packet of a PS becomes many.
        self.copies[:] = 1
        np.maximum.at(
            self.copies, endpoints.trees["server"].astype(np.int64), endpoints.trees["crowd"].astype(np.int64)
        )

    def run(self, until: float) -> None:
        """Give endpoints what has arrived, and send what is due. Sleep until the next tick, at most until `until`."""
        endpoints, now = self.attached, self.now_ps()
        self.rings.take(endpoints, now)
        endpoints.library.endpoints_wake(endpoints.address, now)
        self.send()
        endpoints.all["halted"] = 0
        ended = self.now()
        time.sleep(max(0.0, min(max(self.seconds(now) + TICK_S - ended, REST_S), until - ended)))

    def send(self) -> None:
        """Send the packets of all outboxes, in turns, so that the network copies results while gradients are sent.

        A host whose queue is full is blocked until it has taken all.
        """
        endpoints, refusing = self.attached, np.zeros(len(self.hosts), np.bool_)
        flush, full = endpoints.library.outbox_flush, ctypes.c_uint32()
        first, size, copies = self.outboxes.ctypes.data, self.outboxes.itemsize, self.copies.tolist()
        while True:
            waiting = np.where(refusing, 0, self.outboxes["count"] - self.outboxes["sent"])
            filled = np.flatnonzero(waiting)
            if not filled.size:
                break
            for host, packets in zip(filled.tolist(), waiting[filled].tolist(), strict=True):
                most = max(1, AT_ONCE // copies[host])
                wanted = min(most, packets)
                self.backlog.admit(wanted, copies[host])
                taken = flush(first + host * size, self.descriptors[host], most, ctypes.byref(full))
                if taken < 0:
                    raise RunError(f"host '{self.hosts[host].name}' cannot send: {os.strerror(-taken)}")
                self.full[host] += full.value
                refusing[host] = taken < wanted
        for host in np.flatnonzero(endpoints.hosts["blocked"] & ~refusing).tolist():
            endpoints.hosts["blocked"][host] = 0
            endpoints.library.endpoints_resume(endpoints.address, host, self.now_ps())
        endpoints.hosts["blocked"] = refusing

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def now_ps(self) -> int:
        """Picoseconds since the ports were opened."""
        return 1000 * (time.monotonic_ns() - self.opened_ns)

    def seconds(self, at_ps: int) -> float:
        """A time of the records in seconds of the monotonic clock."""
        return self.opened_ns / 1e9 + at_ps / 1e12

    def problems(self) -> Mapping[str, int]:
        """The numbers of frames dropped at sockets for lack of buffer, and of sends that a full queue refused."""
        for host, opened in enumerate(self.sockets):
            statistics = opened.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)  # reading sets them to 0
            self.lost[host] += struct.unpack("=II", statistics)[1]
        return self.named("socket dropped received frames", self.lost) | self.named("queue refused frames", self.full)

    def named(self, what: str, counts: IntArray) -> dict[str, int]:
        """The counts that are not 0, each under a text that names the host."""
        return {f"host '{host.name}': its {what}": int(n) for host, n in zip(self.hosts, counts, strict=True) if n}
