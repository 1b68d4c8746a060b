"""The size and the solving time of LP-InArt, InArt's relaxation, with 200 workers, 8 PSs and 45 switches."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.papers.inart.setting import HIGH_BPS, LINK_BPS, LOW_BPS, MODELS, SWITCH_BPS
from inakit.experiments.styles.method_styles import categories
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.solving import SolverOptions
from inakit.planner.methods.inart.relaxation import build, relax
from inakit.planner.methods.inart.split import split_model
from inakit.planner.trees.summed_once import split_equally
from inakit.topo.fabric.clos import fat_tree
from inakit.topo.fabric.variations import with_aggregators, with_capacities
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.frames import FRAGMENT

WORKERS, SERVERS, HOSTS_PER_EDGE = 200, 8, 12
MOST_SECONDS = 10.0


def large_problem(low_bps: float, high_bps: float, seed: int = 1) -> Problem:
    """A job on a fat-tree with k = 6 and twelve hosts per rack, whose links have rates from `low_bps` to `high_bps`."""
    fabric = with_aggregators(fat_tree(6, hosts_per_edge=HOSTS_PER_EDGE), rate_bps=SWITCH_BPS)
    fabric = with_capacities(fabric, low_bps, high_bps, seed)
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], WORKERS + SERVERS)
    return Problem(fabric, (Job(1, tuple(hosts[SERVERS:]), tuple(hosts[:SERVERS]), MODELS["VGG19"]),), FRAGMENT)


def run(console: Console, request: Request) -> str:
    """Print sizes and times; VALID if LP-InArt and the linear program of L-InArt's split take less than 10 s each."""
    table = Table("links", "variables", "rows", "LP-InArt (s)", "L-InArt (s)", "f (Mbit/s)")
    took: dict[str, list[float]] = {}
    for name, capacities in {"equal": (LINK_BPS, LINK_BPS), "drawn": (LOW_BPS, HIGH_BPS)}.items():
        problem = large_problem(*capacities)
        model = build(problem.fabric, split_equally(problem)).model
        started = time.monotonic()
        bound = relax(problem.fabric, split_equally(problem), SolverOptions()).bound_bps
        relaxed = time.monotonic()
        split_model(problem.fabric, split_equally(problem), SolverOptions())
        seconds = relaxed - started, time.monotonic() - relaxed
        took[name] = list(seconds)
        sizes = str(model.numVariables()), str(model.numConstraints())
        table.add_row(name, *sizes, *(f"{value:.1f}" for value in seconds), f"{bound / 1e6:.2f}")
    console.print(table)
    save(request.results / "inart-lp", panel(took))
    slowest = max(max(seconds) for seconds in took.values())
    return VALID if slowest < MOST_SECONDS else Verdict.SLOW


def panel(took: Mapping[str, Sequence[float]]) -> Panel:
    """Bars of the seconds that LP-InArt and the split take, for equal and for drawn capacities."""
    series = {f"{name} links": list(map(exact, seconds)) for name, seconds in took.items()}
    return Panel(BARS, ["LP-InArt", "L-InArt"], series, "", "seconds", styles=categories(series))
