"""ATRO's Figures 3 to 5: ATRO on 20 switches against ARO, PARING and SPAR on a leaf-spine and a fat-tree of 20.

Rates of ARO and ATRO are whole numbers of Gbit/s: ATRO's r in Eq. (1) is an integer, and ARO quantises in 100 steps.
`emulated` runs plans on the network that ATRO designs by real packets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import floor, inf
from pathlib import Path
from statistics import fmean, pstdev

from rich.console import Console

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES, VIOLINS, Place, Printed
from inakit.experiments.papers.common.emulated_figure import (
    GRADIENT_BYTES,
    PLANNED,
    ByPackets,
    EmulatedRun,
    Planned,
    bytes_of,
    run_alone,
    run_plans,
)
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Findings,
    Part,
    Picture,
    Quantity,
    SweptFigure,
    by_seed,
)
from inakit.experiments.papers.common.figure_registry import COMPARES_VARIANTS, Request, Run, own_planners
from inakit.experiments.papers.common.statements import Statement, beside_paper
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.method import Design, Options
from inakit.planner.core.plan import MOST_BITS, SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods import paring, spar
from inakit.planner.methods.aro.one_task import FlowTest, best_flows
from inakit.planner.methods.aro.task_graphs import task_graph, tasks_of
from inakit.planner.methods.atro.atro import design, optimise
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.planner.methods.paring import ParingOptions
from inakit.planner.methods.spar import SparOptions
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

CAPACITY_BPS = 100e9
QUANTUM_BPS = 1e9
SWITCHES, PORTS, LAYERS = 20, 24, 5
WORKERS, AGGREGATORS = 90, 4
SEEDS = (30, 5)
SEEDS_OF_FIGURE_3 = (200, 5)
"""More draws than the paper's 30: a draw of ARO on the leaf-spine has a standard deviation of half of its mean."""
RATE = Quantity("rate_bps", "throughput (Gbit/s)", 1e9)

NETWORKS: dict[str, Callable[[], Fabric]] = {
    "leaf-spine": cache(lambda: leaf_spine(10, 10, 14, capacity_bps=CAPACITY_BPS)),
    "fat-tree": cache(lambda: fat_tree(4, hosts_per_edge=12, capacity_bps=CAPACITY_BPS)),
}


def aro_rate(problem: Problem, seed: int) -> float:
    """The optimum of ARO's model without the planner's limit of 64 flows per aggregator, which is not in the paper."""
    task, *_ = tasks_of(problem)
    graph = task_graph(problem.fabric, task.job.workers, task.server)
    test = FlowTest(graph, SolverOptions(seed=seed), children_per_sum=len(graph.workers))
    return quantised(1 / best_flows(test, 0.0).t)


def quantised(rate_bps: float) -> float:
    """A rate rounded down to whole Gbit/s."""
    return floor(rate_bps / QUANTUM_BPS * (1 + 1e-9)) * QUANTUM_BPS


ATRO, ARO = "ATRO", "ARO"
ARRANGED: dict[str, Callable[..., Design]] = {
    "PARING": lambda problem, **own: paring.design(problem, ParingOptions(detours=True, degree=inf, **own)),
    "PARING, one aggregator": lambda problem, **own: paring.design(
        problem, ParingOptions(degree=inf, aggregators=1, **own)
    ),
    "SPAR": lambda problem, **own: spar.design(problem, SparOptions(detours=True, degree=inf, **own)),
}
"""The schemes that change the problem. In these readings PARING and SPAR can take detours, with any number of flows at
an aggregator.
"""
SCHEMES = (ARO, *ARRANGED)
READINGS: dict[str, Callable[..., Design]] = {
    "SPAR": ARRANGED["SPAR"],
    "SPAR, paths known": partial(ARRANGED["SPAR"], foresees=True),
}
"""Whether SPAR knows the shortest paths that the network draws decides its advantage."""
INSTALLABLE = {"children": MOST_BITS, "passes_once": True}
"""The limits of switches on these readings: a sum has as many flows as a slot has bits, and a detour that would pass a
switch twice is not taken, because a switch forwards by tree and label.
"""
TIMES = {
    "ARO": (3.77, 9.67), "PARING": (7.06, 15.2), "PARING, one aggregator": (7.06, 15.2), "SPAR": (6.17, 6.73),
}  # fmt: skip
"""The ratio of ATRO's rate to a scheme's on each network, from the text on Figure 3."""
PRINTED = {ATRO: 50.0} | {
    f"{s}, {n}": 50 / each for s, own in TIMES.items() for n, each in zip(NETWORKS, own, strict=True)
}
"""Figure 3's values in Gbit/s, by line."""


