"""GINA, the problem of GOAT's section III, and two algorithms that decide where sub-models' gradients are summed: KRGS
as printed, and ours, which repairs roundings of KRGS by a local search.

Both objectives have one form: a byte of a worker's gradient costs `Costs.send`, a byte of a sum `Costs.forward`. Eq.
(1) minimises the traffic. Eq. (4) maximises the traffic that aggregation saves; the paper claims that both are
equivalent. They are not: the difference, Eq. (2), is not constant, because it contains y_w^s D_w(s). So Eq. (4) ignores
how far workers have to send, and prefers the switches that are furthest from the PS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from inakit.planner.core.plan import OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.solvers import proven, solve
from inakit.topo.errors import InputError, SolverError, unknown_name

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Gina:
    """Sub-models g, groups of workers w, and nodes s, of which the PS (alpha) is the last.

    Workers that are equally far from every node form one group of `workers[w]`: an optimum sends them all alike.
    `distance[w, s]` is D_w(s) in links, infinite if there is no way; `onward[s]` is D_s(alpha), 0 for the PS.
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
            raise InputError("the last node must be the PS: reachable by all workers, 0 links from itself, unlimited")
        if not (self.sizes > 0).all():
            raise InputError("a sub-model of no size: omit it")

    @property
    def server(self) -> int:
        """The PS's index among the nodes."""
        return len(self.memory) - 1

    @property
    def group_of(self) -> IntArray:
        return np.repeat(np.arange(len(self.workers)), self.workers)


@dataclass(frozen=True)
class Costs:
    """The cost per byte: `send[w, s]` from a worker to a node that sums it, `forward[s]` for a sum from there to the
    PS.
    """

    send: FloatArray
    forward: FloatArray


def traffic(gina: Gina) -> Costs:
    """The costs of Eq. (1): a byte costs the number of its links."""
    return Costs(gina.distance, gina.onward)


def unsaved(gina: Gina) -> Costs:
    """The costs of Eq. (4): the negative of the saving by aggregation."""
    return Costs(np.where(np.isfinite(gina.distance), -gina.onward, np.inf), gina.onward)


OBJECTIVES: dict[str, Callable[[Gina], Costs]] = {"traffic": traffic, "saved": unsaved}
"""The objectives by name."""


@dataclass(frozen=True)
class GradientSchedule:
    """A solution: `x[g, s]` are the nodes that sum a sub-model, `y[w, g]` the node that a worker (not a group) uses."""

    x: BoolArray
    y: IntArray


@dataclass(frozen=True)
class Fractions:
    """A solution of the relaxation: x~[g, s], and y~[w, g, s] of each group's workers."""

    x: FloatArray
    y: FloatArray


def value(gina: Gina, schedule: GradientSchedule, costs: Costs | None = None) -> float:
    """The objective of a schedule: by default Eq. (1), bytes times links."""
    costs = costs or traffic(gina)
    sent = costs.send[gina.group_of[:, None], schedule.y].sum(axis=0)
    return float(gina.sizes @ (sent + schedule.x @ costs.forward))


def fits(gina: Gina, x: NDArray[Any]) -> bool:
    """Whether every node has memory for its sub-models."""
    return bool((gina.sizes @ x <= gina.memory * (1 + 1e-9)).all())


# -- GINA's model, Eqs. (1) and (4), exact and relaxed: programs whose variables say where sub-models are summed.


def solved(
    gina: Gina, costs: Costs, options: SolverOptions, *, relaxed: bool
) -> tuple[Fractions, float, SolverOutcome]:
    """The solution of Eq. (1) or (4), given its costs, and its value. Ways no better than the way to the PS are
    omitted.

    Raises `SolverError` for a relaxation that is not solved in its time: what there is of it bounds nothing.
    """
    program = pulp.LpProblem("gina", pulp.LpMinimize)

    # Sets
    G, W, alpha = range(len(gina.sizes)), range(len(gina.workers)), gina.server  # noqa: N806
    S = range(alpha)  # noqa: N806
    ways = [(w, s) for w in W for s in (*S, alpha) if s == alpha or costs.send[w, s] < costs.send[w, alpha]]

    # Variables. If x is integral, some integral y is optimal, so y can be continuous.
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

    outcome = solve(program, options)
    if relaxed and outcome.status != OPTIMAL:
        raise SolverError(f"GOAT's linear program is not solved in {options.time_limit_s:g} s: raise the time limit")
    found = Fractions(np.zeros((len(G), alpha + 1)), np.zeros((len(W), len(G), alpha + 1)))
    for variables, values in ((x, found.x), (y, found.y)):
        for place, variable in variables.items():
            values[place] = min(max(variable.varValue, 0.0), 1.0)
    return found, float(pulp.value(program.objective)), outcome


