"""What no forest exceeds, from the linear relaxation of tree packing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from planner.aro.flow import Demand
from planner.aro.program import INFEASIBLE, Program, Term
from planner.forest.model import add_tree
from planner.forest.packing import Ground
from planner.unfold import DirectedLink
from topo.errors import SolverError


@dataclass(frozen=True)
class Relaxed:
    """The rate of every task in the relaxation, and what these are worth: no forest is worth more."""

    rates_bps: tuple[float, ...]
    value: float


def relax(ground: Ground, demands: Sequence[Demand], time_limit_s: float) -> Relaxed:
    """Raises `SolverError` when the time is over."""
    program = Program()
    trees = [add_tree(program, demand, whole=False) for demand in demands]
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    for tree in trees:
        for link, column in tree.y.items():
            loads[link].append((1, column))
    for link, terms in loads.items():
        program.at_most(terms, ground.capacity_bps(link) / ground.unit)
    ground.worth.add_objective(program, [tree.rate for tree in trees], ground.unit)
    solution = program.solve(time_limit_s)
    if not solution.found:
        why = "there are none" if solution.status == INFEASIBLE else f"none found in {time_limit_s:.3g} s"
        raise SolverError(f"the relaxation of tree packing has no rates, {why}: raise the time limit")
    rates = tuple(solution.values[tree.rate] * ground.unit for tree in trees)
    return Relaxed(rates, solution.objective * ground.unit)
