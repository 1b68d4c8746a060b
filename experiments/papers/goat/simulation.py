"""GOAT's Figures 10 to 13: GOAT, ESA, ATP and Geryon on a leaf-spine and a fat-tree, under asynchronous arrival.

The note `goat.md` explains the choices that the paper leaves open: workers' rates have a mean of half a link's; ESA and
ATP sum on the shortest path to the PS, or take a path through the nearest programmable switch (both are shown).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf

import networkx as nx
import numpy as np
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import Place
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Findings,
    Part,
    Picture,
    Quantity,
    SweptFigure,
    by_seed,
)
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Curves, Statement, beside_paper
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.goat.krgs import Gina, KrgsOptions, schedule, value
from inakit.planner.methods.goat.shared_slots import PS, FloatArray, LanedGradient, Sharing, SlotTree, simulate
from inakit.planner.registry import METHODS
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.traffic.wire.packet_format import FRAGMENT

NETWORKS: dict[str, Callable[[], Fabric]] = {
    "leaf-spine": cache(lambda: leaf_spine(10, 10, 5)),
    "fat-tree": cache(lambda: fat_tree(8, hosts_per_edge=6)),
}
"""10 leaves and 10 spines with 50 servers; 32 edge, 32 aggregation and 16 core switches with 192 (section IV-C)."""


Way = list[tuple[str, int]]
"""A path to the PS: the nodes after the first one, each with the number of links up to it."""


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
        """The total number of links of all workers' shortest paths."""
        return sum(self.hops(worker, self.server) for worker in self.workers)

    def next_hop(self, node: str) -> str:
        """The next hop: one of the neighbours nearest to the PS, drawn by the seed and the node."""
        least = min(self.hops(peer, self.server) for peer in self.fabric.neighbors[node])
        nearest = [peer for peer in self.fabric.neighbors[node] if self.hops(peer, self.server) == least]
        return random.Random(f"{self.seed} {node}").choice(nearest)

    def way(self, node: str) -> Way:
        """The path from a node to the PS by `next_hop`."""
        way: Way = []
        while node != self.server:
            node = self.next_hop(node)
            way.append((node, len(way) + 1))
        return way

    def slot_tree(self, routing: str) -> SlotTree:
        """The switches where ATP and ESA sum: all programmable switches on the paths of at least two workers.

        `routing` is a name of `ROUTINGS`. A worker's packets enter the tree at the first such switch on its path.
        """
        ways = [ROUTINGS[routing](self, worker) for worker in self.workers]
        passing = {switch: sum(any(node == switch for node, _ in way) for way in ways) for switch in self.switches}
        summing = {switch: number for number, switch in enumerate(s for s in self.switches if passing[s] > 1)}

        def following(way: Way) -> tuple[int, int]:
            return next(((summing[node], links) for node, links in way if node in summing), (PS, way[-1][1]))

        entry = np.array([following(way) for way in ways])
        onward = np.array([following(self.way(switch)) for switch in summing], int).reshape(-1, 2)
        return SlotTree(entry[:, 0], entry[:, 1], onward[:, 0], onward[:, 1])


def by_the_nearest(drawn: Drawn, worker: str) -> Way:
    """The path through the nearest programmable switch, then a shortest path; a shortest path if the PS is as near."""
    tor = drawn.fabric.tor_of(worker)
    near = min(drawn.switches, key=lambda s: (drawn.hops(worker, s), random.Random(f"{drawn.seed} {tor} {s}").random()))
    links = drawn.hops(worker, near)
    if links >= drawn.hops(worker, drawn.server):
        return drawn.way(worker)
    return [(near, links), *((node, links + further) for node, further in drawn.way(near))]


ROUTINGS: dict[str, Callable[[Drawn, str], Way]] = {"path": Drawn.way, "nearest": by_the_nearest}


def draw(network: str, workers: int, seed: int, share: float) -> Drawn:
    """A draw: PS and workers at random hosts of a network of `NETWORKS`, INA on a random share of its switches."""
    fabric = NETWORKS[network]()
    server, *chosen = random.Random(f"hosts {seed}").sample([host.name for host in fabric.hosts], workers + 1)
    return Drawn(with_ina(fabric, share=share, seed=seed), server, tuple(chosen), seed)


@cache
def distances(fabric: str) -> dict[str, dict[str, int]]:
    """The distances in links between all nodes of one of `NETWORKS`, given by its fabric's name."""
    (found,) = [build() for build in NETWORKS.values() if build().name == fabric]
    graph = nx.Graph([(link.a, link.b) for link in found.links])
    return {node: dict(lengths) for node, lengths in nx.all_pairs_shortest_path_length(graph)}


MODEL_BYTES, MEMORY_BYTES, SHARE = 221e6, 64e6, 0.2
SUB_MODELS = 14
"""The number of sub-models of equal size; four fit into a switch."""
MEAN_RATE, SLOWEST, SPREAD = 0.5, 0.01, 0.2
"""A worker sends at a share of a link's rate, drawn from a normal distribution with this mean and this spread (the
paper's), and at least at the slowest share."""
GRADIENT = LanedGradient(fragments=2210, slots=640, lanes=64)
"""A model of 221 MB and memory of 64 MB, in fragments of 100 kB; finer fragments have the same aggregated share."""

