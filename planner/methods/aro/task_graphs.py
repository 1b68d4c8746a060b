"""Aggregation tasks, and the graph of each in ARO: unfolded, every INA switch decoupled into INPs and an OP."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import Inp, limited_pipelines, most_children
from inakit.planner.trees.from_paths import sums_of
from inakit.planner.trees.unfolding import unfold
from inakit.topo.fabric.fabric import DirectedLink, Fabric

TaskKey = tuple[int, str]
"""The number of the job, and the PS: a task's key in `plan_from_paths`."""


@dataclass(frozen=True)
class Task:
    """Task i of the paper: D[i] is `server`, and N[i]_w are the job's workers.

    Its graph omits the switches `without`, which SRO and APP prune.
    """

    job: Job
    server: str
    without: frozenset[str] = frozenset()

    @property
    def key(self) -> TaskKey:
        return self.job.number, self.server


def tasks_of(problem: Problem) -> tuple[Task, ...]:
    """All tasks, job by job: the union of T_s over the jobs s in S."""
    return tuple(Task(job, server) for job in problem.jobs for server in job.servers)


class LinksByNode:
    """The links of a graph by the node that they enter and by the node that they leave."""

    links: tuple[DirectedLink, ...]

    @cached_property
    def into(self) -> dict[str, list[DirectedLink]]:
        return grouped(self.links, end=1)

    @cached_property
    def out_of(self) -> dict[str, list[DirectedLink]]:
        return grouped(self.links, end=0)


@dataclass(frozen=True)
class TaskGraph(LinksByNode):
    """The links that the task can use (a = 1), and the kinds of its nodes.

    A link into an INA switch enters the INP of its ingress pipeline, a link out of it leaves from its OP. The virtual
    links from INPs to their OP, which carry x, are implicit.
    """

    fabric: Fabric
    workers: tuple[str, ...]
    server: str
    links: tuple[DirectedLink, ...]

    @cached_property
    def inps(self) -> dict[Inp, list[DirectedLink]]:
        """The INPs of the task (N_inp), and the links into each."""
        found: dict[Inp, list[DirectedLink]] = {}
        for switch in self.aggregating:
            for link in self.into[switch]:
                found.setdefault((switch, self.fabric.ingress_pipeline(switch, link[0])), []).append(link)
        return found

    @cached_property
    def aggregating(self) -> list[str]:
        """The INA switches; each has one OP (N_op)."""
        return [node for node in self.into if node != self.server and self.fabric.switch_by_name[node].ina]

    @cached_property
    def inps_of(self) -> dict[str, list[Inp]]:
        found: dict[str, list[Inp]] = {}
        for inp in self.inps:
            found.setdefault(inp[0], []).append(inp)
        return found

    @cached_property
    def common(self) -> list[str]:
        """The common switches (N_cs), which forward and do not sum."""
        known = {self.server, *self.aggregating}
        return [node for node in self.into if node not in known]

    @cached_property
    def most_flows(self) -> dict[str, int]:
        """The most flows that leave each worker and switch: its INPs' sums, or all flows into a common switch."""
        most = dict.fromkeys(self.workers, 1)

        def arriving(links: Iterable[DirectedLink]) -> int:
            return min(len(self.workers), sum(count(u) for u, _ in links))

        def count(node: str) -> int:
            if node not in most:
                sums = (self.sums_of(inp, arriving(self.inps[inp])) for inp in self.inps_of.get(node, ()))
                most[node] = sum(sums) or arriving(self.into[node])
            return most[node]

        return {node: count(node) for node in self.out_of}

    @cached_property
    def most_sums(self) -> dict[Inp, int]:
        """The maximum number of flows that leave each INP: one, unless its flows can need several sums."""
        workers = len(self.workers)
        return {
            inp: self.sums_of(inp, min(workers, sum(self.most_flows[u] for u, _ in links)))
            for inp, links in self.inps.items()
        }

    @cached_property
    def access(self) -> list[DirectedLink]:
        """The workers' own links, each of which carries one flow."""
        return [link for worker in self.workers for link in self.out_of[worker]]

    @cached_property
    def inner_links(self) -> list[DirectedLink]:
        access = set(self.access)
        return [link for link in self.links if link not in access]

    @cached_property
    def starting(self) -> Counter[str]:
        """By common switch, the workers whose flows begin there."""
        return Counter(link[1] for link in self.access if self.inp(link) is None)

    @cached_property
    def local(self) -> Counter[Inp]:
        """By INP, the workers that send to it directly."""
        return Counter(inp for inp in map(self.inp, self.access) if inp is not None)

    @cached_property
    def capacities_bps(self) -> dict[DirectedLink, float]:
        return {link: self.fabric.capacities_bps[link] for link in self.links}

    @cached_property
    def aggregation_rates_bps(self) -> dict[str, float]:
        """The bit/s that each INA switch sums, where limited."""
        rates = {z: self.fabric.switch_by_name[z].aggregation_rate_bps for z in self.aggregating}
        return {z: rate for z, rate in rates.items() if rate is not None}

    @cached_property
    def pipeline_rates_bps(self) -> dict[str, float]:
        """The bit/s that each pipeline sums, of every INA switch whose chip recirculates."""
        rates = limited_pipelines(self.fabric)
        return {z: rates[z] for z in self.aggregating if z in rates}

    def used(self, flows: Mapping[DirectedLink, int]) -> set[Inp]:
        return {inp for inp, entering in self.inps.items() if any(flows[link] for link in entering)}

    def sums_of(self, inp: Inp, flows: int) -> int:
        return sums_of(flows, most_children(self.fabric, inp[0]))

    def without(self, switches: Collection[str]) -> TaskGraph | None:
        """The graph without these switches and what leads only to them; None if a worker then cannot reach the PS."""
        left = [link for link in self.links if not {*link} & {*switches}]
        ending = reached([self.server], [(v, u) for u, v in left])
        if not ending.issuperset(self.workers):
            return None
        begun = reached(self.workers, left)
        links = tuple((u, v) for u, v in left if u in begun and v in ending)
        return TaskGraph(self.fabric, self.workers, self.server, links)

    def inp(self, link: DirectedLink) -> Inp | None:
        """The INP that a link enters; None at a common switch or the PS."""
        if link[1] == self.server or not self.fabric.switch_by_name[link[1]].ina:
            return None
        return link[1], self.fabric.ingress_pipeline(link[1], link[0])


def reached(start: Sequence[str], links: Iterable[DirectedLink]) -> set[str]:
    """The nodes of `start`, and those to which `links` lead from one of them."""
    leaving = grouped(links, end=0)
    found, left = {*start}, [*start]
    while left:
        new = [peer for _, peer in leaving[left.pop()] if peer not in found]
        found.update(new)
        left += new
    return found


def grouped(links: Iterable[DirectedLink], end: int) -> dict[str, list[DirectedLink]]:
    """The links by the node at one end: the source for 0, the destination for 1."""
    found: defaultdict[str, list[DirectedLink]] = defaultdict(list)
    for link in links:
        found[link[end]].append(link)
    return found


def task_graph(fabric: Fabric, workers: Sequence[str], server: str) -> TaskGraph:
    """The graph of the task. Raises `InputError` when a worker cannot reach the PS."""
    return TaskGraph(fabric, tuple(workers), server, unfold(fabric, server, workers).links(workers))
