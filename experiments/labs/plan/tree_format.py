"""What a student's planner is given and returns, in JSON, and the kit's plan that it stands for.

A tree is `{"job": 1, "rate_bps": 4e6, "aggregators": {"a": {"switch": ..., "pipeline": ..., "first_slot": ...,
"slots": ...}}, "paths": [{"from": "h1", "to": "a", "path": ["h1", "leaf1"]}, ...]}`. A path leads from a worker or an
aggregator to an aggregator or the server. Labels of the kit's trees never show: messages have the student's names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from math import isfinite
from typing import Any

from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.sandbox.process import printable
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch, Plan, Shard, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.fabric import Fabric

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
    """The jobs as a planner is given them, each with one server."""
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
    shards = tuple(Shard(each.job.number, 1, 1.0, each.rate(), (each.tree(),)) for each in read)
    plan = Plan("student", problem.fabric.name, shards, SolverOutcome("heuristic", 0.0))
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
        """The rate of each worker, in bit/s."""
        rate = self.given["rate_bps"]
        if type(rate) not in (int, float) or not isfinite(rate) or rate <= 0:
            raise WrongError(f"{self.where}: 'rate_bps' is {said(rate)}: a number of bit/s above 0 is expected")
        return float(rate)

    def tree(self) -> AggregationTree:
        """The tree."""
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
    """A dict with these keys and no others."""
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
    """A name."""
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
    """The numbers of the jobs."""
    return ", ".join(str(job.number) for job in problem.jobs)
