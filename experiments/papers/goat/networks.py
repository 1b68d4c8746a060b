"""The two fabrics of GOAT's simulations as its algorithms see them: distances, and which workers pass which switch."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf

import networkx as nx
import numpy as np

from inakit.planner.methods.goat.gina import Gina
from inakit.planner.methods.goat.shared_slots import PS, SlotTree
from inakit.topo.fabric.clos import fat_tree, leaf_spine
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_ina

NETWORKS: dict[str, Callable[[], Fabric]] = {
    "leaf-spine": cache(lambda: leaf_spine(10, 10, 5)),
    "fat-tree": cache(lambda: fat_tree(8, hosts_per_edge=6)),
}
"""10 leaves and 10 spines with 50 servers; 32 edge, 32 aggregation and 16 core switches with 192 (section IV-C)."""


Way = list[tuple[str, int]]
"""A way to the PS: the nodes after its beginning, each with the number of links until it."""


@dataclass(frozen=True)
class Drawn:
    """A job on a fabric: PS, workers and programmable switches drawn at random, and the distances between nodes."""

    fabric: Fabric
    server: str
    workers: tuple[str, ...]
    seed: int

    @property
    def switches(self) -> list[str]:
        """The programmable switches."""
        return [switch.name for switch in self.fabric.switches if switch.ina]

    def hops(self, a: str, b: str) -> int:
        """The number of links of a shortest path, the paper's D."""
        return distances(self.fabric.name)[a][b]

    def gina(self, sizes: np.ndarray, memory: float) -> Gina:
        """GOAT's problem GINA on this fabric: sub-models of these sizes, and `memory` per switch in the same unit.

        The workers of a rack are one group, because their distances are equal.
        """
        racks: dict[str, list[str]] = {}
        for worker in self.workers:
            racks.setdefault(self.fabric.tor_of(worker), []).append(worker)
        nodes = [*self.switches, self.server]
        return Gina(
            sizes,
            np.append(np.full(len(self.switches), memory), inf),
            np.array([len(found) for found in racks.values()]),
            np.array([[self.hops(found[0], node) for node in nodes] for found in racks.values()], float),
            np.array([self.hops(node, self.server) for node in nodes], float),
        )

    @property
    def links(self) -> int:
        """The number of links of all workers' shortest paths together."""
        return sum(self.hops(worker, self.server) for worker in self.workers)

    def next_hop(self, node: str) -> str:
        """One of the neighbours that are nearest to the PS, drawn by the seed and the node."""
        least = min(self.hops(peer, self.server) for peer in self.fabric.neighbors[node])
        nearest = [peer for peer in self.fabric.neighbors[node] if self.hops(peer, self.server) == least]
        return random.Random(f"{self.seed} {node}").choice(nearest)

    def way(self, node: str) -> Way:
        """The way from a node to the PS by `next_hop`."""
        way: Way = []
        while node != self.server:
            node = self.next_hop(node)
            way.append((node, len(way) + 1))
        return way

    def slot_tree(self, routing: str) -> SlotTree:
        """The switches where ATP and ESA sum: all programmable ones that at least two workers pass.

        `routing` is a name of `ROUTINGS`. A worker's packets enter the tree at the first such switch on its way.
        """
        ways = [ROUTINGS[routing](self, worker) for worker in self.workers]
        passing = {switch: sum(any(node == switch for node, _ in way) for way in ways) for switch in self.switches}
        summing = {switch: number for number, switch in enumerate(s for s in self.switches if passing[s] > 1)}

        def following(way: Way) -> tuple[int, int]:
            return next(((summing[node], links) for node, links in way if node in summing), (PS, way[-1][1]))

        entry = np.array([following(way) for way in ways])
        onward = np.array([following(self.way(switch)) for switch in summing], int).reshape(-1, 2)
        return SlotTree(entry[:, 0], entry[:, 1], onward[:, 0], onward[:, 1])


def along_the_path(drawn: Drawn, worker: str) -> Way:
    """A shortest path to the PS, whichever switches are on it."""
    return drawn.way(worker)


def by_the_nearest(drawn: Drawn, worker: str) -> Way:
    """The way by the nearest programmable switch, unless the PS is as near; from there a shortest path."""
    tor = drawn.fabric.tor_of(worker)
    near = min(drawn.switches, key=lambda s: (drawn.hops(worker, s), random.Random(f"{drawn.seed} {tor} {s}").random()))
    links = drawn.hops(worker, near)
    if links >= drawn.hops(worker, drawn.server):
        return drawn.way(worker)
    return [(near, links), *((node, links + further) for node, further in drawn.way(near))]


ROUTINGS: dict[str, Callable[[Drawn, str], Way]] = {"path": along_the_path, "nearest": by_the_nearest}


def draw(network: str, workers: int, seed: int, share: float) -> Drawn:
    """A draw: PS and workers at random hosts of a network of `NETWORKS`, INA on a random share of its switches."""
    fabric = NETWORKS[network]()
    server, *chosen = random.Random(f"hosts {seed}").sample([host.name for host in fabric.hosts], workers + 1)
    return Drawn(with_ina(fabric, share=share, seed=seed), server, tuple(chosen), seed)


@cache
def distances(fabric: str) -> dict[str, dict[str, int]]:
    """The numbers of links between all nodes of one of `NETWORKS`, which is given by its fabric's name."""
    (found,) = [build() for build in NETWORKS.values() if build().name == fabric]
    graph = nx.Graph([(link.a, link.b) for link in found.links])
    return {node: dict(lengths) for node, lengths in nx.all_pairs_shortest_path_length(graph)}
