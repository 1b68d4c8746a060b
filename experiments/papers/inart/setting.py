"""InArt's emulated network (section 5.3.1), its schemes, and a scheme's results for a draw of PSs and workers.

The network is a fat-tree with k = 6 and four PSs. Links have 20 Mbit/s or a rate drawn from 10 to 30, a PS takes in 20,
and a switch sums 9.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import fmean

from inakit.experiments.papers.common.figure_registry import own_planners
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.check import check
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.inart.inart import InartOptions, finished
from inakit.planner.methods.inart.inart_forest import InartForestOptions
from inakit.planner.methods.inart.inart_raw import rounded
from inakit.planner.methods.inart.relaxation import relax, split_model
from inakit.planner.registry import METHODS
from inakit.planner.trees.summed_once import split_equally
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree
from inakit.topo.fabric.variations import with_aggregators, with_capacities
from inakit.traffic.wire.packet_format import FRAGMENT

LINK_BPS, LOW_BPS, HIGH_BPS = 20e6, 10e6, 30e6
SERVER_BPS, SWITCH_BPS = 20e6, 9e6
SERVERS = 4
BUSY_SERVER_BPS, SPREADS = 5e6, (1, 2, 4, 8)
"""Where PSs differ: their mean intake, since with the paper's 20 Mbit/s L-InArt gives equal parts up to a spread of 8,
and the intake of the fastest PS over that of the slowest. The paper has no such experiment."""
MODELS = {"LSTM": 1_627_000, "VGG19": 548_000, "ResNet-50": 97_000}
"""The gradients' sizes in bytes, by model."""


@dataclass(frozen=True)
class InartSetting:
    """The choice of capacities and hosts.

    With `drawn`, links are heterogeneous; with `slow_servers`, those of PSs are too, and a PS takes in at most its
    link's rate. With `filled`, workers fill one rack after the other instead of random hosts, and PSs are in the last
    racks. PSs take in `intake_bps` on average. `spread` is the intake rate of the fastest over that of the slowest; the
    others are in equal steps between them.
    """

    drawn: bool = False
    slow_servers: bool = False
    filled: bool = False
    intake_bps: float = SERVER_BPS
    spread: float = 1.0

    def intakes_bps(self, servers: Sequence[str]) -> dict[str, float]:
        """The intake rate of each PS, from the slowest to the fastest."""
        steps = [1 + (self.spread - 1) * place / (len(servers) - 1) for place in range(len(servers))]
        return {name: self.intake_bps * step / fmean(steps) for name, step in zip(servers, steps, strict=True)}


SETTINGS = {
    "homogeneous": InartSetting(),
    "heterogeneous": InartSetting(drawn=True),
    "heterogeneous, the PSs' links too": InartSetting(drawn=True, slow_servers=True),
    "homogeneous, racks filled": InartSetting(filled=True),
    **{f"PSs 1 to {spread}": InartSetting(intake_bps=BUSY_SERVER_BPS, spread=spread) for spread in SPREADS},
}


def drawn_problem(
    setting: InartSetting, workers: int, seed: int, switch_bps: float | None = SWITCH_BPS, size: int = MODELS["VGG19"]
) -> Problem:
    """A job whose gradient has `size` bytes, with PSs, workers and the links' capacities drawn by `seed`.

    With `switch_bps` None switches sum without a limit.
    """
    fabric = fat_tree(6, capacity_bps=LINK_BPS)
    names = [host.name for host in fabric.hosts]
    hosts = names[::-1] if setting.filled else random.Random(seed).sample(names, SERVERS + workers)
    servers = hosts[:SERVERS]
    chosen = names[:workers] if setting.filled else hosts[SERVERS:]
    if setting.drawn:
        fabric = with_capacities(fabric, LOW_BPS, HIGH_BPS, seed)
    fabric = with_intakes(fabric, setting.intakes_bps(servers), slow=setting.slow_servers)
    if switch_bps is not None:
        fabric = with_aggregators(fabric, rate_bps=switch_bps)
    return Problem(fabric, (Job(1, tuple(chosen), tuple(servers), size),), FRAGMENT)


def with_intakes(fabric: Fabric, intakes_bps: Mapping[str, float], *, slow: bool) -> Fabric:
    """The fabric whose links into PSs have the PSs' intake rates; with `slow`, slower links keep their own rate."""
    links = [
        replace(link, capacity_ba_bps=min(intakes_bps[link.a], link.capacity_ba_bps if slow else inf))
        if link.a in intakes_bps
        else link
        for link in fabric.links
    ]
    return replace(fabric, links=tuple(links))


PLAIN = Options()


