"""Random small problems of every kind that planners take, the same in each run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

from planner_cases import FRAGMENT, GRADIENT_BYTES

from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.fabric import Chip, Fabric, Switch
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_chip_as_wired, with_links, with_switches

UNIT = 20e6

Draw = random.Random
SMALL = (leaf_spine(2, 2, 4), leaf_spine(3, 2, 2), leaf_spine(3, 3, 2), leaf_spine(4, 2, 2), fat_tree(4))


def some_ina(draw: Draw, fabric: Fabric) -> Fabric:
    """The fabric with INA on some switches, or on all."""
    share = draw.choice([0.3, 0.6, 1.0])
    return with_switches(fabric, lambda _: {"ina": draw.random() < share})


def uneven_pipelines(draw: Draw, fabric: Fabric) -> Fabric:
    """Each port in any of up to three pipelines."""

    def groups(switch: Switch) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in range(draw.randint(1, 3))]
        for port in switch.ports:
            draw.choice(found).append(port)
        return tuple(map(tuple, found))

    return with_switches(fabric, lambda switch: {"pipelines": groups(switch)})


def unequal_links(draw: Draw, fabric: Fabric) -> Fabric:
    """Capacities that differ by link and direction."""
    few = draw.random() < 0.5

    def capacity() -> float:
        return UNIT * (draw.choice([0.4, 1.0, 2.0]) if few else draw.uniform(0.5, 1.5))

    return with_links(fabric, lambda _: {"capacity_ab_bps": capacity(), "capacity_ba_bps": capacity()})


def problem_on(
    draw: Draw,
    fabric: Fabric,
    *,
    jobs: int = 1,
    servers: int = 1,
    workers: int = 4,
    weights: Sequence[float] = (1.0,),
) -> Problem:
    """Jobs on random hosts, which they may share, with up to `workers` workers each, and weights of these."""
    hosts = [host.name for host in fabric.hosts]
    chosen = []
    for number in range(1, jobs + 1):
        taken = draw.sample(hosts, min(len(hosts), servers + draw.randint(2, workers)))
        weight = draw.choice(weights) if len(weights) > 1 else weights[0]
        chosen.append(Job(number, tuple(taken[servers:]), tuple(taken[:servers]), GRADIENT_BYTES, weight))
    return Problem(fabric, tuple(chosen), FRAGMENT)


def chip(draw: Draw) -> Chip:
    """A chip whose slots sum two or three flows, or whose packets recirculate."""
    if draw.random() < 0.6:
        return Chip("narrow", 64, 4096, draw.choice([2, 3]), 8, 4096, 4096)
    return Chip("slow", 32, 4096, 64, 8, 4096, 4096, recirculation_bps=draw.choice([0.8, 1.5, 2.5]) * UNIT)


def many_flows(draw: Draw) -> Problem:
    """Racks of more workers than a bitmap has bits, behind a switch or two."""
    fabric = some_ina(draw, leaf_spine(2, draw.choice([1, 2]), 70))
    hosts = [host.name for host in fabric.hosts]
    server, *others = hosts if draw.random() < 0.5 else hosts[::-1]
    far = draw.sample(others[69:], draw.randint(65, 68))
    workers = (*far, *draw.sample(others[:69], draw.choice([0, 1, 2])))
    return Problem(fabric, (Job(1, workers, (server,), GRADIENT_BYTES),), FRAGMENT)


KINDS: dict[str, Callable[[Draw], Problem]] = {
    "pipelines": lambda draw: problem_on(draw, some_ina(draw, uneven_pipelines(draw, draw.choice(SMALL)))),
    "links": lambda draw: problem_on(
        draw, unequal_links(draw, some_ina(draw, uneven_pipelines(draw, draw.choice(SMALL))))
    ),
    "servers": lambda draw: problem_on(
        draw, unequal_links(draw, some_ina(draw, draw.choice(SMALL[:4]))), servers=draw.choice([2, 2, 3]), workers=3
    ),
    "jobs": lambda draw: problem_on(
        draw,
        draw.choice([some_ina, unequal_links, uneven_pipelines])(draw, draw.choice(SMALL[:4])),
        jobs=draw.choice([2, 2, 3]),
        workers=3,
    ),
    "jobs and servers": lambda draw: problem_on(
        draw, unequal_links(draw, some_ina(draw, draw.choice(SMALL[:2]))), jobs=2, servers=2, workers=2
    ),
    "weights": lambda draw: problem_on(
        draw, unequal_links(draw, some_ina(draw, draw.choice(SMALL[:4]))), jobs=2, workers=3, weights=(0.5, 1.0, 2.0)
    ),
    "many flows": many_flows,
    "chips": lambda draw: problem_on(
        draw, with_chip_as_wired(some_ina(draw, uneven_pipelines(draw, draw.choice(SMALL))), chip(draw))
    ),
    "chips and servers": lambda draw: problem_on(
        draw, with_chip_as_wired(some_ina(draw, draw.choice(SMALL[:4])), chip(draw)), servers=2, workers=3
    ),
    "summing rates": lambda draw: problem_on(
        draw,
        with_aggregators(some_ina(draw, draw.choice(SMALL)), rate_bps=draw.choice([0.6, 1.5, 2.5]) * UNIT),
        jobs=draw.choice([1, 1, 2]),
    ),
    "few slots": lambda draw: problem_on(
        draw, with_aggregators(draw.choice(SMALL[:4]), slots=draw.choice([1, 2, 4])), jobs=2, workers=3
    ),
}


@cache
def problem_of(kind: str, seed: int) -> Problem:
    return KINDS[kind](random.Random(f"{kind} {seed}"))
