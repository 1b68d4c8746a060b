"""What is known of a training run after each epoch: its times, its loss and its accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.traffic.measure.measured import Measured
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.training_task import History, TrainingTask


@dataclass(frozen=True)
class Epoch:
    """The times of an epoch: when it ended, how long after the one before, and how much of that was communication."""

    ended_s: float
    time_s: float
    communication_s: float
    samples: int

    @property
    def samples_per_s(self) -> float:
        """Training throughput (GOAT, section VII-A)."""
        return self.samples / self.time_s

    @property
    def communication_share(self) -> float:
        """The share of the epoch's time in which gradients were exchanged."""
        return self.communication_s / self.time_s


@dataclass(frozen=True)
class Curve:
    """Training with one planner: `loss` of each epoch, test `accuracy` before the first and after each.

    `epochs` is empty for training without a network, whose time says nothing.
    """

    name: str
    loss: FloatArray
    accuracy: FloatArray
    epochs: tuple[Epoch, ...] = ()


def epochs_of(measured: Measured, task: TrainingTask) -> tuple[Epoch, ...]:
    """The times of all epochs. Each ends with the last result of its last iteration; the first begins with the run."""
    epochs: list[Epoch] = []
    for first in range(0, task.iterations, task.iterations_per_epoch):
        iterations = measured.iterations[first : first + task.iterations_per_epoch]
        ended_s = iterations[-1].started_s + iterations[-1].communication_time_s
        time_s = ended_s - (epochs[-1].ended_s if epochs else 0.0)
        epochs.append(Epoch(ended_s, time_s, sum(i.communication_time_s for i in iterations), task.samples_per_epoch))
    return tuple(epochs)


def curve_of(name: str, task: TrainingTask, history: History, measured: Measured | None = None) -> Curve:
    """The curve of a training. `measured`: the run that carried its gradients; None for training without a network."""
    epochs = () if measured is None else epochs_of(measured, task)
    return Curve(name, history.loss(task), history.accuracy(task), epochs)