@dataclass(frozen=True)
class Planned:
    """A scheme that is a planner with options; with `limited`, the rate that a switch sums is limited."""

    function: Callable[[Problem, Options], Plan]
    options: Options = PLAIN
    limited: bool = True

    def plan(self, setting: InartSetting, workers: int, seed: int, size: int = MODELS["VGG19"]) -> tuple[Problem, Plan]:
        """The problem that a seed draws, and the scheme's plan for it."""
        problem = drawn_problem(setting, workers, seed, SWITCH_BPS if self.limited else None, size)
        return problem, self.of(problem, seed)

    def of(self, problem: Problem, seed: int) -> Plan:
        """The scheme's plan for a problem."""
        return self.function(problem, replace(self.options, seed=seed))

    def __call__(self, setting: InartSetting, workers: int, seed: int) -> Result:
        return outcome(*self.plan(setting, workers, seed))


def outcome(problem: Problem, plan: Plan) -> Result:
    """A plan's sending rate and, per byte of a gradient, its bytes of PS ingress and its bytes on links."""
    arrivals = crossings = 0.0
    for planned in plan.trees:
        tree, counts = planned.tree, flow_counts([planned.tree])
        crossings += planned.share * counts.total()
        arrivals += planned.share * counts[problem.fabric.tor_of(tree.root), tree.root]
    return {"rate_bps": sum(planned.rate_bps for planned in plan.trees), "arrivals": arrivals, "crossings": crossings}


def relaxation(setting: InartSetting, workers: int, seed: int) -> Result:
    """LP-InArt, Eq. (5), with L-InArt's split. Algorithm 2 keeps this f: its rounding changes the loads, but not f."""
    problem = drawn_problem(setting, workers, seed)
    tasks, _ = split_model(problem.fabric, split_equally(problem), SolverOptions(seed=seed))
    relaxed = relax(problem.fabric, tasks, SolverOptions(seed=seed))
    unit = max(problem.fabric.capacities_bps.values())
    into_servers = sum(
        rate for task in relaxed.tasks for (_, node), rate in task.to[None].items() if node in problem.fabric.host_names
    )
    crossings = sum(rate for task in relaxed.tasks for links in task.to.values() for rate in links.values())
    f = relaxed.bound_bps / unit
    return {"rate_bps": relaxed.bound_bps, "arrivals": into_servers / f, "crossings": workers + crossings / f}


INART, LP = "InArt, as published", "LP-InArt"
FOREST, ONE, EQUAL = "inart-forest (ours)", "inart (ours)", "inart-equal (ours)"
R_INART, FITTED = "R-InArt, as published", "InArt, split for its routes"
ATP, LIMITED_ATP, LBMM = "ATP", "ATP, ToRs sum 9 Mbit/s", "LBMM"


def round_equal_parts(problem: Problem, options: Options, *, split_again: bool = False) -> Plan:
    """The first benchmark of section 5.1.2, R-InArt: equal parts, and one rounding by Algorithm 2.

    With `split_again` the gradient is split again, as suits the drawn trees best; in the paper the split comes first.
    """
    relaxed, routed = rounded(problem, split_equally(problem), options)
    if split_again:
        routed = routed.split_anew(options.for_solver)
    plan = finished("inart-raw", problem, routed, relaxed.bound_bps, time.monotonic(), options.window)
    check(problem, plan)
    return plan


REPAIRED = InartOptions(rounds=2, moves=200_000)
PLANNED = {
    INART: Planned(METHODS["inart-raw"].plan),
    R_INART: Planned(round_equal_parts),
    FITTED: Planned(partial(round_equal_parts, split_again=True)),
    FOREST: Planned(METHODS["inart-forest"].plan, InartForestOptions()),
    ONE: Planned(METHODS["inart"].plan, REPAIRED),
    EQUAL: Planned(METHODS["inart-equal"].plan, REPAIRED),
    ATP: Planned(METHODS["atp-tor"].plan, limited=False),
    LIMITED_ATP: Planned(METHODS["atp-tor"].plan),
    LBMM: Planned(METHODS["lbmm"].plan),
}
"""The schemes that are planners.

InArt and R-InArt as published round once and send at the highest rate that the drawn flows allow. Ours bear their
planners' names: `inart` repairs the best of several roundings, `inart-forest` has up to eight trees per PS on average.
"""

SCHEMES: Mapping[str, Callable[[InartSetting, int, int], Result]] = {LP: relaxation, **PLANNED}
COMPARED = (LP, INART, FOREST, ATP, LIMITED_ATP, LBMM)


def compared() -> tuple[str, ...]:
    """The schemes of Figures 8 to 13, and user-defined planners."""
    return (*COMPARED, *own_planners())


def planned_by(scheme: str) -> Planned:
    """A scheme of `PLANNED`, or any planner by its name, with limited switches."""
    return PLANNED[scheme] if scheme in PLANNED else Planned(METHODS[scheme].plan)


def measure(trial: Trial) -> Result:
    """Measure a trial: one scheme in one setting with one seed."""
    name, setting = str(trial["scheme"]), SETTINGS[str(trial["setting"])]
    scheme = SCHEMES.get(name) or planned_by(name)
    return scheme(setting, int(trial["workers"]), int(trial["seed"]))
