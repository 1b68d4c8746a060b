"""Gradients of other processes: they come when they come, sums go back, and whoever leaves is named."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from traffic_cases import one_job

from inakit.planner.core.problem import Job
from inakit.topo.errors import MachineError, RunError
from inakit.traffic.endpoints.gradient import FixedPoint, exact_sum
from inakit.traffic.training import exchange
from inakit.traffic.training.exchange import Exchange, Member

JOB: Job = replace(one_job(workers=3)[0].jobs[0], gradient_bytes=40)
FIXED_POINT = FixedPoint.clipping_at(1.0, 3)


def gradient_of(worker: int, iteration: int) -> np.ndarray:
    return np.random.default_rng((worker, iteration)).uniform(-1, 1, 10)


def work(address: str, worker: int) -> list[np.ndarray]:
    with Member(address, worker, FIXED_POINT) as member:
        return [member.mean(gradient_of(worker, iteration)) for iteration in range(2)]


def test_every_worker_gets_the_mean() -> None:
    with Exchange() as network, ThreadPoolExecutor(3) as threads:
        works = [threads.submit(work, network.address, worker) for worker in (2, 0, 1)]
        for iteration in range(2):
            sums = exact_sum([network.of(JOB, worker, iteration) for worker in range(3)])
            for worker in range(3):
                network.take(JOB, worker, iteration, sums)
        means = [done.result() for done in works]
    for iteration in range(2):
        expected = np.mean([gradient_of(worker, iteration) for worker in range(3)], axis=0)
        for mean in means:
            assert mean[iteration] == pytest.approx(expected, abs=FIXED_POINT.error)


def ask_member_that(acts: Callable[[Member], object]) -> None:
    """The network asks worker 0 for its gradient, and worker 0 does as it likes."""
    with ThreadPoolExecutor(1) as threads, Exchange(patience_s=1.0) as network:
        threads.submit(acts, Member(network.address, 0, FIXED_POINT))
        network.of(JOB, 0, 3)


def test_a_worker_that_leaves_is_named() -> None:
    with pytest.raises(RunError, match="worker 0 left before iteration 3"):
        ask_member_that(lambda member: member.__exit__(None, None, None))


def test_a_gradient_of_another_size_is_refused() -> None:
    with pytest.raises(RunError, match="handed in 44 bytes, job 1 sends 40"):
        ask_member_that(lambda member: member.mean(np.zeros(11)))


def test_a_network_that_ends_is_told_to_the_worker() -> None:
    with Exchange() as network:
        member = Member(network.address, 0, FIXED_POINT)
    with member, pytest.raises(RunError, match="the emulated network is gone"):
        member.mean(np.zeros(10))


def test_nobody_is_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LOOK_S", 0.01)
    with Exchange(patience_s=0.05) as network, pytest.raises(RunError, match="no sign of worker 2"):
        network.of(JOB, 2, 0)


def test_what_has_gone_wrong_elsewhere_ends_the_wait() -> None:
    def check() -> None:
        raise MachineError("the worker's process has ended")

    with Exchange(check) as network, pytest.raises(MachineError, match="process has ended"):
        network.of(JOB, 0, 0)
