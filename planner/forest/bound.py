"""What no forest exceeds, from the linear relaxation of tree packing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.aro.flow import Demand
from planner.aro.program import OPTIMAL, Program, Term
from planner.forest.model import add_tree
from planner.forest.packing import Ground
from planner.unfold import DirectedLink
from topo.errors import SolverError


def relax(ground: Ground, demands: Sequence[Demand]) -> float:
    """What no forest's rates are worth more than; a linear program, solved to its end."""
    program = Program()
    trees = [add_tree(program, demand, whole=False) for demand in demands]
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    for tree in trees:
        for link, column in tree.y.items():
            loads[link].append((1, column))
    for link, terms in loads.items():
        program.at_most(terms, ground.capacity_bps(link) / ground.unit)
    ground.worth.add_objective(program, [tree.rate for tree in trees], ground.unit)
    solution = program.solve()
    if solution.status != OPTIMAL:
        raise SolverError(f"the relaxation of tree packing has no best rates: the solver says {solution.status}")
    return solution.objective * ground.unit
