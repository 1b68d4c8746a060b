"""Gradients as arrays of 32-bit integers, and their exact sums.

A gradient of floats is multiplied by its job's scale and rounded (fixed point); dividing by the scale undoes that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.topo.errors import InputError
from inakit.traffic.endpoints.records import library
from inakit.traffic.wire.packet_format import FRAGMENT

INT32 = np.iinfo(np.int32)


class Gradients(Protocol):
    """A source of gradients. The same arguments give the same values."""

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """The gradient of a worker, counted from 0 within its job: `job.gradient_bytes / 4` values."""


@runtime_checkable
class Learner(Gradients, Protocol):
    """Gradients that depend on the sums of earlier iterations, as in training.

    Each gradient is asked for once, in the order of iterations.
    """

    def take(self, job: Job, worker: int, iteration: int, sums: NDArray[np.int64]) -> None:
        """Receive the sums, (values,), that a worker holds after an iteration, before `of` gives the next gradient."""


class RandomGradients:
    """Gradients uniform in [-magnitude, magnitude), different for each job, worker and iteration."""

    def __init__(self, seed: int = 0, magnitude: int = 1 << 20) -> None:
        if not 0 < magnitude <= 1 << 31:
            raise InputError(f"magnitude {magnitude}: values are 32-bit integers, choose from 1 to {1 << 31}")
        self.seed = seed
        self.magnitude = magnitude

    def key(self, job: Job, worker: int, iteration: int) -> int:
        """The number that decides the values of one gradient."""
        return int(library().gradient_key(self.seed, job.number, worker, iteration))

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """The values for the seed, the job's number, the worker and the iteration."""
        fragments = -(-job.gradient_bytes // (4 * FRAGMENT.values))
        values = np.empty(fragments * FRAGMENT.values, np.int32)
        key = self.key(job, worker, iteration)
        library().gradient_values(key, 0, fragments, self.magnitude, values.ctypes.data)
        return values[: job.gradient_bytes // 4]


@dataclass(frozen=True)
class FixedPoint:
    """A job's fixed point: no sum over its `workers` overflows 32 bits, whatever their gradients are.

    Values beyond the clip that `scale` was chosen for are cut to it. Others are rounded, by at most 1 / (2 scale),
    which for the clip c and n workers is less than c n / (2**31 - 1). Sums of rounded values are exact, so the same
    bound holds for the error of the mean.
    """

    scale: float
    workers: int

    @classmethod
    def clipping_at(cls, clip: float, workers: int) -> Self:
        """The finest power of two at which the sum of `workers` values up to `clip` fits. Raises `InputError`."""
        if not 0 < clip < math.inf:
            raise InputError(f"clip {clip}: expected the largest gradient value to keep, such as 1.0")
        return cls(2.0 ** (math.frexp(INT32.max / (clip * workers))[1] - 1), workers)

    @property
    def error(self) -> float:
        """The largest error of a value of the mean if no worker's value was clipped."""
        return 0.5 / self.scale

    def round(self, gradient: NDArray[np.floating]) -> NDArray[np.int32]:
        """One worker's gradient as integers; raises `InputError` for one that is not finite."""
        if not np.isfinite(gradient).all():
            raise InputError("a gradient value is not finite: training diverges, choose a smaller learning rate")
        limit = INT32.max // self.workers
        return np.clip(np.rint(np.asarray(gradient, np.float64) * self.scale), -limit, limit).astype(np.int32)

    def mean(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean gradient over all workers, (values,), from their sum, (values,)."""
        return sums / self.scale / self.workers


def exact_sum(gradients: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """The sum over workers, of the gradients' shape, in 64 bits, which fewer than 2**32 workers cannot overflow."""
    total = np.zeros(gradients[0].shape, np.int64)
    for gradient in gradients:
        total += gradient
    return total


def padded(values: NDArray[np.integer], count: int, width: int) -> NDArray[np.integer]:
    """Values as fragments, (count, width); the last one is filled up with zeros."""
    if len(values) == count * width:
        return values.reshape(count, width)
    return np.pad(values, (0, count * width - len(values))).reshape(count, width)
