"""What lab 6 gives to planners, and the rules for what they return: drawn networks, the JSON of trees, checks.

A tree is `{"job": 1, "rate_bps": 4e6, "aggregators": {"a": {"switch": ..., "pipeline": ..., "first_slot": ...,
"slots": ...}}, "paths": [{"from": "h1", "to": "a", "path": ["h1", "leaf1"]}, ...]}`. A path leads from a worker or an
aggregator to an aggregator or the server. Labels of the kit's trees never show: messages have the student's names.

`inakit.planner.core.check` stops at the first rule that is broken. An item is about one rule, whatever else is wrong,
so each function here asks those parts of the checker that its rule needs.

Points are measured against ARO's optimum: the best rate that one tree for each job can have, which is what students
plan, proven by a solver within a second on these networks. So 100 % can be reached. The leaderboard has networks that
are too large for such a proof, and measures against `forest`'s bound, a linear program that no plan exceeds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, count, pairwise
from math import isfinite
from random import Random
from typing import Any

from inakit.experiments.labs.grading.items import WrongError
from inakit.experiments.labs.sandbox.process import printable
from inakit.planner.core.check import TreeCheck, check_capacity, check_overlap
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.loads import equal_rate_bps
from inakit.planner.core.plan import (
    OPTIMAL,
    ROOT_LABEL,
    AggregationTree,
    Aggregator,
    Branch,
    Plan,
    PlannedTree,
    SolverOutcome,
)
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.reduced_network import network
from inakit.planner.methods.aro.tasks import tasks_of
from inakit.planner.methods.tree_packing import Ground, relax
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import PlanError, SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

MBPS = 1e6
GRADIENT_BYTES = 1 << 20
LEAST_SLOTS = 2
"""An aggregator's slots come in two versions (lab 4)."""


def leaves_and_spines(random: Random, leaves: int = 4, spines: int = 2, hosts: int = 4) -> Fabric:
    """A leaf-spine whose links all have one drawn rate."""
    return leaf_spine(leaves, spines, hosts, capacity_bps=random.randrange(10, 50) * MBPS)


def three_tiers(random: Random) -> Fabric:
    """A fat-tree of four pods."""
    return fat_tree(4, capacity_bps=random.randrange(10, 50) * MBPS)


def unequal(random: Random, fabric: Fabric) -> Fabric:
    """The fabric with a drawn rate for each link between switches: 40, 70 or 100 % of what it had."""
    hosts = fabric.host_names

    def rate(a: str, bps: float) -> float:
        return bps if a in hosts else bps * random.choice((0.4, 0.7, 1.0))

    drawn = [(each, rate(each.a, each.capacity_ab_bps)) for each in fabric.links]
    return replace(fabric, links=tuple(replace(each, capacity_ab_bps=bps, capacity_ba_bps=bps) for each, bps in drawn))


def some_sum(random: Random, fabric: Fabric, share: float = 0.5) -> Fabric:
    """The fabric with INA on a drawn share of its switches."""
    return with_ina(fabric, share=share, seed=random.getrandbits(30))


def none_sums(fabric: Fabric) -> Fabric:
    """The fabric without INA."""
    return with_ina(fabric, ())


def without_uplinks(random: Random, fabric: Fabric, count: int) -> Fabric:
    """The fabric without so many drawn links between switches; every two hosts still have a path."""
    between = [each for each in fabric.links if each.a not in fabric.host_names]
    while True:
        lost = random.sample(between, count)
        left = replace(fabric, links=tuple(each for each in fabric.links if each not in lost))
        tors = sorted({left.tor_of(host.name) for host in left.hosts})
        if all(up_down_paths(left, a, b) for a, b in combinations(tors, 2)):
            return left


