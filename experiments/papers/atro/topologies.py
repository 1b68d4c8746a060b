"""ATRO's Figures 3 to 5: ATRO on 20 switches against ARO, PARING and SPAR on a leaf-spine and a fat-tree of 20.

Rates of ARO and ATRO are whole numbers of Gbit/s: ATRO's r in Eq. (1) is an integer, and ARO quantises in 100 steps.
`emulated` runs plans on the network that ATRO designs by real packets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import floor, inf
from statistics import fmean as mean
from statistics import pstdev as sd

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import drawing, statements
from inakit.experiments.papers.common.drawing import LINES, VIOLINS, Panel, Place, Printed
from inakit.experiments.papers.common.emulated_runs import Planned, bytes_of, run_plans
from inakit.experiments.papers.common.estimates import estimate, means
from inakit.experiments.papers.common.figure import Request, own_planners
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.planner.core.method import Options
from inakit.planner.core.plan import SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods import paring, spar
from inakit.planner.methods.aro.one_task import Demand, FlowTest, best_flows
from inakit.planner.methods.aro.tasks import task_graph, tasks_of
from inakit.planner.methods.atro.atro import design, optimise
from inakit.planner.methods.atro.cluster import Cluster
from inakit.planner.methods.paring import ParingOptions
from inakit.planner.registry import METHODS
from inakit.planner.trees.overlay import OverlayOptions
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

CAPACITY_BPS = 100e9
QUANTUM_BPS = 1e9
SWITCHES, PORTS, LAYERS = 20, 24, 5
WORKERS, AGGREGATORS = 90, 4
SEEDS, QUICK_SEEDS = 30, 5

GBPS = "throughput (Gbit/s)"

NETWORKS: dict[str, Callable[[], Fabric]] = {
    "leaf-spine": cache(lambda: leaf_spine(10, 10, 14, capacity_bps=CAPACITY_BPS)),
    "fat-tree": cache(lambda: fat_tree(4, hosts_per_edge=12, capacity_bps=CAPACITY_BPS)),
}

Scheme = Callable[[Problem, int], float]
"""A rate in bit/s, given a problem and a seed."""


def aro_rate(problem: Problem, seed: int) -> float:
    """The optimum of ARO's model, without the planner's limit of 64 flows at an aggregator: the paper has none."""
    task, *_ = tasks_of(problem)
    graph = task_graph(problem.fabric, task.job.workers, task.server)
    test = FlowTest(Demand(graph, most_children=len(graph.workers)), SolverOptions(seed=seed))
    return quantised(1 / best_flows(test, 0.0).t)


def paring_rate(problem: Problem, seed: int) -> float:
    """The rate of PARING's plan, which may take detours, with any number of aggregators."""
    return paring.design(problem, ParingOptions(seed=seed, detours=True, degree=inf)).rate_bps


def single_paring_rate(problem: Problem, seed: int) -> float:
    """The rate of PARING's plan with one aggregator."""
    return paring.design(problem, ParingOptions(seed=seed, degree=inf, aggregators=1)).rate_bps


def spar_rate(problem: Problem, seed: int) -> float:
    """The rate of SPAR's plan, which may take detours."""
    return spar.design(problem, OverlayOptions(seed=seed, detours=True, degree=inf)).rate_bps


def quantised(rate_bps: float) -> float:
    """A rate rounded down to whole Gbit/s."""
    return floor(rate_bps / QUANTUM_BPS * (1 + 1e-9)) * QUANTUM_BPS


ATRO = "ATRO"
SCHEMES: dict[str, Scheme] = {
    "ARO": aro_rate,
    "PARING": paring_rate,
    "PARING, one aggregator": single_paring_rate,
    "SPAR": spar_rate,
}
# Figure 3's text gives ATRO's 50 Gbit/s, and by which factor that is above the others' rates.
PAPER_GBPS: dict[tuple[str, str], float] = {
    ("ARO", "leaf-spine"): 50 / 3.77,
    ("ARO", "fat-tree"): 50 / 9.67,
    ("PARING", "leaf-spine"): 50 / 7.06,
    ("PARING", "fat-tree"): 50 / 15.2,
    ("PARING, one aggregator", "leaf-spine"): 50 / 7.06,
    ("PARING, one aggregator", "fat-tree"): 50 / 15.2,
    ("SPAR", "leaf-spine"): 50 / 6.17,
    ("SPAR", "fat-tree"): 50 / 6.73,
}


PRINTED = {ATRO: 50.0, **{f"{scheme}, {network}": value for (scheme, network), value in PAPER_GBPS.items()}}
"""Figure 3's values in Gbit/s, by line."""


