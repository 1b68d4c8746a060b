"""GINA, the problem of GOAT's section III: where a sub-model's gradients are summed, and where workers send theirs.

Both of its objectives have one form: a worker's gradient costs `Costs.send` a byte, a sum `Costs.forward`. Eq. (1)
minimises the traffic. Eq. (4) maximises what aggregation saves of it; the paper holds that this is the same. It is not:
the difference, Eq. (2), is no constant, because it contains y_w^s D_w(s). So Eq. (4) takes no notice of how far workers
have to send, and prefers the switches that are furthest from the PS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from planner.core.solving import SolverOptions, SolverOutcome
from planner.solvers.solve import solve
from topo.errors import InputError

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


# ---- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """The program, and its variables."""

    program: pulp.LpProblem
    x: dict[tuple[int, int], Any]
    y: dict[tuple[int, int, int], Any]


def build(gina: Gina, costs: Costs, *, relaxed: bool) -> Model:
    """The program of Eq. (1) or (4), by its costs. Ways that are no better than the one to the PS are left out."""
    program = pulp.LpProblem("gina", pulp.LpMinimize)

    # Sets
    G, W, alpha = range(len(gina.sizes)), range(len(gina.workers)), gina.server  # noqa: N806
    S = range(alpha)  # noqa: N806
    ways = list(useful_ways(gina, costs))

    # Variables. Where x is whole, some whole y is best, so y may be continuous.
    category = pulp.LpContinuous if relaxed else pulp.LpBinary
    x = {(g, s): program.add_variable(f"x_{g}_{s}", 0, 1, category) for g in G for s in (*S, alpha)}
    y = {(w, g, s): program.add_variable(f"y_{w}_{g}_{s}", 0, 1) for g in G for w, s in ways}

    # Objective
    b, n = gina.sizes.tolist(), gina.workers.tolist()
    sent = pulp.lpSum(b[g] * n[w] * float(costs.send[w, s]) * y[w, g, s] for w, g, s in y)
    program += sent + pulp.lpSum(b[g] * float(costs.forward[s]) * x[g, s] for g in G for s in S), "cost"

    # Constraints
    for g in G:
        program += pulp.lpSum(x[g, s] for s in (*S, alpha)) >= 1, f"summed_{g}"
        for w in W:
            nodes = [s for v, s in ways if v == w]
            program += pulp.lpSum(y[w, g, s] for s in nodes) == 1, f"one_node_{w}_{g}"
    for (w, g, s), used in y.items():
        program += used <= x[g, s], f"where_it_is_summed_{w}_{g}_{s}"
    for s in S:
        program += pulp.lpSum(b[g] * x[g, s] for g in G) <= float(gina.memory[s]), f"memory_{s}"
    return Model(program, x, y)


def useful_ways(gina: Gina, costs: Costs) -> Iterator[tuple[int, int]]:
    """The pairs (group, node) of which the node is cheaper for the group than the PS, and each group with the PS."""
    for w in range(len(gina.workers)):
        for s in range(gina.server):
            if costs.send[w, s] < costs.send[w, gina.server]:
                yield w, s
        yield w, gina.server


def relax(gina: Gina, costs: Costs, options: SolverOptions) -> tuple[Fractions, float]:
    """The optimum of the linear relaxation, and its value: no schedule has a lower one.

    Sub-models of equal size are joined into one. What is best for it is, for each of them, also an optimum of Eq. (1)
    or (4).
    """
    sizes, place, counts = np.unique(gina.sizes, return_inverse=True, return_counts=True)
    joined = replace(gina, sizes=sizes * counts)
    model = build(joined, costs, relaxed=True)
    solve(model.program, options)
    found = extract(joined, model)
    return Fractions(found.x[place], found.y[:, place]), float(pulp.value(model.program.objective))


def optimum(gina: Gina, costs: Costs, options: SolverOptions) -> tuple[Schedule, SolverOutcome]:
    """The exact solution, for small cases."""
    model = build(gina, costs, relaxed=False)
    outcome = solve(model.program, options)
    found = extract(gina, model)
    return Schedule(found.x > 0.5, found.y.argmax(axis=2)[gina.group_of]), outcome


def extract(gina: Gina, model: Model) -> Fractions:
    """The values of x and y, within 0 and 1."""
    x = np.zeros((len(gina.sizes), len(gina.memory)))
    y = np.zeros((len(gina.workers), *x.shape))
    for key, variable in model.x.items():
        x[key] = variable.varValue
    for way, variable in model.y.items():
        y[way] = variable.varValue
    return Fractions(x.clip(0, 1), y.clip(0, 1))
