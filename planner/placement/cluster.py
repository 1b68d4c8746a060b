"""A cluster as placement sees it: blocks of hosts (racks, pods, all), which hosts are free, and static routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from inakit.planner.placement.queue import QueuedJob
from inakit.planner.trees.static import static_path
from inakit.planner.trees.unfolding import Path, Unfolded, unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class Block:
    """Hosts that belong together: a rack, whose `parts` are empty, or a block of smaller ones."""

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
        """All hosts: racks, and above them what the switches up to each tier join."""
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
    def places(self) -> dict[tuple[str, str], int]:
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
        """Take hosts back from a job that is done."""
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
    """A tree towards a PS: how many workers enter at each ToR, every switch's next hop, and which switches can sum."""

    workers: tuple[str, ...]
    server: str
    entering: dict[str, int]
    parents: dict[str, str]
    ina_names: frozenset[str]

    @cached_property
    def summing(self) -> list[str]:
        """The INA switches that flows meet at when every such switch sums."""
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
