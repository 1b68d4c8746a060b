"""INARouting's two published instances: the rounded relaxation, re-routing, and its integer program with HiGHS.

8 jobs of 7 workers and a PS are drawn on 64 servers as in the public code, by `random.Random(42)`: for each job 8 of
the remaining servers, then a shuffle whose first element is the PS. The leaf-spine's names are in alphabetical order,
the fat-tree's in numerical order. Every link has 200 Gbit/s, and every switch sums 200 Gbit/s. Totals are max-min fair,
as in the published evaluation; the program maximises fair shares, which are a little lower. Its time limit is 10
minutes, or 20 s with --quick.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, present
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement, is_above
from inakit.experiments.report.method_styles import categories
from inakit.planner.core.plan import SolverOptions, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.inarouting import (
    NextHops,
    SharedFabric,
    build,
    extract,
    judged,
    relax_and_round,
    rerouted,
    shared_fabric,
    total_rates,
)
from inakit.planner.solvers import solve
from inakit.topo.errors import unknown_name
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

RATE_BPS = 200e9
JOBS, SERVERS_PER_JOB, SEED = 8, 8, 42
GRADIENT_BYTES = 548_000
"""The gradient's size, on which routes do not depend; the published instances have none."""

INSTANCES = ("leaf-spine", "fat-tree")
PUBLISHED_GBPS = {
    "leaf-spine": {"INARouting-Relax": 866.67, "INARouting-Opt": 900.0},
    "fat-tree": {"INARouting-Relax": 475.0, "INARouting-Opt": 533.33},
}
"""The totals that the public code's evaluation (water-filling) computes for its published routes. The fat-tree's second
total belongs to routes on which two jobs' gradients circulate between an aggregation and a core switch."""


def instance(name: str) -> Problem:
    """One of the published instances. Raises `InputError` for an unknown name."""
    if name not in INSTANCES:
        raise unknown_name("INARouting's instance", name, INSTANCES)
    fabric = with_aggregators(FABRICS[name](), rate_bps=RATE_BPS)
    hosts = [host.name for host in fabric.hosts]
    return Problem(fabric, drawn_jobs(sorted(hosts) if name == "leaf-spine" else hosts), FRAGMENT)


FABRICS = {
    "leaf-spine": partial(leaf_spine, 8, 8, 8, capacity_bps=RATE_BPS),
    "fat-tree": partial(fat_tree, 4, hosts_per_edge=8, capacity_bps=RATE_BPS),
}
"""8 spines, 8 leaves and 64 servers, or a fat-tree with k = 4 and 8 servers per edge."""


def drawn_jobs(hosts: Sequence[str]) -> tuple[Job, ...]:
    draw, left, jobs = random.Random(SEED), list(hosts), []
    for number in range(1, JOBS + 1):
        drawn = draw.sample(left, SERVERS_PER_JOB)
        left = [host for host in left if host not in drawn]
        draw.shuffle(drawn)
        server, *workers = drawn
        jobs.append(Job(number, tuple(workers), (server,), GRADIENT_BYTES))
    return tuple(jobs)


LIMIT_S, QUICK_LIMIT_S = 600.0, 20.0
ROUNDED, REROUTED, PROGRAM = "rounded", "rounded and re-routed", "integer program"
SPEED_UP = 10.0
"""The least speed-up of the heuristic over the program on the largest instance, the leaf-spine."""


@dataclass(frozen=True)
class Solved:
    """The total fair and max-min rates of routes in Gbit/s, their processor time, and the proven gap."""

    fair_gbps: float
    max_min_gbps: float
    seconds: float
    proven: str


def run(console: Console, request: Request) -> str:
    """Print and draw all totals; VALID if none is below the published heuristic's and the heuristic is fast."""
    options = SolverOptions(time_limit_s=QUICK_LIMIT_S if request.quick else LIMIT_S)
    found = {name: solved(shared_fabric(instance(name)), options) for name in INSTANCES}
    said = [statement for name, ways in found.items() for statement in claims(name, ways)]
    parts: list[Part] = [*(table(name, ways) for name, ways in found.items()), said, Picture([panel(found)])]
    present(console, request.results / "inarouting-instances", parts)
    return VALID if all(statement.holds for statement in said) else Verdict.UNPROVEN


def solved(network: SharedFabric, options: SolverOptions) -> dict[str, Solved]:
    started = time.process_time()
    rounded, _ = relax_and_round(network, options)
    after_rounding = time.process_time() - started
    better = rerouted(network, rounded, options.seed)
    proven = proven_of(judged(network, better, 0.0))
    after_rerouting = time.process_time() - started
    model = build(network)
    outcome = solve(model.program, options)
    program = time.process_time() - started - after_rerouting
    return {
        ROUNDED: totalled(network, rounded, after_rounding, "heuristic"),
        REROUTED: totalled(network, better, after_rerouting, proven),
        PROGRAM: totalled(network, extract(network, model), program, proven_of(outcome)),
    }


def proven_of(outcome: SolverOutcome) -> str:
    """An outcome in words, with its gap."""
    return f"{outcome.status}, gap {outcome.gap:.1%}" if outcome.gap else outcome.status


def totalled(network: SharedFabric, hops: Sequence[NextHops], seconds: float, proven: str) -> Solved:
    fair, shared = total_rates(network, hops)
    return Solved(fair / 1e9, shared / 1e9, seconds, proven)


def table(name: str, ways: Mapping[str, Solved]) -> Table:
    rows = Table("way", "fair (Gbit/s)", "max-min (Gbit/s)", "processor s", "", title=f"INARouting, {name}")
    for way, found in ways.items():
        figures = (f"{found.fair_gbps:.2f}", f"{found.max_min_gbps:.2f}", f"{found.seconds:.2f}")
        rows.add_row(way, *figures, found.proven)
    for scheme, gbps in PUBLISHED_GBPS[name].items():
        rows.add_row(f"published, {scheme}", "", f"{gbps:.2f}", "", "")
    return rows


def claims(name: str, ways: Mapping[str, Solved]) -> list[Statement]:
    published, best = PUBLISHED_GBPS[name]["INARouting-Relax"], ways[REROUTED]
    said = [is_above(f"{name}: at least INARouting-Relax's {published:g}", best.max_min_gbps, published - 0.01)]
    if name == INSTANCES[0]:
        ratio = ways[PROGRAM].seconds / best.seconds
        said.append(is_above(f"{name}: the heuristic is {SPEED_UP:g} times faster than the program", ratio, SPEED_UP))
    return said


def panel(found: Mapping[str, Mapping[str, Solved]]) -> Panel:
    """Bars of each method's max-min totals, by instance, with the published totals."""
    series = {way: [exact(found[name][way].max_min_gbps) for name in found] for way in (ROUNDED, REROUTED, PROGRAM)}
    paper: Printed = {
        REROUTED: {name: PUBLISHED_GBPS[name]["INARouting-Relax"] for name in found},
        PROGRAM: {name: PUBLISHED_GBPS[name]["INARouting-Opt"] for name in found},
    }
    return Panel(BARS, list(found), series, "", "total rate (Gbit/s)", paper=paper, styles=categories(series))


FIGURES = {"instances": run}
