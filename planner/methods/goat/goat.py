"""GOAT: the gradient in sub-models, each summed only at switches that have memory for all of it (KRGS).

A switch's memory is its aggregator slots, and a sub-model takes one for each of its fragments. Every gradient is summed
at most once, as in `inakit.planner.trees.summed_once`. To a switch that is on none of their shortest paths, gradients
make a detour, if up-down routing allows them to continue from there. Sub-models for which no switch has memory go to
the PS unaggregated, as Eq. (1) allows.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.models import find_model
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree, SolverOutcome, split
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.goat.krgs import OBJECTIVES, Gina, GradientSchedule, KrgsOptions, schedule
from inakit.planner.trees.from_paths import numbered, sums_of
from inakit.planner.trees.summed_once import SplitTask, Way, entrance, split_equally, tree_of, ways
from inakit.topo.errors import unknown_name
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.up_down import is_up_down, up_down_paths

# -- Sub-models: a gradient cut between the layers of its model (GOAT, section II-D), in whole fragments.


def partition(model: str, fragments: int, most: int) -> list[int]:
    """The fragments of each sub-model, at most `most` of them: consecutive layers, with the smallest possible maximum.

    A gradient without a model is cut into equal parts. A layer smaller than a fragment can count with its neighbour.
    """
    sizes = [layer.parameters for layer in find_model(model).layers] if model else [1] * min(most, fragments)
    parts = split(fragments, [size / sum(sizes) for size in grouped(sizes, most)])
    return [len(part) for part in parts if part]


def grouped(sizes: Sequence[int], most: int) -> list[int]:
    """The sums of consecutive sizes in at most `most` groups, with the smallest possible maximum."""
    limits = range(max(sizes), sum(sizes) + 1)
    return filled(sizes, limits[bisect_left(limits, True, key=lambda limit: len(filled(sizes, limit)) <= most)])


def filled(sizes: Sequence[int], limit: int) -> list[int]:
    """The sums of consecutive sizes in groups, each filled up to `limit`."""
    groups = [0]
    for size in sizes:
        if groups[-1] + size > limit:
            groups.append(0)
        groups[-1] += size
    return groups


@dataclass(frozen=True)
class GoatOptions(Options):
    """The gradient is cut into at most `sub_models`, each a tree: between layers of the model, or into equal parts.

    `objective` is `traffic`, Eq. (1), or `saved`, Eq. (4). `roundings` is the number of random roundings.
    """

    sub_models: int = 8
    roundings: int = 10
    objective: str = "traffic"

    LEAST: ClassVar[Mapping[str, int]] = {"sub_models": 1, "roundings": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)


class SubModel(NamedTuple):
    """A sub-model of a task: its fragments, and its share of the job's gradient."""

    task: SplitTask
    fragments: int
    share: float


def plan(problem: Problem, options: GoatOptions) -> Plan:
    """GOAT's plan. Jobs are planned in turn, each with the remaining slots."""
    started = time.monotonic()
    taken: Counter[Inp] = Counter()
    parts, trees = [], []
    for task in split_equally(problem):
        own = sub_models(problem, task, options.sub_models)
        gina, reached = instance(problem.fabric, own, taken)
        found, _ = schedule(gina, KrgsOptions(options.seed, options.roundings, options.objective, options.for_solver))
        parts += own
        for g, part in enumerate(own):
            tree = sub_tree(problem.fabric, part, reached, found, g, options.seed)
            owned = []  # for each aggregator, a slot for every fragment
            for aggregator in tree.aggregators:
                inp = aggregator.switch, aggregator.pipeline
                owned.append(replace(aggregator, first_slot=taken[inp], slots=part.fragments))
                taken[inp] += part.fragments
            trees.append(replace(tree, aggregators=tuple(owned)))
    rate = sending_rate_bps(problem.fabric, ((tree, part.share) for part, tree in zip(parts, trees, strict=True)))
    jobs = [part.task.job.number for part in parts]
    planned = tuple(
        PlannedTree(job, part.share, part.share * rate, tree)
        for job, part, tree in zip(jobs, parts, numbered(zip(jobs, trees, strict=True)), strict=True)
    )
    return Plan("goat", problem.fabric.name, planned, SolverOutcome("heuristic", time.monotonic() - started))


def sub_models(problem: Problem, task: SplitTask, most: int) -> list[SubModel]:
    """The task's share of every sub-model of its job."""
    fragments = problem.fragment.count(max(4, round(task.job.gradient_bytes * task.share)))
    counts = partition(task.job.model, fragments, most)
    return [SubModel(task, count, task.share * count / fragments) for count in counts]


