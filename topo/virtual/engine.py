"""The engine of virtual time: links that serialise packets, and nodes that receive them, in C (`engine.c`).

Links and nodes are NumPy records that the C works on, so that rates can be changed and counters read at any time. Times
are whole picoseconds. The engine does not interpret packets.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from inakit.topo.c_library import LIBRARY, aligned_zeros, build

# -- The hops of packets through a network in virtual time: one record for each link that a packet was given to.
#
# A number at a place in a packet's bytes decides whether it is followed; some of its bytes are recorded. This module
# does not interpret them.

HOP = np.dtype(
    [
        ("given", np.int64), ("starts", np.int64), ("left", np.int64), ("arrives", np.int64),
        ("cause", np.uint32), ("link", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct hop` of hops.h without the noted bytes."""

HOPS = np.dtype(
    [
        ("records", np.uint64), ("room", np.uint32), ("used", np.uint32), ("missed", np.uint32), ("stride", np.uint32),
        ("noted_at", np.uint32), ("noted_bytes", np.uint32), ("number_at", np.uint32), ("every", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct hops` of hops.h."""

NO_HOP = 0xFFFFFFFF
LOST_PS = -1


@dataclass(frozen=True)
class Following:
    """The choice of followed packets, and the recorded bytes of each.

    The bytes of type `noted` from `noted_at` on are recorded. `number_at` is the place of a big-endian number of 32
    bits: packets whose number `every` divides are followed. At most `room` hops are kept.
    """

    noted: np.dtype[np.void]
    noted_at: int
    number_at: int
    every: int
    room: int


class Hops:
    """The hops of followed packets, which an engine adds to, in the order in which links were given the packets.

    In a record, `given` is the time at which the link got the packet, `starts` and `left` are the times at which its
    first and last bit left, and `arrives` the time at which its last bit reaches the other end, or `LOST_PS` if it was
    lost. All are picoseconds. `cause` is the number of the hop whose arrival made the node send the packet; `NO_HOP`
    for a packet that a host sent.
    """

    def __init__(self, following: Following) -> None:
        self.following = following
        self.dtype = np.dtype(
            [*HOP.descr, ("noted", following.noted), ("pad", np.uint8, -following.noted.itemsize % 8)]
        )
        self.records = np.zeros(following.room, self.dtype)
        self.record = np.zeros(1, HOPS)
        self.record[0] = (
            *(self.records.ctypes.data, following.room, 0, 0, self.dtype.itemsize),
            *(following.noted_at, following.noted.itemsize, following.number_at, following.every),
        )

    @property
    def found(self) -> NDArray[np.void]:
        """The records so far."""
        return self.records[: int(self.record["used"][0])]

    @property
    def missed(self) -> int:
        """The number of hops that were not recorded for lack of room."""
        return int(self.record["missed"][0])


# -- Packets that pass a pipeline of a switch several times, and the link by which they come in again.
#
# Packets are chosen by a filter and a number at a place in their bytes, whose meaning is not known here.

INSTRUCTION = np.dtype([("code", np.uint16), ("if_true", np.uint8), ("if_false", np.uint8), ("operand", np.uint32)])
"""A line of a filter, `struct instruction` of socket_filter.h."""

RECIRCULATION = np.dtype(
    [
        ("filter", np.uint64), ("numbers", np.uint64), ("mask", np.uint64), ("count", np.uint32),
        ("number_at", np.uint32), ("link", np.uint32), ("times", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct recirculation` of recirculation.h."""


class Recirculation:
    """Packets that pass a pipeline `times` more times before they leave the switch.

    They are the packets that the classic BPF `program` accepts, and whose big-endian number of 64 bits at the byte
    `number_at`, with `mask` applied, is one of `numbers`.
    """

    def __init__(
        self, program: Sequence[tuple[int, int, int, int]], number_at: int, mask: int, numbers: set[int], times: int
    ) -> None:
        self.filter = np.array(list(program), INSTRUCTION)
        self.numbers = np.array(sorted(numbers), np.uint64)
        self.number_at, self.mask, self.times = number_at, mask, times

    def record(self, link: int) -> NDArray[np.void]:
        """The engine's record, where packets come in again by this link. It points into this object."""
        record = np.zeros(1, RECIRCULATION)
        at = self.filter.ctypes.data, self.numbers.ctypes.data
        record[0] = (*at, self.mask, len(self.numbers), self.number_at, link, self.times)
        return record


# -- The links of a network in virtual time over time: their sending times, and the packets in their queues.
#
# The engine adds up these figures exactly, in intervals of virtual time (`series.h`). The number of intervals is fixed:
# in a longer run neighbouring intervals are repeatedly merged in pairs.

SAMPLE = np.dtype(
    [("sending", np.int64), ("waiting", np.int64), ("most", np.uint32), ("before", np.uint32)], align=True
)
"""One interval of a link, `struct sample` of series.h."""

SERIES = np.dtype(
    [("interval", np.int64), ("links", np.uint32), ("points", np.uint32), ("samples", np.uint64)], align=True
)
"""`struct series` of series.h."""


class Series:
    """The samples of every link, (links, points), which an engine adds to."""

    def __init__(self, links: int, interval_ps: int, points: int) -> None:
        """Allocate `points` intervals for each link, an even number, initially of `interval_ps` each."""
        assert interval_ps > 0
        assert points % 2 == 0
        self.samples = np.zeros((links, points), SAMPLE)
        self.record = np.zeros(1, SERIES)
        self.record[0] = (interval_ps, links, points, self.samples.ctypes.data)

    def until(self, end_ps: int) -> LinkSamples:
        """The samples of the intervals that begin before `end_ps`, counted from the start of the network."""
        interval_ps = int(self.record["interval"][0])
        found = self.samples[:, : -(-end_ps // interval_ps)]
        most = np.maximum(found["most"], found["before"])
        return LinkSamples(interval_ps, found["sending"] / interval_ps, found["waiting"] / interval_ps, most)


@dataclass(frozen=True)
class LinkSamples:
    """Arrays (links, points) over intervals of `interval_ps`.

    `utilisation`: the share of the interval in which the link sent. `mean_queue` and `most_queue`: the mean and the
    maximum number of packets in the link's queue. The packet that is being sent is not counted.
    """

    interval_ps: int
    utilisation: NDArray[np.float64]
    mean_queue: NDArray[np.float64]
    most_queue: NDArray[np.uint32]


# -- Links and nodes.

PS_PER_S = 10**12
PS_PER_NS = 1000
NO_LINK = LARGEST = 0xFFFFFFFF
LOSES, REPEATS = 1, 2
NEVER = (1 << 63) - 1
"""The time of an event that there is not."""

LINK = np.dtype(
    [
        ("at", np.int64), ("after", np.uint32), ("up", np.uint32),
        ("first", np.uint64), ("last", np.uint64), ("starting", np.uint64),
        ("waiting", np.uint32), ("most_waiting", np.uint32), ("free_at", np.int64),
        ("limit", np.uint32), ("to_node", np.uint32),
        ("rate_bps", np.uint64), ("delay_ps", np.int64), ("latency_ps", np.int64),
        ("sent_packets", np.uint64), ("sent_bytes", np.uint64),
        ("near", np.uint64), ("untapped", np.uint64), ("losses", np.uint32), ("in_burst", np.uint32),
        ("received_packets", np.uint64), ("received_bytes", np.uint64), ("dropped", np.uint64), ("lost", np.uint64),
        ("far", np.uint64), ("draw", np.uint64), ("to_port", np.uint32), ("begins", np.uint32), ("ends", np.uint32),
        ("unused", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""One direction of a link, `struct link` of engine.c."""

NODE = np.dtype(
    [
        ("receive", np.uint64), ("self", np.uint64), ("first_port", np.uint32), ("ports", np.uint32),
        ("filter", np.uint64), ("refused", np.uint64), ("recirculations", np.uint64),
    ],
    align=True,
)  # fmt: skip
"""A node, `struct node` of engine.c."""


class Rows(ctypes.Structure):
    """`struct rows` of engine.c: the place of an array's rows in memory."""

    _fields_ = [("bytes", ctypes.c_void_p), ("stride", ctypes.c_uint64), ("size", ctypes.c_uint64)]

    @classmethod
    def of(cls, array: NDArray[np.generic]) -> Rows:
        """The rows of an array; each row is contiguous."""
        assert array[:1].flags.c_contiguous
        return cls(array.ctypes.data, array.strides[0], array[:1].nbytes)


SOURCE = np.dtype(
    [
        ("bytes", np.uint64), ("lengths", np.uint64), ("stride", np.uint64), ("link", np.uint32),
        ("frames", np.uint32), ("next", np.uint32), ("room", np.uint32), ("left", np.uint64),
        ("interval_ps", np.int64), ("due", np.int64),
    ],
    align=True,
)  # fmt: skip
"""A source of frames, `struct source` of source.h."""

PARTS = ("Python", "calendar", "links", "copies", "switches", "endpoints")
"""The parts of the work, `enum part` of parts.h: outside the engine, the order of arrivals, queues and times of links,
copies of packets, compiled switches, and endpoints in C."""

HEAD = [("at", np.int64), ("node", np.uint32), ("length", np.uint32)]
"""The head of a packet's record in the inbox, before its bytes: `struct arrival` of engine.c."""


@cache
def engine_library() -> ctypes.CDLL:
    """The compiled engine, loaded once."""
    source = Path(__file__).with_name("engine.c")
    library = ctypes.CDLL(str(build(source.read_text(), replace(LIBRARY, headers=source.parent))))
    pointer, number, time = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64
    for name, result, arguments in (
        ("record_sizes", number, [number]),
        ("engine_new", pointer, [pointer, number, pointer, pointer, number]),
        ("engine_send", None, [pointer, number, *[pointer] * 5]),
        ("engine_run", None, [pointer, time, ctypes.c_uint64]),
        ("engine_give", None, [pointer, number, pointer, number]),
        ("engine_attach", None, [pointer] * 5),
        ("engine_next", time, [pointer]),
        ("engine_now", time, [pointer]),
        ("engine_hops", ctypes.c_uint64, [pointer]),
        ("engine_inbox", pointer, [pointer, ctypes.POINTER(ctypes.c_uint64)]),
        ("engine_empty_inbox", None, [pointer]),
        ("engine_observe", None, [pointer, pointer, pointer]),
        ("engine_free", None, [pointer]),
        ("engine_add_source", number, [pointer, pointer]),
        ("engine_source_left", ctypes.c_uint64, [pointer, number]),
        ("engine_stop_source", None, [pointer, number]),
        ("engine_tap", pointer, [pointer, number, number, ctypes.c_int]),
        ("engine_begin_samples", None, [pointer]),
        ("engine_end_samples", ctypes.POINTER(ctypes.c_uint64 * len(PARTS)), [pointer]),
        ("engine_untap", ctypes.c_int, [pointer, number, number, ctypes.POINTER(ctypes.c_uint64)]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    records = (LINK, NODE, SOURCE, SAMPLE, SERIES, HOP, HOPS, RECIRCULATION)
    assert [library.record_sizes(what) for what in range(len(records))] == [record.itemsize for record in records]
    return library


class Engine:
    """A running network. `links` and `nodes` are its records; `link_at` has the links of each node's ports.

    A node without a `receive` is a host: its packets wait in the inbox.
    """

    def __init__(self, links: int, ports: Sequence[int], frame: np.dtype[np.void]) -> None:
        """Make a network of `links` directed links, all down, and one node for each number of `ports`.

        The inbox keeps the bytes of each packet that fit `frame`; a shorter packet is padded with zeros.
        """
        self.library = engine_library()
        self.arrival = np.dtype([*HEAD, ("frame", frame), ("pad", np.uint8, -frame.itemsize % 8)])
        self.links, self.nodes = aligned_zeros(links * LINK.itemsize).view(LINK), np.zeros(len(ports), NODE)
        self.link_at = np.full(max(1, sum(ports)), NO_LINK, np.uint32)
        self.nodes["ports"] = ports
        self.nodes["first_port"] = np.cumsum([0, *ports])[:-1]
        self.handle = self.library.engine_new(
            self.links.ctypes.data, links, self.nodes.ctypes.data, self.link_at.ctypes.data, self.arrival.itemsize
        )
        self.kept: list[object] = []
        self.sources: dict[int, object] = {}
        self.recirculations: dict[int, NDArray[np.uint64]] = {}

    def close(self) -> None:
        """Free everything; the records of links and nodes stay."""
        if self.handle:
            self.library.engine_free(self.handle)
            self.handle = None

    def connect(
        self,
        link: int,
        end: tuple[int, int],
        peer: tuple[int, int],
        *,
        rate_bps: float,
        delay_ps: int,
        limit: int,
        latency_ps: int = 0,
    ) -> None:
        """Connect `link` from `end`, a node and its port, to `peer`. At rate 0 sending takes no time.

        The queue holds `limit` packets; 0: any number. A packet reaches the queue `latency_ps` after it was sent.
        """
        record = self.links[link]
        record["rate_bps"], record["delay_ps"], record["limit"], record["up"] = rate_bps, delay_ps, limit, 1
        record["to_node"], record["to_port"] = peer
        record["latency_ps"] = latency_ps
        self.link_at[self.nodes["first_port"][end[0]] + end[1]] = link

    def run_on(self, node: int, receive: int, switch: int, *kept: object) -> None:
        """Pass a node's packets to the C function at address `receive`, with `switch` as its first argument.

        The engine keeps a reference to `kept`.
        """
        self.nodes["receive"][node], self.nodes["self"][node] = receive, switch
        self.kept.extend(kept)

    def set_filter(self, nodes: Sequence[int], program: Sequence[tuple[int, int, int, int]]) -> None:
        """Deliver to hosts only packets that a classic BPF program accepts, such as those of `socket_filter.py`."""
        lines = np.array(list(program), INSTRUCTION)
        self.nodes["filter"][list(nodes)] = lines.ctypes.data
        self.kept.append(lines)

    def recirculate(
        self, link: int, node: int, ports: Sequence[int], what: Recirculation, *, rate_bps: float, limit: int
    ) -> None:
        """Let packets that arrive at some ports of a node pass it again before it processes them.

        Between two passes they wait for `link`, which leads from the node to itself at `rate_bps` and has a queue of
        `limit` packets; 0: any number.
        """
        record, chosen = self.links[link], what.record(link)
        record["rate_bps"], record["limit"], record["up"], record["to_node"] = rate_bps, limit, 1, node
        self.kept += [what, chosen]
        if not self.nodes["recirculations"][node]:
            self.recirculations[node] = np.zeros(int(self.nodes["ports"][node]), np.uint64)
            self.nodes["recirculations"][node] = self.recirculations[node].ctypes.data
        self.recirculations[node][list(ports)] = chosen.ctypes.data

    def lose(self, link: int, share: float, *, burst: float = 1.0, repeats: bool = False, draw: int = 0) -> None:
        """Let `link` lose this share of its packets, less than 1, in bursts of `burst` packets by the mean.

        This is the model of Gilbert and Elliott in which bursts lose everything; bursts that are no longer than by
        chance make losses independent. With `repeats` the link sends a lost packet again at once, as often as it
        takes, so that losses only cost time. `draw` begins the link's random sequence.
        """
        record, ends = self.links[link], min(1 / burst, 1 - share)
        record["losses"], record["draw"] = REPEATS if repeats else LOSES, draw
        record["begins"], record["ends"] = (int(LARGEST * each) for each in (share * ends / (1 - share), ends))

    def observe(self, series: Series | None = None, hops: Hops | None = None) -> None:
        """Record from now on the series of links and the hops of packets, except where None is given."""
        pointers = [None if each is None else each.record.ctypes.data for each in (series, hops)]
        self.library.engine_observe(self.handle, *pointers)
        self.kept += [series, hops]

    @property
    def now_ps(self) -> int:
        """The present virtual time."""
        return int(self.library.engine_now(self.handle))

    @property
    def hops(self) -> int:
        """The number of packets that have arrived at the end of a link."""
        return int(self.library.engine_hops(self.handle))

    def next_ps(self) -> int | None:
        """The time of the next event; None if no packet is in flight and no source sends."""
        at = int(self.library.engine_next(self.handle))
        return None if at == NEVER else at

    def send(self, links: NDArray[np.uint32], lengths: NDArray[np.uint32], frames: NDArray[np.void]) -> None:
        """Give the first `lengths` bytes of `frames` to `links` now. All are (frames,)."""
        self.send_rows(links, lengths, np.arange(len(frames)), frames, np.zeros((len(frames), 0), np.uint8))

    def send_rows(
        self,
        links: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        rows: NDArray[np.int64],
        heads: NDArray[np.generic],
        bodies: NDArray[np.generic],
    ) -> None:
        """Give packets to `links`, now: packet i is row `rows[i]` of `heads`, then that of `bodies`.

        The first `lengths[i]` bytes of packet i are sent. `links`, `lengths` and `rows` are (packets,).
        """
        pointers = (array.ctypes.data for array in (links, lengths, rows))
        self.library.engine_send(self.handle, len(links), *pointers, byref(Rows.of(heads)), byref(Rows.of(bodies)))

    def run(self, until_ps: int, most: int = 1 << 62) -> None:
        """Carry out all events until `until_ps`, until the run halts, or until about `most` packets have arrived."""
        self.library.engine_run(self.handle, until_ps, most)

    def attach(self, due: int, halted: int, wake: int, what: int) -> None:
        """Call the C function `wake` with `what` whenever the time at the address `due` has come.

        The run halts while the 32-bit number at the address `halted` is not 0.
        """
        self.library.engine_attach(self.handle, due, halted, wake, what)

    @contextmanager
    def sampled(self) -> Iterator[dict[str, float]]:
        """Yield a dict that gets, at the end, the share of the time that each of `PARTS` took."""
        shares: dict[str, float] = {}
        self.library.engine_begin_samples(self.handle)
        try:
            yield shares
        finally:
            counts = np.array(self.library.engine_end_samples(self.handle).contents)
            shares |= dict(zip(PARTS, (counts / max(1, counts.sum())).tolist(), strict=True))

    @property
    def is_inbox_empty(self) -> bool:
        """Whether no packet has reached a host since the last `take`."""
        used = ctypes.c_uint64()
        self.library.engine_inbox(self.handle, byref(used))
        return not used.value

    def take(self) -> NDArray[np.void]:
        """Return the packets that reached hosts since the last call, as records of `arrival`; valid until `run`."""
        used = ctypes.c_uint64()
        inbox = self.library.engine_inbox(self.handle, byref(used))
        if not used.value:
            return np.empty(0, self.arrival)
        self.library.engine_empty_inbox(self.handle)
        octets: Any = (ctypes.c_char * used.value).from_address(inbox)
        return np.frombuffer(octets, self.arrival)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