def job_on(random: Random, fabric: Fabric, workers: int, number: int = 1, free: list[str] | None = None) -> Job:
    """A job on drawn hosts of `free`, which it takes from there; no worker shares the server's ToR."""
    free = [host.name for host in fabric.hosts] if free is None else free
    server = random.choice(free)
    others = [host for host in free if fabric.tor_of(host) != fabric.tor_of(server)]
    chosen = set(random.sample(others, min(workers, len(others))))
    free[:] = [host for host in free if host not in chosen | {server}]
    return Job(number, tuple(sorted(chosen, key=lambda host: int(host[1:]))), (server,), GRADIENT_BYTES)


def one_job(random: Random, fabric: Fabric, workers: int) -> Problem:
    """A single job on a fabric."""
    return Problem(fabric, (job_on(random, fabric, workers),), FRAGMENT)


def several_jobs(random: Random, fabric: Fabric, jobs: int, workers: int) -> Problem:
    free = [host.name for host in fabric.hosts]
    made = [job_on(random, fabric, workers, number, free) for number in range(1, jobs + 1)]
    return Problem(fabric, tuple(made), FRAGMENT)


def beside_the_server(random: Random, fabric: Fabric, others: int) -> Problem:
    server = random.choice([host.name for host in fabric.hosts])
    near = [host.name for host in fabric.hosts if fabric.tor_of(host.name) == fabric.tor_of(server)]
    far = [host.name for host in fabric.hosts if host.name not in near]
    workers = [host for host in near if host != server] + random.sample(far, others)
    return Problem(fabric, (Job(1, tuple(workers), (server,), GRADIENT_BYTES),), FRAGMENT)


# -- the networks of each item


def for_paths(random: Random) -> list[Problem]:
    """No sums: one worker; workers beside the server; links that are missing, on two tiers and on three."""
    sparse = without_uplinks(random, none_sums(leaves_and_spines(random, 5, 4)), 8)
    sparse_tree = without_uplinks(random, none_sums(three_tiers(random)), 8)
    return [
        one_job(random, none_sums(leaves_and_spines(random)), 1),
        beside_the_server(random, none_sums(leaves_and_spines(random)), 3),
        one_job(random, sparse, 10),
        one_job(random, sparse_tree, 8),
    ]


def for_rates(random: Random) -> list[Problem]:
    """Without sums, with sums, and with several jobs, on unequal links."""
    return [
        one_job(random, unequal(random, none_sums(leaves_and_spines(random))), 7),
        one_job(random, unequal(random, leaves_and_spines(random)), 9),
        several_jobs(random, leaves_and_spines(random, 3, 2, 5), 3, 3),
        several_jobs(random, unequal(random, three_tiers(random)), 2, 5),
    ]


def for_sums(random: Random) -> list[Problem]:
    """Every switch sums, in one pipeline."""
    return [
        one_job(random, leaves_and_spines(random), 8),
        one_job(random, leaves_and_spines(random, 5, 3), 11),
        one_job(random, three_tiers(random), 10),
    ]


def for_where(random: Random) -> list[Problem]:
    """Some switches sum."""
    tiers = leaves_and_spines(random, 4, 3)
    leaves = [each.name for each in tiers.switches if each.tier == 1]
    spines = [each.name for each in tiers.switches if each.tier == 2]
    return [
        one_job(random, with_ina(tiers, leaves), 9),
        one_job(random, with_ina(tiers, spines), 9),
        one_job(random, some_sum(random, three_tiers(random)), 8),
    ]


def for_pipelines(random: Random) -> list[Problem]:
    """Switches with two pipelines, or three."""
    return [
        one_job(random, with_pipelines(leaves_and_spines(random), 2), 9),
        one_job(random, with_pipelines(leaves_and_spines(random, 5, 3), 3), 11),
        one_job(random, with_pipelines(three_tiers(random), 2), 8),
    ]


def for_slots(random: Random) -> list[Problem]:
    """Several jobs, and no more slots than they need together."""
    few = with_aggregators(leaves_and_spines(random, 3, 2, 5), slots=3 * LEAST_SLOTS)
    two = with_pipelines(with_aggregators(leaves_and_spines(random, 4, 2, 6), slots=4 * LEAST_SLOTS), 2)
    return [several_jobs(random, few, 3, 3), several_jobs(random, two, 4, 4)]