@dataclass(frozen=True)
class SchemeLine:
    """One line of a figure: a scheme on a network. ATRO designs its own network, so it has none here."""

    scheme: str
    network: str = ""

    @property
    def label(self) -> str:
        """The line's name in the figure."""
        return f"{self.scheme}, {self.network}" if self.network else self.scheme

    def trials(self, point: Trial, seeds: int) -> list[Trial]:
        """The line's trials at a point; ATRO has no random factors, so it has a single one."""
        count = 1 if self.scheme == ATRO else seeds
        return [{**point, "scheme": self.scheme, "network": self.network, "seed": seed} for seed in range(count)]


SERIES = (SchemeLine(ATRO), *(SchemeLine(scheme, network) for scheme in SCHEMES for network in NETWORKS))


def all_series() -> tuple[SchemeLine, ...]:
    """The paper's lines, then those of your own planners on both networks."""
    return (*SERIES, *(SchemeLine(name, network) for name in own_planners() for network in NETWORKS))


def measure(trial: Trial) -> Result:
    """Measure a trial: the rate of one scheme on one network with one seed, and the seconds that planning took."""
    workers, aggregators, seed = (int(trial[key]) for key in ("workers", "aggregators", "seed"))
    if trial["scheme"] == ATRO:
        cluster = Cluster(aggregators, SWITCHES - aggregators, PORTS, workers, CAPACITY_BPS, LAYERS)
        wiring, outcome = optimise(cluster)
        rate = quantised(CAPACITY_BPS / wiring.most_flows)
        return {"rate_bps": rate, "seconds": outcome.seconds, "status": outcome.status}
    problem = drawn_problem(NETWORKS[str(trial["network"])](), workers, aggregators, seed)
    started = time.monotonic()
    rate = scheme_of(str(trial["scheme"]))(problem, seed)
    return {"rate_bps": rate, "seconds": time.monotonic() - started}


def scheme_of(name: str) -> Scheme:
    return SCHEMES.get(name) or partial(planned_rate, name)


def planned_rate(name: str, problem: Problem, seed: int) -> float:
    return sum(planned.rate_bps for planned in METHODS[name].plan(problem, Options(seed=seed)).trees)


def drawn_problem(fabric: Fabric, workers: int, aggregators: int, seed: int) -> Problem:
    draw = random.Random(seed)
    chosen = draw.sample([switch.name for switch in fabric.switches], aggregators)
    server, *others = draw.sample([host.name for host in fabric.hosts], workers + 1)
    job = Job(1, tuple(others), (server,), 4 * FRAGMENT.values)
    return Problem(with_ina(fabric, chosen), (job,), FRAGMENT)


def fig3(console: Console, request: Request) -> str:
    """Figure 3: rates at the default setting, as violins."""
    point = {"workers": WORKERS, "aggregators": AGGREGATORS}
    measured, seeds = run([point], request, console)
    table = Table("scheme", "paper", "ours", "ratio", "sd", title="ATRO, Figure 3 (Gbit/s)")
    for series in all_series():
        rates, paper = gbps(measured, series, point, seeds), PRINTED.get(series.label)
        ratio = None if paper is None else mean(rates) / paper
        cells = (paper, mean(rates), ratio, sd(rates))
        table.add_row(series.label, *("-" if value is None else f"{value:.2f}" for value in cells))
    console.print(table)
    values = {series.label: [estimate(gbps(measured, series, point, seeds))] for series in all_series()}
    paper_points: Printed = {label: {"": value} for label, value in PRINTED.items()}
    drawing.save(request.results / "atro-fig3", Panel(VIOLINS, [""], values, "", GBPS, paper=paper_points))
    printed = sorted((label for label in PRINTED if label.count(",") < 2), key=PRINTED.__getitem__, reverse=True)
    console.print(statements.table_of(statements.in_order("3", printed, means(values), ["default"])))
    return verdict(measured)


def fig4(console: Console, request: Request) -> str:
    """Figure 4: rates over the number of workers, with four aggregators."""
    points: list[Trial] = [
        {"workers": workers, "aggregators": AGGREGATORS} for workers in (60, 65, 70, 75, 80, 85, 89, 90)
    ]
    paper: dict[Place, float] = dict.fromkeys((60, 65, 70, 75, 80, 90), 100.0)
    paper[90] = 50.0
    return lines(console, request, "Figure 4", "workers", points, paper, said_over_workers)


