"""InArt: the gradient split over several PSs, each flow summed once at most, at any useful switch.

LP-InArt (Eq. (5)) bounds the sending rate. Its fractions are rounded at random several times (R-InArt), and the best
rounding is repaired for rates that approach the bound (`annealing`). The paper fixes the split before it looks for
routes; here the repair goes on to change both. A plan has the rate that its loads allow; its gap refers to the bound of
the relaxation. The paper's own two steps, without repair, are `inart_raw`.

Background traffic leaves the residual capacities B(e) - b(e), B(s) - b(s) and C(v) - c(v) of Eq. (1).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan, SolverOptions
from inakit.planner.core.problem import Problem, require_equal_weights
from inakit.planner.install.fault_entries import Flow, background_routes, flow_links
from inakit.planner.methods.inart.annealing import Annealing, Choices
from inakit.planner.methods.inart.relaxation import (
    BISECTIONS,
    InartRouting,
    destination,
    first_splits,
    relax_whole,
    round_apart,
    round_off,
    round_together,
    split_routes,
    with_shares,
)
from inakit.planner.solvers import proven
from inakit.planner.trees.from_paths import plan_of_trees
from inakit.planner.trees.summed_once import SplitTask, split_equally, tree_of
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Link, Switch

MOVES_PER_FLOW = 5000
"""The maximum number of moves of one repair, for each flow."""


@dataclass(frozen=True)
class InartOptions(Options):
    """`roundings` of each kind are drawn; the best is repaired `rounds` times, with at most `moves` (5000 per flow).
    `inart` does so for each of its first splits, and then at most `rounds` times again with free shares.

    `bisections` tighten the relaxation by properties of whole flows (`relax_whole`); without any it is Eq. (5).
    """

    roundings: int = 10
    rounds: int = 3
    moves: int = 1_000_000
    bisections: int = BISECTIONS
    LEAST: ClassVar[Mapping[str, int]] = {"roundings": 1, "rounds": 1, "moves": 1, "bisections": 0}


@dataclass(frozen=True)
class Routed:
    """Tasks, and R-InArt's decisions for each of them."""

    fabric: Fabric
    tasks: list[SplitTask]
    routing: InartRouting

    @cached_property
    def trees(self) -> list[AggregationTree]:
        """The tree of each task."""
        parts = zip(self.tasks, self.routing.ways, self.routing.onward, strict=True)
        return [tree_of(self.fabric, task, 1, ways, onward) for task, ways, onward in parts]

    @cached_property
    def rate_bps(self) -> float:
        """The highest sending rate at which every tree has its task's share."""
        shares = (task.share for task in self.tasks)
        return sending_rate_bps(self.fabric, zip(self.trees, shares, strict=True))

    def split_anew(self, solver: SolverOptions) -> Routed:
        """These routes with their best split; a task that gets no part of the gradient is omitted."""
        shares = split_routes(self.fabric, self.tasks, self.trees, solver)
        decided = dict(
            zip(map(destination, self.tasks), zip(self.routing.ways, self.routing.onward, strict=True), strict=True)
        )
        tasks = with_shares(self.tasks, shares)
        ways, onward = zip(*(decided[destination(task)] for task in tasks), strict=True)
        return Routed(self.fabric, tasks, InartRouting(ways, onward))


def plan(problem: Problem, options: InartOptions) -> Plan:
    """Split and routes together: R-InArt for each of `first_splits`, then a search that changes its split too."""
    require_equal_weights(problem, "inart")
    started, fabric = time.monotonic(), problem.fabric
    splits, bound = first_splits(problem, options)
    found = [search_both(route(fabric, tasks, options)[0], bound, options) for tasks in splits]
    best = max(found, key=lambda routed: routed.rate_bps)
    return finished("inart", problem, best, bound, started, options.window)


def search_both(routed: Routed, bound_bps: float, options: InartOptions) -> Routed:
    """The best split for routes, then better routes and shares nearby: in turns while it rises, up to `rounds`."""
    draw, best = (
        random.Random(options.seed),
        max(routed, routed.split_anew(options.for_solver), key=lambda each: each.rate_bps),
    )
    shared = len(best.tasks) > len({task.job.number for task in best.tasks})
    for _ in range(options.rounds if shared else 0):
        found = searched(best, draw, bound_bps, options, free=True).split_anew(options.for_solver)
        if found.rate_bps <= best.rate_bps:
            break
        best = found
    return best


def plan_equal(problem: Problem, options: InartOptions) -> Plan:
    """R-InArt with the gradient split equally, InArt's first baseline (5.1.2)."""
    return plan_routes(problem, split_equally(problem), options, "inart-equal")


def plan_routes(problem: Problem, tasks: list[SplitTask], options: InartOptions, method: str) -> Plan:
    """R-InArt (Algorithm 2) for a given split, its roundings repaired."""
    require_equal_weights(problem, method)
    started = time.monotonic()
    routed, bound = route(problem.fabric, tasks, options)
    return finished(method, problem, routed, bound, started, options.window)