WORKERS = (20, 30, 35, 40, 45)
SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS, ROUNDINGS = (30, 3), 3
PROCESSES = 2

Scheme = Callable[[Drawn, FloatArray], Result]


def goat(objective: str, drawn: Drawn, _rates: FloatArray) -> Result:
    """GOAT with KRGS: every switch's sum, and every gradient sent to the PS directly, arrives at the PS once.

    `objective` is KRGS's objective, "traffic" or Eq. (4)'s "saved".
    """
    gina = drawn.gina(np.full(SUB_MODELS, MODEL_BYTES / SUB_MODELS), MEMORY_BYTES)
    found, _ = schedule(gina, KrgsOptions(drawn.seed, ROUNDINGS, objective))
    raw = int((found.y == gina.server).sum())
    ingress = (found.x[:, : gina.server].sum() + raw) * MODEL_BYTES / SUB_MODELS
    return metrics(drawn, value(gina, found), ingress) | {"unaggregated_gb": raw * MODEL_BYTES / SUB_MODELS / 1e9}


def shared(policy: str, routing: str, drawn: Drawn, rates: FloatArray) -> Result:
    """ATP or ESA, whose workers share slots: the traffic of a simulated exchange. `routing` is a name of `ROUTINGS`."""
    counts = simulate(drawn.slot_tree(routing), Sharing(policy), rates, GRADIENT)
    size = MODEL_BYTES / GRADIENT.fragments
    return metrics(drawn, counts.transfers * size, counts.ingress * size)


def geryon(drawn: Drawn, _rates: FloatArray) -> Result:
    """Geryon: all gradients take shortest paths, without sums."""
    return metrics(drawn, drawn.links * MODEL_BYTES, len(drawn.workers) * MODEL_BYTES)


def planned(name: str, drawn: Drawn, _rates: FloatArray) -> Result:
    """A planner's plan with complete sums only: like GOAT's, its slots are unshared and wait for the slowest worker."""
    job = Job(1, drawn.workers, (drawn.server,), int(MODEL_BYTES))
    problem = Problem(drawn.fabric, (job,), FRAGMENT)
    overhead = ingress = 0.0
    for each in METHODS[name].plan(problem, Options(seed=drawn.seed)).trees:
        tree = each.tree
        part, counts = each.share * MODEL_BYTES, flow_counts([tree])
        overhead += part * counts.total()
        ingress += part * counts[problem.fabric.tor_of(tree.root), tree.root]
    return metrics(drawn, overhead, ingress)


def compared() -> tuple[str, ...]:
    """The paper's schemes in all readings, and user-defined planners."""
    return (*SCHEMES, *own_planners())


def metrics(drawn: Drawn, overhead_bytes: float, ingress_bytes: float) -> dict[str, float]:
    """The paper's metrics (section IV-A) in GB; the in-network aggregation amount is all gradients less the ingress."""
    aggregated = len(drawn.workers) * MODEL_BYTES - ingress_bytes
    return {"overhead": overhead_bytes / 1e9, "ingress": ingress_bytes / 1e9, "aggregated": aggregated / 1e9}


SCHEMES: dict[str, Scheme] = {
    "GOAT": partial(goat, "traffic"),
    "GOAT, Eq. (4)": partial(goat, "saved"),
    "ESA, on the path": partial(shared, "esa", "path"),
    "ESA, by the nearest": partial(shared, "esa", "nearest"),
    "ATP, on the path": partial(shared, "atp", "path"),
    "ATP, by the nearest": partial(shared, "atp", "nearest"),
    "Geryon": geryon,
}
ASYNCHRONOUS = {name for name in SCHEMES if name.startswith(("ESA", "ATP"))}


@dataclass(frozen=True)
class SimulationChart:
    """A figure: its metric over an axis. `paper` has the text's values, by network and value of the axis, by scheme."""

    name: str
    metric: str
    title: str
    axis: str
    paper: Mapping[tuple[str, float], Mapping[str, float]]

    def on(self, network: str) -> Chart:
        """The figure's chart on a network, with all schemes."""
        points: dict[Place, Trial] = (
            {spread: {"workers": 35, "spread": spread} for spread in SPREADS}
            if self.axis == "spread"
            else {workers: {"workers": workers, "spread": SPREAD} for workers in WORKERS}
        )
        paper: dict[str, dict[Place, float]] = {}
        for (where, at), values in self.paper.items():
            for scheme in [scheme for scheme in SCHEMES if where == network and scheme.split(",")[0] in values]:
                paper.setdefault(scheme, {})[at] = values[scheme.split(",")[0]]
        return Chart(
            Quantity(self.metric, f"{self.title} (GB)"), points,
            {scheme: {"scheme": scheme, "network": network} for scheme in compared()}, self.axis,
            title=network, paper=paper,
        )  # fmt: skip


