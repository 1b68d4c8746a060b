"""A training task: data, model and optimiser of a job, and data-parallel training in NumPy.

Each worker has a replica of the model; gradients are summed elsewhere. Training with sums in the network is the same,
bit for bit, as training in one process that rounds each worker's gradient in the same way (`train_alone`): integer sums
are exact, and everything else is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.topo.errors import InputError
from inakit.traffic.endpoints.gradient import FixedPoint, exact_sum
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.neural_nets import ConvolutionalNet, Model, Perceptron, Samples, accuracy

# -- Pictures of the digits 0 to 9, drawn from a seed, as training data without a download.
#
# Real data sets come with a download or with a library as large as this kit. These pictures take a second to draw and
# are the same on every machine. They still leave a model something to learn: digits are moved, fainter or bolder,
# noisy.

SIDE = 12
"""Width and height of a picture."""
CLASSES = 10
SHIFT = 1
"""The largest shift of a digit in pixels, in each direction."""
NOISE = 0.25
"""The standard deviation of the noise on every pixel, of which one that is drawn has 0.6 to 1.4."""
SHAPES = (
    "01110 10001 10001 10001 10001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "01110 10000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 00100 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00001 01110",
)
"""Rows of pixels, top to bottom."""


def draw_glyphs(count: int, seed: int) -> Samples:
    """Pictures of `count` digits, of all ten equally often, or one more often than others."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(count) % CLASSES)
    pictures = np.zeros((count, SIDE, SIDE))
    shapes = np.array([[list(map(int, row)) for row in shape.split()] for shape in SHAPES])
    height, width = shapes.shape[1:]
    tops = (SIDE - height) // 2 + random.integers(-SHIFT, SHIFT + 1, count)
    lefts = (SIDE - width) // 2 + random.integers(-SHIFT, SHIFT + 1, count)
    for picture, label, top, left in zip(pictures, labels, tops, lefts, strict=True):
        picture[top : top + height, left : left + width] = shapes[label]
    pictures *= random.uniform(0.6, 1.4, (count, 1, 1))
    pictures += random.normal(0, NOISE, pictures.shape)
    return Samples(pictures.reshape(count, -1), labels)


# -- The task.

TEST_SAMPLES = 512
"""The number of test samples for accuracy, not used for training."""


@dataclass(frozen=True)
class Recipe:
    """Synchronous SGD with momentum, `batch` samples per worker and iteration, on `samples` training samples in all.

    `hidden` are the units of the model's hidden layers; with `filters`, layers of so many filters stand before them.
    Gradient values beyond `clip` are cut to it. Raises `InputError` for invalid values.
    """

    hidden: tuple[int, ...] = (256, 64)
    epochs: int = 4
    batch: int = 16
    learning_rate: float = 0.2
    momentum: float = 0.9
    clip: float = 1.0
    samples: int = 2048
    seed: int = 0
    filters: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "samples"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: at least 1 is expected")
        for name, layers in (("hidden layers", self.hidden), ("filters", self.filters)):
            if any(units < 1 for units in layers):
                raise InputError(f"{name} {layers}: they are counted from 1, such as 256,64")
        if not 0 < self.learning_rate < inf:
            raise InputError(f"learning rate {self.learning_rate}: more than 0 is expected, such as 0.2")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum {self.momentum}: at least 0 and less than 1 is expected, such as 0.9")


def parse_layers(text: str) -> tuple[int, ...]:
    """The units or filters of layers in a text such as "256,64"; "" means none. Raises `InputError`."""
    try:
        return tuple(int(units) for units in text.split(",") if units.strip())
    except ValueError as error:
        raise InputError(f"layers '{text}': numbers of units or filters are expected, such as 256,64") from error


class TrainingTask:
    """A recipe for a number of workers, each of which draws its batches from its own shard of the data.

    Raises `InputError` if there are too few samples for one iteration.
    """

    def __init__(self, recipe: Recipe, workers: int) -> None:
        self.recipe, self.workers = recipe, workers
        self.training = draw_glyphs(recipe.samples, recipe.seed)
        self.test = draw_glyphs(TEST_SAMPLES, recipe.seed + 1)
        self.model: Model = (
            ConvolutionalNet(SIDE, recipe.filters, recipe.hidden, CLASSES)
            if recipe.filters
            else Perceptron((SIDE * SIDE, *recipe.hidden, CLASSES))
        )
        self.fixed_point = FixedPoint.clipping_at(recipe.clip, workers)
        self.iterations_per_epoch = recipe.samples // workers // recipe.batch
        if not self.iterations_per_epoch:
            raise InputError(
                f"{workers} workers with batches of {recipe.batch} need {workers * recipe.batch} samples for one "
                f"iteration, there are {recipe.samples}: choose smaller batches, fewer workers or more samples"
            )
        self.iterations = recipe.epochs * self.iterations_per_epoch

    @property
    def gradient_bytes(self) -> int:
        """The size of one worker's gradient in the network: 32 bits for each parameter."""
        return 4 * self.model.parameters

    @property
    def samples_per_epoch(self) -> int:
        """The number of samples of an epoch: samples that do not fill a batch of every worker are omitted."""
        return self.iterations_per_epoch * self.workers * self.recipe.batch

    def ends_epoch(self, iteration: int) -> bool:
        """Whether an iteration, counted from 0, is the last of its epoch."""
        return (iteration + 1) % self.iterations_per_epoch == 0

    def initial(self) -> FloatArray:
        """The model's first parameters, (parameters,)."""
        return self.model.initial(self.recipe.seed)

    def batch(self, worker: int, iteration: int) -> Samples:
        """The worker's samples of an iteration; in every epoch its shard is reshuffled."""
        epoch, number = divmod(iteration, self.iterations_per_epoch)
        shard = np.arange(worker, len(self.training), self.workers)
        order = np.random.default_rng((self.recipe.seed, epoch, worker)).permutation(shard)
        return self.training[order[number * self.recipe.batch : (number + 1) * self.recipe.batch]]


class History:
    """The record of a training.

    `losses` (iterations, workers) are those of the batches; `snapshots` are the parameters, (parameters,) each, before
    training and after every epoch.
    """

    def __init__(self, task: TrainingTask) -> None:
        self.losses = np.zeros((task.iterations, task.workers))
        self.snapshots = [task.initial()]

    def equals(self, other: History) -> bool:
        """Whether two trainings are the same, bit for bit."""
        if len(self.snapshots) != len(other.snapshots) or not np.array_equal(self.losses, other.losses):
            return False
        return all(np.array_equal(mine, its) for mine, its in zip(self.snapshots, other.snapshots, strict=True))

    def loss(self, task: TrainingTask) -> FloatArray:
        """The mean loss of every epoch, (epochs,)."""
        mean: FloatArray = self.losses.reshape(task.recipe.epochs, -1).mean(axis=1)
        return mean

    def accuracy(self, task: TrainingTask) -> FloatArray:
        """The share of correctly classified test samples, before training and after every epoch: (epochs + 1,)."""
        return np.array([accuracy(task.model, parameters, task.test) for parameters in self.snapshots])


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
"""A function that computes the mean, (parameters,), of the gradients of all workers."""


def rounded_mean(task: TrainingTask, gradients: Sequence[FloatArray]) -> FloatArray:
    """The mean as in the network: each gradient is rounded to fixed point, then they are summed."""
    return task.fixed_point.mean(exact_sum([task.fixed_point.round(gradient) for gradient in gradients]))


def float_mean(task: TrainingTask, gradients: Sequence[FloatArray]) -> FloatArray:
    """The mean without a network: gradients are neither rounded nor clipped."""
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