def fig5(console: Console, request: Request) -> str:
    """Figure 5: rates over the number of aggregators, with 90 workers."""
    points: list[Trial] = [{"workers": WORKERS, "aggregators": aggregators} for aggregators in range(2, 7)]
    return lines(console, request, "Figure 5", "aggregators", points, {4: 33.0, 6: 100.0}, said_over_aggregators)


Said = Callable[[Mapping[str, Sequence[float]], Sequence[Place]], list[Statement]]
"""The sentences of a figure's text about its curves over their places."""


def said_over_workers(curves: Mapping[str, Sequence[float]], places: Sequence[Place]) -> list[Statement]:
    """The text's sentences about Figure 4."""
    others = [series.label for series in SERIES[1:]]
    return [
        statements.is_highest("4", ATRO, others, curves, places),
        *(
            statement
            for scheme in ("ARO", "PARING", "PARING, one aggregator")
            for statement in statements.in_order("4", (f"{scheme}, leaf-spine", f"{scheme}, fat-tree"), curves, places)
        ),
    ]


def said_over_aggregators(curves: Mapping[str, Sequence[float]], places: Sequence[Place]) -> list[Statement]:
    """The text's sentences about Figure 5."""
    gains = {series.label: [curves[series.label][-1] - curves[series.label][0]] for series in SERIES}
    others = [series.label for series in SERIES[1:]]
    return [
        statements.is_highest("5", ATRO, others, curves, places),
        *(statements.rises(f"5: {series.label} rises with aggregators", curves[series.label]) for series in SERIES),
        statements.is_highest("5, improvement", ATRO, others, gains, [f"{places[0]} to {places[-1]}"]),
    ]


def lines(
    console: Console,
    request: Request,
    title: str,
    axis: str,
    points: Sequence[Trial],
    paper: Mapping[Place, float],
    said: Said,
) -> str:
    """Measure and draw a figure with a line for each scheme and network.

    `paper` has ATRO's rates as the text has them, `said` makes the statements about all lines.
    """
    measured, seeds = run(points, request, console)
    found = {series.label: [estimate(gbps(measured, series, p, seeds)) for p in points] for series in all_series()}
    values = means(found)
    table = statements.value_table(f"ATRO, {title} (Gbit/s)", axis, [point[axis] for point in points], values)
    table.add_row("ATRO, the paper's text", *(statements.number(paper.get(int(point[axis]))) for point in points))
    seconds = [measured.mean("seconds", SERIES[0].trials(point, seeds)) for point in points]
    table.add_row("ATRO, seconds (paper: 2 to 330)", *map(statements.number, seconds))
    console.print(table)
    places = [int(point[axis]) for point in points]
    console.print(statements.table_of(said(values, places)))
    drawing.save(
        request.results / f"atro-{title.lower().replace('figure ', 'fig')}",
        Panel(LINES, places, found, axis, GBPS, paper={ATRO: paper}, log="y"),
    )
    return verdict(measured)


def run(points: Sequence[Trial], request: Request, console: Console) -> tuple[Measured, int]:
    """Measure all schemes at all points; the results, and the number of seeds."""
    seeds = QUICK_SEEDS if request.quick else SEEDS
    trials = [trial for point in points for series in all_series() for trial in series.trials(point, seeds)]
    return sweep(trials, measure, request.results / "atro-trials", console), seeds


def gbps(measured: Measured, series: SchemeLine, point: Trial, seeds: int) -> list[float]:
    """The rates of a line at a point, in Gbit/s, by seed."""
    return [rate / 1e9 for rate in measured.of("rate_bps", series.trials(point, seeds))]


def verdict(measured: Measured) -> str:
    """VALID if every rate of ATRO is a proven optimum."""
    statuses = [result["status"] for result in measured.results.values() if "status" in result]
    return VALID if all(status == "optimal" for status in statuses) else Verdict.UNPROVEN


CLUSTER = Cluster(aggregators=4, common=12, ports=6, workers=32, capacity_bps=2e6)
"""The switches that ATRO may wire; it uses twelve of them."""


def emulated(console: Console, request: Request) -> str:
    """Run, on the network that ATRO designs, its own plan, ARO's, and those of your own planners."""
    _, verdict = run_plans("atro-emulated", designed(bytes_of(request)), console, request)
    return verdict


def designed(gradient_bytes: int) -> dict[str, Planned]:
    """The problem on the network that ATRO designs, with all plans, under a name that says its size."""
    found = design(CLUSTER, FRAGMENT, job=Job(1, (), (), gradient_bytes))
    plans = {"atro": found.plan} | {name: METHODS[name].plan(found.problem) for name in ("aro", *own_planners())}
    return {f"{len(found.fabric.switches)} switches": (found.problem, plans)}
