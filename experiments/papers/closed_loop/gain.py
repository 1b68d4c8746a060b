"""What plans gain in a closed loop that know of results: planned with each headroom, and measured in virtual time.

The problems are random fabrics, the kit's own, and ARO's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import fmean

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.aro.setting import MJMT, SJMT, SJST, AroSetting
from inakit.experiments.papers.common.drawing import BARS, VIOLINS, Panel, save
from inakit.experiments.papers.common.emulated_runs import is_near
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import AFTERWARDS, PLANNED, ROUTED, Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import as_run
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine, rail_pods
from inakit.topo.fabric.variations import with_capacities, with_ina, with_pipelines
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of
from inakit.traffic.wire.packet_format import FRAGMENT

FRAGMENTS = 200
"""The fragments of every gradient: enough for a steady rate, few enough for a run of seconds."""
LOW_BPS, HIGH_BPS = 10e6, 30e6
WORKERS = (2, 6)


def random_problem(seed: int) -> Problem:
    """Two to five jobs of two to six workers and a PS each, all on hosts of their own, on a random Clos network.

    A leaf-spine of 4 to 6 leaves with 6 hosts each and 2 to 4 spines, or a fat-tree of 4 ports with 3 hosts per edge
    switch; equal links, or each of 10 to 30 Mbit/s; INA everywhere, or on half of the switches; one or two pipelines.
    """
    draw = random.Random(seed)
    fabric = draw.choice([random_leaf_spine, random_fat_tree])(draw)
    if draw.random() < 1 / 2:
        fabric = with_capacities(fabric, LOW_BPS, HIGH_BPS, seed)
    fabric = with_pipelines(with_ina(fabric, share=draw.choice([0.5, 1.0]), seed=seed), draw.choice([1, 2]))
    return spread_jobs(fabric, draw.randint(2, 5), lambda: draw.randint(*WORKERS), draw)


def random_leaf_spine(draw: random.Random) -> Fabric:
    """A leaf-spine of 4 to 6 leaves and 2 to 4 spines."""
    return leaf_spine(draw.randint(4, 6), draw.randint(2, 4), 6)


def random_fat_tree(draw: random.Random) -> Fabric:
    """A fat-tree of 4 ports, oversubscribed by up to 3."""
    return fat_tree(4, hosts_per_edge=3, oversubscription=draw.choice([None, 2.0, 3.0]))


def spread_jobs(fabric: Fabric, jobs: int, workers: Callable[[], int], draw: random.Random) -> Problem:
    """Jobs with a PS each on hosts that are drawn, none of them used twice; `workers` is called for each job.

    A job has fewer workers where two for each of the jobs after it would not be left.
    """
    hosts = [host.name for host in fabric.hosts]
    draw.shuffle(hosts)
    made = []
    for number in range(1, jobs + 1):
        most = len(hosts) - 1 - 3 * (jobs - number)
        server, *taken = (hosts.pop() for _ in range(1 + min(workers(), most)))
        made.append(Job(number, tuple(taken), (server,), 4 * FRAGMENT.values * FRAGMENTS))
    return Problem(fabric, tuple(made), FRAGMENT)


def equal_jobs(fabric: Fabric, jobs: int, workers: int) -> Callable[[int], Problem]:
    return lambda seed: spread_jobs(fabric, jobs, lambda: workers, random.Random(seed))


def sized(problem: Problem) -> Problem:
    """The problem with gradients of `FRAGMENTS` fragments."""
    return replace(
        problem, jobs=tuple(replace(job, gradient_bytes=4 * FRAGMENT.values * FRAGMENTS) for job in problem.jobs)
    )


def sized_setting(setting: AroSetting) -> Callable[[int], Problem]:
    """By seed, the problem of a setting of ARO's, with gradients of `FRAGMENTS` fragments."""
    return lambda seed: sized(setting.problem(seed))


RANDOM = "random"
OWN: dict[str, Callable[[int], Problem]] = {
    "fat-tree 4, 3 jobs": equal_jobs(fat_tree(4), 3, 4),
    "fat-tree 8, 4 jobs": equal_jobs(fat_tree(8), 4, 20),
    "leaf-spine 4x4, 3 jobs": equal_jobs(leaf_spine(4, 4, 8), 3, 8),
    "leaf-spine 4x4, 2:1": equal_jobs(leaf_spine(4, 4, 8, oversubscription=2), 3, 8),
    "leaf-spine 4x4, 4:1": equal_jobs(leaf_spine(4, 4, 8, oversubscription=4), 3, 8),
}
"""Fabrics of the kit with several jobs on hosts that are drawn."""
OF_ARO: dict[str, Callable[[int], Problem]] = {
    f"ARO {setting.label}": sized_setting(setting)
    for setting in (
        *(replace(SJMT, tasks=tasks) for tasks in (2, 3, 4)),
        *(replace(MJMT, jobs=jobs) for jobs in (1, 2, 3, 4)),
    )
}
"""The settings of ARO's Figures 9 and 10 that have several tasks: 24 leaves and spines, links of 100 Gbit/s."""
NETWORKS = {RANDOM: random_problem, **OWN, **OF_ARO}


def jobs_on(fabric: Fabric, jobs: int) -> Problem:
    """So many jobs on all hosts of a fabric, equal in size, each with one PS; which hosts is drawn once."""
    each = len(fabric.hosts) // jobs
    return long(spread_jobs(fabric, jobs, lambda: each - 1, random.Random(0)))


def long(problem: Problem) -> Problem:
    """The problem with gradients so large that their division into fragments does not show. They are not sent."""
    size = 4 * FRAGMENT.values * 20_000
    return replace(problem, jobs=tuple(replace(job, gradient_bytes=size) for job in problem.jobs))