LINES_OF_THE_PAPER: dict[str, Trial] = {
    ATRO: {"scheme": ATRO, "network": ""},
    **{f"{scheme}, {network}": {"scheme": scheme, "network": network} for scheme in SCHEMES for network in NETWORKS},
}
"""The lines of the figures. ATRO designs the network that it runs on."""


def all_lines() -> dict[str, Trial]:
    """The paper's lines, then those of user-defined planners on both networks."""
    own = product(own_planners(), NETWORKS)
    return LINES_OF_THE_PAPER | {f"{name}, {network}": {"scheme": name, "network": network} for name, network in own}


def measure(trial: Trial) -> Result:
    """Measure a trial: the rate of one scheme on one network with one seed, and the seconds that planning took."""
    workers, aggregators, seed = (int(trial[key]) for key in ("workers", "aggregators", "seed"))
    if trial["scheme"] == ATRO:
        cluster = SwitchCluster(aggregators, SWITCHES - aggregators, PORTS, workers, CAPACITY_BPS, LAYERS)
        wiring, outcome = optimise(cluster)
        rate = quantised(CAPACITY_BPS / wiring.most_flows)
        return {"rate_bps": rate, "seconds": outcome.seconds, "status": outcome.status}
    problem = drawn_problem(NETWORKS[str(trial["network"])](), workers, aggregators, seed)
    started = time.monotonic()
    name = str(trial["scheme"])
    if name == ARO:
        rate = aro_rate(problem, seed)
    elif name in {**ARRANGED, **READINGS}:
        rate = {**ARRANGED, **READINGS}[name](problem, seed=seed).rate_bps
    else:
        rate = sum(planned.rate_bps for planned in METHODS[name].plan(problem, Options(seed=seed)).trees)
    return {"rate_bps": rate, "seconds": time.monotonic() - started}


ONE_PACKET = Job(1, (), (), 4 * FRAGMENT.values)


def drawn_problem(fabric: Fabric, workers: int, aggregators: int, seed: int, job: Job = ONE_PACKET) -> Problem:
    draw = random.Random(seed)
    chosen = draw.sample([switch.name for switch in fabric.switches], aggregators)
    server, *others = draw.sample([host.name for host in fabric.hosts], workers + 1)
    return Problem(with_ina(fabric, chosen), (replace(job, workers=tuple(others), servers=(server,)),), FRAGMENT)


DEFAULT: dict[Place, Trial] = {"": {"workers": WORKERS, "aggregators": AGGREGATORS}}
OVER_WORKERS: dict[Place, Trial] = {
    n: {"workers": n, "aggregators": AGGREGATORS} for n in (60, 65, 70, 75, 80, 85, 89, 90)
}
FEW_WORKERS: dict[Place, Trial] = {n: OVER_WORKERS[n] for n in (60, 70, 80, 90)}
OVER_AGGREGATORS: dict[Place, Trial] = {n: {"workers": WORKERS, "aggregators": n} for n in range(2, 7)}


