"""A controller plans anew while a run goes on: it sees other traffic in counters, and nothing else tells it of it.

On a leaf-spine of two spines, other traffic takes three quarters of the spine's links that the first plan uses. The
other spine carries the plan as well as before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tolerance import assert_within

from inakit.experiments.papers.common.emulated_figure import is_near
from inakit.experiments.run.controller import KIND
from inakit.experiments.run.faults import OtherTraffic, Span, When
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.prepared import prepare
from inakit.planner.registry import METHODS
from inakit.planner.replan import FILLED, fitted
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import leaf_spine
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.wire.packet_format import FRAGMENT

VIRTUAL = pytest.param("virtual", marks=pytest.mark.compiler)
FAST = pytest.param("fast", marks=pytest.mark.root)
BMV2 = pytest.param("bmv2", marks=(pytest.mark.root, pytest.mark.bmv2, pytest.mark.long))
BEGINS, ENDS, ITERATIONS = 2, 6, 10
FRAGMENTS = {"virtual": 800, "fast": 800, "bmv2": 160}
CAPACITY_BPS = {"virtual": 4e6, "fast": 4e6, "bmv2": 0.4e6}


def run_beside(switch: str, *flows: Flow, spines: int = 2) -> Run:
    """Three workers at one leaf with a PS at the other, beside flows that begin and end during the run."""
    job = Job(1, ("h1", "h2", "h3"), ("h5",), FRAGMENTS[switch] * 4 * FRAGMENT.values, iterations=ITERATIONS)
    problem = Problem(leaf_spine(2, spines, 4, capacity_bps=CAPACITY_BPS[switch]), (job,), FRAGMENT)
    plan = METHODS["inart"].plan(problem, Options(seed=1))
    spans = (Span(When(None, BEGINS), When(None, ENDS)),) * len(flows)
    traffic = (OtherTraffic(flows, spans=spans),) if flows else ()
    return Run(prepare(problem, plan), interferences=traffic, replans=Options(seed=1))


def heavy(switch: str) -> Flow:
    """Three quarters of the links of one spine, which happens to be the first plan's."""
    return Flow("h4", "h6", 0.75 * CAPACITY_BPS[switch])


def changes(outcome: Outcome) -> list[dict[str, Any]]:
    (record,) = (each for each in outcome.interferences if each.kind == KIND)
    found: list[dict[str, Any]] = record.details["changes"]
    return found


def times_s(outcome: Outcome) -> list[float]:
    return [iteration.communication_time_s for iteration in outcome.measured.iterations]


@pytest.mark.parametrize("switch", [VIRTUAL, FAST, BMV2])
def test_routes_move_to_the_other_spine_and_back(switch: str) -> None:
    """Where tcpreplay sends the other traffic it can begin within an iteration, which then shows only a part of it.

    In real time what is sent again in the congested iteration can be taken for some per cent of other traffic.
    """
    run = run_beside(switch, heavy(switch))
    for _ in range(3):
        outcome = run_plan(run, find_world(switch))
        if outcome.verdict == "VALID":
            break
    else:
        pytest.skip("this machine is too busy for a valid run")
    assert [iteration.exact for iteration in outcome.measured.iterations] == [True] * ITERATIONS
    times, alone_s = times_s(outcome), run.prepared.prediction.communication_time_s
    first = next(at for at, time_s in enumerate(times) if time_s > 1.1 * alone_s)
    away, *_, back = changes(outcome)
    assert (away["iteration"], away["routes"], away["split"]) == (first + 1, True, False)
    assert back["sending_rate_bps"] == run.prepared.prediction.sending_rate_bps
    share = away["sending_rate_bps"] / back["sending_rate_bps"]
    assert is_near(share, FILLED) if switch == "virtual" else 0.9 * FILLED < share < 1.01 * FILLED
    assert all(is_near(time_s, alone_s / share) for time_s in times[first + 2 : ENDS])
    assert is_near(times[-1], alone_s)


