"""GOAT's Figures 10 to 12 by real packets, on the networks and draws of `simulation.py`, at a thousandth of its sizes.

Links carry all workers at once, as in the simulation, where they take no time: the figures are of amounts. ATP and ESA
sum on the path. Unlike there, results return, what waits in a slot leaves by a retransmission, and paths are up-down:
a plan of GOAT cannot use a leaf that its workers would have to pass through a spine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace
from itertools import product

import numpy as np
from rich.table import Table

from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import EmulatedFigure, EmulatedRun, EmulatedRuns
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Part, Picture, Rows
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.papers.goat import simulation
from inakit.experiments.papers.goat.simulation import AT, CHARTS, SLOWEST, SPREAD, Drawn, Reading
from inakit.experiments.papers.goat.testbed import ESA_PRIORITY, MARGIN, NAMES, Paces, at_rate, name_of, patient
from inakit.experiments.run.dilation import MADE_FOR_BPS
from inakit.experiments.run.outcome import Outcome, measured_figures
from inakit.experiments.worlds.registry import is_virtual
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.goat.goat import GoatOptions, KrgsPlanOptions
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.headroom import with_policy
from inakit.topo.fabric.variations import with_aggregators, with_scale
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.packet_format import FRAGMENT

READING = Reading()
SCALE = 1 / 1000
"""The scale of sizes and rates."""
FRAGMENT_BYTES = 4 * FRAGMENT.values
FRAGMENTS = round(READING.model_bytes * SCALE / FRAGMENT_BYTES)
SLOTS = round(READING.memory_bytes * SCALE / FRAGMENT_BYTES)
LINK_BPS = 10e9 * SCALE
"""The rate of which workers send at a share."""
WIDE = 25
"""The factor by which all links are faster than the generators' 20 Mbit/s: more than all workers send at once."""
WORKERS = (20, 30, 35, 40, 45)
DRAWS = (2, 1)
METRICS = {"ingress": "fig10", "aggregated": "fig11", "overhead": "fig12"}
"""The paper's figures by metric."""


@dataclass(frozen=True)
class PacketRun:
    """A scheme on a drawn network, by its planner's name."""

    network: str
    workers: int
    scheme: str
    draw: int

    @property
    def drawn(self) -> Drawn:
        """The draw of hosts and programmable switches."""
        return simulation.draw(self.network, self.workers, self.draw, READING.share)

    def problem(self) -> Problem:
        """The job of all workers, for one iteration."""
        fabric = with_aggregators(with_scale(self.drawn.fabric, WIDE), slots=SLOTS)
        job = Job(1, self.drawn.workers, (self.drawn.server,), FRAGMENTS * FRAGMENT_BYTES)
        return Problem(fabric, (job,), FRAGMENT)

    def plan(self, problem: Problem) -> Plan:
        """The plan of the scheme or of the planner of that name."""
        own: dict[str, Options] = {
            "goat": GoatOptions(seed=self.draw, sub_models=READING.sub_models),
            "goat-krgs": KrgsPlanOptions(seed=self.draw, sub_models=READING.sub_models),
        }
        if self.scheme in ("atp", "esa", "geryon"):
            ways = [(worker, *(node for node, _ in self.drawn.way(worker))) for worker in self.drawn.workers]
            summing = () if self.scheme == "geryon" else problem.fabric.ina_names
            found = plan_from_paths(problem, {1: ways}, summing, method=self.scheme)
            if self.scheme == "geryon":
                return found
            shared = with_policy(problem, found, self.scheme)
            return shared.with_trees([replace(planned.tree, priority=ESA_PRIORITY) for planned in shared.trees])
        return METHODS[self.scheme].plan(problem, own.get(self.scheme, Options(seed=self.draw)))

    def emulated_run(self, switch: str) -> EmulatedRun:
        """The run, with workers that send at the rates of the simulation's draw."""
        problem = self.problem()
        drawn = np.random.default_rng(self.draw).normal(READING.mean_rate, SPREAD, self.workers).clip(SLOWEST, 1)
        shares = dict(zip(self.drawn.workers, drawn.tolist(), strict=True))
        quicker = max(1.0, min(problem.fabric.capacities_bps.values()) / MADE_FOR_BPS) if is_virtual(switch) else 1.0
        return EmulatedRun(
            f"{self.scheme}-{self.network}-{self.workers}-draw{self.draw}",
            problem,
            at_rate(self.plan(problem), LINK_BPS),
            asdict(self),
            patient(FRAGMENTS, LINK_BPS, min(shares.values()), MARGIN * quicker),
            (Paces(shares, FRAGMENTS, frozenset(shares)),),
            queue_packets=self.workers * FRAGMENTS,
        )


