"""Sources: frames at even times, in turn, so many or until they are stopped, and no more than the link takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from inakit.topo.virtual.engine import PS_PER_S, Engine
from inakit.topo.virtual.virtual_network import Source, as_rows

pytestmark = pytest.mark.compiler

FRAME = np.dtype([("number", np.uint8), ("rest", np.uint8, 99)])
"""100 bytes: 800 ns at 1 Gbit/s."""
US = PS_PER_S // 10**6
LINK = 0


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Two hosts, and a link of 1 Gbit/s from one to the other, whose queue has no end."""
    with Engine(1, [1, 1], FRAME) as made:
        made.connect(LINK, (0, 0), (1, 0), rate_bps=1e9, delay_ps=0, limit=0)
        yield made


def numbered(*numbers: int, lengths: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """A frame of 100 bytes, or of these lengths, for each number."""
    return as_rows([bytes([number] * length) for number, length in zip(numbers, lengths or [100] * 9, strict=False)])


def arrivals(engine: Engine) -> list[tuple[float, int, int]]:
    """When each packet has come, in microseconds, its number, and its length."""
    return [(int(each["at"]) / US, int(each["frame"]["number"]), int(each["length"])) for each in engine.take()]


def test_frames_leave_at_even_times_in_turn(engine: Engine) -> None:
    engine.run(5 * US)
    Source(engine, LINK, *numbered(7, 8, lengths=(100, 50)), rate_fps=0.5e6, room=1)
    engine.run(12 * US)
    assert arrivals(engine) == [(5.8, 7, 100), (7.4, 8, 50), (9.8, 7, 100), (11.4, 8, 50)]


def test_a_source_sends_so_many_frames_and_no_more(engine: Engine) -> None:
    source = Source(engine, LINK, *numbered(7), rate_fps=1e6, room=1, count=3)
    engine.run(US)
    assert source.left == 1
    engine.run(100 * US)
    assert (source.left, len(arrivals(engine)), engine.next_ps()) == (0, 3, None)


def test_one_that_is_stopped_leaves_others_alone(engine: Engine) -> None:
    """Also a stopped one that would have been the next to send, and one that is stopped twice."""
    kept, *stopped = (Source(engine, LINK, *numbered(each), rate_fps=1e5, room=9) for each in range(9))
    engine.run(0)
    for source in (*stopped, stopped[0]):
        source.stop()
    engine.run(35 * US)
    numbers = [number for _, number, _ in arrivals(engine)]
    assert (numbers, stopped[0].left) == ([*range(9), 0, 0, 0], 0)
    kept.stop()
    engine.run(40 * US)
    assert engine.next_ps() is None


def test_a_source_waits_while_the_queue_is_full_and_catches_up(engine: Engine) -> None:
    """Others have filled the link for 80 us; then the frames of that time follow as fast as the link takes them."""
    frames = np.zeros(100, FRAME)
    engine.send(np.full(100, LINK, np.uint32), np.full(100, 100, np.uint32), frames)
    Source(engine, LINK, *numbered(1), rate_fps=1e5, room=2)
    engine.run(79 * US)
    assert engine.links[LINK]["most_waiting"] == 99
    engine.run(200 * US)
    own = [at for at, number, _ in arrivals(engine) if number == 1]
    # Nine were due in the first 80 us. The tenth leaves at its time.
    assert own[:9] == pytest.approx([80.8 + 0.8 * turn for turn in range(9)])
    assert own[9:] == pytest.approx([90.8 + 10 * turn for turn in range(len(own) - 9)])


def test_many_sources_send_in_the_order_of_their_times(engine: Engine) -> None:
    rates = [1e4 * (1 + each) / 7 for each in range(40)]
    for number, rate_fps in enumerate(rates):
        Source(engine, LINK, *numbered(number), rate_fps=rate_fps, room=100)
    engine.run(1000 * US)
    found = arrivals(engine)
    assert [at for at, _, _ in found] == sorted(at for at, _, _ in found)
    for number, rate_fps in enumerate(rates):
        assert abs(sum(each == number for _, each, _ in found) - rate_fps * 1e-3) <= 2


def test_what_a_source_gives_to_a_link_that_is_down_is_lost(engine: Engine) -> None:
    engine.links["up"][LINK] = 0
    Source(engine, LINK, *numbered(1), rate_fps=1e6, room=1, count=5)
    engine.run(100 * US)
    assert (arrivals(engine), engine.links[LINK]["lost"]) == ([], 5)
