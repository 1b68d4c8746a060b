"""INARouting's two published instances: the relaxation rounded, re-routed, and its integer program with HiGHS.

Totals are max-min fair, as the published evaluation has them; the program maximises fair shares, which are a little
less. Its time limit is 10 minutes, or 20 s with --quick.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, Panel, Printed
from inakit.experiments.papers.common.statements import Statement, is_above, table_of
from inakit.experiments.papers.inarouting.setting import INSTANCES, PUBLISHED_GBPS, instance
from inakit.experiments.styles.method_styles import categories
from inakit.planner.core.solving import SolverOptions, SolverOutcome
from inakit.planner.methods.inarouting.method import judged
from inakit.planner.methods.inarouting.model import build, extract
from inakit.planner.methods.inarouting.rerouting import rerouted, total_rates
from inakit.planner.methods.inarouting.rounding import relax_and_round
from inakit.planner.methods.inarouting.routes import Network, NextHops, network_of
from inakit.planner.solvers.solve import solve
from inakit.traffic.measure.verdict import VALID, Verdict

LIMIT_S, QUICK_LIMIT_S = 600.0, 20.0
ROUNDED, REROUTED, PROGRAM = "rounded", "rounded and re-routed", "integer program"
SPEED_UP = 10.0
"""How many times faster the heuristic has to be than the program on the largest instance, the leaf-spine."""


@dataclass(frozen=True)
class Solved:
    """The total fair and max-min rates of routes in Gbit/s, the processor time that they took, and what is proven."""

    fair_gbps: float
    max_min_gbps: float
    seconds: float
    proven: str


def run(console: Console, request: Request) -> str:
    """Print and draw all totals; VALID if none is below the published heuristic's and the heuristic is fast."""
    options = SolverOptions(time_limit_s=QUICK_LIMIT_S if request.quick else LIMIT_S)
    found = {name: solved(network_of(instance(name)), options) for name in INSTANCES}
    for name, ways in found.items():
        console.print(table(name, ways))
    said = [statement for name, ways in found.items() for statement in claims(name, ways)]
    console.print(table_of(said))
    save(request.results / "inarouting-instances", panel(found))
    return VALID if all(statement.holds for statement in said) else Verdict.UNPROVEN


def solved(network: Network, options: SolverOptions) -> dict[str, Solved]:
    """An instance by the three ways."""
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


def totalled(network: Network, hops: Sequence[NextHops], seconds: float, proven: str) -> Solved:
    """Routes with their totals."""
    fair, shared = total_rates(network, hops)
    return Solved(fair / 1e9, shared / 1e9, seconds, proven)


def table(name: str, ways: Mapping[str, Solved]) -> Table:
    """A row for each way, and the published totals."""
    rows = Table("way", "fair (Gbit/s)", "max-min (Gbit/s)", "processor s", "", title=f"INARouting, {name}")
    for way, found in ways.items():
        figures = (f"{found.fair_gbps:.2f}", f"{found.max_min_gbps:.2f}", f"{found.seconds:.2f}")
        rows.add_row(way, *figures, found.proven)
    for scheme, gbps in PUBLISHED_GBPS[name].items():
        rows.add_row(f"published, {scheme}", "", f"{gbps:.2f}", "", "")
    return rows


def claims(name: str, ways: Mapping[str, Solved]) -> list[Statement]:
    """What has to hold of an instance."""
    published, best = PUBLISHED_GBPS[name]["INARouting-Relax"], ways[REROUTED]
    said = [is_above(f"{name}: at least INARouting-Relax's {published:g}", best.max_min_gbps, published - 0.01)]
    if name == INSTANCES[0]:
        ratio = ways[PROGRAM].seconds / best.seconds
        said.append(is_above(f"{name}: the heuristic is {SPEED_UP:g} times faster than the program", ratio, SPEED_UP))
    return said


def panel(found: Mapping[str, Mapping[str, Solved]]) -> Panel:
    """Bars of the max-min totals of each way, by instance, with the published ones."""
    series = {way: [exact(found[name][way].max_min_gbps) for name in found] for way in (ROUNDED, REROUTED, PROGRAM)}
    paper: Printed = {
        REROUTED: {name: PUBLISHED_GBPS[name]["INARouting-Relax"] for name in found},
        PROGRAM: {name: PUBLISHED_GBPS[name]["INARouting-Opt"] for name in found},
    }
    return Panel(BARS, list(found), series, "", "total rate (Gbit/s)", paper=paper, styles=categories(series))
