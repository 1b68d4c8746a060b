"""Frames of one step that share links leave one after another, the first that came first."""

from __future__ import annotations

import numpy as np
import pytest

from inakit.planner.core.collective_times import LinkQueues, sent_in_turn
from inakit.planner.core.plan import Connection
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_delay

BITS, LINK_BPS = 2000, 1e6
FRAME_S, DELAY_S = BITS / LINK_BPS, 0.001
FABRIC = with_delay(leaf_spine(2, 1, 3, capacity_bps=LINK_BPS), DELAY_S)
"""Hosts h1 to h3 at leaf1, h4 to h6 at leaf2, and one spine."""


def arrivals(fabric: Fabric, *frames: tuple[tuple[str, ...], float]) -> list[float]:
    """When frames arrive that leave by these paths at these times."""
    connections = [Connection(number, number + 1, path, 1.0, ()) for number, (path, _) in enumerate(frames)]
    queues = LinkQueues(fabric, BITS, connections)
    return list(queues.arrivals(np.arange(len(frames)), np.array([left for _, left in frames])))


def across(source: str, destination: str) -> tuple[str, ...]:
    return source, "leaf1", "spine1", "leaf2", destination


def test_a_frame_that_is_alone_takes_the_time_of_its_path() -> None:
    assert arrivals(FABRIC, (across("h1", "h4"), 0.5)) == pytest.approx([0.5 + 4 * (FRAME_S + DELAY_S)])
    assert arrivals(FABRIC, (("h1", "leaf1", "h2"), 0.0)) == pytest.approx([2 * (FRAME_S + DELAY_S)])


def test_frames_wait_once_at_a_link_that_they_share() -> None:
    """Behind the shared uplink they follow one another, so that they do not wait again."""
    way_s = 4 * (FRAME_S + DELAY_S)
    frames = [(across(f"h{n}", f"h{n + 3}"), 0.0) for n in (1, 2, 3)]
    assert arrivals(FABRIC, *frames) == pytest.approx([way_s, way_s + FRAME_S, way_s + 2 * FRAME_S])


def test_who_comes_later_waits_for_what_is_left() -> None:
    way_s, later_s = 4 * (FRAME_S + DELAY_S), 0.25 * FRAME_S
    found = arrivals(FABRIC, (across("h1", "h4"), later_s), (across("h2", "h5"), 0.0))
    assert found == pytest.approx([way_s + FRAME_S, way_s])


def test_links_have_queues_of_their_own() -> None:
    """Two frames at link 7 at the same time, one at link 3 later, and one at link 7 long after."""
    link, came = np.array([7, 3, 7, 7]), np.array([1.0, 5.0, 1.0, 9.0])
    assert sent_in_turn(link, came, np.full(4, 0.5)).tolist() == pytest.approx([1.5, 5.5, 2.0, 9.5])
