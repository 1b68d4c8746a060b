"""GOAT's Figures 10 to 13: GOAT, ESA, ATP and Geryon on a leaf-spine and a fat-tree, under asynchronous arrival.

The note `goat.md` explains the choices that the paper leaves open: workers' rates have a mean of half a link's; ESA and
ATP sum on the shortest path to the PS, or take a path through the nearest programmable switch (both are shown).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import inf
from operator import mul

import networkx as nx
import numpy as np
from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Place
from inakit.experiments.papers.common.estimates import Estimate, Series, means
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
from inakit.experiments.papers.common.statements import Statement, beside_paper, ratio
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.goat.testbed import GOAT, OURS
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.goat.krgs import Gina, GradientSchedule, KrgsOptions, admitted, krgs, schedule, value
from inakit.planner.methods.goat.shared_slots import PS, FloatArray, LanedGradient, Sharing, SlotTree, simulate
from inakit.planner.registry import METHODS
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.traffic.wire.packet_format import FRAGMENT

LEDGER = read_ledger("goat")
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


SLOWEST, SPREAD = 0.01, 0.2
"""The least share of a link's rate at which a worker sends, and the paper's spread of shares."""
LANES, LANE_BYTES = 64, 1e5
"""The slots whose packets are simulated, and the size of a fragment; finer ones have the same aggregated share."""


@dataclass(frozen=True)
class Reading:
    """The settings of section IV-C. Where the text leaves one open, it is a choice that decides figures.

    Workers send `model_bytes` in `sub_models` of equal size, of which four fit into a switch. Shares of a link's rate
    have the mean `mean_rate`. A random `share` of the switches sums, each with `memory_bytes`. KRGS has `objective`
    "saved", Eq. (4), or "traffic", Eq. (1); its switches sum what they hold or, if not `within_memory`, all.
    `flushed`: partial sums leave with the last packet of their fragment. `in_nodes`: the length of a path without sums
    is its number of nodes.
    """

    model_bytes: float = 221e6
    sub_models: int = 14
    memory_bytes: float = 64e6
    share: float = 0.2
    mean_rate: float = 0.5
    objective: str = "saved"
    within_memory: bool = True
    flushed: bool = True
    in_nodes: bool = False

    @property
    def sizes(self) -> FloatArray:
        """The sizes of sub-models in bytes."""
        return np.full(self.sub_models, self.model_bytes / self.sub_models)

    @property
    def gradient(self) -> LanedGradient:
        """The gradient and a switch's memory in fragments."""
        return LanedGradient(round(self.model_bytes / LANE_BYTES), round(self.memory_bytes / LANE_BYTES), LANES)


TEXT = "as the text says"
READINGS = {
    TEXT: Reading(),
    "rates N(1, 0.2)": Reading(mean_rate=1.0),
    "240 MB a worker": Reading(model_bytes=240e6, sub_models=15),
    "KRGS for Eq. (1)": Reading(objective="traffic"),
    "memory exceeded": Reading(within_memory=False),
    "memory for a model, every switch": Reading(memory_bytes=221e6, share=1.0),
    "partial sums stay": Reading(flushed=False),
    "paths in nodes": Reading(in_nodes=True),
}
"""The readings that are compared."""

WORKERS = (20, 30, 35, 40, 45)
SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS, ROUNDINGS = (30, 3), 3
PROCESSES = 2

Scheme = Callable[[Drawn, FloatArray, Reading], Result]


def goat_as_published(drawn: Drawn, _rates: FloatArray, reading: Reading) -> Result:
    """GOAT's Algorithm 1: one rounding by KRGS. What exceeds a switch's memory passes the switch unsummed."""
    gina = drawn.gina(reading.sizes, reading.memory_bytes)
    found, _ = krgs(gina, KrgsOptions(drawn.seed, objective=reading.objective))
    return of_schedule(drawn, gina, admitted(gina, found) if reading.within_memory else found, reading)


def goat(drawn: Drawn, _rates: FloatArray, reading: Reading) -> Result:
    """Ours: KRGS for Eq. (1), repaired and improved by a local search."""
    gina = drawn.gina(reading.sizes, reading.memory_bytes)
    return of_schedule(drawn, gina, schedule(gina, KrgsOptions(drawn.seed, ROUNDINGS))[0], reading)


