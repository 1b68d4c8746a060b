"""InArt's Figure 1 (six workers, two PSs, two switches: LBMM, ATP, InArt), and the time of its relaxation."""

from __future__ import annotations

import random
import time

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import Estimate, estimate, exact
from inakit.experiments.papers.common.figure_engine import Picture, present
from inakit.experiments.papers.common.figure_registry import Request, leave_out
from inakit.experiments.papers.common.statements import beside_paper, ratio
from inakit.experiments.papers.inart.setting import HIGH_BPS, LINK_BPS, LOW_BPS, MODELS, SWITCH_BPS
from inakit.experiments.report.method_styles import categories
from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.inart.relaxation import LpInart, relax, split_model, split_routes, with_shares
from inakit.planner.registry import METHODS
from inakit.planner.trees.summed_once import Way, split_equally, tree_of
from inakit.topo.fabric.generators import fat_tree, inart_testbed
from inakit.topo.fabric.variations import with_aggregators, with_capacities
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

UNIT_BPS = 1e6
PLACE = "six workers, two PSs"
LEDGER = read_ledger("inart")


def example() -> Problem:
    """The example's job on its network: switches and links carry 6 units, and a PS takes in 4."""
    workers = tuple(f"w{number}" for number in range(1, 7))
    return Problem(inart_testbed(6 * UNIT_BPS), (Job(1, workers, ("ps1", "ps2"), 548_000),), FRAGMENT)


def plan_of_the_figure(problem: Problem) -> float:
    """The rate, in units, of the plan in Figure 1(c) with its best split of the gradient, 3/5 and 2/5.

    For S1, V1 sums W1 to W4 and V2 sums W5 and W6. For S2, W1 to W3 are not summed and V2 sums W4 to W6.
    """
    tasks = split_equally(problem)
    to_v1, to_v2, over_v1 = Way(("v1", 0), ("v1",)), Way(("v2", 0), ("v2",)), Way(("v2", 0), ("v1", "v2"))
    unsummed, fabric = Way(None, ("v1", "v2", "ps2")), problem.fabric
    to_s1, to_s2 = {("v1", 0): ("v1", "ps1"), ("v2", 0): ("v2", "v1", "ps1")}, {("v2", 0): ("v2", "ps2")}
    trees = (
        tree_of(fabric, tasks[0], 1, [to_v1] * 4 + [to_v2] * 2, to_s1),
        tree_of(fabric, tasks[1], 2, [unsummed] * 3 + [over_v1] + [to_v2] * 2, to_s2),
    )
    split = with_shares(tasks, split_routes(fabric, tasks, trees, SolverOptions()))
    shares = (task.share for task in split)
    return sending_rate_bps(fabric, zip(trees, shares, strict=True)) / UNIT_BPS


FIGURE, PUBLISHED, REPAIRED = "InArt, the figure's plan", "InArt, as published", "inart-equal (ours)"
ROUNDINGS = 30


def rates() -> dict[str, tuple[float | None, Estimate]]:
    """By scheme, the paper's rate and ours, in units. Algorithm 2 is drawn 30 times, as the paper runs its testbed."""
    problem = example()
    planned = {method: exact(units(METHODS[method].plan(problem))) for method in ("lbmm", "atp-tor", "inart-equal")}
    drawn = [units(METHODS["inart-raw"].plan(problem, Options(seed=seed))) for seed in range(ROUNDINGS)]
    return {
        "LBMM": (4 / 3, planned["lbmm"]),
        "ATP": (2.0, planned["atp-tor"]),
        FIGURE: (2.5, exact(plan_of_the_figure(problem))),
        PUBLISHED: (2.5, estimate(drawn)),
        REPAIRED: (None, planned["inart-equal"]),
    }


def units(plan: Plan) -> float:
    return sum(planned.rate_bps for planned in plan.trees) / UNIT_BPS


def run(console: Console, request: Request) -> str:
    """Compare the plans that Figure 1 shows with ours; the figure's verdict is that of its claims."""
    found = rates()
    series = {scheme: [ours] for scheme, (_, ours) in found.items()}
    printed: Printed = {scheme: {PLACE: value} for scheme, (value, _) in found.items() if value is not None}
    rows = [(scheme, paper, ours.value) for scheme, (paper, ours) in found.items()]
    lbmm, atp, figure, published = (found[scheme][1] for scheme in ("LBMM", "ATP", FIGURE, PUBLISHED))
    evidence = {
        "fig1-lbmm": lbmm, "fig1-atp": atp, "fig1-inart": figure, "fig1-algorithms": published,
        "fig1-over-lbmm": ratio(figure, lbmm), "fig1-over-atp": ratio(figure, atp),
    }  # fmt: skip
    parts = (
        beside_paper("InArt, Figure 1 (units)", rows, (".3f", ".3f", ".3f"), "scheme"),
        [LEDGER.judge(name, value) for name, value in evidence.items()],
        Picture([Panel(BARS, [PLACE], series, "", "sending rate (units)", paper=printed)]),
    )
    judged = present(console, request.results / "inart-fig1", parts)
    leave_out(console, "it compares the plans that the paper draws")
    return request.settle(console, judged)


WORKERS, SERVERS, HOSTS_PER_EDGE = 200, 8, 12
MOST_SECONDS = 10.0


def large_problem(low_bps: float, high_bps: float, seed: int = 1) -> Problem:
    """A job on a fat-tree with k = 6 and twelve hosts per rack, whose links have rates from `low_bps` to `high_bps`."""
    fabric = with_aggregators(fat_tree(6, hosts_per_edge=HOSTS_PER_EDGE), rate_bps=SWITCH_BPS)
    fabric = with_capacities(fabric, low_bps, high_bps, seed)
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], WORKERS + SERVERS)
    return Problem(fabric, (Job(1, tuple(hosts[SERVERS:]), tuple(hosts[:SERVERS]), MODELS["VGG19"]),), FRAGMENT)


def relaxation_time(console: Console, request: Request) -> str:
    """Print sizes and times; VALID if LP-InArt and the linear program of L-InArt's split each take less than 10 s."""
    table = Table("links", "variables", "rows", "LP-InArt (s)", "L-InArt (s)", "f (Mbit/s)")
    took: dict[str, list[float]] = {}
    for name, capacities in {"equal": (LINK_BPS, LINK_BPS), "drawn": (LOW_BPS, HIGH_BPS)}.items():
        problem = large_problem(*capacities)
        model = LpInart(problem.fabric, split_equally(problem)).model
        started = time.monotonic()
        bound = relax(problem.fabric, split_equally(problem), SolverOptions()).bound_bps
        relaxed = time.monotonic()
        split_model(problem.fabric, split_equally(problem), SolverOptions())
        seconds = relaxed - started, time.monotonic() - relaxed
        took[name] = list(seconds)
        sizes = str(model.numVariables()), str(model.numConstraints())
        table.add_row(name, *sizes, *(f"{value:.1f}" for value in seconds), f"{bound / 1e6:.2f}")
    series = {f"{name} links": list(map(exact, seconds)) for name, seconds in took.items()}
    panel = Panel(BARS, ["LP-InArt", "L-InArt"], series, "", "seconds", styles=categories(series))
    present(console, request.results / "inart-lp", (table, Picture([panel])))
    slowest = max(max(seconds) for seconds in took.values())
    return VALID if slowest < MOST_SECONDS else Verdict.SLOW


FIGURES = {"fig1": run, "lp": relaxation_time}
