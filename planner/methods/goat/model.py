"""GINA's model, Eqs. (1) and (4), exact and relaxed: programs whose variables say where sub-models are summed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pulp

from inakit.planner.core.solving import SolverOptions, SolverOutcome
from inakit.planner.methods.goat.gina import Costs, Fractions, Gina, Schedule
from inakit.planner.solvers.solve import solve


@dataclass(frozen=True)
class GinaModel:
    """The program, and its variables."""

    program: pulp.LpProblem
    x: dict[tuple[int, int], Any]
    y: dict[tuple[int, int, int], Any]


def build(gina: Gina, costs: Costs, *, relaxed: bool) -> GinaModel:
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
    return GinaModel(program, x, y)


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


def extract(gina: Gina, model: GinaModel) -> Fractions:
    """The values of x and y, within 0 and 1."""
    x = np.zeros((len(gina.sizes), len(gina.memory)))
    y = np.zeros((len(gina.workers), *x.shape))
    for key, variable in model.x.items():
        x[key] = variable.varValue
    for way, variable in model.y.items():
        y[way] = variable.varValue
    return Fractions(x.clip(0, 1), y.clip(0, 1))
