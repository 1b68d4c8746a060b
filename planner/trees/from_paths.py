"""From a path per worker to an aggregation tree, for all routing methods.

The flows that enter one input pipeline (INP) of an aggregating switch leave it as one flow, so all paths through an INP
continue as the first one does. An INP that only one flow enters sums nothing and forwards it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import DEFAULT_WINDOW, Inp, assign_slots, most_children
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.up_down import is_path


def sums_of(flows: int, children: int) -> int:
    """The number of flows that leave an INP with `flows` inputs that sums up to `children` of them into one."""
    return -(-flows // children)


class Summing(NamedTuple):
    """A sum of an INP: of up to as many flows as a slot's bitmap has bits. `part` numbers the sums of an INP from 0."""

    switch: str
    pipeline: int
    part: int


Sender = str | Summing
"""The sender of a flow: a worker or a sum."""

HEURISTIC = SolverOutcome("heuristic", 0.0)


def plan_from_paths(
    problem: Problem,
    paths: Mapping[int, Iterable[Path]],
    aggregate_at: Collection[str] = (),
    *,
    rates_bps: Mapping[tuple[int, str], float] | None = None,
    method: str = "paths",
    outcome: SolverOutcome = HEURISTIC,
    window: int = DEFAULT_WINDOW,
    results: Mapping[tuple[int, str], dict[str, str]] | None = None,
) -> Plan:
    """The plan of chosen paths: `paths[job]` has one from every worker to every PS, hosts included.

    Every PS of a job gets a tree. `rates_bps[job number, PS]` is the rate of each flow of that task, and a job's
    gradient is split in proportion; a PS whose rate is 0 or missing gets no tree and needs no paths. Rates that the
    links cannot carry are all lowered by one factor. Without `rates_bps` every flow has the best equal rate, times the
    weight of its job, and gradients are split equally. Only the switches in `aggregate_at` sum. `results` are, by task,
    those of a tree. Raises `InputError` for a missing path, and for a job without a rate.
    """
    equal = {(job.number, server): job.weight for job in problem.jobs for server in job.servers}
    given = equal if rates_bps is None else rates_bps
    tasks = tasks_with_rate(problem, given)
    made = []
    for job, server in tasks:  # a tree has the place of its PS among the job's, from 1, as its number
        own = job_paths(problem.fabric, job, server, paths)
        tree = tree_from_paths(problem.fabric, job.servers.index(server) + 1, own, aggregate_at)
        made.append(replace(tree, results=(results or {}).get((job.number, server), {})))
    trees = assign_slots(problem.fabric, made, window)
    rates = [given[job.number, server] for job, server in tasks]
    factor = sending_rate_bps(problem.fabric, zip(trees, rates, strict=True))
    if rates_bps is not None:
        factor = min(factor, 1.0)
    planned = tuple(
        PlannedTree(job.number, rate / job_sum(job, given), rate * factor, tree)
        for (job, _), tree, rate in zip(tasks, trees, rates, strict=True)
    )
    return Plan(method, problem.fabric.name, planned, outcome)


def tasks_with_rate(problem: Problem, rates: Mapping[tuple[int, str], float]) -> list[tuple[Job, str]]:
    """The jobs and PSs with a rate above 0. Raises `InputError` for a job without one."""
    for job in problem.jobs:
        if not job_sum(job, rates) > 0:
            raise InputError(f"job {job.number}: its rate is 0 for every PS: give one of them a rate above 0")
    return [(job, server) for job in problem.jobs for server in job.servers if rates.get((job.number, server), 0) > 0]


def job_sum(job: Job, rates: Mapping[tuple[int, str], float]) -> float:
    """The rate of a job over all its PSs."""
    return sum(rates.get((job.number, server), 0.0) for server in job.servers)


def job_paths(fabric: Fabric, job: Job, server: str, paths: Mapping[int, Iterable[Path]]) -> list[Path]:
    """The paths of a job to one PS, in the order of its workers. Raises `InputError` for a missing or broken path."""
    chosen = {path[0]: path for path in paths.get(job.number, ()) if path and path[-1] == server}
    for worker in job.workers:
        if worker not in chosen:
            raise InputError(f"job {job.number}: no path from '{worker}' to '{server}': give one for each worker")
        if not is_path(fabric, chosen[worker]):
            raise InputError(f"job {job.number}: {'-'.join(chosen[worker])} does not follow the fabric's links")
    return [chosen[worker] for worker in job.workers]