def of_schedule(drawn: Drawn, gina: Gina, found: GradientSchedule, reading: Reading) -> Result:
    """The metrics of a schedule: each switch's sum, and each gradient that no switch sums, arrives at the PS once."""
    summed = found.x[np.arange(len(gina.sizes)), found.y]
    passing = np.where(summed, 0.0, gina.onward[found.y])  # on from a switch that does not sum it
    raw = (~summed | (found.y == gina.server)).sum(axis=0)
    sums = found.x[:, : gina.server].sum(axis=1)
    overhead = value(gina, found) + gina.sizes @ passing.sum(axis=0)
    return metrics(drawn, overhead, float(gina.sizes @ (raw + sums)), reading)


def shared(policy: str, routing: str, drawn: Drawn, rates: FloatArray, reading: Reading) -> Result:
    """ATP or ESA, whose workers share slots: the traffic of a simulated exchange. `routing` is a name of `ROUTINGS`."""
    tree, gradient = drawn.slot_tree(routing), reading.gradient
    counts = simulate(tree, Sharing(policy, flushed=reading.flushed), rates, gradient)
    size = reading.model_bytes / gradient.fragments
    return metrics(drawn, counts.transfers * size, counts.ingress * size, reading)


def geryon(drawn: Drawn, _rates: FloatArray, reading: Reading) -> Result:
    """Geryon: all gradients take shortest paths, without sums."""
    links = drawn.links + (len(drawn.workers) if reading.in_nodes else 0)
    return metrics(drawn, links * reading.model_bytes, len(drawn.workers) * reading.model_bytes, reading)


def planned(name: str, drawn: Drawn, _rates: FloatArray, reading: Reading) -> Result:
    """A planner's plan with complete sums only: like GOAT's, its slots are unshared and wait for the slowest worker."""
    job = Job(1, drawn.workers, (drawn.server,), int(reading.model_bytes))
    problem = Problem(drawn.fabric, (job,), FRAGMENT)
    overhead = ingress = 0.0
    for each in METHODS[name].plan(problem, Options(seed=drawn.seed)).trees:
        tree = each.tree
        part, counts = each.share * reading.model_bytes, flow_counts([tree])
        overhead += part * counts.total()
        ingress += part * counts[problem.fabric.tor_of(tree.root), tree.root]
    return metrics(drawn, overhead, ingress, reading)


def compared() -> tuple[str, ...]:
    """The paper's schemes in all readings, and user-defined planners."""
    return (*SCHEMES, *own_planners())


def metrics(drawn: Drawn, overhead_bytes: float, ingress_bytes: float, reading: Reading) -> dict[str, float]:
    """The paper's metrics (section IV-A) in GB; the in-network aggregation amount is all gradients less the ingress."""
    aggregated = len(drawn.workers) * reading.model_bytes - ingress_bytes
    return {"overhead": overhead_bytes / 1e9, "ingress": ingress_bytes / 1e9, "aggregated": aggregated / 1e9}


SCHEMES: dict[str, Scheme] = {
    GOAT: goat_as_published,
    OURS: goat,
    "ESA, on the path": partial(shared, "esa", "path"),
    "ESA, by the nearest": partial(shared, "esa", "nearest"),
    "ATP, on the path": partial(shared, "atp", "path"),
    "ATP, by the nearest": partial(shared, "atp", "nearest"),
    "Geryon": geryon,
}
ASYNCHRONOUS = {name for name in SCHEMES if name.startswith(("ESA", "ATP"))}


@dataclass(frozen=True)
class SimulationChart:
    """A figure: its metric over an axis. `paper` has the text's values, by network and value of the axis, by scheme.

    `best` is whether GOAT is the highest or the lowest, `less` begins the names of the claims that GOAT has less by a
    share.
    """

    name: str
    metric: str
    title: str
    axis: str
    paper: Mapping[tuple[str, float], Mapping[str, float]]
    best: str = ""
    less: str = ""

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