FRONTIER: dict[str, Callable[[], Problem]] = {
    "fat-tree 4": lambda: jobs_on(fat_tree(4), 1),
    "fat-tree 4, 4 jobs": lambda: jobs_on(fat_tree(4), 4),
    "fat-tree 8": lambda: jobs_on(fat_tree(8), 1),
    "fat-tree 8, 4 jobs": lambda: jobs_on(fat_tree(8), 4),
    "leaf-spine 1:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=1), 4),
    "leaf-spine 2:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=2), 4),
    "leaf-spine 4:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=4), 4),
    "rails 2x2x8": lambda: jobs_on(rail_pods(2, 2), 1),
    "rails 2x2x8, 4 jobs": lambda: jobs_on(rail_pods(2, 2), 4),
    "ARO's default": lambda: long(SJST.problem(0)),
    "ARO's, 1 job, 4 PSs": lambda: long(replace(SJMT, tasks=4).problem(0)),
    "fat-tree 16": lambda: jobs_on(fat_tree(16), 1),
}
"""The fabrics of the frontier's table."""


SEEDS, QUICK_SEEDS = 30, 3
LARGE_SEEDS = 3
"""The draws of networks whose runs are long."""
PLANNER = "aro"
TIME_LIMIT_S, GAP = 300.0, 0.001
KNOWING = (PLANNED, ROUTED)
"""The values of `--headroom` that know of results, which are compared with `AFTERWARDS`."""
KINDS = ("planned", "measured")
AXIS = "rate with results planned / without"


def measure(trial: Trial) -> Result:
    """The closed-loop rate of a problem's slowest worker, planned and measured, under one headroom."""
    problem = NETWORKS[str(trial["network"])](int(trial["seed"]))
    options = Options(headroom=str(trial["headroom"]), time_limit_s=TIME_LIMIT_S, gap=GAP)
    plan = as_run(problem, METHODS[PLANNER].plan(problem, options)).plan
    outcome = run_plan(Run(Prepared(problem, plan)), find_world("virtual"))
    return {
        "planned_bps": evaluate(problem, plan).sending_rate_bps,
        "measured_bps": outcome.measured.sending_rate_bps,
        "gap": -1.0 if plan.outcome.gap is None else plan.outcome.gap,
        "exact": int(bool(outcome.measured.exact)),
        "verdict": outcome.verdict,
    }


def trials(network: str, seeds: int, headroom: str) -> list[Trial]:
    return [{"network": network, "seed": seed, "headroom": headroom} for seed in range(seeds)]


def random_fabrics(console: Console, request: Request) -> str:
    """The gain on 30 random fabrics with 2 to 5 jobs."""
    return compare(console, request, "closed-loop-random", {RANDOM: QUICK_SEEDS if request.quick else SEEDS})


def own_fabrics(console: Console, request: Request) -> str:
    """The gain on the kit's own fabrics."""
    return compare(console, request, "closed-loop-own", dict.fromkeys(OWN, 1 if request.quick else LARGE_SEEDS))


def of_aro(console: Console, request: Request) -> str:
    """The gain in the settings of ARO's Figures 9 and 10."""
    names = list(OF_ARO)[:: 3 if request.quick else 1]
    return compare(console, request, "closed-loop-aro", dict.fromkeys(names, 1))


def compare(console: Console, request: Request, name: str, seeds: dict[str, int]) -> str:
    """Measure all networks under all headrooms; print and draw what is gained, and return the verdict."""
    headrooms = (*KNOWING, AFTERWARDS)
    asked = [trial for network, count in seeds.items() for each in headrooms for trial in trials(network, count, each)]
    found = sweep(asked, measure, request.results / "closed-loop-trials", console)
    rows = {
        (network, headroom): {kind: gains(found, network, count, headroom, kind) for kind in KINDS}
        for network, count in seeds.items()
        for headroom in KNOWING
    }
    console.print(table(rows))
    lines = {kind: [estimate(rows[network, PLANNED][kind]) for network in seeds] for kind in KINDS}
    kind = VIOLINS if len(seeds) == 1 else BARS
    save(request.results / name, *(Panel(kind, list(seeds), {PLANNER: lines[k]}, "", AXIS, k) for k in KINDS))
    return worst_of(judged(found.result(trial)) for trial in asked)


def gains(found: Measured, network: str, seeds: int, headroom: str, kind: str) -> list[float]:
    """By draw, the rate under a headroom over the rate where room is made afterwards."""
    rates, others = (found.of(f"{kind}_bps", trials(network, seeds, each)) for each in (headroom, AFTERWARDS))
    return [one / other for one, other in zip(rates, others, strict=True)]


def judged(result: Result) -> str:
    """VALID where all sums were exact, and the measured rate bears out the planned one."""
    near = is_near(float(result["measured_bps"]), float(result["planned_bps"]))
    return VALID if near and result["exact"] else Verdict.DIFFERS


def table(rows: Mapping[tuple[str, str], Mapping[str, list[float]]]) -> Table:
    """A row for each network and headroom: the gain's mean and range, planned and measured, and how many draws gain."""
    headings = ("gain, planned", "range", "gain, measured", "range", "draws that gain")
    shown = Table("network", "headroom", "draws", *headings)
    for (network, headroom), found in rows.items():
        planned, measured = (found[kind] for kind in KINDS)
        winning = sum(gain > 1.001 for gain in planned)
        shown.add_row(network, headroom, str(len(planned)), *spread(planned), *spread(measured), str(winning))
    return shown


def spread(draws: Iterable[float]) -> tuple[str, str]:
    """The mean of the draws, and their range."""
    found = list(draws)
    return f"{fmean(found):.3f}", f"{min(found):.3f} to {max(found):.3f}"