def settings(request: Request) -> list[PacketRun]:
    """Every network, number of workers, scheme and draw; a quick request has the places with values in the text."""
    return [
        PacketRun(network, workers, scheme, draw)
        for network, workers in product(AT, WORKERS)
        if not request.quick or AT[network] == workers
        for scheme in (*NAMES, *own_planners())
        for draw in range(DRAWS[request.quick])
    ]


@dataclass(frozen=True)
class PacketPoint:
    """A run's metrics (section IV-A) in the paper's GB; `first` is the PS ingress less all retransmissions."""

    network: str
    workers: int
    scheme: str
    draw: int
    ingress: float
    aggregated: float
    overhead: float
    first: float
    exact: bool
    verdict: str


def point(setting: PacketRun, outcome: Outcome) -> PacketPoint:
    """The metrics of a run."""
    figures = measured_figures(outcome.measured, outcome.monitor)
    assert figures.overhead_bytes is not None
    gb = FRAGMENT_BYTES / FRAGMENT.wire_bytes / SCALE / 1e9
    ingress = figures.ps_ingress_bytes * gb
    return PacketPoint(
        **asdict(setting),
        ingress=ingress,
        aggregated=setting.workers * FRAGMENTS * FRAGMENT_BYTES / SCALE / 1e9 - ingress,
        overhead=figures.overhead_bytes * gb,
        first=ingress - figures.retransmissions * FRAGMENT_BYTES / SCALE / 1e9,
        exact=bool(figures.exact),
        verdict=outcome.verdict,
    )


SIMULATED = {"esa": "ESA, on the path", "atp": "ATP, on the path"}
"""The lines of the simulated figures whose names differ."""


def simulated(metric: str, network: str, scheme: str, draws: int) -> float:
    """The mean of the simulation over the same draws, at the number of workers of the text."""
    line = SIMULATED.get(scheme, name_of(scheme))
    cell: Trial = {"scheme": line, "network": network, "workers": AT[network], "spread": SPREAD}
    return estimate([float(simulation.measure({**cell, "seed": seed})[metric]) for seed in range(draws)]).value


def show(request: Request, done: EmulatedRuns) -> Iterator[Part]:
    """The points, a table beside the simulation and the text for each network, and a panel for each metric."""
    points = [point(*each) for each in zip(settings(request), done.outcomes, strict=True)]
    yield Rows("points.csv", [column.name for column in fields(PacketPoint)], map(astuple, points))
    schemes = dict.fromkeys(each.scheme for each in points)
    printed = {
        (chart.metric, network, name): value
        for chart in CHARTS for (network, _), values in chart.paper.items() for name, value in values.items()
    }  # fmt: skip

    def mean(metric: str, network: str, workers: int, scheme: str) -> Estimate:
        place = (network, workers, scheme)
        own = [each for each in points if (each.network, each.workers, each.scheme) == place]
        return estimate([getattr(each, metric) for each in own if each.verdict == VALID] or [float("nan")])

    for network, workers in AT.items():
        table = Table("GB", *(name_of(scheme) for scheme in schemes), title=f"GOAT, {network}, {workers} workers")
        for metric in METRICS:
            names = ["GOAT" if scheme == "goat-krgs" else name_of(scheme) for scheme in schemes]
            papers = [printed.get((metric, network, name)) for name in names]
            table.add_row(f"{metric}, the paper's", *("-" if value is None else f"{value:g}" for value in papers))
            sims = (simulated(metric, network, scheme, DRAWS[request.quick]) for scheme in schemes)
            table.add_row("simulated, the same draws", *(f"{value:.2f}" for value in sims))
            found = (mean(metric, network, workers, scheme).value for scheme in schemes)
            table.add_row("by packets", *(f"{value:.2f}" for value in found), end_section=metric != "ingress")
            if metric == "ingress":
                found = (mean("first", network, workers, scheme).value for scheme in schemes)
                table.add_row("less retransmissions", *(f"{value:.2f}" for value in found), end_section=True)
        yield table
    yield Picture(
        Panel(
            LINES, places, {name_of(s): [mean(metric, network, at, s) for at in places] for s in schemes}, "workers",
            f"{metric} (GB), by packets", f"{network}, {figure}",
        )
        for network, (metric, figure) in product(AT, METRICS.items())
        if (places := sorted({each.workers for each in points if each.network == network}))
    )  # fmt: skip


FIGURES = {
    "fig10-emulated": EmulatedFigure(
        "goat-fig10-emulated", lambda request: [each.emulated_run(request.switch) for each in settings(request)], show
    )
}
