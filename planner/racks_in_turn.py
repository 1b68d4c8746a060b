"""Racks in turn: all flows of a rack take one path, and each rack takes the next of the available paths."""

import inakit as ina


def plan(problem: ina.Problem, options: ina.Options) -> ina.Plan:
    """A path from every worker to every parameter server (PS); INA switches sum flows that meet."""
    fabric = problem.fabric
    paths: dict[int, list[tuple[str, ...]]] = {}
    for job in problem.jobs:
        racks = list(dict.fromkeys(fabric.tor_of(worker) for worker in job.workers))
        paths[job.number] = []
        for server in job.servers:
            unfolded = ina.unfold(fabric, server)
            for worker in job.workers:
                ways = list(unfolded.paths(worker))
                turn = racks.index(fabric.tor_of(worker)) + options.seed
                paths[job.number].append(ways[turn % len(ways)])
    return ina.plan_from_paths(problem, paths, fabric.ina_names, method="racks-in-turn", window=options.window)


METHOD = ina.Method("all flows of a rack by one path, racks in turn", ina.Options, plan)
