"""InArt as printed: L-InArt's split (Algorithm 1), then one randomised rounding (Algorithm 2), without any repair.

Algorithm 2 draws y and q from LP-InArt's fractions and keeps LP-InArt's rate f. At this f the drawn flows exceed
capacities; the paper bounds by how much, and says nothing of how they are carried. `raw_overloads` has the loads at f.
A plan has to fit the network, so `inart-raw` sends at the highest rate that the drawn flows allow, and that alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log

from inakit.planner.core.loads import resource_loads
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem, require_equal_weights
from inakit.planner.core.slots import Resource, is_link, resource_bps
from inakit.planner.methods.inart.inart import Routed, finished
from inakit.planner.methods.inart.relaxation import Relaxed, relax, round_apart, round_off, split_model
from inakit.planner.trees.summed_once import SplitTask, split_equally


def plan(problem: Problem, options: Options) -> Plan:
    """InArt's plan as printed; its gap refers to LP-InArt's f, Eq. (5), with free shares: a bound for all splits."""
    require_equal_weights(problem, "inart-raw")
    started, equal = time.monotonic(), split_equally(problem)
    tasks, _ = split_model(problem.fabric, equal, options.for_solver)
    relaxed, routed = rounded(problem, tasks, options)
    bound = relaxed.bound_bps
    if len(equal) > len(problem.jobs):
        bound = max(bound, split_model(problem.fabric, equal, options.for_solver, routed=True)[1])
    return finished("inart-raw", problem, routed, bound, started, options.window)


def rounded(problem: Problem, tasks: list[SplitTask], options: Options) -> tuple[Relaxed, Routed]:
    """LP-InArt's solution for a given split, and one rounding of it, drawn by the options' seed."""
    fabric = problem.fabric
    relaxed = relax(fabric, tasks, options.for_solver)
    drawn = round_off(fabric, tasks, relaxed, random.Random(options.seed), round_apart)
    return relaxed, Routed(fabric, tasks, drawn)


SWITCHES, SERVERS, LINKS = "switches", "PSs", "links"


@dataclass(frozen=True)
class RawOverloads:
    """The loads of a raw rounding at LP-InArt's rate, over the capacities: above 1 a capacity is exceeded.

    - `rate_bps`: LP-InArt's f
    - `by_kind[kind][name]`: the load over the capacity of each used switch (its aggregation rate, or that of a
      pipeline), PS (the link into it) and other link; kinds are `SWITCHES`, `SERVERS`, `LINKS`
    - `phi`: the paper's φ, the least 2 B / (x f) over all capacities B and shares x; it estimates 10
    - `bounds[kind]`: the paper's approximation factors, 2 log(number) / φ + 2, with the numbers of this network
    """

    rate_bps: float
    by_kind: Mapping[str, Mapping[Resource, float]]
    phi: float
    bounds: Mapping[str, float]

    @property
    def most(self) -> dict[str, float]:
        """The largest load over its capacity of each kind; 0 if none of that kind is limited and used."""
        return {kind: max(loads.values(), default=0.0) for kind, loads in self.by_kind.items()}


def raw_overloads(problem: Problem, options: Options) -> RawOverloads:
    """The loads over the capacities of `inart-raw`'s flows, if they have LP-InArt's f as in Algorithm 2 (4.3)."""
    tasks, _ = split_model(problem.fabric, split_equally(problem), options.for_solver)
    relaxed, routed = rounded(problem, tasks, options)
    fabric, f = problem.fabric, relaxed.bound_bps
    shares = [task.share for task in routed.tasks]
    servers = {server for job in problem.jobs for server in job.servers}
    by_kind: dict[str, dict[Resource, float]] = {SWITCHES: {}, SERVERS: {}, LINKS: {}}
    for resource, load in resource_loads(zip(routed.trees, shares, strict=True)).items():
        kind = SWITCHES if not is_link(resource) else SERVERS if resource[1] in servers else LINKS
        if (limit := resource_bps(fabric, resource)) < inf:
            by_kind[kind][resource] = load * f / limit
    largest = max(shares)
    limits = [*fabric.capacities_bps.values(), *(resource_bps(fabric, name) for name in fabric.ina_names)]
    phi = 2 * min(limits) / (largest * f)
    numbers = {SWITCHES: len(fabric.ina_names), SERVERS: len(servers), LINKS: len(fabric.links)}
    bounds = {kind: 2 * log(number) / phi + 2 for kind, number in numbers.items() if number}
    return RawOverloads(f, by_kind, phi, bounds)
