"""InArt with several trees for each PS, so that a plan comes near LP-InArt's rate, which one tree cannot.

LP-InArt splits flows at will, and the rate that the paper reports is its f. Here whole flows nearly reach that f: trees
are drawn from its fractions (`round_together`), and a linear program gives each its rate, so that all together fit the
network. The gradient is split over the trees in proportion to their rates. Few of the drawn trees are kept. Results,
which come back while other gradients still come, have room too, which costs hardly any rate.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, inf

from inakit.planner.core.fragment_ranges import split
from inakit.planner.core.method import Options
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, AggregationTree, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Resource, assign_slots
from inakit.planner.methods.inart.relaxation import Relaxed, relax, round_together, split_model
from inakit.planner.methods.tree_packing import NEGLIGIBLE, Column, Ground, distinct_loads
from inakit.planner.solvers import PROVEN_GAP, LinearProgram
from inakit.planner.trees.summed_once import SplitTask, split_equally, tree_of
from inakit.topo.errors import InputError, SolverError

DROPPED = 0.05
"""The part of the trees that is given up at once while there are too many."""


@dataclass(frozen=True)
class InartForestOptions(Options):
    """`trees`: the most for a PS, in the mean over all; `roundings` are drawn for each PS to choose from."""

    trees: int = 8
    roundings: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("trees", "roundings"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: at least 1 is expected")


@dataclass(frozen=True)
class Packing:
    """Trees, and the part of the sending rate that each has. The parts of a job sum to 1."""

    columns: tuple[Column, ...]
    parts: tuple[float, ...]


def plan(problem: Problem, options: InartForestOptions) -> Plan:
    """L-InArt's split, and several trees for it."""
    tasks, _ = split_model(problem.fabric, split_equally(problem), options.for_solver)
    return plan_trees(problem, tasks, options, "inart-forest")


def plan_trees(problem: Problem, tasks: Sequence[SplitTask], options: InartForestOptions, method: str) -> Plan:
    """Several trees for a split that is given."""
    started = time.monotonic()
    ground = Ground(problem.fabric, ())
    relaxed = relax(problem.fabric, tasks, options.for_solver)
    packing = limited(ground, tasks, pack(ground, tasks, drawn(ground, tasks, relaxed, options)), options.trees)
    planned = tuple(planned_trees(problem, ground, tasks, packing, options.window))
    rate_bps = sum(each.rate_bps for each in planned if each.job == planned[0].job)
    gap = max(0.0, relaxed.bound_bps / rate_bps - 1)
    status = OPTIMAL if gap < PROVEN_GAP else FEASIBLE
    return Plan(method, problem.fabric.name, planned, SolverOutcome(status, time.monotonic() - started, gap))


def drawn(ground: Ground, tasks: Sequence[SplitTask], relaxed: Relaxed, options: InartForestOptions) -> list[Column]:
    """The trees of `options.roundings` roundings of every task."""
    draw = random.Random(options.seed)
    columns = []
    for number, (task, part) in enumerate(zip(tasks, relaxed.tasks, strict=True)):
        roundings = (round_together(ground.fabric, task, part, draw) for _ in range(options.roundings))
        columns += [column(ground, number, tree_of(ground.fabric, task, 1, ways, onward)) for ways, onward in roundings]
    return columns


def column(ground: Ground, task: int, tree: AggregationTree) -> Column:
    """A tree of a task with its flows: gradients, and results, one on each link of the way back."""
    gradients = ground.column_of(task, tree)
    results = Counter[Resource]((parent, node) for node, parent in tree.result_parents.items())
    return replace(gradients, flows=Counter(gradients.flows) + results)


def pack(ground: Ground, tasks: Sequence[SplitTask], columns: Sequence[Column]) -> Packing:
    """The best rates of these trees, where every task has its share of one sending rate f.

    Raises `SolverError` where there are none.
    """
    program = LinearProgram()
    f = program.variable(0, inf)
    r = [program.variable(0, inf) for _ in columns]
    for loads in distinct_loads(ground, columns):
        program.at_most([(load, r[k]) for k, load in loads], 1)
    for number, task in enumerate(tasks):
        own = [(1.0, r[k]) for k, column in enumerate(columns) if column.task == number]
        program.equal([(-task.share, f), *own], 0)
    program.maximise([(1, f)])
    solution = program.solve()
    if not solution.found:
        raise SolverError(f"{len(columns)} trees have no best rates: the solver says {solution.status}")
    parts = [solution.values[k] / solution.objective for k in r]
    kept = [k for k, part in enumerate(parts) if part > NEGLIGIBLE]
    return Packing(tuple(columns[k] for k in kept), tuple(parts[k] for k in kept))


def limited(ground: Ground, tasks: Sequence[SplitTask], packing: Packing, most: int) -> Packing:
    """A packing of at most `most` trees for each task, in the mean: again and again without the smallest."""
    while (excess := len(packing.columns) - most * len(tasks)) > 0:
        given_up = min(excess, ceil(DROPPED * len(packing.columns)))
        packing = pack(ground, tasks, largest(packing, len(packing.columns) - given_up))
    return packing


def largest(packing: Packing, number: int) -> list[Column]:
    """So many trees with the largest parts, among them the largest of each task."""
    order = sorted(range(len(packing.columns)), key=lambda k: -packing.parts[k])
    first = {packing.columns[k].task: k for k in reversed(order)}
    kept = [*first.values(), *(k for k in order if k not in first.values())][:number]
    return [packing.columns[k] for k in sorted(kept)]


def planned_trees(
    problem: Problem, ground: Ground, tasks: Sequence[SplitTask], packing: Packing, window: int
) -> Iterator[PlannedTree]:
    """Every tree that gets a fragment. Shares are whole fragments, and the rate is what these allow."""
    shares = whole_fragments(problem, tasks, packing)
    carrying = [(column, share) for column, share in zip(packing.columns, shares, strict=True) if share]
    jobs = [tasks[column.task].job.number for column, _ in carrying]
    numbers = {job: count(1) for job in jobs}
    numbered = [
        replace(column.tree, number=next(numbers[job])) for job, (column, _) in zip(jobs, carrying, strict=True)
    ]
    rate_bps = highest_rate_bps(ground, carrying)
    for job, tree, (_, share) in zip(jobs, assign_slots(problem.fabric, numbered, window), carrying, strict=True):
        yield PlannedTree(job, share, share * rate_bps, tree)


def whole_fragments(problem: Problem, tasks: Sequence[SplitTask], packing: Packing) -> list[float]:
    """The trees' parts, rounded to whole fragments of their job's gradient."""
    shares: list[float] = []
    for job in problem.jobs:  # whose trees follow one another
        parts = [x for x, column in zip(packing.parts, packing.columns, strict=True) if tasks[column.task].job is job]
        total = problem.fragment.count(job.gradient_bytes)
        shares += [len(fragments) / total for fragments in split(total, parts)]
    return shares


def highest_rate_bps(ground: Ground, carrying: Sequence[tuple[Column, float]]) -> float:
    """The sending rate at which trees with these shares of it fit the network."""
    loads: dict[Resource, float] = defaultdict(float)
    for column, share in carrying:
        for resource, flows in column.flows.items():
            loads[resource] += share * flows
    return min(ground.capacity_bps(resource) / load for resource, load in loads.items())
