"""The rules of lab 6: parsing of a student's trees, and the rules of the kit that each item checks.

A tree is `{"job": 1, "rate_bps": 4e6, "aggregators": {"a": {"switch": ..., "pipeline": ..., "first_slot": ..., "slots":
...}}, "paths": [{"from": "h1", "to": "a", "path": ["h1", "leaf1"]}, ...]}`. A path leads from a worker or an aggregator
to an aggregator or the server. Messages use the student's names, never the labels of the kit's trees.

`inakit.planner.core.check` stops at the first broken rule. An item tests one rule independently of all others, so each
function here calls the parts of the checker that its rule needs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from inakit.experiments.labs.course.plan_networks import LEAST_SLOTS
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.sandbox.untrusted import Reader, printable, shown
from inakit.planner.core.check import TreeCheck, check_capacity, check_overlap
from inakit.planner.core.loads import equal_rate_bps
from inakit.planner.core.plan import (
    ROOT_LABEL,
    AggregationTree,
    Aggregator,
    Branch,
    Plan,
    PlannedTree,
    SolverOutcome,
)
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import PlanError

TREE = ("job", "rate_bps", "aggregators", "paths")
AGGREGATOR = ("switch", "pipeline", "first_slot", "slots")
PATH = ("from", "to", "path")
READER = Reader(WrongError)
WASTED = 0.02
"""The relative shortfall up to which a rate does not count as wasteful."""
SOME = 1 / 3
"""The fraction of trees with a sum from which an item about aggregators is graded; flows can meet in far more."""


@dataclass(frozen=True)
class StudentPlan:
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

    @contextmanager
    def in_own_words(self) -> Iterator[None]:
        """Turn the checker's error into a `WrongError` in the student's names."""
        try:
            yield
        except PlanError as error:
            raise WrongError(self.in_words(str(error))) from None

    def routes_bps(self) -> float:
        """The rate of the worst-served job when the kit adds aggregators, slots and rates to the routes."""
        paths = {each.job: [each.tree.way(label) for label in each.tree.workers] for each in self.plan.trees}
        plan = plan_from_paths(self.problem, paths, self.problem.fabric.ina_names)
        return min(planned.rate_bps for planned in plan.trees)


# -- reading


def plan_of(answer: Any, problem: Problem) -> StudentPlan:
    """The trees of an answer. Raises `WrongError` unless it has the format of trees, one for each job."""
    found = READER.items("the plan", answer, "trees, one for each job,")
    given = [each.get("job") if isinstance(each, dict) else None for each in found]
    jobs = [job.number for job in problem.jobs]
    for number in given:
        if number not in jobs:
            raise WrongError(f"a tree is of job {shown(number)}: the jobs are {', '.join(map(str, jobs))}")
    for number in jobs:
        if given.count(number) != 1:
            raise WrongError(f"job {number} has {given.count(number)} trees, where one is expected")
    read = [TreeReader(job, found[given.index(job.number)]) for job in problem.jobs]
    trees = tuple(PlannedTree(each.job.number, 1.0, each.rate(), each.tree()) for each in read)
    plan = Plan("student", problem.fabric.name, trees, SolverOutcome("heuristic", 0.0))
    return StudentPlan(problem, plan, {each.job.number: each.names() for each in read})


class TreeReader:
    """Reads one tree of an answer, key by key."""

    def __init__(self, job: Job, given: Any) -> None:
        self.job, self.where = job, f"the tree of job {job.number}"
        self.given = READER.record(self.where, given, TREE)
        aggregators = self.given["aggregators"]
        self.aggregators = READER.mapping(f"{self.where}, 'aggregators'", aggregators, "aggregators by name")
        what = "paths, one for each worker and aggregator,"
        paths = READER.items(f"{self.where}, 'paths'", self.given["paths"], what)
        self.paths = [READER.record(f"{self.where}, path {n}", each, PATH) for n, each in enumerate(paths, start=1)]
        senders = [READER.text(f"{self.where}, 'from'", each["from"]) for each in self.paths]
        numbers = count(1)
        self.labels = {each: next(numbers) for each in dict.fromkeys([*job.workers, *senders, *self.aggregators])}

    def rate(self) -> float:
        """The rate of the tree."""
        return READER.number(f"{self.where}, 'rate_bps'", self.given["rate_bps"], positive=True)

    def tree(self) -> AggregationTree:
        """The tree."""
        branches = tuple(self.branch(number, each) for number, each in enumerate(self.paths, start=1))
        sums = tuple(self.aggregator(own, each, branches) for own, each in self.aggregators.items())
        senders = {each["from"] for each in self.paths} - set(self.aggregators)
        workers = {self.labels[each]: each for each in self.labels if each in senders}
        return AggregationTree(1, self.job.servers[0], workers, sums, branches)

    def branch(self, number: int, path: Mapping[str, Any]) -> Branch:
        """A path from its named sender to its named aggregator or server."""
        where = f"{self.where}, path {number}"
        to = READER.text(f"{where}, 'to'", path["to"])
        if to not in self.aggregators and to != self.job.servers[0]:
            raise WrongError(f"{where}: 'to' is {shown(to)}: no aggregator of this tree, and not its server")
        nodes = READER.items(f"{where}, 'path'", path["path"], "names of nodes")
        named = tuple(READER.text(f"{where}, 'path'", node) for node in nodes)
        return Branch(self.labels[path["from"]], self.labels[to] if to in self.aggregators else ROOT_LABEL, named)

    def aggregator(self, own: str, given: Any, branches: tuple[Branch, ...]) -> Aggregator:
        """An aggregator; its children are the senders with a path to it."""
        where = f"{self.where}, aggregator '{printable(own[:40])}'"
        if own in (*self.job.workers, self.job.servers[0]):
            raise WrongError(f"{where}: that is the name of a host; give the aggregator another one")
        read = READER.record(where, given, AGGREGATOR)
        numbers = [READER.whole(f"{where}, '{key}'", read[key]) for key in AGGREGATOR[1:]]
        children = tuple(branch.label for branch in branches if branch.parent == self.labels[own])
        return Aggregator(
            self.labels[own], READER.text(f"{where}, 'switch'", read["switch"]), numbers[0], children, *numbers[1:]
        )

    def names(self) -> dict[int, str]:
        """The names of the tree's labels for messages."""
        return {
            label: f"aggregator '{printable(own[:40])}'" if own in self.aggregators else printable(own[:40])
            for own, label in self.labels.items()
        }