def relax(gina: Gina, costs: Costs, options: SolverOptions) -> tuple[Fractions, float]:
    """The optimum of the linear relaxation, and its value, a lower bound for every schedule.

    Sub-models of equal size are joined into one. Its optimum, used for each of them, is also an optimum of Eq. (1) or
    (4).
    """
    sizes, place, counts = np.unique(gina.sizes, return_inverse=True, return_counts=True)
    found, least, _ = solved(replace(gina, sizes=sizes * counts), costs, options, relaxed=True)
    return Fractions(found.x[place], found.y[:, place]), least


def optimum(gina: Gina, costs: Costs, options: SolverOptions) -> tuple[GradientSchedule, SolverOutcome]:
    found, _, outcome = solved(gina, costs, options, relaxed=False)
    return GradientSchedule(found.x > 0.5, found.y.argmax(axis=2)[gina.group_of]), outcome


# -- Repair after KRGS's rounding: no switch may exceed its memory, and no worker should pass a cheaper sum.
#
# Given the nodes that sum a sub-model, the cheapest node is the best for every worker, so only x is searched. Sums are
# removed from switches that are too full, first those whose loss costs least per byte. Then single sums are added,
# dropped, moved and exchanged as long as this lowers the cost.

LEAST_GAIN = 1e-9
"""Relative: a smaller gain is rounding."""
PASSES = 20
"""The maximum number of passes over all changes."""

Change = tuple[tuple[int, int], ...]
"""Pairs (g, s) of which x changes between 0 and 1."""


def repair(gina: Gina, schedule: GradientSchedule, costs: Costs) -> GradientSchedule:
    """A schedule within all memory that no change of `LocalSearch.changes` makes cheaper."""
    search = LocalSearch(gina, costs, schedule.x)
    for s in range(gina.server):
        search.turn(search.made_room(s, ()))
    for _ in range(PASSES):  # every change that pays is made at once
        paid = [search.turn(change) for change in search.changes() if search.pays(change)]
        if not paid and not [search.turn(change) for change in search.removals() if search.saves_nothing(change)]:
            break
    return search.schedule()


