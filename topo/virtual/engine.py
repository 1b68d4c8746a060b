"""The engine of virtual time: links that serialise packets, and nodes that take them, in C (`engine.c`).

Links and nodes are NumPy records that the C works on, so that rates can be changed and counters read at any time.
Times are whole picoseconds. Nothing here knows what a packet holds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topo.c_library import LIBRARY, build
from topo.virtual.hops import HOP, HOPS, Hops
from topo.virtual.series import SAMPLE, SERIES, Series

PS_PER_S = 10**12
NO_LINK = 0xFFFFFFFF

LINK = np.dtype(
    [
        ("rate_bps", np.uint64), ("delay_ps", np.int64), ("to_node", np.uint32), ("to_port", np.uint32),
        ("limit", np.uint32), ("up", np.uint32), ("sent_packets", np.uint64), ("sent_bytes", np.uint64),
        ("received_packets", np.uint64), ("received_bytes", np.uint64), ("dropped", np.uint64), ("lost", np.uint64),
        ("waiting", np.uint32), ("most_waiting", np.uint32), ("free_at", np.int64),
        ("first", np.uint64), ("last", np.uint64), ("starting", np.uint64),
    ],
    align=True,
)  # fmt: skip
"""One direction of a link, `struct link` of engine.c."""

NODE = np.dtype(
    [("receive", np.uint64), ("self", np.uint64), ("first_port", np.uint32), ("ports", np.uint32)], align=True
)
"""A node, `struct node` of engine.c."""

HEAD = [("at", np.int64), ("node", np.uint32), ("length", np.uint32)]
"""What the inbox holds of a packet before its bytes, `struct arrival` of engine.c."""


@cache
def engine_library() -> ctypes.CDLL:
    """The compiled engine, loaded once."""
    source = Path(__file__).with_name("engine.c")
    library = ctypes.CDLL(str(build(source.read_text(), replace(LIBRARY, headers=source.parent))))
    pointer, number, time = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64
    for name, result, arguments in (
        ("record_sizes", number, [number]),
        ("engine_new", pointer, [pointer, number, pointer, pointer, number]),
        ("engine_send", None, [pointer, number, pointer, pointer, pointer, number]),
        ("engine_run", None, [pointer, time]),
        ("engine_next", time, [pointer]),
        ("engine_now", time, [pointer]),
        ("engine_hops", ctypes.c_uint64, [pointer]),
        ("engine_inbox", pointer, [pointer, ctypes.POINTER(ctypes.c_uint64)]),
        ("engine_empty_inbox", None, [pointer]),
        ("engine_observe", None, [pointer, pointer, pointer]),
        ("engine_free", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    records = (LINK, NODE, SAMPLE, SERIES, HOP, HOPS)
    assert [library.record_sizes(what) for what in range(len(records))] == [record.itemsize for record in records]
    return library


class Engine:
    """A running network. `links` and `nodes` are its records; `link_at` has the links of each node's ports.

    A node without a `receive` is a host: what comes to it waits in the inbox.
    """

    def __init__(self, links: int, ports: Sequence[int], frame: np.dtype[np.void]) -> None:
        """A network of `links` directed links, all down, and of a node for each number of `ports`.

        The inbox keeps of each packet the bytes that fit `frame`; zeros stand for what a shorter one lacks.
        """
        self.library = engine_library()
        self.arrival = np.dtype([*HEAD, ("frame", frame), ("pad", np.uint8, -frame.itemsize % 8)])
        self.links, self.nodes = np.zeros(links, LINK), np.zeros(len(ports), NODE)
        self.link_at = np.full(max(1, sum(ports)), NO_LINK, np.uint32)
        self.nodes["ports"] = ports
        self.nodes["first_port"] = np.cumsum([0, *ports])[:-1]
        self.handle = self.library.engine_new(
            self.links.ctypes.data, links, self.nodes.ctypes.data, self.link_at.ctypes.data, self.arrival.itemsize
        )
        self.kept: list[object] = []

    def close(self) -> None:
        """Free everything; the records of links and nodes stay."""
        if self.handle:
            self.library.engine_free(self.handle)
            self.handle = None

    def connect(
        self, link: int, end: tuple[int, int], peer: tuple[int, int], *, rate_bps: float, delay_ps: int, limit: int
    ) -> None:
        """Let `link` lead from `end`, a node and its port, to `peer`. `limit` packets may wait; 0: any number."""
        record = self.links[link]
        record["rate_bps"], record["delay_ps"], record["limit"], record["up"] = rate_bps, delay_ps, limit, 1
        record["to_node"], record["to_port"] = peer
        self.link_at[self.nodes["first_port"][end[0]] + end[1]] = link

    def run_on(self, node: int, receive: int, switch: int, *kept: object) -> None:
        """Let the C function at address `receive` take a node's packets, with `switch` as its first argument.

        `kept` is kept alive as long as the engine.
        """
        self.nodes["receive"][node], self.nodes["self"][node] = receive, switch
        self.kept.extend(kept)

    def observe(self, series: Series | None = None, hops: Hops | None = None) -> None:
        """Note from now on what links do, and the hops of packets; None notes nothing of the kind."""
        pointers = [None if each is None else each.record.ctypes.data for each in (series, hops)]
        self.library.engine_observe(self.handle, *pointers)
        self.kept += [series, hops]

    @property
    def now_ps(self) -> int:
        """The time."""
        return int(self.library.engine_now(self.handle))

    @property
    def hops(self) -> int:
        """How many packets have arrived at the end of a link."""
        return int(self.library.engine_hops(self.handle))

    def next_ps(self) -> int | None:
        """When the next packet arrives anywhere; None if none is under way."""
        at = int(self.library.engine_next(self.handle))
        return None if at < 0 else at

    def send(self, links: NDArray[np.uint32], lengths: NDArray[np.uint32], frames: NDArray[np.void]) -> None:
        """Give `frames`, of which the first `lengths` bytes are sent, to `links`, now. All are (frames,)."""
        self.library.engine_send(
            self.handle, len(links), links.ctypes.data, lengths.ctypes.data, frames.ctypes.data, frames.itemsize
        )

    def run(self, until_ps: int) -> None:
        """Let everything happen that happens until then."""
        self.library.engine_run(self.handle, until_ps)

    def take(self) -> NDArray[np.void]:
        """What has come to hosts since the last call, in its order, as records of `arrival`: a copy."""
        used = ctypes.c_uint64()
        inbox = self.library.engine_inbox(self.handle, ctypes.byref(used))
        if not used.value:
            return np.empty(0, self.arrival)
        found = np.frombuffer(ctypes.string_at(inbox, used.value), self.arrival)
        self.library.engine_empty_inbox(self.handle)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