def finished(method: str, problem: Problem, routed: Routed, bound_bps: float, started: float, window: int) -> Plan:
    """The plan of these trees, with its gap to `bound_bps` and the time since `started`."""
    gap = max(0.0, bound_bps / routed.rate_bps - 1)
    trees = [(task.job.number, task.share, tree) for task, tree in zip(routed.tasks, routed.trees, strict=True)]
    return plan_of_trees(method, problem, trees, window, proven(gap, started), by_share=True)


def route(fabric: Fabric, tasks: list[SplitTask], options: InartOptions) -> tuple[Routed, float]:
    """The highest rate that roundings and their repair find for these shares, and its bound in bit/s."""
    relaxed = relax_whole(fabric, tasks, options.for_solver, options.bisections)
    draw = random.Random(options.seed)
    roundings = [round_apart, round_together] * options.roundings
    drawn = [Routed(fabric, tasks, round_off(fabric, tasks, relaxed, draw, rounding)) for rounding in roundings]
    best = max(drawn, key=lambda routed: routed.rate_bps)
    for _ in range(options.rounds):
        best = searched(best, draw, relaxed.bound_bps, options)
    return best, relaxed.bound_bps


def searched(
    routed: Routed, draw: random.Random, bound_bps: float, options: InartOptions, *, free: bool = False
) -> Routed:
    """The routes of a repair that began with these; where it found none of a higher rate, the same."""
    choices = Choices(routed.fabric, routed.tasks)
    search = Annealing(choices, routed.routing, bound_bps, free=free)
    search.aim(search.rate_bps)
    found = search.anneal(draw, min(options.moves, MOVES_PER_FLOW * len(choices.flows)), bound_bps)
    return Routed(routed.fabric, routed.tasks, found) if found else routed


@dataclass(frozen=True)
class Background:
    """The rates of other traffic, in bit/s, on directed links (also into PSs) and at aggregation rates."""

    links: Mapping[DirectedLink, float] = field(default_factory=dict)
    switches: Mapping[str, float] = field(default_factory=dict)


def background_of_flows(problem: Problem, plan: Plan, flows: Iterable[Flow]) -> Background:
    """Plain traffic as background, on its routes beside the plan's."""
    known = list(flows)
    routes = background_routes(problem, plan, known)
    links: Counter[DirectedLink] = Counter()
    for flow in known:
        for link in flow_links(problem, routes, flow):
            links[link] += flow.rate_bps  # type: ignore[assignment]
    return Background(dict(links))


def residual(fabric: Fabric, background: Background) -> Fabric:
    """The fabric with the remaining capacities. A switch without any remaining aggregation rate is not an INA switch.

    Raises `InputError` for a link or switch that is not in the fabric, and for a link without remaining capacity.
    """
    for link in background.links:
        if link not in fabric.capacities_bps:
            raise InputError(f"background traffic on {'-'.join(link)}: it is not a link of fabric '{fabric.name}'")
    for switch in background.switches:
        if switch not in fabric.switch_by_name:
            raise unknown_name("switch", switch, fabric.switch_by_name)
    links = (
        replace(
            link,
            capacity_ab_bps=link_left(link, link.capacity_ab_bps, background.links.get((link.a, link.b), 0.0)),
            capacity_ba_bps=link_left(link, link.capacity_ba_bps, background.links.get((link.b, link.a), 0.0)),
        )
        for link in fabric.links
    )
    switches = (switch_left(switch, background.switches.get(switch.name, 0.0)) for switch in fabric.switches)
    return replace(fabric, links=tuple(links), switches=tuple(switches))


def link_left(link: Link, capacity_bps: float, used_bps: float) -> float:
    """The remaining capacity of one direction of a link, in bit/s. Raises `InputError` if none remains."""
    check_used(f"link {link.a}-{link.b}", used_bps)
    if used_bps >= capacity_bps:
        raise InputError(
            f"background traffic of {used_bps:g} bit/s on link {link.a}-{link.b} leaves nothing of its "
            f"{capacity_bps:g}: lower the traffic, or remove the link from the fabric"
        )
    return capacity_bps - used_bps


def switch_left(switch: Switch, used_bps: float) -> Switch:
    """The switch with the remaining aggregation rate; without INA if none remains."""
    check_used(f"switch '{switch.name}'", used_bps)
    limit = switch.aggregation_rate_bps
    if limit is None:
        return switch
    if used_bps >= limit:
        return replace(switch, ina=False)
    return replace(switch, aggregation_rate_bps=limit - used_bps)


def check_used(where: str, used_bps: float) -> None:
    if not used_bps >= 0:
        raise InputError(f"background traffic of {used_bps:g} bit/s at {where}: at least 0 is expected")
