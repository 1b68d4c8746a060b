"""The pace of streams: even, with bursts of a bucket's depth at most after a pause, and late by what a pause cost."""

from __future__ import annotations

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from traffic_cases import one_job, ports_of

from inakit.experiments.worlds.virtual import Inline
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.wire.packet_format import FRAGMENT

pytestmark = pytest.mark.compiler

FPS = 1000.0
DEPTH = 20
"""Fragments of `credit_s` at this rate."""


@pytest.fixture
def alone() -> tuple[Endpoints, ModelPorts]:
    """A worker that sends 1,000 fragments a second and never gets a result; its window is 40."""
    problem, plan = one_job(workers=1, fragments=4000, rate_bps=8 * FPS * FRAGMENT.wire_bytes, slots=512)
    layout = lay_out(problem, plan, ports_of(problem))
    endpoints, ports = Endpoints(layout, WorkerOptions(first_timeout_s=9.0)), ModelPorts(layout, Faults(lose=1.0))
    ports.attach(endpoints)
    endpoints.load(0, RandomGradients(), 0)
    endpoints.begin(0, 0, 0)
    return endpoints, ports


def test_a_stream_sends_one_fragment_after_the_other(alone: tuple[Endpoints, ModelPorts]) -> None:
    endpoints, ports = alone
    for sent, until in ((1, 0.0), (1, 0.0009), (2, 0.00101), (11, 0.01001), (40, 1.0)):
        ports.run(until)
        assert endpoints.streams["sent"].tolist() == [sent]
    assert endpoints.late_s().tolist() == [0.0] * len(ports.layout.hosts)


def test_after_a_pause_it_catches_up_by_a_bucket_and_is_late_by_the_rest(alone: tuple[Endpoints, ModelPorts]) -> None:
    endpoints, ports = alone
    ports.run(0.0045)
    endpoints.hosts["cut_off"][0] = 1
    ports.run(0.0545)
    assert endpoints.streams["sent"].tolist() == [5]
    endpoints.hosts["cut_off"][0] = 0
    endpoints.resume(0, ports.now_ps())
    assert endpoints.streams["sent"].tolist() == [5 + DEPTH]
    assert endpoints.late_s()[0] == pytest.approx(0.0545 - 0.004 - DEPTH / FPS)


def test_a_closed_window_is_no_lateness() -> None:
    problem, plan = one_job(workers=2, fragments=400, rate_bps=8 * FPS * FRAGMENT.wire_bytes, slots=512)
    layout = lay_out(problem, plan, ports_of(problem))
    ports = ModelPorts(layout, Faults(), hop_s=0.05)  # a result takes longer than a window lasts
    measured = ClosedLoop(layout, ports, RandomGradients(), ReliableOptions(), Inline()).run(lambda _: None)
    assert measured.exact
    assert measured.communication_time_s > 2 * 400 / FPS
    assert not measured.late_s


def test_another_rate_holds_at_once(alone: tuple[Endpoints, ModelPorts]) -> None:
    endpoints, ports = alone
    ports.run(0.0035)
    endpoints.set_rates(np.arange(1), 100.0, ports.now_ps())
    ports.run(0.0235)
    assert endpoints.streams["sent"].tolist() == [4 + 2]
