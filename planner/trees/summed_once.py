"""Flows that are summed at most once: each at one input pipeline (INP) on its way to its PS, or at none.

This is InArt's rule. `inakit.planner.trees.from_paths` merges everything that enters an aggregating INP; here a flow
may pass an INP that sums other flows of its tree. The sum of an INP continues as one flow, and no INP sums it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.trees.from_paths import Summing
from inakit.planner.trees.unfolding import Unfolded, unfold
from inakit.topo.fabric.fabric import Fabric, Path


@dataclass(frozen=True)
class SplitTask:
    """The part of a job that one PS gets when the gradient is split over PSs: `share` is its fraction, InArt's x_s.

    `unfolded` has the ways to the PS.
    """

    job: Job
    server: str
    share: float
    unfolded: Unfolded


@dataclass(frozen=True)
class Way:
    """The nodes from a worker's ToR to the switch of the INP that sums its flow; to the PS if `inp` is None."""

    inp: Inp | None
    path: Path


def split_equally(problem: Problem) -> list[SplitTask]:
    """The tasks of all jobs, split equally. Raises `InputError` when a worker cannot reach a PS."""
    return [
        SplitTask(job, server, 1 / len(job.servers), unfold(problem.fabric, server, job.workers))
        for job in problem.jobs
        for server in job.servers
    ]


def entrance(fabric: Fabric, worker: str) -> Inp:
    """The worker's ToR and ingress pipeline there. Workers with the same entrance have the same ways."""
    tor = fabric.tor_of(worker)
    return tor, fabric.ingress_pipeline(tor, worker)


def ways(fabric: Fabric, task: SplitTask, worker: str) -> Iterator[Way]:
    """Every way of the worker's flow: along each shortest up-down path to each INP on it, and to the PS."""
    known: dict[Way, None] = {}
    for path in task.unfolded.paths(worker):
        known[Way(None, path[1:])] = None
        for position in range(1, len(path) - 1):
            if fabric.switch_by_name[path[position]].ina:
                inp = path[position], fabric.ingress_pipeline(path[position], path[position - 1])
                known[Way(inp, path[1 : position + 1])] = None
    yield from known


def tree_of(
    fabric: Fabric, task: SplitTask, number: int, chosen: Sequence[Way], onward: Mapping[Inp, Path]
) -> AggregationTree:
    """The tree of one way for each of the job's workers, in their order. It has no slots yet.

    `onward[inp]` leads from the INP's switch to the PS. An INP that only one flow chose sums nothing and forwards the
    flow; one that more flows chose than a slot's bitmap has bits has several aggregators. Labels count from 1: the
    workers, then the aggregators.
    """
    workers = dict(enumerate(task.job.workers, start=1))
    aggregators = tuple(
        Aggregator(label, summing.switch, summing.pipeline, tuple(children), 0, 0)
        for label, (summing, children) in enumerate(summed_together(fabric, chosen).items(), start=len(workers) + 1)
    )
    parents = {child: aggregator.label for aggregator in aggregators for child in aggregator.children}
    branches = [
        branch(label, worker, way, parents, onward)
        for (label, worker), way in zip(workers.items(), chosen, strict=True)
    ]
    branches += [Branch(each.label, ROOT_LABEL, onward[each.inp]) for each in aggregators]
    return AggregationTree(number, task.server, workers, aggregators, tuple(branches))


def summed_together(fabric: Fabric, chosen: Sequence[Way]) -> dict[Summing, list[int]]:
    """For each sum of at least two ways, their positions from 1."""
    arrived: Counter[Inp] = Counter()
    found: dict[Summing, list[int]] = {}
    for position, way in enumerate(chosen, start=1):
        if way.inp is not None:
            found.setdefault(Summing(*way.inp, arrived[way.inp] // most_children(fabric, way.inp[0])), []).append(
                position
            )
            arrived[way.inp] += 1
    return {summing: positions for summing, positions in found.items() if len(positions) > 1}


def branch(label: int, worker: str, way: Way, parents: Mapping[int, int], onward: Mapping[Inp, Path]) -> Branch:
    """The worker's branch: to its aggregator, or to the PS if the aggregator would have no other child."""
    if label in parents:
        return Branch(label, parents[label], (worker, *way.path))
    rest = onward[way.inp][1:] if way.inp else ()
    return Branch(label, ROOT_LABEL, (worker, *way.path, *rest))
