"""Problems that several tests of planners use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.methods.inart.inart import InartOptions
from inakit.planner.methods.inart.inart_forest import InartForestOptions
from inakit.planner.registry import KIT, METHODS
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_capacity, with_ina, with_pipelines

FRAGMENT = FragmentFormat(values=64, wire_bytes=326)
GRADIENT_BYTES = 97_000
COLLECTIVES = tuple(name for name, line in KIT.items() if line.function.startswith("collectives"))
"""The planners of end-host collectives."""
QUICKEST: dict[str, Options] = {
    "inart": InartOptions(moves=500, rounds=1),
    "inart-equal": InartOptions(moves=500, rounds=1),
    "inart-forest": InartForestOptions(trees=2, roundings=10),
}
"""Options of planners that search: plans that are soon found, for tests of what every plan has to be."""


def quick_plan(method: str, problem: Problem) -> Plan:
    """The plan of a method, which need not be its best."""
    return METHODS[method].plan(problem, QUICKEST.get(method))


def job(workers: Sequence[str], *servers: str, number: int = 1, gradient_bytes: int = GRADIENT_BYTES) -> Job:
    return Job(number, tuple(workers), servers, gradient_bytes)


def single(fabric: Fabric, workers: Sequence[str], *servers: str) -> Problem:
    """A problem with one job."""
    return Problem(fabric, (job(workers, *servers),), FRAGMENT)


def first_is_server(fabric: Fabric, workers: int | None = None) -> Problem:
    """A problem with one job, whose PS is the fabric's first host and whose workers are the following ones."""
    server, *others = (host.name for host in fabric.hosts)
    return single(fabric, others[:workers], server)


@cache
def papers_setting(seed: int) -> Problem:
    """ARO's default: 24 leaves and spines, 200 workers, 9 INA switches with 4 pipelines, one of them the PS's leaf."""
    fabric = with_pipelines(with_capacity(leaf_spine(24, 24, 24), 100e9), 4)
    draw = random.Random(seed)
    server, *others = (host.name for host in fabric.hosts)
    tor = fabric.tor_of(server)
    chosen = draw.sample([switch.name for switch in fabric.switches if switch.name != tor], 8)
    return single(with_ina(fabric, (tor, *chosen)), draw.sample(others, 200), server)
