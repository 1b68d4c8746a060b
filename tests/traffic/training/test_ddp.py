"""PyTorch's DDP through the exchange is training in one process, bit for bit. All but one test need PyTorch."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from test_training import SMALL, job_of
from traffic_cases import ports_of

from inakit.experiments.worlds.virtual import Inline
from inakit.topo.errors import MachineError, RunError
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.measure.measured import Measured
from inakit.traffic.training.training_task import TrainingTask, float_mean, train_alone

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs PyTorch (the module torch is not installed)"
)


def test_without_torch_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "inakit.traffic.training.ddp", raising=False)
    with pytest.raises(MachineError, match="pip install torch"):
        importlib.import_module("inakit.traffic.training.ddp")


def train(task: TrainingTask, ranks: Any) -> Measured:
    problem, plan = job_of(task)
    layout = lay_out(problem, plan, ports_of(problem))
    ports = ModelPorts(layout, Faults(lose=0.02, seed=5))
    return ClosedLoop(layout, ports, ranks, ReliableOptions(), Inline()).run(lambda _: None)


@needs_torch
def test_ddp_through_a_network_is_training_in_one_process() -> None:
    from inakit.traffic.training.ddp import TorchRanks, train_alone_in_torch  # noqa: PLC0415

    task = TrainingTask(SMALL, 2)
    with TorchRanks(task) as ranks:
        measured = train(task, ranks)
        history = ranks.history
    assert measured.exact
    assert history.equals(train_alone_in_torch(task))
    assert not history.equals(train_alone_in_torch(task, float_mean))
    assert history.losses == pytest.approx(train_alone(task).losses, rel=1e-4)


@needs_torch
def test_a_process_that_dies_ends_the_run() -> None:
    from inakit.traffic.training.ddp import TorchRanks  # noqa: PLC0415

    task = TrainingTask(SMALL, 2)
    with TorchRanks(task) as ranks:
        ranks.processes[1].terminate()
        with pytest.raises(RunError, match="worker 1"):
            train(task, ranks)
    assert not any(process.is_alive() for process in ranks.processes)


@dataclass
class Bucket:
    """Of a `torch.distributed.GradBucket` what the hook uses."""

    values: Any
    last: bool

    def buffer(self) -> Any:
        return self.values

    def is_last(self) -> bool:
        return self.last


@needs_torch
def test_all_buckets_go_into_the_network_together() -> None:
    import torch  # noqa: PLC0415

    from inakit.traffic.training.ddp import Buckets, sum_in_network  # noqa: PLC0415

    class Doubling:
        def mean(self, gradient: np.ndarray) -> np.ndarray:
            assert gradient.tolist() == [1, 2, 3]
            return 2.0 * gradient

    state = Buckets(Doubling())  # type: ignore[arg-type]
    first = sum_in_network(state, Bucket(torch.tensor([1.0, 2.0]), last=False))
    assert not first.done()
    last = sum_in_network(state, Bucket(torch.tensor([3.0]), last=True))
    assert [future.value().tolist() for future in (first, last)] == [[2, 4], [6]]
    assert last.value().dtype is torch.float32
    assert not state.waiting
