"""One rule at a time: the kit's independent checker, asked about one property of a student's trees.

`inakit.planner.core.check` stops at the first rule that is broken. An item is about one rule, whatever else is wrong,
so each function here asks those parts of the checker that its rule needs. What it finds is told in the student's names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.plan.networks import LEAST_SLOTS
from inakit.experiments.labs.plan.tree_format import Drawn, said
from inakit.planner.core.check import TreeCheck, check_capacity, check_overlap
from inakit.planner.core.loads import equal_rate_bps
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Fabric

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
    """The checker of each tree."""
    for shard in drawn.plan.shards:
        yield TreeCheck(drawn.problem, shard, shard.trees[0])


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
    slowest = min(drawn.plan.shards, key=lambda shard: shard.rate_bps)
    best = equal_rate_bps(drawn.problem.fabric, [shard.trees[0] for shard in drawn.plan.shards])
    if slowest.rate_bps < best * (1 - WASTED):
        raise WrongError(
            f"job {slowest.job} has {slowest.rate_bps:g} bit/s, where these trees leave every job {best:g} bit/s"
        )


def check_sums(drawn: Drawn) -> None:
    """What arrives at an INA switch in one pipeline, for one job, leaves it as one flow."""
    for shard in drawn.plan.shards:
        fabric, tree = drawn.problem.fabric, shard.trees[0]
        for (switch, pipeline), flows in passing(fabric, tree).items():
            if len(flows) > 1 and switch in fabric.ina_names:
                who = " and ".join(drawn.names[shard.job][label] for label in flows[:2])
                raise WrongError(
                    f"job {shard.job}: {who} both come to {switch} in pipeline {pipeline}, and {len(flows)} flows go "
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
    """Aggregators are at INA switches."""
    for shard in drawn.plan.shards:
        for each in shard.trees[0].aggregators:
            if each.switch not in drawn.problem.fabric.ina_names:
                who, where = drawn.names[shard.job][each.label], said(each.switch)
                raise WrongError(f"rule 'ina' is broken in job {shard.job}: {who} is on {where}, which cannot sum")


def check_pipelines(drawn: Drawn) -> None:
    """An aggregator's senders arrive in its pipeline, which its switch has."""
    with told_in_words(drawn):
        for check in checks_of(drawn):
            for branch in check.tree.branches:
                check.check_pipeline(branch)


def check_slots(drawn: Drawn) -> None:
    """Segments of slots are large enough, within the pipeline's, and do not overlap."""
    for shard in drawn.plan.shards:
        for each in shard.trees[0].aggregators:
            where = f"job {shard.job}, {drawn.names[shard.job][each.label]} on {said(each.switch)}"
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
    for shard, job in zip(drawn.plan.shards, drawn.problem.jobs, strict=True):
        tree, names = shard.trees[0], drawn.names[shard.job]
        sent = Counter(branch.label for branch in tree.branches)
        for label, own in names.items():
            if label not in tree.aggregator_of and own not in job.workers:
                raise WrongError(f"job {shard.job}: a path begins at {own}, which is no worker of this job")
        for label, own in names.items():
            if sent[label] != 1:
                raise WrongError(f"job {shard.job}: {own} has {sent[label]} paths, where one is expected")
        for label in tree.workers:
            follow(tree, label, f"job {shard.job}: {names[label]}")


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