HIGHEST, LOWEST = "highest", "lowest"
LEAF_SPINE_35, FAT_TREE_40 = ("leaf-spine", 35.0), ("fat-tree", 40.0)
CHARTS = (
    SimulationChart("fig10", "ingress", "aggregation overhead of the PS", "workers",
                    {LEAF_SPINE_35: {"GOAT": 0.06, "ESA": 5.7, "ATP": 6.7, "Geryon": 8.4}}, LOWEST, "fig10-less"),
    SimulationChart("fig11", "aggregated", "in-network aggregation amount", "workers",
                    {FAT_TREE_40: {"GOAT": 9.6, "ESA": 3.2, "ATP": 1.9}}, HIGHEST),
    SimulationChart("fig12", "overhead", "communication overhead", "workers",
                    {LEAF_SPINE_35: {"GOAT": 13.7, "ESA": 19.8, "ATP": 20.9, "Geryon": 37.1}}, LOWEST, "fig12-less"),
    SimulationChart("fig13", "overhead", "communication overhead, 35 workers", "spread", {}),
)  # fmt: skip


def measure(trial: Trial) -> Result:
    """Measure a trial: one scheme for one draw of hosts, programmable switches and rates.

    A worker's rate is a share of a link's, cut off at 1 and at the slowest share.
    """
    workers, seed, reading = int(trial["workers"]), int(trial["seed"]), READINGS[str(trial.get("reading", TEXT))]
    drawn = draw(str(trial["network"]), workers, seed, reading.share)
    name, spread = str(trial["scheme"]), float(trial["spread"])
    rates: FloatArray = np.random.default_rng(seed).normal(reading.mean_rate, spread, workers).clip(SLOWEST, 1)
    return (SCHEMES.get(name) or partial(planned, name))(drawn, rates, reading)


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """The trials of a cell. The spread of the rates affects only ESA and ATP."""
    return by_seed(cell if cell["scheme"] in ASYNCHRONOUS else {**cell, "spread": SPREAD}, seeds)


def show(figure: SimulationChart, found: Findings) -> Iterator[Part]:
    charts = {network: figure.on(network) for network in NETWORKS}
    curves = {network: found.series(chart) for network, chart in charts.items()}
    for network, chart in charts.items():
        table = Table(figure.axis, *(f"{at:g}" for at in chart.points), title=f"GOAT, {figure.title} (GB), {network}")
        for scheme, values in means(curves[network]).items():
            table.add_row(scheme, *(f"{value:.2f}" for value in values))
        yield table
    places = charts["leaf-spine"].places
    if figure.paper:
        rows = [
            (f"{scheme}, {network}, {at:g} {figure.axis}", printed, curves[network][scheme][places.index(at)].value)
            for network, chart in charts.items() for (where, at) in figure.paper if where == network
            for scheme in SCHEMES if (printed := chart.paper.get(scheme, {}).get(at))
        ]  # fmt: skip
        yield beside_paper(f"{figure.name}, values in the text", rows, (".2f", ".2f", ".2f"))
    yield f"fitted: workers send at N({Reading().mean_rate:g}, {SPREAD:g}) of a link's rate, to Figures 10 and 11"
    yield list(said_of_crossings(curves) if figure.axis == "spread" else said_of_values(figure, curves, places))
    yield Picture(map(found.panel, charts.values()))


JUDGED = {"goat": GOAT, "esa": "ESA, on the path", "atp": "ATP, on the path", "geryon": "Geryon"}
"""The lines by which claims are judged: the text says that ESA and ATP sum on shortest paths (section IV-A)."""


def said_of_values(
    figure: SimulationChart, curves: Mapping[str, Series], places: Sequence[Place]
) -> Iterator[Statement]:
    """The claims that GOAT is best everywhere, and about the values in the text."""
    ((network, at),) = figure.paper
    named = {scheme: name for scheme, name in JUDGED.items() if name.split(",")[0] in figure.paper[network, at]}
    values = {scheme: curves[network][name][places.index(at)] for scheme, name in named.items()}
    for scheme, found in values.items():
        yield LEDGER.judge(f"{figure.name}-{scheme}", found)
        if figure.less and scheme != "goat":
            yield LEDGER.judge(f"{figure.less}-{scheme}", ratio(values["goat"], found).map(lambda share: 1 - share))
    everywhere = {name: [point for own in curves.values() for point in own[name]] for name in named.values()}
    where = [f"{network}, {place:g}" for network in curves for place in places]
    yield LEDGER.judge(f"{figure.name}-{figure.best}", everywhere, where)


