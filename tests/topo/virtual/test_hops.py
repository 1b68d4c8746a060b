"""Packets that are followed: when each link got them and sent them, and which arrival made a node send them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from inakit.topo.virtual.engine import LOST_PS, NO_HOP, PS_PER_S, Engine, Following, Hops

pytestmark = pytest.mark.compiler

FRAME = np.dtype([("kind", np.uint8), ("rest", np.uint8, 3), ("number", ">u4"), ("filler", np.uint8, 92)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NOTED = np.dtype([("number", ">u4")])
NS = PS_PER_S // 10**9
HOST, NODE, PEER = 0, 1, 2
UP, DOWN = 0, 1

EMIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
RECEIVE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, EMIT, ctypes.c_void_p
)


def pass_on(self: int, now: int, port: int, data: int, length: int, emit: Callable[..., None], context: int) -> None:
    """A node that sends by port 1 whatever comes."""
    _ = self, now, port
    emit(context, 1, data, length)


PASS_ON = RECEIVE(pass_on)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A host, a node that passes packets on, and a peer. The first link has 1 Gbit/s, the second half of it."""
    with Engine(2, [1, 2, 1], FRAME) as made:
        made.connect(UP, (HOST, 0), (NODE, 0), rate_bps=1e9, delay_ps=50 * NS, limit=0)
        made.connect(DOWN, (NODE, 1), (PEER, 0), rate_bps=5e8, delay_ps=10 * NS, limit=0)
        made.run_on(NODE, ctypes.cast(PASS_ON, ctypes.c_void_p).value or 0, 0)
        yield made


def followed(engine: Engine, *, every: int = 1, room: int = 100) -> Hops:
    hops = Hops(Following(NOTED, noted_at=4, number_at=4, every=every, room=room))
    engine.observe(hops=hops)
    return hops


def send(engine: Engine, *numbers: int, length: int = FRAME.itemsize) -> None:
    frames = np.zeros(len(numbers), FRAME)
    frames["number"] = numbers
    engine.send(np.zeros(len(numbers), np.uint32), np.full(len(numbers), length, np.uint32), frames)


def rows(found: NDArray[np.void]) -> list[tuple[int, ...]]:
    """Number, link, cause, and the four times in ns."""
    times = [found[name] // NS for name in ("given", "starts", "left", "arrives")]
    return list(zip(found["noted"]["number"].tolist(), found["link"].tolist(), found["cause"].tolist(),
                    *(each.tolist() for each in times), strict=True))  # fmt: skip


def test_every_link_is_noted_with_its_times_and_its_cause(engine: Engine) -> None:
    hops = followed(engine)
    send(engine, 7, 8)
    engine.run(10_000 * NS)
    assert rows(hops.found) == [
        (7, UP, NO_HOP, 0, 0, 800, 850),
        (8, UP, NO_HOP, 0, 800, 1600, 1650),
        (7, DOWN, 0, 850, 850, 2450, 2460),
        (8, DOWN, 1, 1650, 2450, 4050, 4060),  # it waited 800 ns for the slower link
    ]


def test_only_packets_of_chosen_numbers_are_followed(engine: Engine) -> None:
    hops = followed(engine, every=3)
    send(engine, 3, 4, 5, 6)
    send(engine, 0, length=7)  # too short to hold a number
    engine.run(20_000 * NS)
    assert [(number, link) for number, link, *_ in rows(hops.found)] == [(3, UP), (6, UP), (3, DOWN), (6, DOWN)]


def test_a_packet_that_is_lost_on_its_way_does_not_arrive(engine: Engine) -> None:
    hops = followed(engine)
    send(engine, 1)
    engine.links["up"][UP] = 0
    engine.run(10_000 * NS)
    assert hops.found["arrives"].tolist() == [LOST_PS]


def test_hops_beyond_the_room_are_counted(engine: Engine) -> None:
    hops = followed(engine, room=3)
    send(engine, 1, 2)
    engine.run(10_000 * NS)
    assert (len(hops.found), hops.missed) == (3, 1)