# -- rules


def check_ends(found: StudentPlan) -> None:
    """Every worker's path ends at the server; the other rules are undefined for trees with cycles."""
    for planned, job in zip(found.plan.trees, found.problem.jobs, strict=True):
        tree, names = planned.tree, found.names[planned.job]
        sent = Counter(branch.label for branch in tree.branches)
        for label, own in names.items():
            if label not in tree.aggregator_of and own not in job.workers:
                raise WrongError(f"job {planned.job}: a path begins at {own}, which is no worker of this job")
        for label, own in names.items():
            if sent[label] != 1:
                raise WrongError(f"job {planned.job}: {own} has {sent[label]} paths, where one is expected")
        for label in tree.workers:
            passed: set[int] = set()
            here = label
            while here != ROOT_LABEL:
                if here in passed:
                    circle = "aggregators send to each other in a circle"
                    raise WrongError(f"job {planned.job}: {names[label]} never comes to the server: {circle}")
                passed.add(here)
                here = tree.branch_of[here].parent


def check_links(found: StudentPlan) -> None:
    """Paths follow links over switches; link loads are undefined for missing links."""
    with found.in_own_words():
        for planned in found.plan.trees:
            check = TreeCheck(found.problem, planned)
            for branch in planned.tree.branches:
                check.check_path(branch)


def check_climbs(found: StudentPlan) -> None:
    """Each worker's path climbs before it descends."""
    with found.in_own_words():
        for planned in found.plan.trees:
            check = TreeCheck(found.problem, planned)
            for branch in planned.tree.branches:
                check.check_path(branch)
            for branch in planned.tree.branches:
                check.check_way(branch.label)