def fig3(found: Findings) -> Iterator[Part]:
    """The rates in the default setting, as violins."""
    chart = Chart(
        RATE, DEFAULT, all_lines(), kind=VIOLINS, paper={name: {"": value} for name, value in PRINTED.items()}
    )
    draws = {name: point.draws for name, (point,) in found.series(chart).items()}
    rows = [(name, PRINTED.get(name), fmean(rates), pstdev(rates)) for name, rates in draws.items()]
    yield beside_paper("ATRO, Figure 3 (Gbit/s)", rows, (".2f", ".2f", ".2f"), "scheme")
    yield Picture([found.panel(chart)])
    claims = read_ledger("atro")
    points = {name: point for name, (point,) in found.series(chart).items()}
    yield [
        claims.judge("fig3-atro", points[ATRO]),
        *(
            claims.judge(f"fig3-{scheme.lower()}-{network.replace('-', '')}", times(points, f"{scheme}, {network}"))
            for scheme, network in product(PAPERS, NETWORKS)
        ),
    ]


def times(points: Mapping[str, Estimate], line: str) -> Estimate:
    return points[line].map(lambda rate: points[ATRO].value / rate)


def over(
    points: Mapping[Place, Trial],
    axis: str,
    paper: Mapping[Place, float],
    said: Callable[[Findings, Chart], Iterator[Statement]],
    found: Findings,
) -> Iterator[Part]:
    """A line for each scheme and network. `paper` has ATRO's rates from the text."""
    number_of_figure = 4 if axis == "workers" else 5
    heading = f"ATRO, Figure {number_of_figure} (Gbit/s)"
    chart = Chart(RATE, points, all_lines(), axis, heading, log="y", paper={ATRO: paper})
    table = found.table(chart)
    table.add_row("ATRO, the paper's text", *(statements.number(paper.get(place)) for place in points))
    seconds = (found.mean(chart.cell(ATRO, place), "seconds") for place in points)
    table.add_row("ATRO, seconds (paper: 2 to 330)", *map(statements.number, seconds))
    yield table
    yield list(said(found, chart))
    yield Picture([found.panel(chart)])


OTHERS = [label for label in LINES_OF_THE_PAPER if label != ATRO]
PAPERS = (ARO, "PARING", "SPAR")
"""The paper's schemes as it describes them, of which it makes its claims."""


def said_over_workers(found: Findings, chart: Chart) -> Iterator[Statement]:
    """The text's sentences about Figure 4, and about the time that ATRO takes."""
    claims, points, places = read_ledger("atro"), found.series(chart), chart.places
    most = dict(zip(places, points[ATRO], strict=True))
    yield claims.judge("fig4-full-to-80", min((most[n] for n in BY_WORKERS if n != WORKERS), key=statements.mean))
    yield claims.judge("fig4-90", most[WORKERS])
    yield claims.judge("fig4-best", {name: points[name] for name in (ATRO, *OTHERS)}, places)
    for scheme in PAPERS[:2]:
        pair = {f"{scheme}, {network}": points[f"{scheme}, {network}"] for network in NETWORKS}
        yield claims.judge(f"fig4-{scheme.lower()}-leafspine", pair, places)
    yield claims.judge("time", [found.mean(chart.cell(ATRO, place), "seconds") for place in places])


def said_over_aggregators(found: Findings, chart: Chart) -> Iterator[Statement]:
    """The text's sentences about Figure 5."""
    claims, points = read_ledger("atro"), found.series(chart)
    most = dict(zip(chart.places, points[ATRO], strict=True))
    yield claims.judge("fig5-4", most[4])
    yield claims.judge("fig5-6", most[6])
    rising = (ATRO, *(f"{scheme}, {network}" for scheme, network in product(PAPERS, NETWORKS)))
    yield claims.judge("fig5-rises", {name: points[name] for name in rising})
    gains = {name: [points[name][-1].value - points[name][0].value] for name in (ATRO, *OTHERS)}
    yield claims.judge("fig5-most", gains, [f"{chart.places[0]} to {chart.places[-1]}"])


