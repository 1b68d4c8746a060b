"""The cluster for placement: its hosts, static routes, and the steady-state rates of running jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.fair_rates import Usage, max_min_rates
from inakit.planner.core.problem import FragmentFormat
from inakit.planner.placement.queue import QueuedJob
from inakit.planner.trees.unfolding import Unfolded, static_path, unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- Blocks of hosts (racks, pods, all), free hosts, and static routes.


@dataclass(frozen=True)
class Block:
    """A group of hosts: a rack, whose `parts` are empty, or a block of smaller ones."""

    hosts: tuple[str, ...]
    parts: tuple[Block, ...] = ()

    @property
    def racks(self) -> tuple[Block, ...]:
        """The racks of the block."""
        return tuple(rack for part in self.parts for rack in part.racks) if self.parts else (self,)


@dataclass
class Cluster:
    """A fabric whose hosts are free or taken; every host takes one worker or PS at a time."""

    fabric: Fabric
    free: set[str] = field(init=False)
    routes: dict[tuple[str, str, int], Path] = field(default_factory=dict)
    unfolded: dict[str, Unfolded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = set(self.fabric.host_names)

    @cached_property
    def blocks(self) -> Block:
        """All hosts: racks, and above them the blocks that the switches up to each tier connect."""
        graph: nx.Graph[str] = nx.Graph()
        racks: dict[str, list[str]] = {}
        for host in self.fabric.hosts:
            racks.setdefault(self.fabric.tor_of(host.name), []).append(host.name)
        blocks = {tor: Block(tuple(hosts)) for tor, hosts in racks.items()}
        for tier in sorted({switch.tier for switch in self.fabric.switches}):
            graph.add_nodes_from(switch.name for switch in self.fabric.switches if switch.tier <= tier)
            graph.add_edges_from((x.a, x.b) for x in self.fabric.links if x.a in graph and x.b in graph)
            for joined in nx.connected_components(graph):
                parts = {id(blocks[tor]): blocks[tor] for tor in racks if tor in joined}
                if len(parts) > 1:
                    above = Block(tuple(h for part in parts.values() for h in part.hosts), tuple(parts.values()))
                    blocks |= {tor: above for tor in racks if tor in joined}
        return next(iter(blocks.values()))

    @cached_property
    def places(self) -> dict[DirectedLink, int]:
        """The place of every directed link in arrays."""
        return {link: place for place, link in enumerate(self.fabric.capacities_bps)}

    @cached_property
    def uplinks(self) -> dict[str, NDArray[np.int64]]:
        """By switch, the places of its links to other switches."""
        neighbors, switches = self.fabric.neighbors, self.fabric.switch_by_name
        return {
            name: np.array([self.places[name, peer] for peer in neighbors[name] if peer in switches], np.int64)
            for name in switches
        }

    @cached_property
    def capacities_bps(self) -> NDArray[np.float64]:
        """The capacity of every link by its place, in bit/s."""
        return np.array(list(self.fabric.capacities_bps.values()))

    def free_hosts(self, block: Block) -> list[str]:
        """The free hosts of a block."""
        return [host for host in block.hosts if host in self.free]

    def take(self, hosts: Iterable[str]) -> None:
        """Give hosts to a job."""
        self.free -= set(hosts)

    def give_back(self, hosts: Iterable[str]) -> None:
        """Free the hosts of a job that has ended."""
        self.free |= set(hosts)

    def route(self, tor: str, root: str, turn: int) -> Path:
        """The static path between two ToRs."""
        key = tor, root, turn
        if key not in self.routes:
            if root not in self.unfolded:
                self.unfolded[root] = unfold(self.fabric, root)
            self.routes[key] = static_path(self.unfolded[root], tor, turn)
        return self.routes[key]

    def tree(self, workers: Sequence[str], server: str, turn: int) -> JobTree:
        """The static tree of a job's workers to one PS."""
        root = self.fabric.tor_of(server)
        entering = Counter(map(self.fabric.tor_of, workers))
        parents = {root: server}
        for tor in entering:
            parents |= dict(pairwise(self.route(tor, root, turn)))
        return JobTree(tuple(workers), server, dict(entering), parents, self.fabric.ina_names)


@dataclass(frozen=True)
class JobTree:
    """A tree towards a PS: the workers below each ToR, every switch's next hop, and the switches that can sum."""

    workers: tuple[str, ...]
    server: str
    entering: dict[str, int]
    parents: dict[str, str]
    ina_names: frozenset[str]

    @cached_property
    def summing(self) -> list[str]:
        """The INA switches at which flows meet if every such switch sums."""
        flows = Counter(self.entering)
        found = []
        for node in self.order:
            leaving = flows[node]
            if leaving > 1 and node in self.ina_names:
                found.append(node)
                leaving = 1
            flows[self.parents[node]] += leaving
        return found

    @cached_property
    def order(self) -> list[str]:
        """The switches, each before its next hop."""
        depth: dict[str, int] = {self.server: 0}

        def depth_of(node: str) -> int:
            if node not in depth:
                depth[node] = 1 + depth_of(self.parents[node])
            return depth[node]

        return sorted(self.parents, key=lambda node: -depth_of(node))


