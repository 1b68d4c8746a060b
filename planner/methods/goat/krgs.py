"""KRGS, GOAT's Algorithm 1: the relaxation of GINA, rounded at random twice, and then repaired.

The paper's k(g) is the rounded-down sum of x~, and a sub-model has as many knapsacks, of which each chooses a switch.
Two places do not hold as printed. Line 17's probabilities can sum to more than 1, where a worker's switches of several
knapsacks are all chosen: they are then divided by their sum. And Lemma 4 asks for the best packing, which is hard to
find; the packing of `knapsacks` is enough for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from inakit.planner.core.solving import SolverOptions, SolverOutcome
from inakit.planner.methods.goat.gina import OBJECTIVES, FloatArray, Fractions, Gina, IntArray, Schedule, value
from inakit.planner.methods.goat.model import relax
from inakit.planner.methods.goat.repair import repair
from inakit.planner.solvers.solve import PROVEN_GAP
from inakit.topo.errors import InputError, unknown_name

TINY = 1e-9
"""What counts as 0, beside sums of fractions."""


@dataclass(frozen=True)
class KrgsOptions:
    """`roundings` are drawn and repaired, and the best one is taken. `objective` is a name of `OBJECTIVES`."""

    seed: int = 0
    roundings: int = 10
    objective: str = "traffic"
    solver: SolverOptions = field(default_factory=SolverOptions)

    def __post_init__(self) -> None:
        if self.roundings < 1:
            raise InputError(f"{self.roundings} roundings: at least 1 is expected")
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)


def schedule(gina: Gina, options: KrgsOptions) -> tuple[Schedule, SolverOutcome]:
    """A schedule within every switch's memory, and its gap to the relaxation."""
    started = time.monotonic()
    costs = OBJECTIVES[options.objective](gina)
    fractions, bound = relax(gina, costs, options.solver)
    draw = np.random.default_rng(options.seed)
    drawn = (round_off(gina, fractions, draw) for _ in range(options.roundings))
    best = min((repair(gina, one, costs) for one in drawn), key=lambda found: value(gina, found, costs))
    gap = max(0.0, value(gina, best, costs) - bound) / max(abs(bound), TINY)
    status = "optimal" if gap < PROVEN_GAP else "feasible"
    return best, SolverOutcome(status, time.monotonic() - started, gap, options.solver.solver)


def round_off(gina: Gina, fractions: Fractions, draw: np.random.Generator) -> Schedule:
    """Steps 2 and 3 of Algorithm 1. Switches may get more than their memory (Theorem 6 says how much)."""
    x = np.zeros(fractions.x.shape, bool)
    y = np.zeros((len(gina.group_of), len(gina.sizes)), np.int64)
    for g in range(len(gina.sizes)):
        switches = fractions.x[g, : gina.server]
        for sack in knapsacks(switches):
            x[g, draw.choice(sack, p=switches[sack] / switches[sack].sum())] = True
        y[:, g] = draw_nodes(gina, fractions, g, np.flatnonzero(x[g]), draw)
    x[np.arange(len(x)), gina.server] = (y == gina.server).any(axis=0)
    return Schedule(x, y)


def knapsacks(fractions: FloatArray) -> list[IntArray]:
    """The indices of the positive fractions in floor(sum) knapsacks, the largest first, each where the sum is least.

    Then every knapsack has at least 0.5, as Lemma 4 wants. If one had less, then so had every other one before its last
    fraction, if it has several; and as that fraction is no larger than those before it, the sum stays below 1, as it
    does for a knapsack with a single one. All k together would have less than k.
    """
    sacks: list[list[int]] = [[] for _ in range(int(fractions.sum() + TINY))]
    sums = np.zeros(len(sacks))
    if not sacks:
        return []
    for index in np.argsort(-fractions, kind="stable"):
        if fractions[index] > TINY:
            least = int(sums.argmin())
            sacks[least].append(int(index))
            sums[least] += fractions[index]
    return [np.array(sack) for sack in sacks]


def draw_nodes(gina: Gina, fractions: Fractions, g: int, chosen: IntArray, draw: np.random.Generator) -> IntArray:
    """Step 3: the node of every worker for sub-model g, drawn among its chosen switches and the PS."""
    odds = np.minimum(1.0, fractions.y[:, g, chosen] / np.maximum(fractions.x[g, chosen], TINY))
    odds /= np.maximum(1.0, odds.sum(axis=1, keepdims=True))
    bounds = odds.cumsum(axis=1)[gina.group_of]
    drawn = (draw.random(len(bounds))[:, None] >= bounds).sum(axis=1)
    nodes: IntArray = np.append(chosen, gina.server)[drawn]
    return nodes