Reached = dict[str, list[Way]]
"""For each switch, every way of a worker to one of its INPs."""


def instance(fabric: Fabric, parts: Sequence[SubModel], taken: Counter[Inp]) -> tuple[Gina, dict[str, Reached]]:
    """GINA of one task, with a group for each worker; and the ways by worker and node, in the order of GINA's nodes.

    Slots belong to pipelines, and if a task has more workers than a sum has bits, it can need several sums. So a switch
    has the room of its fullest pipeline, divided by the number of sums that the task can need.
    """
    task = parts[0].task
    entrances = {worker: entrance(fabric, worker) for worker in task.job.workers}
    known = {inp: reach(fabric, task, worker) for worker, inp in entrances.items()}
    switches = list(dict.fromkeys(switch for found in known.values() for switch in found))
    reached = {worker: {s: known[inp].get(s, []) for s in switches} for worker, inp in entrances.items()}
    segments = {switch: sums_of(len(task.job.workers), most_children(fabric, switch)) for switch in switches}
    room = []
    for switch in (fabric.switch_by_name[name] for name in switches):
        fullest = max(taken[switch.name, pipeline] for pipeline in range(len(switch.pipelines)))
        room.append((switch.slots_per_pipeline - fullest) / segments[switch.name])
    distance = [
        [*(len(ways[0].path) if ways else inf for ways in found.values()), hops(task, worker)]
        for worker, found in reached.items()
    ]
    onward = [*(hops(task, switch) for switch in switches), 0]
    sizes = np.array([part.fragments for part in parts], float)
    groups = np.ones(len(reached), int)
    gina = Gina(sizes, np.array([*room, inf]), groups, np.array(distance, float), np.array(onward, float))
    return gina, reached


def reach(fabric: Fabric, task: SplitTask, worker: str) -> Reached:
    """The ways of a worker to the switches that sum; workers with the same entrance to the network share them."""
    found: Reached = {}
    for way in ways(fabric, task, worker):
        if way.inp:
            found.setdefault(way.inp[0], []).append(way)
    for switch in [switch.name for switch in fabric.switches if switch.ina and switch.name not in found]:
        if detours := list(detours_to(fabric, task, worker, switch)):
            found[switch] = detours
    return found


def detours_to(fabric: Fabric, task: SplitTask, worker: str, switch: str) -> Iterator[Way]:
    """Ways to a switch from which the PS can be reached, on whichever path the sum or its parts continue."""
    onward = list(task.unfolded.paths(switch)) if switch in task.unfolded.next_hops else []
    for path in up_down_paths(fabric, worker, switch) if onward else []:
        if all(is_up_down(fabric, path + rest[1:]) for rest in onward):
            yield Way((switch, fabric.ingress_pipeline(switch, path[-2])), path[1:])


def hops(task: SplitTask, node: str) -> int:
    """The links on a way from a node to the PS. All shortest up-down paths have the same number."""
    return len(onward_path(task, node, random.Random(0))) - 1


def onward_path(task: SplitTask, node: str, draw: random.Random) -> Path:
    """One of the paths to the PS, drawn hop by hop."""
    path = [node]
    while path[-1] != task.server:
        path.append(draw.choice(task.unfolded.next_hops[path[-1]]))
    return tuple(path)


def sub_tree(
    fabric: Fabric, part: SubModel, reached: dict[str, Reached], found: GradientSchedule, g: int, seed: int
) -> AggregationTree:
    """The tree of sub-model g, still without slots. Ways are drawn by a hash of the seed and the flow."""
    task = part.task
    switches = [*next(iter(reached.values())), None]
    chosen, onward = [], {}
    for worker, node in zip(task.job.workers, found.y[:, g].tolist(), strict=True):
        switch = switches[node]
        if switch is None:
            chosen.append(Way(None, onward_path(task, worker, random.Random(f"{seed} {g} {worker}"))[1:]))
        else:
            draw = random.Random(f"{seed} {g} {task.unfolded.next_hops[worker]} {switch}")
            way = draw.choice(reached[worker][switch])
            chosen.append(way)
            assert way.inp is not None
            onward[way.inp] = onward_path(task, switch, random.Random(f"{seed} {g} {switch}"))
    return replace(tree_of(fabric, task, 0, chosen, onward), policy="goat")
