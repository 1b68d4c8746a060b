"""Links in virtual time: how long a packet takes, who waits, and what is dropped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from tolerance import assert_within

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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest_ps", [1, 10**3, 10**6, 10**9, 10**14], ids=["ps", "ns", "us", "ms", "100s"])
def test_packets_arrive_in_order_of_times_and_links(longest_ps: int, seed: int) -> None:
    """3,000 packets over 400 links whose delays are anything up to the longest; half of the links have the longest."""
    draws, links = np.random.default_rng(seed), 400
    with Engine(links, [links, links], FRAME) as engine:
        delays = np.where(np.arange(links) % 2, longest_ps, draws.integers(longest_ps, size=links))
        for link, delay_ps in enumerate(delays.tolist()):
            engine.connect(link, (0, link), (1, link), rate_bps=0, delay_ps=delay_ps, limit=0)
        due: list[tuple[int, int]] = []
        for number in range(61):
            chosen = draws.integers(links, size=50)
            frames = np.zeros(50, FRAME)
            frames["number"] = chosen
            engine.send(chosen.astype(np.uint32), np.full(50, 100, np.uint32), frames)
            due = sorted([*due, *((engine.now_ps + int(delays[link]), link) for link in chosen.tolist())])
            assert engine.next_ps() == due[0][0]
            engine.run(engine.now_ps + (longest_ps if number == 60 else int(draws.integers(longest_ps // 5 + 1))))
            arrived = [(int(each["at"]), int(each["frame"]["number"])) for each in engine.take()]
            assert arrived == [each for each in due if each[0] <= engine.now_ps]
            due = due[len(arrived) :]
        assert (due, engine.next_ps()) == ([], None)


def lost(engine: Engine, packets: int, share: float, **more: float) -> NDArray[np.bool_]:
    """Which of so many packets the link loses."""
    engine.links["limit"] = 0
    engine.lose(LINK, share, draw=7, **more)  # type: ignore[arg-type]
    send(engine, *range(packets))
    engine.run(PS_PER_S)
    gone = np.ones(packets, bool)
    gone[[number for number, _ in arrivals(engine)]] = False
    assert engine.links[LINK]["lost"] == gone.sum()
    return gone


@pytest.mark.parametrize("burst", [1, 8])
def test_a_link_loses_a_share_of_its_packets_in_bursts(engine: Engine, burst: int) -> None:
    gone = lost(engine, 100_000, 0.04, burst=burst)
    bursts = np.count_nonzero(np.diff(gone.astype(int), prepend=0) == 1)
    assert_within(gone.mean(), 0.04, 0.1, "lost", "of all")
    assert_within(gone.sum() / bursts, max(burst, 1 / 0.96), 0.1, "a burst", "packets")


def test_a_link_that_sends_lost_packets_again_only_takes_longer(engine: Engine) -> None:
    """Each of 100,000 packets takes 800 ns for every try; a hundredth of all tries are lost."""
    engine.links["limit"] = 0
    engine.lose(LINK, 0.01, repeats=True, draw=7)
    send(engine, *range(100_000))
    engine.run(PS_PER_S)
    found = arrivals(engine)
    tries = 100_000 + int(engine.links[LINK]["lost"])
    assert [number for number, _ in found] == list(range(100_000))
    assert found[-1][1] == 800 * tries + 50
    assert_within(tries, 100_000 / 0.99, 0.001, "tries", "")