def check_rates(found: StudentPlan) -> None:
    """No link is overloaded, and the lowest rate is the highest that these trees allow."""
    with found.in_own_words():
        check_capacity(found.problem, found.plan)
    slowest = min(found.plan.trees, key=lambda planned: planned.rate_bps)
    best = equal_rate_bps(found.problem.fabric, [planned.tree for planned in found.plan.trees])
    if slowest.rate_bps < best * (1 - WASTED):
        raise WrongError(
            f"job {slowest.job} has {slowest.rate_bps:g} bit/s, where these trees leave every job {best:g} bit/s"
        )


def check_sums(found: StudentPlan) -> None:
    """Flows of one job that enter an INA switch in one pipeline leave it as one flow."""
    fabric = found.problem.fabric
    for planned in found.plan.trees:
        # By switch and pipeline, the labels of flows that leave unsummed and of the aggregators' sums.
        passing: dict[tuple[str, int], list[int]] = defaultdict(list)
        for branch in planned.tree.branches:
            for before, node in pairwise(branch.path[:-1]):
                passing[node, fabric.ingress_pipeline(node, before)].append(branch.label)
        for aggregator in planned.tree.aggregators:
            passing[aggregator.inp].append(aggregator.label)
        for (switch, pipeline), flows in passing.items():
            if len(flows) > 1 and switch in fabric.ina_names:
                who = " and ".join(found.names[planned.job][label] for label in flows[:2])
                raise WrongError(
                    f"job {planned.job}: {who} both come to {switch} in pipeline {pipeline}, and {len(flows)} flows go "
                    "on from there, where one sum would do"
                )


def check_some_sum(found: Sequence[StudentPlan]) -> None:
    """Enough trees have an aggregator of several flows, without which rules about aggregators hold for nothing."""
    trees = [planned.tree for plan in found for planned in plan.plan.trees]
    parents = [Counter(branch.parent for branch in tree.branches) for tree in trees]
    some = sum(
        any(sent[each.label] > 1 for each in tree.aggregators) for tree, sent in zip(trees, parents, strict=True)
    )
    if some < SOME * len(trees):
        raise WrongError(
            f"{some} of {len(trees)} trees sum two flows or more somewhere: a third is expected, since no rule about "
            "sums is followed where nothing is summed"
        )


def check_other_pipelines(found: Sequence[StudentPlan]) -> None:
    """Some sums, and not only in the first pipeline of each switch."""
    check_some_sum(found)
    if not any(each.pipeline for plan in found for planned in plan.plan.trees for each in planned.tree.aggregators):
        raise WrongError("no flows are summed in other pipelines than 0, though flows enter by others, too")


def check_where(found: StudentPlan) -> None:
    """Aggregators are on INA switches."""
    for planned in found.plan.trees:
        for each in planned.tree.aggregators:
            if each.switch not in found.problem.fabric.ina_names:
                who, where = found.names[planned.job][each.label], shown(each.switch)
                raise WrongError(f"rule 'ina' is broken in job {planned.job}: {who} is on {where}, which cannot sum")


def check_pipelines(found: StudentPlan) -> None:
    """An aggregator's pipeline exists, and all its senders enter by it."""
    with found.in_own_words():
        for planned in found.plan.trees:
            for branch in planned.tree.branches:
                TreeCheck(found.problem, planned).check_pipeline(branch)


def check_slots(found: StudentPlan) -> None:
    """Segments of slots are large enough, lie within the pipeline's slots, and do not overlap."""
    for planned in found.plan.trees:
        for each in planned.tree.aggregators:
            where = f"job {planned.job}, {found.names[planned.job][each.label]} on {shown(each.switch)}"
            switch = found.problem.fabric.switch_by_name.get(each.switch)
            has = switch.aggregator_slots if switch is not None else 0
            if each.slots < LEAST_SLOTS:
                raise WrongError(f"rule 'slots' is broken in {where}: {each.slots} slots, {LEAST_SLOTS} are needed")
            if each.first_slot + each.slots > has:
                end = each.first_slot + each.slots
                raise WrongError(f"rule 'slots' is broken in {where}: they end at {end}, the pipeline has {has}")
    with found.in_own_words():
        check_overlap(found.plan)
