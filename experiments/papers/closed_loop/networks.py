"""The problems on which plans with and without results are compared: random fabrics, the kit's own, ARO's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from inakit.experiments.papers.aro.setting import MJMT, SJMT, SJST, AroSetting
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.clos import fat_tree, leaf_spine
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.rails import rail_pods
from inakit.topo.fabric.variations import with_capacities, with_ina, with_pipelines
from inakit.traffic.wire.frames import FRAGMENT

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
    """By seed, jobs with the same number of workers on a fabric."""
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