def said_of_crossings(curves: Mapping[str, Series]) -> Iterator[Statement]:
    """The claims that ESA and ATP, by the nearest switch, are below GOAT at equal rates, and rise with the spread."""
    near = ("ESA, by the nearest", "ATP, by the nearest")
    equal = {name: [own[name][0] for own in curves.values()] for name in (GOAT, *near)}
    yield LEDGER.judge("fig13-zero", equal, list(curves))
    for scheme, name in zip(("esa", "atp"), near, strict=True):
        yield LEDGER.judge(f"fig13-{scheme}-rises", {network: own[name] for network, own in curves.items()})


def cells(figure: SimulationChart, _: Request) -> Iterator[Trial]:
    return (cell for network in NETWORKS for cell in figure.on(network).cells)


AT = {"leaf-spine": 35, "fat-tree": 40}
"""The number of workers for which the text gives values, by network."""


def readings(_: Request) -> Iterator[Trial]:
    """The schemes with values in the text, in every reading."""
    for reading, (network, workers), scheme in product(READINGS, AT.items(), SCHEMES):
        if reading == TEXT or scheme not in INDIFFERENT.get(reading, ()):
            place: Trial = {"workers": workers, "spread": SPREAD, "scheme": scheme, "network": network}
            yield place if reading == TEXT else {**place, "reading": reading}


ALGORITHMS, POLICIES = (GOAT, OURS), tuple(ASYNCHRONOUS)
INDIFFERENT = {
    "rates N(1, 0.2)": (*ALGORITHMS, "Geryon"),
    "KRGS for Eq. (1)": (OURS, *POLICIES, "Geryon"),
    "memory exceeded": (OURS, *POLICIES, "Geryon"),
    "partial sums stay": (*ALGORITHMS, "Geryon"),
    "paths in nodes": (*ALGORITHMS, *POLICIES),
}
"""The schemes that a reading does not concern."""


def show_readings(found: Findings) -> Iterator[Part]:
    """A table and a panel for each figure with values in the text: ours over the paper's, by reading and scheme."""
    panels = []
    for figure in (figure for figure in CHARTS if figure.paper):
        (((network, at), paper),) = figure.paper.items()
        names = {scheme: "GOAT" if scheme == OURS else scheme.split(",")[0] for scheme in SCHEMES}
        printed = {scheme: paper[name] for scheme, name in names.items() if name in paper}
        values = {scheme: list(over_readings(found, figure, network, scheme)) for scheme in printed}
        table = Table(f"{figure.name} (GB)", *printed)
        table.add_row("the paper's", *(f"{value:g}" for value in printed.values()))
        for number, reading in enumerate(READINGS):
            table.add_row(reading, *(f"{own[number].value:.2f}" for own in values.values()))
        yield table
        ratios = {
            scheme: [point.map(partial(mul, 1 / printed[scheme])) for point in own] for scheme, own in values.items()
        }
        title, label = f"{network}, {at:g} workers", f"{figure.title},\nover the paper's"
        panels.append(Panel(BARS, list(READINGS), ratios, "reading", label, title, log="y"))
    yield Picture(panels)


def over_readings(found: Findings, figure: SimulationChart, network: str, scheme: str) -> Iterator[Estimate]:
    """A scheme's values in all readings."""
    for reading in READINGS:
        cell: Trial = {"workers": AT[network], "spread": SPREAD, "scheme": scheme, "network": network}
        if reading != TEXT and scheme not in INDIFFERENT.get(reading, ()):
            cell = {**cell, "reading": reading}
        yield found.estimate(cell, Quantity(figure.metric, ""))


FIGURES = {
    figure.name: SweptFigure(
        f"goat-{figure.name}", "goat-simulation-trials", measure, partial(cells, figure), partial(show, figure), SEEDS,
        draws, processes=PROCESSES,
    )
    for figure in CHARTS
} | {
    "readings": SweptFigure(
        "goat-readings", "goat-simulation-trials", measure, readings, show_readings, SEEDS, draws, processes=PROCESSES,
        leaves_out="it compares readings of the paper's text",
    )
}  # fmt: skip
