"""Gradients that are held in pieces: the same sums, whatever is lost, in a memory that does not grow with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from traffic_cases import one_job, ports_of

from inakit.experiments.worlds.virtual import Inline
from inakit.traffic.closed_loop import Loop, ReliableOptions
from inakit.traffic.endpoints import streams
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import Bounds
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.endpoints.worker import NEVER
from inakit.traffic.measure.measured import Measured
from inakit.traffic.wire.packet_format import FRAGMENT

PIECE = 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LEAST_PIECE", PIECE)


def loop_of(fragments: int, faults: Faults, *, levels: int = 2, iterations: int = 2, compute_s: float = 0.0) -> Loop:
    problem, plan = one_job(levels=levels, iterations=iterations, fragments=fragments)
    problem = replace(problem, jobs=(replace(problem.jobs[0], compute_s=compute_s),))
    layout = lay_out(problem, plan, ports_of(problem), Bounds(in_flight_s=1e-3, piecewise=True))
    options = ReliableOptions(tick_s=0.001, stall_s=60.0)
    return Loop(layout, ModelPorts(layout, faults), RandomGradients(faults.seed), options, Inline())


def run(loop: Loop) -> Measured:
    return loop.run(lambda _: None)


@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("fragments", [31, 60, 64, 205])
def test_every_sum_is_right(levels: int, fragments: int) -> None:
    loop = loop_of(fragments, Faults(), levels=levels)
    measured = run(loop)
    assert measured.exact
    assert measured.retransmissions == 0
    assert len(loop.memory.gradients) == len(loop.layout.streams.host) * 3 * PIECE
    assert (loop.memory.loaded == fragments).all()
    assert (loop.memory.turn_at == NEVER).all()


def test_losses_and_copies_cost_no_sum() -> None:
    for seed in range(2):
        measured = run(loop_of(150, Faults(lose=0.05, repeat=0.05, delay_s=0.002, seed=seed)))
        assert measured.exact
        assert measured.retransmissions > 0


def test_packets_that_come_while_workers_compute_turn_no_piece_of_the_next_iteration() -> None:
    measured = run(loop_of(64, Faults(repeat=0.5, delay_s=0.02, seed=1), levels=0, compute_s=0.05))
    assert measured.exact
    assert measured.wrong == ()


def test_a_wrong_sum_of_a_piece_that_is_given_up_is_told() -> None:
    loop = loop_of(100, Faults(), iterations=1)
    turn = loop.memory.turn

    def turned(stream: int) -> slice:
        if stream == 0 and loop.memory.checked[0] == 0:
            loop.memory.low[loop.layout.rows_from(0, 7, 1), 3] += 1
        return turn(stream)

    loop.memory.turn = turned  # type: ignore[method-assign]
    measured = run(loop)
    assert not measured.exact
    (wrong,) = measured.iterations[0].wrong
    assert f"element {7 * FRAGMENT.values + 3} (tree 1, fragment 7) at w0" in wrong
    assert "1 element in 1 fragment is wrong at 1 host" in wrong


def test_a_gradient_is_the_same_in_parts() -> None:
    problem, _ = one_job(fragments=3)
    job = problem.jobs[0]
    for magnitude in (1 << 20, 1000):
        gradients = RandomGradients(3, magnitude)
        whole = gradients.of(job, 1, 4)
        for first, count in ((0, 5), (1, 4), (17, 100), (64, 64)):
            assert np.array_equal(gradients.part(job, 1, 4, first, count), whole[first : first + count])
        assert -magnitude <= whole.min() < whole.max() < magnitude