def studies(found: Findings) -> Iterator[Part]:
    """ATRO's advantage over each scheme in all studies, and the networks on which they are compared."""
    claims = read_ledger("atro")
    charts = [Chart(RATE, points, LINES_OF_THE_PAPER) for points in (OVER_WORKERS, OVER_AGGREGATORS)]
    ratios: dict[str, list[Estimate]] = {}
    for chart, scheme, network in product(charts, SCHEMES, NETWORKS):
        points = found.series(chart)
        for place in range(len(chart.places)):
            at = {name: own[place] for name, own in points.items()}
            ratios.setdefault(scheme, []).append(times(at, f"{scheme}, {network}"))
    ends = {scheme: sorted(own, key=statements.mean) for scheme, own in ratios.items()}
    rows = {scheme: [own[0].value, own[-1].value] for scheme, own in ends.items()}
    yield statements.value_table("ATRO over", "scheme", ["least", "most"], rows)
    judged = []
    for scheme in PAPERS:
        name = scheme.lower()
        judged += [claims.judge(f"{part}-{name}", ends[scheme][-1]) for part in ("abstract", "intro")]
        judged.append(claims.judge(f"range-{name}", ends[scheme]))
    fabrics = {name: make() for name, make in NETWORKS.items()}
    for network, fabric in fabrics.items():
        judged.append(claims.judge(f"hosts-{network.replace('-', '')}", float(len(fabric.hosts))))
    fat_tree = fabrics["fat-tree"]
    peers = fat_tree.neighbors[fat_tree.tor_of("h1")]
    hosts = sum(peer in fat_tree.host_names for peer in peers)
    judged.append(claims.judge("oversubscription", hosts / (len(peers) - hosts)))
    yield judged


READ_LINES: dict[str, Trial] = {
    f"{scheme}, {network}": {"scheme": scheme, "network": network} for scheme in READINGS for network in NETWORKS
}


def readings(found: Findings) -> Iterator[Part]:
    """SPAR's rates in the default setting without and with the paths of the network, beside the paper's."""
    chart = Chart(RATE, DEFAULT, READ_LINES)
    points = {name: point for name, (point,) in found.series(chart).items()}
    rows = [(name, PRINTED[name.replace(", paths known", "")], point.value) for name, point in points.items()]
    yield beside_paper("ATRO, Figure 3, readings of SPAR (Gbit/s)", rows, (".2f", ".2f", ".2f"), "reading")


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """The trials of a cell; ATRO has no random factors, so it has a single trial."""
    return by_seed(cell, 1 if cell["scheme"] == ATRO else seeds)


def verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if every rate of ATRO is a proven optimum."""
    statuses = [result["status"] for result in found.results.values() if "status" in result]
    return VALID if all(status == "optimal" for status in statuses) else Verdict.UNPROVEN


def swept(
    name: str,
    points: Sequence[Mapping[Place, Trial]],
    show: Callable[[Findings], Iterator[Part]],
    seeds: tuple[int, int] = SEEDS,
) -> SweptFigure:
    return SweptFigure(
        f"atro-{name}",
        "atro-trials",
        measure,
        lambda _: (cell for own in points for cell in Chart(RATE, own, all_lines()).cells),
        show,
        seeds,
        draws,
        verdict,
    )


# -- By packets.


def installable(trial: Trial, gradient_bytes: int) -> Design:
    """The plan of a trial that switches can carry out, for two iterations."""
    job = Job(1, (), (), gradient_bytes, iterations=2)
    workers, aggregators, seed = (int(trial[key]) for key in ("workers", "aggregators", "seed"))
    if trial["scheme"] == ATRO:
        cluster = SwitchCluster(aggregators, SWITCHES - aggregators, PORTS, workers, CAPACITY_BPS, LAYERS)
        return design(cluster, FRAGMENT, job=job)
    problem = drawn_problem(NETWORKS[str(trial["network"])](), workers, aggregators, seed, job)
    name = str(trial["scheme"])
    if name in ARRANGED:
        return ARRANGED[name](problem, seed=seed, **INSTALLABLE)
    return Design(problem, METHODS["aro" if name == ARO else name].plan(problem, Options(seed=seed)))


def run_trial(trial: Trial, switch: str, results: Path) -> Result:
    """Run the plan of a trial at the links' rates: planned and measured rates in bit/s."""
    planned = installable(trial, GRADIENT_BYTES)
    run = EmulatedRun("run", planned.problem, with_headroom(planned.problem, planned.plan).plan, trial)
    outcome, folder = run_alone("atro", run, switch, results)
    return {
        "rate_bps": outcome.measured.sending_rate_bps,
        f"{PLANNED}rate_bps": run.prepared.prediction.sending_rate_bps,
        "exact": int(bool(outcome.measured.exact)),
        "verdict": outcome.verdict,
        "folder": folder,
    }


