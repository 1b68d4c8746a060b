"""Data-parallel training in NumPy: one replica of the model per worker, gradients summed elsewhere.

Training whose gradients are summed in the network is the same, bit for bit, as training in one process that rounds each
worker's gradient in the same way (`train_alone`): integer sums are exact, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.traffic.endpoints.gradient import exact_sum
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.training_task import History, TrainingTask


class Replica:
    """A copy of the model's parameters, and its optimiser."""

    def __init__(self, task: TrainingTask) -> None:
        self.recipe = task.recipe
        self.parameters = task.initial()
        self.velocity = np.zeros_like(self.parameters)

    def step(self, gradient: FloatArray) -> None:
        """Take a step of SGD with momentum along the mean gradient of all workers, (parameters,)."""
        self.velocity = self.recipe.momentum * self.velocity + gradient
        self.parameters = self.parameters - self.recipe.learning_rate * self.velocity


class DataParallel:
    """All workers of one job (a `Learner`), each with its own replica and its own data."""

    def __init__(self, task: TrainingTask) -> None:
        self.task = task
        self.replicas = [Replica(task) for _ in range(task.workers)]
        self.history = History(task)

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """The gradient of the worker's batch at its replica, in fixed point."""
        del job
        batch = self.task.batch(worker, iteration)
        loss, gradient = self.task.model.loss_and_gradient(self.replicas[worker].parameters, batch)
        self.history.losses[iteration, worker] = loss
        return self.task.fixed_point.round(gradient)

    def take(self, job: Job, worker: int, iteration: int, sums: NDArray[np.int64]) -> None:
        """Let the worker's replica take its step; after an epoch the first worker's parameters are kept."""
        del job
        replica = self.replicas[worker]
        replica.step(self.task.fixed_point.mean(sums))
        if worker == 0 and self.task.ends_epoch(iteration):
            self.history.snapshots.append(replica.parameters)


Mean = Callable[[TrainingTask, Sequence[FloatArray]], FloatArray]
"""How the mean, (parameters,), of the gradients of all workers is computed."""


def rounded_mean(task: TrainingTask, gradients: Sequence[FloatArray]) -> FloatArray:
    """The mean as the network gives it: each gradient is rounded in fixed point, then they are summed."""
    return task.fixed_point.mean(exact_sum([task.fixed_point.round(gradient) for gradient in gradients]))


def float_mean(task: TrainingTask, gradients: Sequence[FloatArray]) -> FloatArray:
    """The mean as it is without a network: gradients are neither rounded nor clipped."""
    del task
    mean: FloatArray = np.mean(gradients, axis=0)
    return mean


def train_alone(task: TrainingTask, mean: Mean = rounded_mean) -> History:
    """The same training in one process with one replica, which computes every worker's gradient."""
    replica, history = Replica(task), History(task)
    for iteration in range(task.iterations):
        gradients = []
        for worker in range(task.workers):
            batch = task.batch(worker, iteration)
            loss, gradient = task.model.loss_and_gradient(replica.parameters, batch)
            history.losses[iteration, worker] = loss
            gradients.append(gradient)
        replica.step(mean(task, gradients))
        if task.ends_epoch(iteration):
            history.snapshots.append(replica.parameters)
    return history
