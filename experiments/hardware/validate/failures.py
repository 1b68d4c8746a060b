"""Single failures of links and switches, and what each leaves of a network and its jobs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from inakit.experiments.hardware.validate.site import Withstand
from inakit.planner.core.collectives.collective_trees import trees_of
from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.fabric import Fabric, Link, Switch
from inakit.topo.fabric.up_down import Move, hops_to

JobLinks = Mapping[int, frozenset[tuple[str, str]]]
"""By the number of a job, the links that its part of a plan uses."""


@dataclass(frozen=True)
class Failure:
    """A switch that fails, or the link between two nodes."""

    nodes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the switch, or both ends of the link."""
        return "-".join(self.nodes)

    @property
    def kind(self) -> str:
        """`switch` or `link`."""
        return "switch" if len(self.nodes) == 1 else "link"

    def takes(self, one: str, other: str) -> bool:
        """Whether the link between two nodes is gone."""
        return {one, other} == set(self.nodes) if self.kind == "link" else self.nodes[0] in (one, other)


def single_failures(fabric: Fabric, withstand: Withstand) -> list[Failure]:
    """The failures to withstand: switches, then links, in the order of the fabric or of the file."""
    links = [(link.a, link.b) for link in fabric.links] if withstand.links is None else withstand.links
    switches = fabric.switch_by_name if withstand.switches is None else withstand.switches
    return [*(Failure((name,)) for name in switches), *(Failure(tuple(pair)) for pair in links)]


@dataclass(frozen=True)
class Remains:
    """What a failure leaves. `problem`: the network with the jobs that can go on, None where none can.

    `lost`: by the number of each other job, why it cannot. `touched`: the jobs that go on and whose plan led packets
    over what has failed.
    """

    problem: Problem | None
    lost: Mapping[int, str]
    touched: frozenset[int]


def after(problem: Problem, used: JobLinks, failure: Failure) -> Remains:
    """What is left of a problem, whose plan uses these links. Hosts that have no link any more are gone with it."""
    fabric = without(problem.fabric, failure)
    touched = {job for job, links in used.items() if any(failure.takes(*link) for link in links)}
    found = ((job.number, why_lost(problem.fabric, fabric, job, job.number in touched)) for job in problem.jobs)
    lost = {number: why for number, why in found if why}
    jobs = tuple(job for job in problem.jobs if job.number not in lost)
    left = replace(problem, fabric=fabric, jobs=jobs) if jobs else None
    return Remains(left, lost, frozenset(touched - lost.keys()))


def without(fabric: Fabric, failure: Failure) -> Fabric:
    """The fabric without what has failed, and without hosts that have no link any more."""
    links = tuple(link for link in fabric.links if not failure.takes(link.a, link.b))
    return linked(fabric, links, tuple(each for each in fabric.switches if (each.name,) != failure.nodes))


def linked(fabric: Fabric, links: tuple[Link, ...], switches: tuple[Switch, ...]) -> Fabric:
    """The fabric with these links and switches, and the hosts that have a link."""
    nodes = {node for link in links for node in (link.a, link.b)}
    return replace(fabric, hosts=tuple(h for h in fabric.hosts if h.name in nodes), switches=switches, links=links)


def why_lost(whole: Fabric, fabric: Fabric, job: Job, touched: bool) -> str:
    """Why a job cannot go on in what is left of a fabric: hosts that are cut off, or have no way; empty if it can.

    A job whose plan is not touched still has the ways of its plan.
    """
    absent = [host for host in (*job.workers, *job.servers) if host not in fabric.host_names]
    if absent:
        return f"cut off: {', '.join(f'{host} ({whole.tor_of(host)})' for host in absent)}"
    for server in job.servers if touched else ():
        hops = hops_to(fabric, server)
        away = [worker for worker in job.workers if (worker, Move.UP) not in hops]
        if away:
            return f"no up-down path to {server} from {', '.join(away)}"
    return ""


def links_of_jobs(plan: Plan) -> JobLinks:
    """By job, every link that its trees lead packets over: gradients, sums, results, and answers by address.

    Answers by address take links of the trees: `inakit.planner.install.plan_entries` makes their routes of these.
    """
    trees = [(shard.job, tree) for shard in plan.shards for tree in shard.trees]
    trees += [(each.job, tree) for each in plan.collectives for tree in trees_of(each)]
    found: dict[int, set[tuple[str, str]]] = {}
    for job, tree in trees:
        found.setdefault(job, set()).update(tree_links(tree))
    return {job: frozenset(links) for job, links in found.items()}


def tree_links(tree: AggregationTree) -> Iterator[tuple[str, str]]:
    """The links of a tree's branches, of its results, and of the way to the PS that stands by."""
    for branch in tree.branches:
        yield from branch.links
    yield from tree.result_parents.items()
    yield from pairwise(tree.fallback)


def for_jobs(plan: Plan, numbers: Container[int]) -> Plan:
    """The part of a plan that is for the jobs with these numbers."""
    shards = tuple(shard for shard in plan.shards if shard.job in numbers)
    return replace(plan, shards=shards, collectives=tuple(each for each in plan.collectives if each.job in numbers))
