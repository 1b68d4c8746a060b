"""The closed-loop gain of plans that reserve bandwidth for results, by headroom: planned, and in virtual time.

The problems are random fabrics, the kit's own, and ARO's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean

from rich.table import Table

from inakit.experiments.papers.aro.setting import MJMT, SJMT, AroSetting
from inakit.experiments.papers.common.drawing import BARS, VIOLINS, Panel
from inakit.experiments.papers.common.emulated_figure import PLANNED as PLANNED_RATE
from inakit.experiments.papers.common.emulated_figure import rates_as_planned
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.method import AFTERWARDS, PLANNED, ROUTED, Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacities, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

FRAGMENTS = 200
"""The fragments of every gradient: enough for a steady rate, few enough for a run of some seconds."""
LOW_BPS, HIGH_BPS = 10e6, 30e6
WORKERS = (2, 6)


def random_problem(seed: int) -> Problem:
    """Two to five jobs of two to six workers and a PS each, on disjoint hosts of a random Clos network.

    A leaf-spine of 4 to 6 leaves with 6 hosts each and 2 to 4 spines, or a fat-tree of 4 ports with 3 hosts per edge
    switch; equal links, or each of 10 to 30 Mbit/s; INA everywhere, or on half of the switches; one or two pipelines.
    """
    draw = random.Random(seed)
    if draw.choice((True, False)):
        fabric = leaf_spine(draw.randint(4, 6), draw.randint(2, 4), 6)
    else:
        fabric = fat_tree(4, hosts_per_edge=3, oversubscription=draw.choice([None, 2.0, 3.0]))
    if draw.random() < 1 / 2:
        fabric = with_capacities(fabric, LOW_BPS, HIGH_BPS, seed)
    fabric = with_pipelines(with_ina(fabric, share=draw.choice([0.5, 1.0]), seed=seed), draw.choice([1, 2]))
    return spread_jobs(fabric, draw.randint(2, 5), lambda: draw.randint(*WORKERS), draw)


def spread_jobs(fabric: Fabric, jobs: int, workers: Callable[[], int], draw: random.Random) -> Problem:
    """Jobs with one PS each on disjoint random hosts; `workers` is called for each job's number of workers.

    A job has fewer workers where fewer than two hosts would remain for each later job.
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


def sized(setting: AroSetting, seed: int) -> Problem:
    return with_gradients(setting.problem(seed), FRAGMENTS)


def with_gradients(problem: Problem, fragments: int) -> Problem:
    """The problem with gradients of `fragments` fragments."""
    size = 4 * FRAGMENT.values * fragments
    return replace(problem, jobs=tuple(replace(job, gradient_bytes=size) for job in problem.jobs))


RANDOM = "random"
OWN: dict[str, Callable[[int], Problem]] = {
    "fat-tree 4, 3 jobs": equal_jobs(fat_tree(4), 3, 4),
    "fat-tree 8, 4 jobs": equal_jobs(fat_tree(8), 4, 20),
    "leaf-spine 4x4, 3 jobs": equal_jobs(leaf_spine(4, 4, 8), 3, 8),
    "leaf-spine 4x4, 2:1": equal_jobs(leaf_spine(4, 4, 8, oversubscription=2), 3, 8),
    "leaf-spine 4x4, 4:1": equal_jobs(leaf_spine(4, 4, 8, oversubscription=4), 3, 8),
}
"""Fabrics of the kit with several jobs on random hosts."""
OF_ARO: dict[str, Callable[[int], Problem]] = {
    f"ARO {setting.label}": partial(sized, setting)
    for setting in (
        *(replace(SJMT, tasks=tasks) for tasks in (2, 3, 4)),
        *(replace(MJMT, jobs=jobs) for jobs in (1, 2, 3, 4)),
    )
}
"""The settings of ARO's Figures 9 and 10 that have several tasks: 24 leaves and spines, links of 100 Gbit/s."""
NETWORKS = {RANDOM: random_problem, **OWN, **OF_ARO}


PLANNER = "aro"
TIME_LIMIT_S, GAP = 300.0, 0.001
KNOWING = (PLANNED, ROUTED)
"""The values of `--headroom` that plan results together with gradients; they are compared with `AFTERWARDS`."""


def measure(trial: Trial) -> Result:
    """The closed-loop rate of a problem's slowest worker under one headroom, planned and measured."""
    problem = NETWORKS[str(trial["network"])](int(trial["seed"]))
    options = Options(headroom=str(trial["headroom"]), time_limit_s=TIME_LIMIT_S, gap=GAP)
    prepared = with_headroom(problem, METHODS[PLANNER].plan(problem, options))
    outcome = run_plan(Run(prepared), find_world("virtual"))
    gap = prepared.plan.outcome.gap
    return {
        f"{PLANNED_RATE}rate_bps": prepared.prediction.sending_rate_bps,
        "rate_bps": outcome.measured.sending_rate_bps,
        "gap": -1.0 if gap is None else gap,
        "exact": int(bool(outcome.measured.exact)),
        "verdict": outcome.verdict,
    }


KINDS = {"planned": f"{PLANNED_RATE}rate_bps", "measured": "rate_bps"}


def cells(networks: Iterable[str]) -> list[Trial]:
    return [{"network": network, "headroom": each} for network in networks for each in (*KNOWING, AFTERWARDS)]


def gains(found: Findings, network: str, headroom: str, kind: str) -> list[float]:
    """By draw, the rate under a headroom over the rate of a plan scaled down afterwards for results."""
    rates, others = (found.of({"network": network, "headroom": h}, KINDS[kind]) for h in (headroom, AFTERWARDS))
    return [one / other for one, other in zip(rates, others, strict=True)]


def show(networks: Callable[[Request], Sequence[str]], found: Findings) -> Iterator[Part]:
    """The gain's mean and range, planned and measured, the number of draws that gain, and a picture of the gains."""
    headings = ("gain, planned", "range", "gain, measured", "range", "draws that gain")
    table, names = Table("network", "headroom", "draws", *headings), networks(found.request)
    for network, headroom in product(names, KNOWING):
        planned, measured = (gains(found, network, headroom, kind) for kind in KINDS)
        winning = sum(gain > 1.001 for gain in planned)
        table.add_row(network, headroom, str(len(planned)), *spread(planned), *spread(measured), str(winning))
    yield table
    drawn, axis = VIOLINS if len(names) == 1 else BARS, "rate with results planned / without"
    yield Picture(
        Panel(drawn, names, {PLANNER: [estimate(gains(found, n, PLANNED, kind)) for n in names]}, "", axis, kind)
        for kind in KINDS
    )


def spread(draws: Sequence[float]) -> tuple[str, str]:
    return f"{fmean(draws):.3f}", f"{min(draws):.3f} to {max(draws):.3f}"


def figure(name: str, networks: Callable[[Request], Sequence[str]], seeds: tuple[int, int]) -> SweptFigure:
    return SweptFigure(
        f"closed-loop-{name}", "closed-loop-trials", measure, lambda request: cells(networks(request)),
        partial(show, networks), seeds, verdict=rates_as_planned,
    )  # fmt: skip


FIGURES = {
    "random": figure("random", lambda _: [RANDOM], (30, 3)),
    "own": figure("own", lambda _: [*OWN], (3, 1)),
    "aro": figure("aro", lambda request: [*OF_ARO][:: 3 if request.quick else 1], (1, 1)),
}
