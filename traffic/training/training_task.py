"""What is trained, and how: data, model and optimiser of a job, shared by every way of training it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from inakit.topo.errors import InputError
from inakit.traffic.endpoints.gradient import FixedPoint
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.training.glyphs import CLASSES, SIDE, Samples, draw_glyphs
from inakit.traffic.training.perceptron import Perceptron

TEST_SAMPLES = 512
"""How many samples, which training does not see, accuracy is measured on."""


@dataclass(frozen=True)
class Recipe:
    """Synchronous SGD with momentum, `batch` samples per worker and iteration, on `samples` training samples in all.

    `hidden` are the units of the model's hidden layers. Gradient values beyond `clip` are cut to it. Raises
    `InputError` for values that make no sense.
    """

    hidden: tuple[int, ...] = (256, 64)
    epochs: int = 4
    batch: int = 16
    learning_rate: float = 0.2
    momentum: float = 0.9
    clip: float = 1.0
    samples: int = 2048
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "samples"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: at least 1 is expected")
        if any(units < 1 for units in self.hidden):
            raise InputError(f"hidden layers {self.hidden}: units are counted from 1, such as 256,64")
        if not 0 < self.learning_rate < inf:
            raise InputError(f"learning rate {self.learning_rate}: more than 0 is expected, such as 0.2")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum {self.momentum}: at least 0 and less than 1 is expected, such as 0.9")


def parse_layers(text: str) -> tuple[int, ...]:
    """The units of hidden layers in a text such as "256,64"; "" means none. Raises `InputError`."""
    try:
        return tuple(int(units) for units in text.split(",") if units.strip())
    except ValueError as error:
        raise InputError(f"hidden layers '{text}': numbers of units are expected, such as 256,64") from error


class TrainingTask:
    """A recipe for so many workers, each of which draws its batches from a shard of the data of its own.

    Raises `InputError` if there are too few samples for one iteration.
    """

    def __init__(self, recipe: Recipe, workers: int) -> None:
        self.recipe, self.workers = recipe, workers
        self.training = draw_glyphs(recipe.samples, recipe.seed)
        self.test = draw_glyphs(TEST_SAMPLES, recipe.seed + 1)
        self.model = Perceptron((SIDE * SIDE, *recipe.hidden, CLASSES))
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
        """How many samples an epoch trains on: samples that do not fill a batch of every worker are left out."""
        return self.iterations_per_epoch * self.workers * self.recipe.batch

    def ends_epoch(self, iteration: int) -> bool:
        """Whether an iteration, counted from 0, is the last of its epoch."""
        return (iteration + 1) % self.iterations_per_epoch == 0

    def initial(self) -> FloatArray:
        """The model's first parameters, (parameters,)."""
        return self.model.initial(self.recipe.seed)

    def batch(self, worker: int, iteration: int) -> Samples:
        """The worker's samples of an iteration; in every epoch its shard is shuffled anew."""
        epoch, number = divmod(iteration, self.iterations_per_epoch)
        shard = np.arange(worker, len(self.training), self.workers)
        order = np.random.default_rng((self.recipe.seed, epoch, worker)).permutation(shard)
        return self.training[order[number * self.recipe.batch : (number + 1) * self.recipe.batch]]


class History:
    """What is kept of a training.

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
        """The share of test samples classified rightly, before training and after every epoch: (epochs + 1,)."""
        return np.array([task.model.accuracy(parameters, task.test) for parameters in self.snapshots])