def for_nearness(random: Random) -> list[Problem]:
    """All at once: unequal links, pipelines, switches that sum and others."""
    two = unequal(random, with_pipelines(leaves_and_spines(random, 5, 3), 2))
    return [
        one_job(random, two, 12),
        one_job(random, some_sum(random, two), 12),
        one_job(random, unequal(random, with_pipelines(leaves_and_spines(random, 4, 4), 4)), 10),
        one_job(random, unequal(random, with_pipelines(some_sum(random, three_tiers(random), 0.7), 2)), 9),
        several_jobs(random, unequal(random, leaves_and_spines(random, 4, 3)), 2, 5),
        several_jobs(random, unequal(random, with_pipelines(leaves_and_spines(random, 4, 2, 5), 2)), 2, 6),
    ]


def for_the_board(random: Random) -> list[Problem]:
    """Larger ones, for the leaderboard."""
    wide = leaf_spine(8, 6, 6, capacity_bps=40 * MBPS)
    tall = fat_tree(6, capacity_bps=40 * MBPS)
    return [
        one_job(random, unequal(random, with_pipelines(wide, 2)), 30),
        one_job(random, unequal(random, some_sum(random, with_pipelines(wide, 4))), 30),
        several_jobs(random, unequal(random, with_pipelines(wide, 2)), 3, 12),
        one_job(random, unequal(random, some_sum(random, with_pipelines(tall, 2), 0.6)), 30),
        several_jobs(random, unequal(random, tall), 4, 10),
    ]


TREE = ("job", "rate_bps", "aggregators", "paths")
AGGREGATOR = ("switch", "pipeline", "first_slot", "slots")
PATH = ("from", "to", "path")
MOST = 1000
"""The most aggregators, paths or nodes that are read of a tree."""


def fabric_given(fabric: Fabric) -> dict[str, Any]:
    """A fabric as a planner is given it: hosts, switches, and both directions of each link."""
    switches = {
        each.name: {
            "tier": each.tier, "ina": each.ina, "pipelines": len(each.pipelines), "slots": each.aggregator_slots
        }
        for each in fabric.switches
    }  # fmt: skip
    links = [
        {"from": a, "to": b, "rate_bps": rate, "pipeline": fabric.ingress_pipeline(b, a) if b in switches else None}
        for (a, b), rate in fabric.capacities_bps.items()
    ]
    return {"hosts": [host.name for host in fabric.hosts], "switches": switches, "links": links}


def jobs_given(problem: Problem) -> list[dict[str, Any]]:
    return [{"job": job.number, "workers": list(job.workers), "server": job.servers[0]} for job in problem.jobs]


@dataclass(frozen=True)
class Drawn:
    """A student's trees as a plan of the kit. `names[job]` are the student's names of that tree's labels."""

    problem: Problem
    plan: Plan
    names: Mapping[int, Mapping[int, str]]

    def in_words(self, message: str) -> str:
        """A message of the kit's checker in the student's names."""
        names: Mapping[int, str] = {}

        def named(match: re.Match[str]) -> str:
            nonlocal names
            if match[1]:
                names = self.names.get(int(match[1]), {})
            return names.get(int(match[2]), match[0]) if match[2] else match[0]

        text = re.sub(r"job (\d+)|(?:label|child|aggregator) (\d+)", named, printable(message))
        return re.sub(r", tree 1\b", "", re.sub(r"rule ([\w-]+) broken at", r"rule '\1' is broken in", text))


def trees_of(answer: Any, problem: Problem) -> Drawn:
    """The trees of an answer. Raises `WrongError` for what has not the format of trees: one for each job."""
    found = items_of(answer, "the plan", "one tree for each job")
    numbers = [each.get("job") if isinstance(each, dict) else None for each in found]
    for number in numbers:
        if number not in [job.number for job in problem.jobs]:
            raise WrongError(f"a tree is of job {said(number)}: the jobs are {listed(problem)}")
    for job in problem.jobs:
        if numbers.count(job.number) != 1:
            raise WrongError(f"job {job.number} has {numbers.count(job.number)} trees, where one is expected")
    read = [TreeReader(job, found[numbers.index(job.number)]) for job in problem.jobs]
    trees = tuple(PlannedTree(each.job.number, 1.0, each.rate(), each.tree()) for each in read)
    plan = Plan("student", problem.fabric.name, trees, SolverOutcome("heuristic", 0.0))
    return Drawn(problem, plan, {each.job.number: each.names() for each in read})


