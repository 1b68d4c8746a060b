"""Gradients as arrays of 32-bit integers, and their exact sums.

A gradient of floats becomes integers by a per-job scale (fixed point), which one factor undoes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from planner.core.problem import Job
from topo.errors import InputError

INT32 = np.iinfo(np.int32)


class Gradients(Protocol):
    """Where gradients come from. The same arguments give the same values."""

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """Gradient of the job's worker (counted from 0): `job.gradient_bytes / 4` values."""


@runtime_checkable
class Learner(Gradients, Protocol):
    """Gradients that depend on the sums of earlier iterations, as in training: asked for once, in order."""

    def take(self, job: Job, worker: int, iteration: int, sums: NDArray[np.int64]) -> None:
        """The sums that the worker holds when an iteration is over; told before `of` is asked for the next."""


class RandomGradients:
    """Uniform in [-magnitude, magnitude), different for each job, worker and iteration."""

    def __init__(self, seed: int = 0, magnitude: int = 1 << 20) -> None:
        if not 0 < magnitude <= 1 << 31:
            raise InputError(f"magnitude {magnitude}: values are 32-bit integers, choose from 1 to {1 << 31}")
        self.seed = seed
        self.magnitude = magnitude

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        random = np.random.default_rng((self.seed, job.number, worker, iteration))
        return random.integers(-self.magnitude, self.magnitude, job.gradient_bytes // 4, np.int32)


class FileGradients:
    """From a .npy file: one row per worker, or one row for all; the same in every iteration.

    Floats are scaled by `scale`, or where it is None by the finest one that no sum overflows with.
    """

    def __init__(self, path: Path, scale: float | None = None) -> None:
        try:
            self.values = np.atleast_2d(np.load(path, mmap_mode="r"))
        except (OSError, ValueError) as error:
            raise InputError(f"gradient file '{path}' cannot be read: {error}; save it with numpy.save") from error
        if self.values.ndim != 2 or not self.values.size:
            raise InputError(f"gradient file '{path}' has shape {self.values.shape}: expected (workers, values)")
        self.scale = scale

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        del iteration
        row = self.values[worker % len(self.values)]
        count = job.gradient_bytes // 4
        if len(row) < count:
            raise InputError(f"job {job.number} sends {count} values, the gradient file has {len(row)} per worker")
        if not np.issubdtype(row.dtype, np.floating):
            return exact_int32(row[:count])
        return to_fixed(row[:count], self.scale or scale_for(float(np.abs(self.values).max()), len(job.workers)))


@dataclass(frozen=True)
class FixedPoint:
    """A job's fixed point: no sum over its `workers` leaves 32 bits, whatever their gradients are.

    Values beyond the clip that `scale` was chosen for are cut to it. Others are rounded, by at most 1 / (2 scale),
    which with the clip c and n workers is less than c n / (2**31 - 1). Sums are exact, so that bounds their mean too.
    """

    scale: float
    workers: int

    @classmethod
    def clipping_at(cls, clip: float, workers: int) -> Self:
        """With the finest scale at which `workers` values up to `clip` fit. Raises `InputError`."""
        if not 0 < clip < math.inf:
            raise InputError(f"clip {clip}: the largest gradient value to be kept is expected, such as 1.0")
        return cls(scale_for(clip, workers), workers)

    @property
    def error(self) -> float:
        """How far a value of the mean may be off where no worker's was clipped."""
        return 0.5 / self.scale

    def round(self, gradient: NDArray[np.floating]) -> NDArray[np.int32]:
        """One worker's gradient as integers; raises `InputError` for one that is not finite."""
        if not np.isfinite(gradient).all():
            raise InputError("a gradient value is not finite: training diverges, choose a smaller learning rate")
        limit = INT32.max // self.workers
        return np.clip(np.rint(np.asarray(gradient, np.float64) * self.scale), -limit, limit).astype(np.int32)

    def mean(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean gradient over all workers, of their sum."""
        return from_fixed(sums, self.scale) / self.workers


def scale_for(largest: float, workers: int) -> float:
    """The greatest power of two by which values up to `largest` sum over `workers` without leaving int32."""
    return 2.0 ** math.floor(math.log2(INT32.max / (largest * workers))) if largest else 1.0


def to_fixed(values: NDArray[np.floating], scale: float) -> NDArray[np.int32]:
    """Round `values * scale` to int32; raises `InputError` where one does not fit."""
    return exact_int32(np.rint(np.asarray(values, np.float64) * scale))


def from_fixed(sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Undo `to_fixed` on a sum."""
    return sums / scale


def exact_int32(values: NDArray[np.generic]) -> NDArray[np.int32]:
    numbers = np.asarray(values)
    if not np.isfinite(numbers).all() or (numbers < INT32.min).any() or (numbers > INT32.max).any():
        raise InputError("a gradient value is not finite or leaves the 32-bit range: choose a smaller scale")
    return numbers.astype(np.int32)


def exact_sum(gradients: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """The sum over workers, in 64 bits, which no number of workers below 2**32 overflows."""
    total = np.zeros(len(gradients[0]), np.int64)
    for gradient in gradients:
        total += gradient
    return total