def by_packets(
    figure: str, axis: str, points: Mapping[Place, Trial], paper: Printed, seeds: tuple[int, int] = (3, 1)
) -> ByPackets:
    """A figure by packets; a quick request has its first and its last place."""

    def charts(request: Request) -> list[Chart]:
        every = list(points)
        places = {place: points[place] for place in ((every[0], every[-1]) if request.quick else every)}
        kind, heading = LINES if axis else BARS, f"ATRO, Figure {figure[3:]} (Gbit/s)"
        return [Chart(RATE, places, all_lines(), axis, heading, "by packets", kind, "y", paper)]

    return ByPackets("atro", f"{figure}-emulated", run_trial, charts, seeds, draws=draws)


CLUSTER = SwitchCluster(aggregators=4, common=12, ports=6, workers=32, capacity_bps=2e6)
"""The number of switches available to ATRO; it uses twelve of them."""


def emulated(console: Console, request: Request) -> str:
    """Run ATRO's plan, ARO's and those of user-defined planners on the network that ATRO designs."""
    _, verdict = run_plans("atro-emulated", designed(bytes_of(request)), console, request)
    return verdict


def designed(gradient_bytes: int) -> dict[str, Planned]:
    """The problem on the network that ATRO designs, with all plans, under a name that states its size."""
    found = design(CLUSTER, FRAGMENT, job=Job(1, (), (), gradient_bytes))
    plans = {"atro": found.plan} | {name: METHODS[name].plan(found.problem) for name in ("aro", *own_planners())}
    return {f"{len(found.fabric.switches)} switches": (found.problem, plans)}


BY_WORKERS: dict[Place, float] = {**dict.fromkeys((60, 65, 70, 75, 80), 100.0), 90: 50.0}
FIGURES: dict[str, Run] = {
    "fig3": swept("fig3", [DEFAULT], fig3, SEEDS_OF_FIGURE_3),
    "fig4": swept("fig4", [OVER_WORKERS], partial(over, OVER_WORKERS, "workers", BY_WORKERS, said_over_workers)),
    "fig5": swept(
        "fig5",
        [OVER_AGGREGATORS],
        partial(over, OVER_AGGREGATORS, "aggregators", {4: 33.0, 6: 100.0}, said_over_aggregators),
    ),
    "readings": SweptFigure(
        "atro-readings",
        "atro-trials",
        measure,
        lambda _: Chart(RATE, DEFAULT, READ_LINES).cells,
        readings,
        SEEDS_OF_FIGURE_3,
        leaves_out=COMPARES_VARIANTS,
    ),
    "studies": swept("studies", [OVER_WORKERS, OVER_AGGREGATORS], studies),
    "emulated": emulated,
    "fig3-emulated": by_packets("fig3", "", DEFAULT, {name: {"": value} for name, value in PRINTED.items()}, (10, 1)),
    "fig4-emulated": by_packets("fig4", "workers", FEW_WORKERS, {ATRO: BY_WORKERS}),
    "fig5-emulated": by_packets("fig5", "aggregators", OVER_AGGREGATORS, {ATRO: {4: 33.0, 6: 100.0}}),
}