class TreeReader:
    """Reads one tree of an answer, key by key."""

    def __init__(self, job: Job, given: Any) -> None:
        self.job, self.where = job, f"the tree of job {job.number}"
        self.given = record(given, TREE, self.where)
        self.aggregators = entries(self.given["aggregators"], f"{self.where}, 'aggregators'")
        paths = items_of(self.given["paths"], f"{self.where}, 'paths'", "one path for each worker and aggregator")
        self.paths = [record(each, PATH, f"{self.where}, path {n}") for n, each in enumerate(paths, start=1)]
        senders = [name(each["from"], f"{self.where}, 'from'") for each in self.paths]
        numbers = count(1)
        self.labels = {each: next(numbers) for each in dict.fromkeys([*job.workers, *senders, *self.aggregators])}

    def rate(self) -> float:
        rate = self.given["rate_bps"]
        if type(rate) not in (int, float) or not isfinite(rate) or rate <= 0:
            raise WrongError(f"{self.where}: 'rate_bps' is {said(rate)}: a number of bit/s above 0 is expected")
        return float(rate)

    def tree(self) -> AggregationTree:
        branches = tuple(self.branch(number, each) for number, each in enumerate(self.paths, start=1))
        sums = tuple(self.aggregator(own, each, branches) for own, each in self.aggregators.items())
        senders = {each["from"] for each in self.paths} - set(self.aggregators)
        workers = {self.labels[each]: each for each in self.labels if each in senders}
        return AggregationTree(1, self.job.servers[0], workers, sums, branches)

    def branch(self, number: int, path: Mapping[str, Any]) -> Branch:
        """A path, from the sender that it names to the aggregator or server that it names."""
        where = f"{self.where}, path {number}"
        to = name(path["to"], f"{where}, 'to'")
        if to not in self.aggregators and to != self.job.servers[0]:
            raise WrongError(f"{where}: 'to' is {said(to)}: no aggregator of this tree, and not its server")
        nodes = items_of(path["path"], f"{where}, 'path'", "names of nodes")
        named = tuple(name(node, f"{where}, 'path'") for node in nodes)
        return Branch(self.labels[path["from"]], self.labels[to] if to in self.aggregators else ROOT_LABEL, named)

    def aggregator(self, own: str, given: Any, branches: tuple[Branch, ...]) -> Aggregator:
        """An aggregator; its children are who has a path to it."""
        where = f"{self.where}, aggregator '{printable(own[:40])}'"
        if own in (*self.job.workers, self.job.servers[0]):
            raise WrongError(f"{where}: that is the name of a host; give the aggregator another one")
        read = record(given, AGGREGATOR, where)
        numbers = [whole(read[key], f"{where}, '{key}'") for key in AGGREGATOR[1:]]
        children = tuple(branch.label for branch in branches if branch.parent == self.labels[own])
        return Aggregator(
            self.labels[own], name(read["switch"], f"{where}, 'switch'"), numbers[0], children, *numbers[1:]
        )

    def names(self) -> dict[int, str]:
        """The names of the tree's labels for messages."""
        return {
            label: f"aggregator '{printable(own[:40])}'" if own in self.aggregators else printable(own[:40])
            for own, label in self.labels.items()
        }