class LocalSearch:
    """The nodes that sum each sub-model, the cost of each sub-model, and the remaining memory."""

    def __init__(self, gina: Gina, costs: Costs, x: BoolArray) -> None:
        self.gina, self.costs = gina, costs
        self.known: dict[bytes, float] = {}
        self.x = x.copy()
        self.x[:, gina.server] = True  # the PS costs nothing and is always there
        self.cost = [self.cost_of(g, self.x[g]) for g in range(len(x))]
        self.room = gina.memory - gina.sizes @ self.x
        self.least_gain = LEAST_GAIN * max(map(abs, self.cost))

    def cost_of(self, g: int, row: BoolArray) -> float:
        """A sub-model's cost if the nodes of `row` sum it. The cost per byte is cached."""
        key = row.tobytes()
        if key not in self.known:
            sent = self.gina.workers @ self.costs.send[:, row].min(axis=1)
            self.known[key] = float(sent + self.costs.forward[row].sum())
        return float(self.gina.sizes[g]) * self.known[key]

    def made_room(self, s: int, change: Change) -> Change:
        """The change, and the sums that switch s then has to give up: those with the least loss per byte first."""
        held = np.flatnonzero(self.x[:, s]).tolist()
        for g in sorted(held, key=lambda g: self.loss(g, s)):
            if self.has_room(change, s):
                break
            change = (*change, (g, s))
        return change

    def loss(self, g: int, s: int) -> float:
        return float(-self.gain(((g, s),)) / self.gina.sizes[g])

    def changes(self) -> Iterator[Change]:
        """All changes: remove a sum; add one and make room for it; move one to another switch; exchange two."""
        models, switches = range(len(self.x)), range(self.gina.server)
        for g, s in product(models, switches):
            yield ((g, s),) if self.x[g, s] else self.with_others_moved(self.made_room(s, ((g, s),)))
        placed = np.argwhere(self.x[:, : self.gina.server]).tolist()
        yield from (((g, s), (g, t)) for g, s in placed for t in switches if t != s)
        for (g, s), (h, t) in product(placed, placed):
            if g < h and s != t and not (self.x[g, t] or self.x[h, s]):
                yield (g, s), (g, t), (h, t), (h, s)

    def removals(self) -> Iterator[Change]:
        yield from (((g, s),) for g, s in np.argwhere(self.x[:, : self.gina.server]).tolist())

    def saves_nothing(self, change: Change) -> bool:
        """Whether sums can be removed at no cost. They can hide that others in their place would save something."""
        return self.gain(change) >= -self.least_gain

    def with_others_moved(self, change: Change) -> Change:
        """The change, and for each removed sum the best other switch with room, if it is better than none."""
        for g, s in change[1:]:
            places = [(g, t) for t in range(self.gina.server) if t != s and not self.x[g, t]]
            free = [place for place in places if self.has_room((*change, place), place[1])]
            change = max([change, *((*change, place) for place in free)], key=self.gain)
        return change

    def pays(self, change: Change) -> bool:
        return self.gain(change) > self.least_gain and all(self.has_room(change, s) for _, s in change)

    def has_room(self, change: Change, s: int) -> bool:
        """Whether switch s has memory for all its sums after the change."""
        taken = sum(self.gina.sizes[g] * (-1 if self.x[g, s] else 1) for g, t in change if t == s)
        return bool(self.room[s] - taken >= -LEAST_GAIN * self.gina.memory[s])

    def gain(self, change: Change) -> float:
        return sum(self.cost[g] - self.cost_of(g, row) for g, row in self.turned(change).items())

    def turned(self, change: Change) -> dict[int, BoolArray]:
        """For each sub-model, its row of x after the change."""
        rows: dict[int, BoolArray] = {}
        for g, s in change:
            row = rows.setdefault(g, self.x[g].copy())
            row[s] = not row[s]
        return rows

    def turn(self, change: Change) -> Change:
        for g, row in self.turned(change).items():
            self.cost[g] = self.cost_of(g, row)
            self.x[g] = row
        for g, s in change:
            self.room[s] += self.gina.sizes[g] * (-1 if self.x[g, s] else 1)
        return change

    def schedule(self) -> GradientSchedule:
        """The schedule with every worker at its cheapest node, without unused sums."""
        group_y = np.where(self.x[None], self.costs.send[:, None, :], np.inf).argmin(axis=2)
        y = group_y[self.gina.group_of]
        x = np.zeros_like(self.x)
        x[np.arange(len(x))[None, :], y] = True
        return GradientSchedule(x, y)


# -- KRGS, GOAT's Algorithm 1: the relaxation of GINA, rounded at random twice.
#
# The paper's k(g) is the rounded-down sum of x~; a sub-model has this number of knapsacks, and each chooses a switch.
# Two places do not hold as printed. Line 17's probabilities can sum to more than 1 if a worker's switches of several
# knapsacks are all chosen: they are then divided by their sum. And Lemma 4 asks for the best packing, which is hard to
# find; the packing of `knapsacks` is sufficient for it.

TINY = 1e-9
"""Smaller values count as 0 beside sums of fractions."""


@dataclass(frozen=True)
class KrgsOptions:
    """`objective` is a name of `OBJECTIVES`. `schedule` repairs `roundings` of them and keeps the best."""

    seed: int = 0
    roundings: int = 10
    objective: str = "traffic"
    solver: SolverOptions = field(default_factory=SolverOptions)

    def __post_init__(self) -> None:
        if self.roundings < 1:
            raise InputError(f"{self.roundings} roundings: give at least 1")
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)


def krgs(gina: Gina, options: KrgsOptions) -> tuple[GradientSchedule, Fractions]:
    """Algorithm 1 as printed: one rounding of a vertex of the relaxation, and the vertex.

    The paper relaxes Eq. (4), objective `saved`. Switches can exceed their memory (Theorem 6).
    """
    fractions, _, _ = solved(gina, OBJECTIVES[options.objective](gina), options.solver, relaxed=True)
    return round_off(gina, fractions, np.random.default_rng(options.seed)), fractions


def admitted(gina: Gina, schedule: GradientSchedule) -> GradientSchedule:
    """The schedule with sums only where memory holds them, the first sub-models first; y stays."""
    x = np.zeros_like(schedule.x)
    room = gina.memory.copy()
    for g, nodes in enumerate(schedule.y.T):
        for s in np.unique(nodes):
            x[g, s] = gina.sizes[g] <= room[s] * (1 + TINY)
            room[s] -= gina.sizes[g] * x[g, s]
    return GradientSchedule(x, schedule.y)


