"""The unfolded graphs of several tasks with interchangeable nodes merged: the same routings, far fewer variables.

Workers of a task under one switch (and in one pipeline, if the switch sums) differ only in their names, so only their
number counts. Common switches with the same neighbours, capacities and pipelines are twins: one node represents a class
of them, and the flows of the class are distributed over its members afterwards
(`inakit.planner.methods.aro.several_routing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil, inf

from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.aro.task_graphs import LinksByNode, Task, grouped
from inakit.planner.solvers import LinearProgram, Term
from inakit.planner.trees.from_paths import sums_of
from inakit.planner.trees.unfolding import unfold
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path


@dataclass(frozen=True)
class ReducedGraph(LinksByNode):
    """One task's graph. Its nodes are switches, classes of twins under the name of their first member, and the PS.

    `links` are the links that flows can use; `starting[z]` counts the workers' flows that begin in common switch z;
    `entering[inp]` lists the links into an INP, and `local[inp]` counts the workers that send to it directly.
    `most_flows[z]` is the maximum number of flows that leave a node: the sums of its INPs, or all flows into a common
    switch. `both_roles` are the links of workers that are also PSs of other tasks, where results meet gradients.
    """

    task: Task
    links: tuple[DirectedLink, ...]
    starting: Counter[str]
    local: Counter[Inp]
    entering: dict[Inp, tuple[DirectedLink, ...]]
    most_flows: Mapping[str, int]
    both_roles: tuple[DirectedLink, ...] = ()

    @cached_property
    def aggregating(self) -> list[str]:
        return list(dict.fromkeys(switch for switch, _ in self.entering))

    @cached_property
    def common(self) -> list[str]:
        known = {*self.aggregating, self.task.server}
        return [z for z in dict.fromkeys((*self.starting, *self.into)) if z not in known]


@dataclass(frozen=True)
class ReducedNetwork:
    """All tasks' graphs, and their shared resources.

    `twins[z]` are the members of node z, all of the class `class_of[z]`; `access` gives the tasks that share a worker's
    own link, and the least capacity of these links. `detailed` is the same network without twins among switches that
    sum, None if there are none. With `results` links also carry returning results, and then no switch of `detailed` has
    twins.
    """

    fabric: Fabric
    graphs: tuple[ReducedGraph, ...]
    twins: Mapping[str, tuple[str, ...]]
    class_of: dict[str, str]
    access: dict[tuple[int, ...], float]
    detailed: ReducedNetwork | None = None
    results: bool = False

    @property
    def fine(self) -> ReducedNetwork:
        """The network without twins among switches that sum; with results, without any twins."""
        return self.detailed or self

    @cached_property
    def tasks_on(self) -> dict[DirectedLink, list[int]]:
        found: dict[DirectedLink, list[int]] = defaultdict(list)
        for i, graph in enumerate(self.graphs):
            for link in graph.links:
                found[link].append(i)
            for u, v in (*graph.links, *graph.both_roles) if self.results else ():
                found[v, u].append(i)
        return dict(found)

    def only(self, tasks: Sequence[int]) -> ReducedNetwork:
        """The network of only these tasks, without `access`."""
        detailed = self.detailed and self.detailed.only(tasks)
        return replace(self, graphs=tuple(self.graphs[i] for i in tasks), access={}, detailed=detailed)

    def beside(self, loads_bps: Mapping[DirectedLink, float]) -> ReducedNetwork:
        """The network with the capacities that these loads leave, at least 1 bit/s. It must not have twins."""

        def left(u: str, v: str, capacity: float) -> float:
            return max(1.0, capacity - loads_bps.get((u, v), 0.0))

        links = tuple(
            replace(
                link,
                capacity_ab_bps=left(link.a, link.b, link.capacity_ab_bps),
                capacity_ba_bps=left(link.b, link.a, link.capacity_ba_bps),
            )
            for link in self.fabric.links
        )
        return replace(self, fabric=replace(self.fabric, links=links))

    def width(self, link: DirectedLink) -> int:
        """The number of links of the fabric that a link represents."""
        return len(self.members(link[0])) * len(self.members(link[1]))

    def size(self, node: str) -> int:
        """The number of switches that a node represents."""
        return len(self.members(node))

    def members(self, node: str) -> tuple[str, ...]:
        """The switches that a node represents; the node itself if it is not a class."""
        return self.twins.get(node, (node,))


def network(
    fabric: Fabric, tasks: Sequence[Task], parts: Mapping[str, int] | None = None, *, results: bool = False
) -> ReducedNetwork:
    """Build the graphs of the tasks. A class of twins is one node, or `parts[its name]` nodes.

    With `results` results are routed too. Raises `InputError` when a worker cannot reach its PS.
    """
    links = []  # by task, the links between its workers' ToRs and the PS
    for task in tasks:
        tors = dict.fromkeys(map(fabric.tor_of, task.job.workers))
        used = unfold(fabric, task.server, task.job.workers).links(tors)
        links.append([(u, v) for u, v in used if not {u, v} & task.without])
    with_hosts = {fabric.tor_of(host) for task in tasks for host in (*task.job.workers, task.server)}
    alike: dict[object, list[str]] = defaultdict(list)
    for switch in (switch.name for switch in fabric.switches if switch.name not in with_hosts):
        left_out = tuple(switch in task.without for task in tasks)
        alike[surroundings(fabric, switch), left_out].append(switch)
    classes = {members[0]: tuple(members) for members in alike.values()}
    twins = {}
    for z, members in classes.items():
        size = ceil(len(members) / (parts or {}).get(z, 1))  # the size of equal parts
        twins.update({members[start]: members[start : start + size] for start in range(0, len(members), size)})
    class_of = {member: z for z, members in classes.items() for member in members}
    access = access_links(fabric, tasks, results=results)
    servers = {task.server for task in tasks}

    def joined(twins: Mapping[str, tuple[str, ...]], detailed: ReducedNetwork | None = None) -> ReducedNetwork:
        first = {member: node for node, members in twins.items() for member in members}
        graphs = tuple(reduce_task(fabric, task, own, first, servers) for task, own in zip(tasks, links, strict=True))
        return ReducedNetwork(fabric, graphs, twins, class_of, access, detailed, results)

    names = fabric.switch_by_name if results else fabric.ina_names
    alone: dict[str, tuple[str, ...]] = {}
    for node, members in twins.items():
        alone |= {member: (member,) for member in members} if node in names else {node: members}
    return joined(twins, joined(alone) if len(alone) > len(twins) else None)


def surroundings(fabric: Fabric, switch: str) -> object:
    """Properties that distinguish switches: tier, INA, children, neighbours, links with capacities and pipelines."""

    def pipeline(one: str, other: str) -> int | None:
        sums = one in fabric.switch_by_name and fabric.switch_by_name[one].ina
        return fabric.ingress_pipeline(one, other) if sums else None

    def link(peer: str) -> object:
        capacities = fabric.capacities_bps[switch, peer], fabric.capacities_bps[peer, switch]
        return peer, *capacities, pipeline(peer, switch), pipeline(switch, peer)

    kind = fabric.switch_by_name[switch]
    return (
        kind.tier,
        kind.ina,
        kind.ina and most_children(fabric, switch),
        frozenset(link(peer) for peer in fabric.neighbors[switch]),
    )


def reduce_task(
    fabric: Fabric, task: Task, own: Iterable[DirectedLink], first: Mapping[str, str], servers: Collection[str]
) -> ReducedGraph:
    """Build the task's graph of its `own` links, where `first[switch]` replaces a switch that has twins.

    `servers` are the PSs of all tasks.
    """
    tors = [fabric.tor_of(worker) for worker in task.job.workers]
    links = {(first.get(u, u), first.get(v, v)): (u, v) for u, v in own}
    sums = fabric.ina_names
    entering: dict[Inp, list[DirectedLink]] = defaultdict(list)
    for link, (u, v) in links.items():
        if v in sums:
            entering[link[1], fabric.ingress_pipeline(v, u)].append(link)
    local: Counter[Inp] = Counter()
    for tor, worker in zip(tors, task.job.workers, strict=True):
        if tor in sums:
            local[tor, fabric.ingress_pipeline(tor, worker)] += 1
    inps = {inp: tuple(entering[inp]) for inp in dict.fromkeys((*local, *entering))}
    starting = Counter(tor for tor in tors if tor not in sums)
    into, sizes = grouped(links, 1), Counter(first.values())
    most: dict[str, int] = {}

    def arriving(count: int, links: Iterable[DirectedLink]) -> int:
        return min(len(tors), count + sum(leaving(u) for u, _ in links))

    def leaving(node: str) -> int:
        if node not in most:
            own = [inp for inp in inps if inp[0] == node]
            made = (sums_of(arriving(local[inp], inps[inp]), most_children(fabric, node)) for inp in own)
            most[node] = max(1, sizes[node]) * sum(made) if own else arriving(starting[node], into[node])
        return min(len(tors), most[node])

    most_flows = {node: leaving(node) for node in grouped(links, 0)}
    both_roles = tuple((worker, tor) for worker, tor in zip(task.job.workers, tors, strict=True) if worker in servers)
    return ReducedGraph(task, tuple(links), starting, local, inps, most_flows, both_roles)


def access_links(fabric: Fabric, tasks: Sequence[Task], *, results: bool = False) -> dict[tuple[int, ...], float]:
    """For each set of tasks that a host sends for, the least capacity in bit/s of the links of such hosts.

    A worker sends a flow of each of its tasks. With `results` it also receives one of each, and a PS sends one.
    """
    sharing: dict[DirectedLink, list[int]] = defaultdict(list)
    for i, task in enumerate(tasks):
        for worker in task.job.workers:
            sharing[worker, fabric.tor_of(worker)].append(i)
            if results:
                sharing[fabric.tor_of(worker), worker].append(i)
        if results:
            sharing[task.server, fabric.tor_of(task.server)].append(i)
    found: dict[tuple[int, ...], float] = {}
    for link, together in sharing.items():
        capacity = fabric.capacities_bps[link]
        found[tuple(together)] = min(capacity, found.get(tuple(together), capacity))
    return found


# -- How results return, in the model of a routing: one copy on each link that they use, against the task's gradients.
#
# z[v, u] counts the copies from v to u. Results reach u only over links on which gradients go from u to v; they leave u
# only if they reach u; and they reach every ToR with workers. Gradients and results of one task never use a link in the
# same direction, because the unfolded graph has one direction on each link.

ONE = 1e-6
"""A greater count of copies is one."""


def result_columns(
    program: LinearProgram,
    net: ReducedNetwork,
    graph: ReducedGraph,
    y: Mapping[DirectedLink, int],
    most: Mapping[DirectedLink, int] | None = None,
    rate: int | None = None,
) -> dict[DirectedLink, int]:
    """Add a task's z to the program; return the columns by link.

    `y` are the columns of the task's gradients, and `most[v, u]` limits the copies on a link. With the column
    of a `rate` y and z are multiplied by it.
    """
    z = {(v, u): program.variable(0, most[v, u] if most else inf) for u, v in graph.links}
    for (v, u), column in z.items():
        program.at_most([(1, column), (-1, y[u, v])], 0)
        if rate is not None:
            program.at_most([(1, column), (-net.width((v, u)), rate)], 0)
    for tor in dict.fromkeys((*graph.starting, *(switch for switch, _ in graph.local))):
        came: list[Term] = [(1, z[v, tor]) for _, v in graph.out_of[tor]]
        program.at_least(came if rate is None else [*came, (-1, rate)], 1 if rate is None else 0)
    for (u, w), column in z.items():
        if u != graph.task.server:  # results leave only the nodes that they reach
            program.at_most([(1, column), *((-float(net.size(w)), z[v, u]) for _, v in graph.out_of[u])], 0)
    return z | {(v, u): program.variable(1, 1) if rate is None else rate for u, v in graph.both_roles}


def result_parents(
    fabric: Fabric, graph: ReducedGraph, paths: Iterable[Path], copies: Collection[DirectedLink]
) -> dict[str, str]:
    """For each node, workers included, the node that sends it results: along `copies` where these follow gradients.

    `paths` are the pieces of the task's gradient paths.
    """
    onward: dict[str, list[str]] = {}
    for u, v in (link for path in paths for link in pairwise(path)):
        onward.setdefault(u, []).append(v)
    parents: dict[str, str] = {}
    for worker in graph.task.job.workers:
        parents[worker] = node = fabric.tor_of(worker)
        while node != graph.task.server and node not in parents:
            above = onward[node]
            parents[node] = next((other for other in above if (other, node) in copies), above[0])
            node = parents[node]
    return parents