def record(given: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise WrongError(f"{where} is {said(given)}: a dict with {', '.join(keys)} is expected")
    for key in keys:
        if key not in given:
            raise WrongError(f"{where} has no '{key}': {', '.join(keys)} are expected")
    for key in given:
        if key not in keys:
            raise WrongError(f"{where} has the key {said(key)}: {', '.join(keys)} are expected")
    return given


def entries(given: Any, where: str) -> dict[str, Any]:
    """A dict of anything, by names."""
    if not isinstance(given, dict) or len(given) > MOST:
        raise WrongError(f"{where} is {said(given)}: a dict of at most {MOST} aggregators by name is expected")
    return given


def items_of(given: Any, where: str, expected: str) -> list[Any]:
    """A list of a bounded length."""
    if not isinstance(given, list) or len(given) > MOST:
        raise WrongError(f"{where} is {said(given)}: a list is expected, {expected}")
    return given


def name(given: Any, where: str) -> str:
    if not isinstance(given, str):
        raise WrongError(f"{where} is {said(given)}: a name is expected")
    return given


def whole(given: Any, where: str) -> int:
    """A whole number, not negative."""
    if type(given) is not int or given < 0:
        raise WrongError(f"{where} is {said(given)}: a whole number from 0 on is expected")
    return given


def said(value: Any) -> str:
    """A value, cut short, without characters that a terminal obeys."""
    return printable(repr(value)[:60])


def listed(problem: Problem) -> str:
    return ", ".join(str(job.number) for job in problem.jobs)


WASTED = 0.02
"""A rate that is lower by less than this part of the best one is not said to waste anything."""


@contextmanager
def told_in_words(drawn: Drawn) -> Iterator[None]:
    """Turn the checker's error into a `WrongError` in the student's names."""
    try:
        yield
    except PlanError as error:
        raise WrongError(drawn.in_words(str(error))) from None


def checks_of(drawn: Drawn) -> Iterator[TreeCheck]:
    for planned in drawn.plan.trees:
        yield TreeCheck(drawn.problem, planned)


def check_paths(drawn: Drawn) -> None:
    """Each worker's way follows links over switches to the server, and climbs before it descends."""
    with told_in_words(drawn):
        for check in checks_of(drawn):
            for branch in check.tree.branches:
                check.check_path(branch)
            for branch in check.tree.branches:
                check.check_way(branch.label)


def check_rates(drawn: Drawn) -> None:
    """All links carry the trees together, and the job with the lowest rate cannot have more from these trees."""
    with told_in_words(drawn):
        check_capacity(drawn.problem, drawn.plan)
    slowest = min(drawn.plan.trees, key=lambda planned: planned.rate_bps)
    best = equal_rate_bps(drawn.problem.fabric, [planned.tree for planned in drawn.plan.trees])
    if slowest.rate_bps < best * (1 - WASTED):
        raise WrongError(
            f"job {slowest.job} has {slowest.rate_bps:g} bit/s, where these trees leave every job {best:g} bit/s"
        )


def check_sums(drawn: Drawn) -> None:
    """What arrives at an INA switch in one pipeline, for one job, leaves it as one flow."""
    for planned in drawn.plan.trees:
        fabric, tree = drawn.problem.fabric, planned.tree
        for (switch, pipeline), flows in passing(fabric, tree).items():
            if len(flows) > 1 and switch in fabric.ina_names:
                who = " and ".join(drawn.names[planned.job][label] for label in flows[:2])
                raise WrongError(
                    f"job {planned.job}: {who} both come to {switch} in pipeline {pipeline}, and {len(flows)} flows go "
                    "on from there, where one sum would do"
                )


def passing(fabric: Fabric, tree: AggregationTree) -> dict[tuple[str, int], list[int]]:
    """By switch and pipeline, the labels of the flows that leave it as they came, and of the sums of aggregators."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for branch in tree.branches:
        for before, node in pairwise(branch.path[:-1]):
            found[node, fabric.ingress_pipeline(node, before)].append(branch.label)
    for aggregator in tree.aggregators:
        found[aggregator.switch, aggregator.pipeline].append(aggregator.label)
    return found


def check_where(drawn: Drawn) -> None:
    for planned in drawn.plan.trees:
        for each in planned.tree.aggregators:
            if each.switch not in drawn.problem.fabric.ina_names:
                who, where = drawn.names[planned.job][each.label], said(each.switch)
                raise WrongError(f"rule 'ina' is broken in job {planned.job}: {who} is on {where}, which cannot sum")


def check_pipelines(drawn: Drawn) -> None:
    """An aggregator's senders arrive in its pipeline, which its switch has."""
    with told_in_words(drawn):
        for check in checks_of(drawn):
            for branch in check.tree.branches:
                check.check_pipeline(branch)


def check_slots(drawn: Drawn) -> None:
    """Segments of slots are large enough, within the pipeline's, and do not overlap."""
    for planned in drawn.plan.trees:
        for each in planned.tree.aggregators:
            where = f"job {planned.job}, {drawn.names[planned.job][each.label]} on {said(each.switch)}"
            switch = drawn.problem.fabric.switch_by_name.get(each.switch)
            has = switch.aggregator_slots if switch is not None else 0
            if each.slots < LEAST_SLOTS:
                raise WrongError(f"rule 'slots' is broken in {where}: {each.slots} slots, {LEAST_SLOTS} are needed")
            if each.first_slot + each.slots > has:
                end = each.first_slot + each.slots
                raise WrongError(f"rule 'slots' is broken in {where}: they end at {end}, the pipeline has {has}")
    with told_in_words(drawn):
        check_overlap(drawn.plan)


def check_ends(drawn: Drawn) -> None:
    """Every worker comes to the server, by whatever way: nothing can be said of trees that go round in circles."""
    for planned, job in zip(drawn.plan.trees, drawn.problem.jobs, strict=True):
        tree, names = planned.tree, drawn.names[planned.job]
        sent = Counter(branch.label for branch in tree.branches)
        for label, own in names.items():
            if label not in tree.aggregator_of and own not in job.workers:
                raise WrongError(f"job {planned.job}: a path begins at {own}, which is no worker of this job")
        for label, own in names.items():
            if sent[label] != 1:
                raise WrongError(f"job {planned.job}: {own} has {sent[label]} paths, where one is expected")
        for label in tree.workers:
            follow(tree, label, f"job {planned.job}: {names[label]}")


def follow(tree: AggregationTree, label: int, who: str) -> None:
    """Raise `WrongError` if a label never comes to the root."""
    passed: set[int] = set()
    here = label
    while here != ROOT_LABEL:
        if here in passed:
            raise WrongError(f"{who} never comes to the server: aggregators send to each other in a circle")
        passed.add(here)
        here = tree.branch_of[here].parent


def check_nodes(drawn: Drawn) -> None:
    """Paths follow links: nothing can be said of loads and pipelines on links that are not there."""
    with told_in_words(drawn):
        for check in checks_of(drawn):
            for branch in check.tree.branches:
                check.check_path(branch)


NONE, FULL = 0.5, 0.9
"""The parts of the optimum from which on there are points, and all points; between them points grow evenly."""


def optimum_bps(problem: Problem) -> float:
    """The rate of the worst served job in ARO's plan. Raises `SolverError` if it is not proven."""
    plan = METHODS["aro"].plan(problem)
    if plan.outcome.status != OPTIMAL:
        raise SolverError(f"the optimum on {problem.fabric.name} is not proven: the solver says {plan.outcome.status}")
    return evaluate(problem, plan).sending_rate_bps


def routes_bps(drawn: Drawn) -> float:
    paths = {planned.job: [planned.tree.way(label) for label in planned.tree.workers] for planned in drawn.plan.trees}
    plan = plan_from_paths(drawn.problem, paths, drawn.problem.fabric.ina_names)
    return min(planned.rate_bps for planned in plan.trees)


def bound_bps(problem: Problem) -> float:
    """A rate that no plan gives to every job, with any number of trees: the optimum of a linear program."""
    ground = Ground(problem.fabric, tasks_of(problem))
    worth = relax(ground, network(ground.fabric, ground.tasks))
    return worth / (1 + ground.worth.mu * len(ground.worth.jobs))
