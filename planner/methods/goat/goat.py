"""GOAT: the gradient in sub-models, each summed only at switches that have memory for all of it.

Planner `goat-krgs` is the paper's algorithm, KRGS, as printed; `goat` is ours, which repairs and improves roundings of
KRGS by a local search. A switch's memory is its aggregator slots, and a sub-model takes one for each of its fragments.
Slots and sums belong to a pipeline. Every gradient is summed at most once, as in `inakit.planner.trees.summed_once`. To
a switch that is on none of their shortest paths, gradients make a detour, if up-down routing allows them to continue
from there. Sub-models for which no switch has memory go to the PS unaggregated, as Eq. (1) allows.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, inf
from typing import ClassVar, NamedTuple

import numpy as np

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.models import find_model
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree, SolverOutcome, split
from inakit.planner.core.problem import Problem, require_equal_weights
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.goat.krgs import OBJECTIVES, Gina, GradientSchedule, KrgsOptions, admitted, krgs, schedule
from inakit.planner.trees.from_paths import Summing, numbered, sums_of
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
class KrgsPlanOptions(Options):
    """The gradient is cut into at most `sub_models`, each a tree: between layers of the model, or into equal parts.

    `objective` is `saved`, Eq. (4), or `traffic`, Eq. (1).
    """

    sub_models: int = 8
    objective: str = "saved"

    LEAST: ClassVar[Mapping[str, int]] = {"sub_models": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)


@dataclass(frozen=True)
class GoatOptions(KrgsPlanOptions):
    """`roundings` is the number of random roundings. A sub-model that no switch holds is cut into more pieces."""

    objective: str = "traffic"
    roundings: int = 10

    LEAST: ClassVar[Mapping[str, int]] = {"sub_models": 1, "roundings": 1}


def plan(problem: Problem, options: GoatOptions) -> Plan:
    """KRGS and then a local search: within every memory, with sub-models cut so that switches hold them."""

    def scheduled(gina: Gina) -> GradientSchedule:
        return schedule(gina, KrgsOptions(options.seed, options.roundings, options.objective, options.for_solver))[0]

    return planned("goat", problem, options, scheduled, in_pieces=True)


def plan_krgs(problem: Problem, options: KrgsPlanOptions) -> Plan:
    """Algorithm 1 as the paper prints it.

    A rounding can exceed a switch's memory (Theorem 6). The switch then sums the sub-models that fit, the first ones
    first; gradients of the others pass it unsummed.
    """

    def scheduled(gina: Gina) -> GradientSchedule:
        return admitted(gina, krgs(gina, KrgsOptions(options.seed, 1, options.objective, options.for_solver))[0])

    return planned("goat-krgs", problem, options, scheduled, in_pieces=False)


def planned(
    method: str,
    problem: Problem,
    options: KrgsPlanOptions,
    scheduled: Callable[[Gina], GradientSchedule],
    *,
    in_pieces: bool,
) -> Plan:
    """The plan of a method that decides about one task at a time. Jobs are planned in turn, with the remaining slots.

    `in_pieces`: sub-models that no switch holds are cut.
    """
    require_equal_weights(problem, method)
    started = time.monotonic()
    taken: Counter[Inp] = Counter()
    parts, trees = [], []
    for task in split_equally(problem):
        reached, room = nodes_of(problem.fabric, task, taken)
        own = sub_models(problem, task, options.sub_models, room if in_pieces else ())
        found = scheduled(instance(task, own, reached, room))
        parts += own
        for g, part in enumerate(own):
            tree = sub_tree(problem.fabric, part, reached, found, g, options.seed)
            owned = []  # for each aggregator, a slot for every fragment
            for aggregator in tree.aggregators:
                owned.append(replace(aggregator, first_slot=taken[aggregator.inp], slots=part.fragments))
                taken[aggregator.inp] += part.fragments
            trees.append(replace(tree, aggregators=tuple(owned)))
    rate = sending_rate_bps(problem.fabric, ((tree, part.share) for part, tree in zip(parts, trees, strict=True)))
    jobs = [part.task.job.number for part in parts]
    made = tuple(
        PlannedTree(job, part.share, part.share * rate, tree)
        for job, part, tree in zip(jobs, parts, numbered(zip(jobs, trees, strict=True)), strict=True)
    )
    return Plan(method, problem.fabric.name, made, SolverOutcome("heuristic", time.monotonic() - started))


class SubModel(NamedTuple):
    """A sub-model of a task: its fragments, and its share of the job's gradient."""

    task: SplitTask
    fragments: int
    share: float


def sub_models(problem: Problem, task: SplitTask, most: int, room: Sequence[float]) -> list[SubModel]:
    """The task's share of every sub-model of its job, in pieces that nodes with `room` hold."""
    fragments = problem.fragment.count(max(4, round(task.job.gradient_bytes * task.share)))
    counts = cut(partition(task.job.model, fragments, most), room)
    return [SubModel(task, count, task.share * count / fragments) for count in counts]