def tree_from_paths(
    fabric: Fabric, number: int, paths: Iterable[Path], aggregate_at: Collection[str] = ()
) -> AggregationTree:
    """The tree of one path per worker, all to one root; its aggregators have no slots yet.

    Labels count from 1: the workers in the order of `paths`, then the aggregators. Where more flows enter an INP
    than a slot's bitmap has bits, it has several aggregators, each with an outgoing flow of its own.
    """
    merged, parents = merge(fabric, paths, aggregate_at)
    children = Counter(parents.values())
    switches = {summing.switch for summing in children}
    kept = dict.fromkeys(summing for summing, number in children.items() if number > 1)
    labels: dict[Sender, int] = dict(zip((*(path[0] for path in merged), *kept), count(1), strict=False))
    branches: dict[int, Branch] = {}
    for path in merged:
        for sender, parent, part in pieces(inps(fabric, path, switches), path, parents, kept):
            label = labels[sender]
            branches[label] = Branch(label, labels[parent] if parent else ROOT_LABEL, part)
    ordered = tuple(branches[label] for label in sorted(branches))
    aggregators = tuple(
        Aggregator(label, summing.switch, summing.pipeline, tuple(b.label for b in ordered if b.parent == label), 0, 0)
        for summing, label in ((summing, labels[summing]) for summing in kept)
    )
    workers = {labels[path[0]]: path[0] for path in merged}
    return AggregationTree(number, merged[0][-1], workers, aggregators, ordered)


def merge(
    fabric: Fabric, paths: Iterable[Path], aggregate_at: Collection[str]
) -> tuple[list[Path], dict[tuple[Sender, Inp], Summing]]:
    """The paths; each continues, from the first sum that it joins, as the path that began this sum.

    The second value gives, for each sender and the next INP on its way, the sum that it joins: the first flows of an
    INP, up to the bits of a slot's bitmap, join its first sum, and so on.
    """
    rest: dict[Summing, Path] = {}
    arrived: Counter[Inp] = Counter()
    merged: list[Path] = []
    parents: dict[tuple[Sender, Inp], Summing] = {}
    for chosen in paths:
        path = chosen
        sender: Sender = chosen[0]
        begun: dict[Summing, int] = {}
        for position, inp in inps(fabric, chosen, aggregate_at):
            summing = Summing(*inp, arrived[inp] // most_children(fabric, inp[0]))
            arrived[inp] += 1
            parents[sender, inp] = summing
            sender = summing
            if summing in rest:
                path = chosen[:position] + rest[summing]
                break
            begun[summing] = position
        rest |= {summing: path[position:] for summing, position in begun.items()}
        merged.append(path)
    return merged, parents


def inps(fabric: Fabric, path: Path, aggregate_at: Collection[str]) -> Iterator[tuple[int, Inp]]:
    """The INPs of aggregating switches that a path passes, with the position of each one's switch on the path."""
    for position in range(1, len(path)):
        switch = path[position]
        if switch in aggregate_at:
            yield position, (switch, fabric.ingress_pipeline(switch, path[position - 1]))


def pieces(
    passed: Iterable[tuple[int, Inp]],
    path: Path,
    parents: Mapping[tuple[Sender, Inp], Summing],
    kept: Collection[Summing],
) -> Iterator[tuple[Sender, Summing | None, Path]]:
    """A path cut at the aggregators among its INPs: (sender, parent or None for the root, nodes between them)."""
    sender: Sender = path[0]
    last: Sender = sender  # the last node with a label
    start = 0
    for position, inp in passed:
        sender = parents[sender, inp]
        if sender in kept:
            yield last, sender, path[start : position + 1]
            last, start = sender, position
    yield last, None, path[start:]


def plan_of_trees(
    method: str,
    problem: Problem,
    trees: Sequence[tuple[int, float, AggregationTree]],
    window: int = DEFAULT_WINDOW,
    outcome: SolverOutcome = HEURISTIC,
    *,
    by_share: bool = False,
) -> Plan:
    """The plan of trees, each given with its job's number and its share of the job's gradient.

    All flows have the highest rate that is possible together, times the weight of their job; with `by_share`, those of
    a tree have its share of this rate.
    """
    weights = {job.number: job.weight for job in problem.jobs}
    placed = assign_slots(problem.fabric, numbered((job, tree) for job, _, tree in trees), window)
    parts = [weights[job] * (share if by_share else 1.0) for job, share, _ in trees]
    rate = sending_rate_bps(problem.fabric, zip(placed, parts, strict=True))
    planned = (
        PlannedTree(job, share, part * rate, tree)
        for (job, share, _), part, tree in zip(trees, parts, placed, strict=True)
    )
    return Plan(method, problem.fabric.name, tuple(planned), outcome)


def numbered(trees: Iterable[tuple[int, AggregationTree]]) -> list[AggregationTree]:
    """The trees, each given with its job's number, numbered within their jobs from 1."""
    numbers: Counter[int] = Counter()
    found = []
    for job, tree in trees:
        numbers[job] += 1
        found.append(replace(tree, number=numbers[job]))
    return found
