"""Where fragments spent their time, from hops that are written down by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.topo.virtual.engine import HOP, LOST_PS, NO_HOP
from inakit.traffic.measure.over_time import PARTS, FollowedFragments, FragmentTimes, times_of
from inakit.traffic.wire.packet_format import BARE_FRAME, Kind

LINKS = (("w1", "s"), ("w2", "s"), ("s", "ps"), ("ps", "s"), ("s", "w1"), ("s", "w2"), ("spy", "s"))
W1, W2, UP, DOWN, TO_W1, TO_W2, SPY = range(len(LINKS))
PLAN = Plan(
    "by hand",
    "by-hand",
    (
        PlannedTree(
            *(1, 1.0, 1e6),
            AggregationTree(
                *(1, "ps", {1: "w1", 2: "w2"}, (Aggregator(3, "s", 0, (1, 2), 0, 1),)),
                (Branch(1, 3, ("w1", "s")), Branch(2, 3, ("w2", "s")), Branch(3, 0, ("s", "ps"))),
            ),
        ),
    ),
    SolverOutcome("heuristic", 0.0),
)
RECORD = np.dtype([*HOP.descr, ("noted", BARE_FRAME["ina"])])
G, R = Kind.GRADIENT, Kind.RESULT
Hop = tuple[Kind, int, int, int, int, int]


def hop(kind: Kind, link: int, given: int, cause: int = NO_HOP, *, seq: int = 0, waits: int = 0) -> Hop:
    """A packet that waits, is sent in 10 ps and is delayed by 1 ps."""
    return kind, link, given, cause, seq, waits


def times(*hops: Hop, lost: tuple[int, ...] = ()) -> FragmentTimes:
    records: NDArray[np.void] = np.zeros(len(hops), RECORD)
    for record, (kind, link, given, cause, seq, waits) in zip(records, hops, strict=True):
        starts = given + waits
        record["given"], record["starts"], record["left"], record["arrives"] = given, starts, starts + 10, starts + 11
        record["link"], record["cause"] = link, cause
        ina = record["noted"]
        ina["kind"], ina["job"], ina["tree"], ina["seq"] = kind, 1, 1, seq
    records["arrives"][list(lost)] = LOST_PS
    return times_of(FollowedFragments(records, LINKS, PLAN, until_ps=10_000), LINKS)


def parts(found: FragmentTimes, row: int = 0) -> dict[str, int]:
    """The parts that are not 0."""
    return {part: ps for part, ps in zip(PARTS, found.parts_ps[row].tolist(), strict=True) if ps}


ROUND = (hop(G, W1, 0), hop(G, W2, 5), hop(G, UP, 16, 1, waits=3), hop(R, DOWN, 40), hop(R, TO_W1, 51, 3),
         hop(R, TO_W2, 51, 3, waits=7))  # fmt: skip


def test_the_way_is_that_of_the_packet_that_completed_the_sum() -> None:
    found = times(*ROUND)
    assert parts(found) == {
        "slots": 5, "sending": 20, "queues": 3, "delay": 2, "server": 10,
        "result_sending": 20, "result_queues": 7, "result_delay": 2,
    }  # fmt: skip
    assert found.total_ps.tolist() == [51 + 7 + 11 - 0]
    assert found.waited_for == ("w2",)


def test_a_result_that_is_lost_and_sent_again_makes_the_server_s_part_longer() -> None:
    again = (hop(R, DOWN, 200), hop(R, TO_W2, 211, 6))
    found = times(*ROUND, *again, lost=(5,))
    assert parts(found)["server"] == 200 - 30
    assert found.total_ps.tolist() == [222]


def test_what_a_worker_gets_twice_counts_once() -> None:
    assert times(*ROUND, hop(R, DOWN, 200), hop(R, TO_W2, 211, 6)).total_ps.tolist() == times(*ROUND).total_ps.tolist()


def test_a_fragment_without_its_last_result_is_incomplete() -> None:
    found = times(*ROUND, lost=(5,))
    assert (len(found.seq), found.incomplete) == (0, 1)
    assert found.as_json() == {"followed": 0, "incomplete": 1, "seconds": {}}


def test_a_sum_that_another_fragment_drove_out_waited_in_a_slot_until_then() -> None:
    other = hop(G, W1, 30, seq=1)
    driven_out = (hop(G, W1, 0), other, hop(G, UP, 41, 1), hop(R, DOWN, 60), hop(R, TO_W1, 71, 3), hop(R, TO_W2, 71, 3))
    found = times(*driven_out)
    assert parts(found)["slots"] == 41
    assert (found.waited_for, found.incomplete) == (("s",), 1)
    assert found.total_ps.tolist() == [82]


def test_packets_of_hosts_that_are_no_workers_begin_nothing() -> None:
    (w1, w2, *rest) = ROUND
    found = times(w1, w2, *rest, hop(G, SPY, -50))
    assert found.started_ps.tolist() == [0]


def test_the_figures_of_parts_are_seconds() -> None:
    seconds = times(*ROUND).as_json()["seconds"]
    assert seconds["total"] == {"mean": 69e-12, "median": 69e-12, "p99": 69e-12, "max": 69e-12}
    assert seconds["result"]["max"] == 29e-12


def test_a_run_without_hops_has_no_times() -> None:
    found = times()
    assert (len(found.seq), found.incomplete, list(found.rows())) == (0, 0, [])