def check_queue(fabric: Fabric, queue: Sequence[QueuedJob]) -> None:
    """Raise `InputError` for a job that is larger than the cluster."""
    for job in queue:
        if job.hosts > len(fabric.hosts):
            raise InputError(
                f"queued job {job.number} needs {job.hosts} hosts, fabric '{fabric.name}' has {len(fabric.hosts)}"
            )


# -- The steady-state rates of running jobs: max-min fair on links, with INA within the memory of switches.
#
# A job's tree sums the fraction `summed` of its fragments at every INA switch where flows meet: all of them if INA is
# exclusive, none without INA. Statistical INA sums fragments that find a free slot. A switch of S slots that are held
# for a round trip T sums S fragments in T; if jobs bring more, each loses the same fraction (NetPack's steady state, as
# we read it). Fragments that are not summed continue unchanged.

ROUNDS = 2
"""The number of rounds in which rates and summed fractions are computed from one another."""


@dataclass(eq=False)
class Running:
    """A running job: its tree, whether it has INA, the remaining iterations, and its rate in bit/s."""

    cluster: Cluster
    job: QueuedJob
    hosts: tuple[str, ...]
    tree: JobTree
    start_s: float
    left: float
    ina: bool = False
    ina_s: float = 0.0
    rate_bps: float = 0.0
    trees: dict[int, JobTree] = field(default_factory=dict)
    usages: dict[tuple[int, float], Usage] = field(default_factory=dict)

    def iteration_s(self, bits: float) -> float:
        """The seconds of an iteration that computes and then sends the given number of bits."""
        return self.job.compute_s + bits / self.rate_bps

    def tree_of(self, turn: int) -> JobTree:
        """The job's static tree of this number."""
        if turn not in self.trees:
            self.trees[turn] = self.cluster.tree(self.tree.workers, self.tree.server, turn)
        return self.trees[turn]

    def usage(self, summed: float) -> Usage:
        """The usage of a job if the fraction `summed` of its fragments is summed where flows meet."""
        key = id(self.tree), summed
        if key not in self.usages:
            self.usages[key] = usage_of(self.cluster, self.tree, summed)
        return self.usages[key]


def usage_of(cluster: Cluster, tree: JobTree, summed: float) -> Usage:
    """The flows of a tree on every link if the fraction `summed` of its fragments is summed where flows meet."""
    flows: defaultdict[str, float] = defaultdict(float, tree.entering)
    found = {(worker, cluster.fabric.tor_of(worker)): 1.0 for worker in tree.workers}
    for node in tree.order:
        leaving = flows[node]
        if leaving > 1 and node in cluster.fabric.ina_names:
            leaving = summed + (1 - summed) * leaving
        found[node, tree.parents[node]] = leaving
        flows[tree.parents[node]] += leaving
    return Usage.of(found, cluster.places)


def settle(
    cluster: Cluster, running: Sequence[Running], fragment: FragmentFormat, statistical: bool, round_trip_s: float
) -> NDArray[np.float64]:
    """Set the rates of all running jobs; return the used fraction of each link's capacity, of the shape (links,)."""
    summed = [1.0 if job.ina else 0.0 for job in running]
    usages = [job.usage(part) for job, part in zip(running, summed, strict=True)]
    rates = max_min_rates(usages, cluster.capacities_bps)
    for _ in range(ROUNDS if statistical else 0):
        before, summed = summed, summed_parts(cluster, running, rates, fragment, round_trip_s)
        if summed == before:
            break
        usages = [job.usage(part) for job, part in zip(running, summed, strict=True)]
        rates = max_min_rates(usages, cluster.capacities_bps)
    load = np.zeros(len(cluster.places))
    for job, used, rate in zip(running, usages, rates.tolist(), strict=True):
        job.rate_bps = rate
        load[used.places] += used.amounts * rate
    return load / cluster.capacities_bps


def summed_parts(
    cluster: Cluster,
    running: Sequence[Running],
    rates: NDArray[np.float64],
    fragment: FragmentFormat,
    round_trip_s: float,
) -> list[float]:
    """The fraction of each job's fragments that finds a slot at every switch that sums it."""
    wanted: defaultdict[str, float] = defaultdict(float)
    for job, rate in zip(running, rates.tolist(), strict=True):
        for switch in job.tree.summing:
            wanted[switch] += rate
    switches = cluster.fabric.switch_by_name
    bits = 8 * fragment.wire_bytes
    parts = {s: min(1.0, switches[s].aggregator_slots * bits / round_trip_s / rate) for s, rate in wanted.items()}
    return [min((parts[s] for s in job.tree.summing), default=1.0) for job in running]