@pytest.mark.compiler
def test_one_iteration_is_congested_where_traffic_begins_with_it() -> None:
    outcome = run_plan(run_beside("virtual", heavy("virtual")), find_world("virtual"))
    slow = [at for at, time_s in enumerate(times_s(outcome)) if time_s > 1.1 * times_s(outcome)[0]]
    assert slow == [BEGINS]
    assert [change["iteration"] for change in changes(outcome)] == [BEGINS + 1, ENDS + 2]
    assert outcome.measured.strangers == 0


@pytest.mark.compiler
@pytest.mark.parametrize("flows", [(), (Flow("h4", "h6", 0.03 * 4e6),)], ids=["alone", "beside little traffic"])
def test_without_congestion_the_plan_is_kept(flows: tuple[Flow, ...]) -> None:
    outcome = run_plan(run_beside("virtual", *flows), find_world("virtual"))
    assert (changes(outcome), outcome.verdict) == ([], "VALID")
    assert outcome.measured.exact


@pytest.mark.compiler
def test_a_controller_that_keeps_the_plan_changes_no_figure() -> None:
    run = run_beside("virtual")
    outcomes = [run_plan(each, find_world("virtual")) for each in (run, replace(run, replans=None))]
    assert outcomes[0].measured == outcomes[1].measured


@pytest.mark.compiler
def test_where_no_other_route_exists_workers_send_at_what_is_left() -> None:
    """The only spine carries other traffic on half of its links."""
    outcome = run_plan(run_beside("virtual", Flow("h4", "h6", 2e6), spines=1), find_world("virtual"))
    assert outcome.measured.exact
    beside, alone = changes(outcome)
    assert [beside["iteration"], alone["iteration"]] == [BEGINS + 1, ENDS + 2]
    assert (beside["routes"], alone["routes"]) == (False, False)
    assert_within(beside["sending_rate_bps"], 0.97 * 2e6, 0.03, "what is left", "bit/s")
    assert all(iteration.retransmissions == 0 for iteration in outcome.measured.iterations)


@pytest.mark.compiler
def test_parts_move_to_another_server_where_routes_do_not_help() -> None:
    """Four fifths of the gradient go to a PS whose link carries other traffic; sums stay exact when parts move."""
    job = Job(1, ("h1", "h2", "h3"), ("h5", "h6"), 800 * 4 * FRAGMENT.values, iterations=6)
    problem = Problem(leaf_spine(2, 2, 4, capacity_bps=4e6), (job,), FRAGMENT)
    equal = METHODS["inart-equal"].plan(problem)
    trees = (replace(own, share=share) for own, share in zip(equal.trees, (0.8, 0.2), strict=True))
    first = fitted(problem, replace(equal, method="inart", trees=tuple(trees)))
    traffic = OtherTraffic((Flow("h7", equal.trees[0].tree.root, 3e6),))
    outcome = run_plan(Run(first, interferences=(traffic,), replans=Options()), find_world("virtual"))
    assert [iteration.exact for iteration in outcome.measured.iterations] == [True] * 6
    (moved,) = changes(outcome)
    assert (moved["iteration"], moved["split"]) == (1, True)
    assert_within(times_s(outcome)[-1], moved["communication_time_s"], 0.05, "time", "s")
    assert times_s(outcome)[-1] < 0.5 * times_s(outcome)[0]


@pytest.mark.compiler
def test_sequence_numbers_go_on_where_trees_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first plan's trees keep their numbers: without new sequence numbers late packets would be taken for new."""
    first, follow = list[int](), ClosedLoop.follow

    def noting(loop: ClosedLoop, other: ClosedLoop) -> None:
        follow(loop, other)
        first.append(loop.options.worker.first_seq)

    monkeypatch.setattr(ClosedLoop, "follow", noting)
    run_plan(run_beside("virtual", heavy("virtual")), find_world("virtual"))
    away, back = first
    assert away > (BEGINS + 1) * FRAGMENTS["virtual"]
    assert back > away + (ENDS + 2) * FRAGMENTS["virtual"]


@pytest.mark.compiler
def test_a_replay_is_refused() -> None:
    run = run_beside("virtual")
    with pytest.raises(InputError, match="plans change between the iterations of a closed loop"):
        run_plan(replace(run, prepared=replace(run.prepared, mode="replay")), find_world("virtual"))
