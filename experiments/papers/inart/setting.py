"""InArt's emulated network (section 5.3.1), its schemes, and a scheme's results for a draw of PSs and workers.

The network is a fat-tree with k = 6 and four PSs. Links have 20 Mbit/s or a rate drawn from 10 to 30, a PS takes in 20,
and a switch sums 9.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from inakit.experiments.papers.common.figure_registry import own_planners
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.check import check
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.inart.inart import InartOptions
from inakit.planner.methods.inart.inart_forest import InartForestOptions, plan_trees
from inakit.planner.methods.inart.relaxation import relax
from inakit.planner.registry import METHODS
from inakit.planner.trees.summed_once import split_equally
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree
from inakit.topo.fabric.variations import with_aggregators, with_capacities
from inakit.traffic.wire.packet_format import FRAGMENT

LINK_BPS, LOW_BPS, HIGH_BPS = 20e6, 10e6, 30e6
SERVER_BPS, SWITCH_BPS = 20e6, 9e6
SERVERS = 4
MODELS = {"LSTM": 1_627_000, "VGG19": 548_000, "ResNet-50": 97_000}
"""The gradients' sizes in bytes, by model."""


@dataclass(frozen=True)
class InartSetting:
    """The choice of capacities and hosts.

    With `drawn`, links are heterogeneous; with `slow_servers`, those of PSs are too, and a PS takes in at most its
    link's rate. With `filled`, workers fill one rack after the other instead of random hosts, and PSs are in the last
    racks.
    """

    drawn: bool = False
    slow_servers: bool = False
    filled: bool = False


SETTINGS = {
    "homogeneous": InartSetting(),
    "heterogeneous": InartSetting(drawn=True),
    "heterogeneous, the PSs' links too": InartSetting(drawn=True, slow_servers=True),
    "homogeneous, racks filled": InartSetting(filled=True),
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
    fabric = with_server_capacity(fabric, servers, slow=setting.slow_servers)
    if switch_bps is not None:
        fabric = with_aggregators(fabric, rate_bps=switch_bps)
    return Problem(fabric, (Job(1, tuple(chosen), tuple(servers), size),), FRAGMENT)


def with_server_capacity(fabric: Fabric, servers: list[str], *, slow: bool) -> Fabric:
    """The fabric whose links into PSs have the PSs' intake rate; with `slow`, slower links keep their own rate."""
    links = [
        replace(link, capacity_ba_bps=min(SERVER_BPS, link.capacity_ba_bps) if slow else SERVER_BPS)
        if link.a in servers
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
        return problem, self.function(problem, replace(self.options, seed=seed))

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
    """LP-InArt, Eq. (5). Algorithm 2 keeps this f: its rounding changes the loads, but not f."""
    problem = drawn_problem(setting, workers, seed)
    relaxed = relax(problem.fabric, split_equally(problem), SolverOptions(seed=seed))
    unit = max(problem.fabric.capacities_bps.values())
    into_servers = sum(
        rate for task in relaxed.tasks for (_, node), rate in task.to[None].items() if node in problem.fabric.host_names
    )
    crossings = sum(rate for task in relaxed.tasks for links in task.to.values() for rate in links.values())
    f = relaxed.bound_bps / unit
    return {"rate_bps": relaxed.bound_bps, "arrivals": into_servers / f, "crossings": workers + crossings / f}


INART, ONE, LP = "InArt", "InArt, one tree per PS", "LP-InArt"
ATP, LIMITED_ATP, LBMM = "ATP", "ATP, ToRs sum 9 Mbit/s", "LBMM"


def equal_trees(problem: Problem, options: Options) -> Plan:
    """The plan of InArt's forest with equal parts; L-InArt finds these here too, because all PSs are alike."""
    plan = plan_trees(problem, split_equally(problem), METHODS["inart-forest"].own(options), "inart-forest")
    check(problem, plan)
    return plan


PLANNED = {
    INART: Planned(equal_trees, InartForestOptions()),
    ONE: Planned(METHODS["inart-equal"].plan, InartOptions(bisections=0, rounds=1, moves=20_000)),
    ATP: Planned(METHODS["atp-tor"].plan, limited=False),
    LIMITED_ATP: Planned(METHODS["atp-tor"].plan),
    LBMM: Planned(METHODS["lbmm"].plan),
}
"""The schemes that are planners; InArt's has up to eight trees per PS on average."""

SCHEMES: Mapping[str, Callable[[InartSetting, int, int], Result]] = {LP: relaxation, **PLANNED}


def compared() -> tuple[str, ...]:
    """The paper's schemes in all readings, and user-defined planners."""
    return (*SCHEMES, *own_planners())


def planned_by(scheme: str) -> Planned:
    """A scheme of `PLANNED`, or any planner by its name, with limited switches."""
    return PLANNED[scheme] if scheme in PLANNED else Planned(METHODS[scheme].plan)


def measure(trial: Trial) -> Result:
    """Measure a trial: one scheme in one setting with one seed."""
    name, setting = str(trial["scheme"]), SETTINGS[str(trial["setting"])]
    scheme = SCHEMES.get(name) or planned_by(name)
    return scheme(setting, int(trial["workers"]), int(trial["seed"]))