def cut(counts: Iterable[int], room: Sequence[float]) -> list[int]:
    """The sub-models, those that no node holds in pieces that fill one free node after the other, the largest first.

    What all nodes together do not hold stays one piece.
    """
    free = sorted(map(floor, room), reverse=True)
    largest = max(free, default=0)
    found = []
    for count in counts:
        rest = count
        while count > largest > 0 and rest and free[0]:
            piece = min(rest, free[0])
            found.append(piece)
            rest -= piece
            free = sorted((free[0] - piece, *free[1:]), reverse=True)
        if rest:
            found.append(rest)
    return found


Reached = dict[Summing, list[Way]]
"""For each sum that some worker of the task can join, the ways of one worker to it; none where it cannot."""


def nodes_of(fabric: Fabric, task: SplitTask, taken: Counter[Inp]) -> tuple[dict[str, Reached], list[float]]:
    """GINA's nodes but the PS: the ways to them by worker, and the free slots of each.

    A switch sums only what arrives in one pipeline, with that pipeline's slots, so each INP is a node. An INP that more
    workers reach than a sum has bits is several nodes: each takes its part of the workers and of the slots.
    """
    entrances = {worker: entrance(fabric, worker) for worker in task.job.workers}
    known = {inp: reach(fabric, task, worker) for worker, inp in entrances.items()}
    users = Counter(inp for own in entrances.values() for inp in known[own])
    inps = dict.fromkeys(inp for found in known.values() for inp in found)
    parts = {inp: sums_of(users[inp], most_children(fabric, inp[0])) for inp in inps}
    nodes = [Summing(*inp, part) for inp in inps for part in range(parts[inp])]
    reached: dict[str, Reached] = {}
    arrived: Counter[Inp] = Counter()
    for worker, own in entrances.items():
        reached[worker] = {node: [] for node in nodes}
        for inp, found in known[own].items():
            reached[worker][Summing(*inp, arrived[inp] // most_children(fabric, inp[0]))] = found
            arrived[inp] += 1
    room = {inp: fabric.switch_by_name[inp[0]].slots_per_pipeline - taken[inp] for inp in inps}
    return reached, [room[node.switch, node.pipeline] / parts[node.switch, node.pipeline] for node in nodes]


def instance(task: SplitTask, parts: Sequence[SubModel], reached: Mapping[str, Reached], room: Sequence[float]) -> Gina:
    """GINA of one task, with a group for each worker."""
    distance = [
        [*(len(ways[0].path) if ways else inf for ways in found.values()), hops(task, worker)]
        for worker, found in reached.items()
    ]
    onward = [*(hops(task, node.switch) for node in next(iter(reached.values()))), 0]
    return Gina(
        np.array([part.fragments for part in parts], float),
        np.array([*room, inf]),
        np.ones(len(reached), int),
        np.array(distance, float),
        np.array(onward, float),
    )


def reach(fabric: Fabric, task: SplitTask, worker: str) -> dict[Inp, list[Way]]:
    """The ways of a worker to each INP that can sum; workers with the same entrance to the network share them."""
    found: dict[Inp, list[Way]] = {}
    for way in ways(fabric, task, worker):
        if way.inp:
            found.setdefault(way.inp, []).append(way)
    on_the_way = {switch for switch, _ in found}
    for switch in [switch.name for switch in fabric.switches if switch.ina and switch.name not in on_the_way]:
        for inp, way in detours_to(fabric, task, worker, switch):
            found.setdefault(inp, []).append(way)
    return found


def detours_to(fabric: Fabric, task: SplitTask, worker: str, switch: str) -> Iterator[tuple[Inp, Way]]:
    """Ways to a switch from which the PS can be reached, on whichever path the sum or its parts continue."""
    onward = list(task.unfolded.paths(switch)) if switch in task.unfolded.next_hops else []
    for path in up_down_paths(fabric, worker, switch) if onward else []:
        if all(is_up_down(fabric, path + rest[1:]) for rest in onward):
            inp = switch, fabric.ingress_pipeline(switch, path[-2])
            yield inp, Way(inp, path[1:])


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
    fabric: Fabric, part: SubModel, reached: Mapping[str, Reached], found: GradientSchedule, g: int, seed: int
) -> AggregationTree:
    """The tree of sub-model g, still without slots. Ways are drawn by a hash of the seed and the flow.

    The gradients of a worker whose node does not sum the sub-model pass the node unsummed.
    """
    task = part.task
    nodes = [*next(iter(reached.values())), None]
    chosen, onward = [], {}
    for worker, s in zip(task.job.workers, found.y[:, g].tolist(), strict=True):
        node = nodes[s]
        if node is None:
            chosen.append(Way(None, onward_path(task, worker, random.Random(f"{seed} {g} {worker}"))[1:]))
            continue
        draw = random.Random(f"{seed} {g} {task.unfolded.next_hops[worker]} {node.switch}")
        way = draw.choice(reached[worker][node])
        rest = onward_path(task, node.switch, random.Random(f"{seed} {g} {node.switch}"))
        chosen.append(way if found.x[g, s] else Way(None, (*way.path, *rest[1:])))
        onward[node.switch, node.pipeline] = rest
    return replace(tree_of(fabric, task, 0, chosen, onward), policy="goat")