LEAF_SPINE_35, FAT_TREE_40 = ("leaf-spine", 35.0), ("fat-tree", 40.0)
CHARTS = (
    SimulationChart("fig10", "ingress", "aggregation overhead of the PS", "workers",
                    {LEAF_SPINE_35: {"GOAT": 0.06, "ESA": 5.7, "ATP": 6.7, "Geryon": 8.4}}),
    SimulationChart("fig11", "aggregated", "in-network aggregation amount", "workers",
                    {FAT_TREE_40: {"GOAT": 9.6, "ESA": 3.2, "ATP": 1.9}}),
    SimulationChart("fig12", "overhead", "communication overhead", "workers",
                    {LEAF_SPINE_35: {"GOAT": 13.7, "ESA": 19.8, "ATP": 20.9, "Geryon": 37.1}}),
    SimulationChart("fig13", "overhead", "communication overhead, 35 workers", "spread", {}),
)  # fmt: skip


def measure(trial: Trial) -> Result:
    """Measure a trial: one scheme for one draw of hosts, programmable switches and rates.

    A worker's rate is a share of a link's, cut off at 1 and at the slowest share.
    """
    workers, seed = int(trial["workers"]), int(trial["seed"])
    drawn = draw(str(trial["network"]), workers, seed, SHARE)
    name, spread = str(trial["scheme"]), float(trial["spread"])
    rates: FloatArray = np.random.default_rng(seed).normal(MEAN_RATE, spread, workers).clip(SLOWEST, 1)
    return (SCHEMES.get(name) or partial(planned, name))(drawn, rates)


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """The trials of a cell. The spread of the rates affects only ESA and ATP."""
    return by_seed(cell if cell["scheme"] in ASYNCHRONOUS else {**cell, "spread": SPREAD}, seeds)


def show(figure: SimulationChart, found: Findings) -> Iterator[Part]:
    charts = {network: figure.on(network) for network in NETWORKS}
    curves = {network: found.curves(chart) for network, chart in charts.items()}
    for network, chart in charts.items():
        title = f"GOAT, {figure.name}: {figure.title} (GB), {network}"
        table = Table(figure.axis, *(f"{at:g}" for at in chart.points), title=title)
        for scheme, values in curves[network].items():
            table.add_row(scheme, *(f"{value:.2f}" for value in values))
        yield table
    if figure.paper:
        rows = [
            (f"{scheme}, {network}, {at:g} {figure.axis}", printed, curves[network][scheme][chart.places.index(at)])
            for network, chart in charts.items() for (where, at) in figure.paper if where == network
            for scheme in SCHEMES if (printed := chart.paper.get(scheme, {}).get(at))
        ]  # fmt: skip
        yield beside_paper(f"{figure.name}, values in the text", rows, (".2f", ".2f", ".2f"))
    places = charts[next(iter(charts))].places
    yield list(said_of_crossings(curves) if figure.axis == "spread" else said_of_orders(figure, curves, places))
    yield Picture(map(found.panel, charts.values()))


def said_of_orders(
    figure: SimulationChart, curves: Mapping[str, Curves], places: Sequence[Place]
) -> Iterator[Statement]:
    """The statements that GOAT is best everywhere, and that the values in the text have the text's order."""
    most = figure.metric == "aggregated"
    rivals = [name for name in SCHEMES if not name.startswith("GOAT") and not (most and name == "Geryon")]
    for network, own in curves.items():
        yield (statements.is_highest if most else statements.is_lowest)(network, "GOAT", rivals, own, places)
    for (network, at), printed in figure.paper.items():
        for reading in ("on the path", "by the nearest"):
            names = {name: f"{name}, {reading}" if name in ("ESA", "ATP") else name for name in printed}
            highest_first = [names[name] for name in sorted(printed, key=printed.__getitem__, reverse=True)]
            values = {name: [curves[network][name][places.index(at)]] for name in highest_first}
            yield from statements.in_order(f"{network}, {at:g} workers", highest_first, values, [at])


def said_of_crossings(curves: Mapping[str, Curves]) -> Iterator[Statement]:
    """The statements that ESA and ATP are below GOAT at equal rates, rise with the spread, and end above GOAT."""
    for network, own in curves.items():
        for scheme in [name for name in SCHEMES if name in ASYNCHRONOUS]:
            yield statements.crosses(f"{network}: {scheme} crosses GOAT from below", own[scheme], own["GOAT"])
            yield statements.rises(f"{network}: {scheme} rises with the spread", own[scheme])


def cells(figure: SimulationChart, _: Request) -> Iterator[Trial]:
    return (cell for network in NETWORKS for cell in figure.on(network).cells)


FIGURES = {
    figure.name: SweptFigure(
        f"goat-{figure.name}", "goat-simulation-trials", measure, partial(cells, figure), partial(show, figure), SEEDS,
        draws, processes=PROCESSES,
    )
    for figure in CHARTS
}  # fmt: skip
