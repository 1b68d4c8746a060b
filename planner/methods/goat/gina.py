"""GINA, the problem of GOAT's section III: where a sub-model's gradients are summed, and where workers send theirs.

Both of its objectives have one form: a worker's gradient costs `Costs.send` a byte, a sum `Costs.forward`. Eq. (1)
minimises the traffic. Eq. (4) maximises what aggregation saves of it; the paper holds that this is the same. It is not:
the difference, Eq. (2), is no constant, because it contains y_w^s D_w(s). So Eq. (4) takes no notice of how far workers
have to send, and prefers the switches that are furthest from the PS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Gina:
    """Sub-models g, groups of workers w, and nodes s, of which the PS (alpha) is the last.

    Workers that are equally far from every node form one group of `workers[w]`: an optimum sends them all alike.
    `distance[w, s]` is D_w(s) in links, infinite where there is no way; `onward[s]` is D_s(alpha), 0 for the PS.
    """

    sizes: FloatArray
    """b(g), in bytes or fragments."""
    memory: FloatArray
    """B(s), in the same unit; that of the PS is infinite."""
    workers: IntArray
    distance: FloatArray
    onward: FloatArray

    def __post_init__(self) -> None:
        groups, nodes = len(self.workers), len(self.memory)
        if self.distance.shape != (groups, nodes) or self.onward.shape != (nodes,):
            raise InputError(f"distances {self.distance.shape} and {self.onward.shape}: expected {(groups, nodes)}")
        if not np.isfinite(self.distance[:, -1]).all() or self.onward[-1] or np.isfinite(self.memory[-1]):
            raise InputError("the last node is the PS: in reach of all workers, 0 links from itself, without a limit")
        if not (self.sizes > 0).all():
            raise InputError("a sub-model of no size: leave it out")

    @property
    def server(self) -> int:
        """The PS's index among the nodes."""
        return len(self.memory) - 1

    @property
    def group_of(self) -> IntArray:
        """The group of each worker."""
        return np.repeat(np.arange(len(self.workers)), self.workers)


@dataclass(frozen=True)
class Costs:
    """What a byte costs: `send[w, s]` from a worker to a node that sums it, `forward[s]` of a sum on to the PS."""

    send: FloatArray
    forward: FloatArray


def traffic(gina: Gina) -> Costs:
    """The costs of Eq. (1): a byte costs the links that it takes."""
    return Costs(gina.distance, gina.onward)


def unsaved(gina: Gina) -> Costs:
    """The costs of Eq. (4): what aggregation saves, as its negative."""
    saved = np.broadcast_to(-gina.onward, gina.distance.shape)
    return Costs(np.where(np.isfinite(gina.distance), saved, np.inf), gina.onward)


OBJECTIVES: dict[str, Callable[[Gina], Costs]] = {"traffic": traffic, "saved": unsaved}
"""The objectives by name."""


@dataclass(frozen=True)
class Schedule:
    """A solution: `x[g, s]` says which nodes sum a sub-model, `y[w, g]` which of them a worker (not a group) uses."""

    x: BoolArray
    y: IntArray


@dataclass(frozen=True)
class Fractions:
    """A solution of the relaxation: x~[g, s], and y~[w, g, s] of each group's workers."""

    x: FloatArray
    y: FloatArray


def value(gina: Gina, schedule: Schedule, costs: Costs | None = None) -> float:
    """The objective of a schedule: by default Eq. (1), bytes times links."""
    costs = costs or traffic(gina)
    sent = costs.send[gina.group_of[:, None], schedule.y].sum(axis=0)
    return float(gina.sizes @ (sent + schedule.x @ costs.forward))


def used_memory(gina: Gina, x: NDArray[Any]) -> FloatArray:
    """What each node's sub-models take."""
    used: FloatArray = gina.sizes @ x
    return used


def fits(gina: Gina, x: NDArray[Any]) -> bool:
    """Whether no node's sub-models take more than its memory."""
    return bool((used_memory(gina, x) <= gina.memory * (1 + 1e-9)).all())
