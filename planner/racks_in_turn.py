"""Racks in turn: all flows of a rack take one path, and each rack the next of the paths that there are."""

from inakit.planner.core.method import Method, Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.unfolding import Path, unfold


def plan(problem: Problem, options: Options) -> Plan:
    """A path from every worker to every parameter server (PS); INA switches sum what meets there."""
    fabric = problem.fabric
    paths: dict[int, list[Path]] = {}
    for job in problem.jobs:
        racks = list(dict.fromkeys(fabric.tor_of(worker) for worker in job.workers))
        paths[job.number] = []
        for server in job.servers:
            unfolded = unfold(fabric, server)
            for worker in job.workers:
                ways = list(unfolded.paths(worker))
                turn = racks.index(fabric.tor_of(worker)) + options.seed
                paths[job.number].append(ways[turn % len(ways)])
    return plan_from_paths(problem, paths, fabric.ina_names, method="racks-in-turn", window=options.window)


METHOD = Method("all flows of a rack by one path, racks in turn", Options, plan)