@dataclass(frozen=True)
class Overloads:
    """The results of one rounding, relative to what is allowed or to the relaxation.

    - `memory[s]`: the memory that a switch needs, over that which it has (Theorem 6)
    - `switches[s]`: bytes that workers send to a switch, over those of the relaxation; 0 if it has none
    - `server`: bytes that arrive at the PS, over those of the relaxation
    - `traffic`: Eq. (1) over that of the relaxation (Theorem 7)
    - `fractions`: the vertex of the relaxation that was rounded
    """

    memory: FloatArray
    switches: FloatArray
    server: float
    traffic: float
    fractions: Fractions


def overloads(gina: Gina, options: KrgsOptions) -> Overloads:
    """The overloads of one rounding by KRGS as printed, drawn by the options' seed."""
    rounded, fractions = krgs(gina, options)
    found = amounts(gina, rounded.x, (rounded.y[:, :, None] == np.arange(len(gina.memory))).astype(float))
    relaxed = amounts(gina, fractions.x, fractions.y[gina.group_of])
    ratios = [own / np.maximum(least, TINY) for own, least in zip(found[1:], relaxed[1:], strict=True)]
    return Overloads(found[0] / gina.memory[:-1], ratios[0], float(ratios[1]), float(ratios[2]), fractions)


def amounts(gina: Gina, x: NDArray[Any], y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The memory that sums need and the bytes that workers send, by switch; bytes at the PS; and Eq. (1)'s traffic.

    `y[w, g, s]` is that of each worker, not of a group.
    """
    sent = np.einsum("wgs,g->ws", y, gina.sizes)
    memory = gina.sizes @ x
    links = np.where(sent > 0, gina.distance[gina.group_of], 0.0)
    at_server = memory[:-1].sum() + sent[:, -1].sum()
    return memory[:-1], sent.sum(axis=0)[:-1], at_server, (sent * links).sum() + memory @ gina.onward


def theorem_6(gina: Gina) -> float:
    """The factor by which a switch exceeds its memory with a probability of at most 1 / |S|, by Eqs. (16) to (18).

    It is 2 (rho + 1), with the paper's rho = log |S| / nu + 2, or 1 where nu >= 3 log |S|.
    """
    count = np.log(gina.server)
    nu = 2 * gina.memory[:-1].min() / gina.sizes.max()
    return float(4 if nu >= 3 * count else 2 * (count / nu + 3))


def schedule(gina: Gina, options: KrgsOptions) -> tuple[GradientSchedule, SolverOutcome]:
    """Ours: roundings of KRGS, each repaired; the best schedule within every switch's memory, and its gap to the
    relaxation.
    """
    started = time.monotonic()
    costs = OBJECTIVES[options.objective](gina)
    fractions, bound = relax(gina, costs, options.solver)
    draw = np.random.default_rng(options.seed)
    drawn = (round_off(gina, fractions, draw) for _ in range(options.roundings))
    best = min((repair(gina, one, costs) for one in drawn), key=lambda found: value(gina, found, costs))
    gap = max(0.0, value(gina, best, costs) - bound) / max(abs(bound), TINY)
    return best, proven(gap, started, options.solver.solver)


def round_off(gina: Gina, fractions: Fractions, draw: np.random.Generator) -> GradientSchedule:
    """Steps 2 and 3 of Algorithm 1. Switches can exceed their memory (Theorem 6 bounds the excess)."""
    x = np.zeros(fractions.x.shape, bool)
    y = np.zeros((len(gina.group_of), len(gina.sizes)), np.int64)
    for g in range(len(gina.sizes)):
        switches = fractions.x[g, : gina.server]
        for sack in knapsacks(switches):
            x[g, draw.choice(sack, p=switches[sack] / switches[sack].sum())] = True
        y[:, g] = draw_nodes(gina, fractions, g, np.flatnonzero(x[g]), draw)
    x[np.arange(len(x)), gina.server] = (y == gina.server).any(axis=0)
    return GradientSchedule(x, y)


def knapsacks(fractions: FloatArray) -> list[IntArray]:
    """The indices of the positive fractions in floor(sum) knapsacks, the largest first, each where the sum is least.

    Then every knapsack has at least 0.5, as Lemma 4 requires. If one had less, then so had every other one before its
    last fraction, if it has several; and as that fraction is no larger than those before it, the sum stays below 1, as
    it does for a knapsack with a single one. All k together would have less than k.
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
