"""Links in virtual time: how long a packet takes, who waits, and what is dropped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from inakit.topo.virtual.engine import PS_PER_S, Engine

pytestmark = pytest.mark.compiler

FRAME = np.dtype([("number", np.uint32), ("rest", np.uint8, 96)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9
LINK, BACK = 0, 1


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Two hosts, joined by a link of 1 Gbit/s with a delay of 50 ns; two packets may wait at its near end."""
    with Engine(2, [1, 1], FRAME) as made:
        made.connect(LINK, (0, 0), (1, 0), rate_bps=1e9, delay_ps=50 * NS, limit=2)
        made.connect(BACK, (1, 0), (0, 0), rate_bps=1e9, delay_ps=50 * NS, limit=2)
        yield made


def send(engine: Engine, *numbers: int, length: int = FRAME.itemsize) -> None:
    frames = np.zeros(len(numbers), FRAME)
    frames["number"] = numbers
    engine.send(np.full(len(numbers), LINK, np.uint32), np.full(len(numbers), length, np.uint32), frames)


def arrivals(engine: Engine) -> list[tuple[int, int]]:
    """Number and time in ns of what has arrived."""
    return [(int(each["frame"]["number"]), int(each["at"]) // NS) for each in engine.take()]


def test_packets_leave_one_after_the_other_and_take_their_time(engine: Engine) -> None:
    send(engine, 1, 2, 3)
    engine.run(10_000 * NS)
    assert arrivals(engine) == [(1, 850), (2, 1650), (3, 2450)]
    assert arrivals(engine) == []
    assert (engine.hops, engine.now_ps) == (3, 10_000 * NS)


def test_nothing_arrives_before_its_time(engine: Engine) -> None:
    send(engine, 1)
    assert engine.next_ps() == 850 * NS
    engine.run(850 * NS - 1)
    assert arrivals(engine) == []
    engine.run(850 * NS)
    assert arrivals(engine) == [(1, 850)]
    assert engine.next_ps() is None


def test_a_full_queue_drops_what_comes(engine: Engine) -> None:
    send(engine, 1, 2, 3, 4, 5)
    engine.run(800 * NS)  # the first has left, the second begins
    send(engine, 6)
    engine.run(10_000 * NS)
    assert [number for number, _ in arrivals(engine)] == [1, 2, 3, 6]
    link = engine.links[LINK]
    assert (link["sent_packets"], link["dropped"], link["most_waiting"], link["received_bytes"]) == (4, 2, 2, 400)


def test_a_link_that_is_down_loses_what_is_on_it_and_what_is_sent(engine: Engine) -> None:
    send(engine, 1)
    engine.links["up"][LINK] = 0
    send(engine, 2)
    engine.run(2_000 * NS)
    engine.links["up"][LINK] = 1
    send(engine, 3)
    engine.run(4_000 * NS)
    assert arrivals(engine) == [(3, 2850)]
    assert engine.links[LINK]["lost"] == 2


def test_a_rate_may_change_while_packets_wait(engine: Engine) -> None:
    send(engine, 1)
    engine.links["rate_bps"][LINK] = 500_000_000
    send(engine, 2)
    engine.run(10_000 * NS)
    assert arrivals(engine) == [(1, 850), (2, 2450)]


def test_short_packets_are_filled_with_zeros_and_long_ones_cut(engine: Engine) -> None:
    send(engine, 0x01020304, length=2)
    engine.run(10_000 * NS)
    (found,) = engine.take()
    assert (found["length"], found["frame"]["number"]) == (2, 0x0304)
    engine.send(np.array([LINK], np.uint32), np.array([3000], np.uint32), np.zeros(1, np.dtype((np.void, 3000))))
    engine.run(10**9 * NS)
    (found,) = engine.take()
    assert found["length"] == 3000


def test_a_packet_is_a_row_of_heads_and_the_same_row_of_bodies(engine: Engine) -> None:
    heads, bodies = np.array([1, 2, 3], np.uint32), np.arange(12, dtype=np.uint8).reshape(3, 4)
    rows, lengths = np.array([2, 0]), np.array([8, 3], np.uint32)
    engine.send_rows(np.full(2, LINK, np.uint32), lengths, rows, heads, bodies)
    engine.run(10_000 * NS)
    first, second = engine.take()["frame"]
    assert (first["number"], first["rest"][:5].tolist()) == (3, [8, 9, 10, 11, 0])
    assert (second["number"], second["rest"].any()) == (1, False)


def test_what_is_on_its_way_when_the_engine_is_closed_is_freed() -> None:
    with Engine(1, [1, 1], FRAME) as engine:
        engine.connect(LINK, (0, 0), (1, 0), rate_bps=1e9, delay_ps=0, limit=0)
        send(engine, *range(1000))


def test_a_packet_comes_to_the_queue_a_latency_later(engine: Engine) -> None:
    engine.links["latency_ps"][LINK] = 300 * NS
    send(engine, 1, 2)
    engine.run(200 * NS)
    send(engine, 3)
    engine.run(10_000 * NS)
    assert arrivals(engine) == [(1, 1150), (2, 1950), (3, 2750)]


def test_what_comes_to_the_queue_later_does_not_wait_in_it_before(engine: Engine) -> None:
    """Packet 1 leaves the queue at 300 ns, 2 at 1100 ns. 4 comes at 1100 ns to 3 alone, where two may wait."""
    engine.links["latency_ps"][LINK] = 300 * NS
    send(engine, 1, 2, 3)
    engine.run(800 * NS)
    send(engine, 4, 5)
    engine.run(10_000 * NS)
    assert [number for number, _ in arrivals(engine)] == [1, 2, 3, 4]
    assert (engine.links[LINK]["dropped"], engine.links[LINK]["most_waiting"]) == (1, 2)
