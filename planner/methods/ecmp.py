"""ARO's baselines RANDOM and AggTree (ARO, section IV-A): routes by hash or by load, summed wherever they meet.

Neither considers pipelines, or the links that a sum leaves free. Each task is routed separately.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import Inp
from inakit.planner.trees.from_paths import inps, plan_from_paths
from inakit.planner.trees.unfolding import unfold
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

Loads = Counter[DirectedLink]
"""The flows that have chosen a link. The PS's own link is not counted, since no flow can avoid it."""

Weigh = Callable[[Loads, Path], float]
"""The cost of a path, given the loads and the part of the path that a flow can choose."""

Route = Callable[[Fabric, Job, str, random.Random], Iterable[Path]]
"""A path for each worker of a job to one of its PSs."""


def plan_random(problem: Problem, options: Options) -> Plan:
    """RANDOM: like ATP, but each task sends all flows that can pass it through one INA switch drawn above the ToRs."""
    return routed(problem, options, "random", through_one_aggregator)


def plan_aggtree(problem: Problem, options: Options) -> Plan:
    """AggTree: each flow that leaves a ToR takes the uplink that the fewest flows have taken.

    The published rule is the most bandwidth left on the path. If all links are equal it decides nothing, since the PS's
    link is the narrowest of every path; the remaining reading is to balance flows, here at each ToR separately. At the
    paper's default setting this gives 9.5 Gbit/s, the paper prints 8.76, and spines drawn at random give 8.2.
    """
    return routed(problem, options, "aggtree", partial(greedy_paths, weigh=first_uplink))


def plan_balanced(problem: Problem, options: Options) -> Plan:
    """AggTree that considers all links but the PS's: each flow takes the path whose busiest link has the fewest flows.

    At ARO's default setting this change alone gives 24.8 Gbit/s, 94 % of the optimum.
    """
    return routed(problem, options, "aggtree-balanced", partial(greedy_paths, weigh=busiest_link))


def routed(problem: Problem, options: Options, method: str, route: Route) -> Plan:
    """The plan of one method's routes. Every task draws at random, seeded by the seed and its own name."""
    paths = {
        job.number: [
            path
            for server in job.servers
            for path in route(problem.fabric, job, server, random.Random(f"{options.seed} {job.number} {server}"))
        ]
        for job in problem.jobs
    }
    summing = problem.fabric.ina_names
    return plan_from_paths(problem, paths, summing, method=method, window=options.window)


def shortest_paths(fabric: Fabric, job: Job, server: str) -> dict[str, list[Path]]:
    """All shortest up-down paths of each worker. Raises `InputError` for a worker without any."""
    unfolded = unfold(fabric, server, job.workers)
    return {worker: list(unfolded.paths(worker)) for worker in job.workers}


def through_one_aggregator(fabric: Fabric, job: Job, server: str, draw: random.Random) -> list[Path]:
    """Each worker's path through the switch that the task draws, or any shortest path if none leads through it."""
    options = shortest_paths(fabric, job, server)
    above = {switch for paths in options.values() for path in paths for switch in path[2:-2]}
    aggregators = sorted(switch for switch in above if fabric.switch_by_name[switch].ina)
    chosen = draw.choice(aggregators or sorted(above) or [""])
    return [draw.choice([path for path in paths if chosen in path] or paths) for paths in options.values()]


def greedy_paths(
    fabric: Fabric, job: Job, server: str, draw: random.Random, weigh: Weigh, before: Loads | None = None
) -> list[Path]:
    """A path for each worker, in random order: each takes the best remaining path, or one of the best.

    A flow that enters an INP where flows of its task are already summed has no choice from there on. `before` are the
    flows of other tasks on links; by default a task considers only its own.
    """
    summing = fabric.ina_names
    options = shortest_paths(fabric, job, server)
    loads: Loads = Counter(before or ())
    rest: dict[Inp, Path] = {}
    chosen: dict[str, Path] = {}
    for worker in draw.sample(job.workers, len(job.workers)):
        weights = {
            own: weigh(loads, own) for own in dict.fromkeys(decided(fabric, path, rest) for path in options[worker])
        }
        best = min(weights.values())
        own = draw.choice([own for own, weight in weights.items() if weight == best])
        loads.update(link for link in pairwise(own) if link[1] != server)
        path = own if own[-1] == server else own[:-1] + rest[own[-1], fabric.ingress_pipeline(own[-1], own[-2])]
        rest |= {inp: path[position:] for position, inp in inps(fabric, path, summing)}
        chosen[worker] = path
    return [chosen[worker] for worker in job.workers]


def decided(fabric: Fabric, path: Path, rest: dict[Inp, Path]) -> Path:
    """The path up to the first INP that other flows of the task have entered."""
    for position, inp in inps(fabric, path, {switch for switch, _ in rest}):
        if inp in rest:
            return path[: position + 1]
    return path


def first_uplink(loads: Loads, own: Path) -> int:
    return loads[own[1], own[2]] if len(own) > 2 else 0


def busiest_link(loads: Loads, own: Path) -> int:
    return max(loads[link] for link in pairwise(own))
