"""Windows: how often timeouts may double, and how marks of congestion make them smaller."""

from __future__ import annotations

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from traffic_cases import one_job, ports_of

from inakit.planner.trees.headroom import with_policy
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import IN_FLIGHT_S, WorkerOptions
from inakit.traffic.endpoints.streams import answer_heads, lay_out
from inakit.traffic.endpoints.windows import MAX_BACKOFF, backoffs
from inakit.traffic.wire.packet_format import FRAME, Flag

pytestmark = pytest.mark.compiler

NEWEST = 1 / 16
"""The weight of the newest window in the smoothed share of marks, DCTCP's g."""


@pytest.mark.parametrize(
    ("least", "expected"),
    [(0.5, 1), (1.0, 1), (2.0, 1), (2.001, 2), (4.0, 2), (8.0, 3), (8.001, 4), (64.0, 6), (1000.0, MAX_BACKOFF)],
)
def test_a_timeout_doubles_until_the_least_window_is_fair(least: float, expected: int) -> None:
    assert backoffs(np.array([least]), np.array([1.0])).tolist() == [expected]


class Window:
    """The window of a worker, alone in its tree, that has sent fragments and gets results for them."""

    def __init__(self, policy: str, limit: int) -> None:
        rate_bps = limit / IN_FLIGHT_S * 8 * FRAME.itemsize
        problem, plan = one_job(workers=1, levels=1, fragments=1 << 16, slots=limit, rate_bps=rate_bps)
        layout = lay_out(problem, with_policy(problem, plan, policy), ports_of(problem))
        self.endpoints, self.ports = Endpoints(layout, WorkerOptions(paced=False)), ModelPorts(layout, Faults(lose=1.0))
        self.ports.attach(self.endpoints)
        self.endpoints.load(0, RandomGradients(), 0)
        self.endpoints.begin(0, 0, 0)
        self.stream = self.endpoints.streams[:1]
        self.stream["least"] = 2.0
        self.frame = np.zeros(1, FRAME)
        head = answer_heads(layout)[0]
        self.frame.view((np.uint8, FRAME.itemsize))[:, : head.itemsize] = head.view((np.uint8, head.itemsize))
        self.seq, self.limit = 0, limit

    def get(self, results: int, *, marked: bool) -> float:
        """The size of the window after this many results, each with a mark or not."""
        for _ in range(results):
            self.endpoints.library.endpoints_wake(self.endpoints.address, self.seq * 1000)
            self.frame["ina"]["seq"], self.frame["ina"]["flags"] = self.seq, Flag.ECN if marked else 0
            self.endpoints.library.endpoints_receive(
                self.endpoints.address, 0, self.seq * 1000 + 1, self.frame.tobytes()
            )
            self.seq += 1
        return float(self.stream["size"][0])


def test_a_window_that_heeds_marks_halves_at_the_first_ones() -> None:
    window = Window("panama", 32)
    assert window.get(31, marked=True) == 32
    assert window.get(1, marked=True) == 16
    assert window.stream["threshold"].tolist() == [16]


def test_a_window_shrinks_by_half_of_the_smoothed_share_of_marks() -> None:
    window = Window("panama", 32)
    for _ in range(200):
        assert window.get(32, marked=False) == 32
    assert window.stream["share"][0] == pytest.approx((1 - NEWEST) ** 200)
    window.get(16, marked=True)
    assert window.get(16, marked=False) == pytest.approx(32 * (1 - NEWEST / 2 / 2), rel=1e-3)


def test_a_window_keeps_its_least_size() -> None:
    window = Window("panama", 32)
    window.get(32 * 20, marked=True)
    assert window.stream["size"][0] < 3
    window.stream["size"] = 2
    assert window.get(2, marked=True) == 2


def test_others_do_not_heed_marks() -> None:
    assert Window("shadow-copy-timeout", 32).get(320, marked=True) == 32


def test_where_losses_are_repaired_a_window_falls_when_round_trips_grow() -> None:
    """Results come one after the other to a window that was sent at once: all but the first have waited."""
    assert Window("shadow-copy", 32).get(320, marked=False) == pytest.approx(0.67 * 32, rel=0.01)
