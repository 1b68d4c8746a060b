"""Every planner that says "optimal", or states a gap, against enumeration on random small problems.

A plan is the best of its kind by the planner's own objective. `CLAIMS` says both, one row per planner:

============================ =============================================== ==================================
planner                      kind of plan                                    objective
============================ =============================================== ==================================
aro, aro-raw, aro-qsr        a tree per task; flows that meet are summed     ARO's Eq. (1), (2) or (3)
forest, forest-any           any number of such trees (`forest` states its   the same
                             gap to any number)
inart, inart-raw             a tree per PS; a flow is summed once at most    InArt's f, the gradient split freely
inart-equal                  the same                                        f, split equally
inart-forest                 any number of such trees                        f, split freely
inarouting, inarouting-opt   a tree per task; one next hop per switch        the total of equal shares
soar                         the static trees, 4 switches at most sum        the time that links are busy
inakit design (ATRO)         every wiring                                    the flows on the busiest link
============================ =============================================== ==================================

`KINDS` draws problems: with several pipelines, unequal links, unequal PSs, many flows, little summing, few slots,
several jobs. A planner of the registry without a row fails as soon as it says more than "heuristic". The
`milp` of optical circuits is held against enumeration in `methods/p4inc_aoi/test_p4inc_aoi_milp.py`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
from best_plans import (
    Loads,
    best_equal_bps,
    best_fair_total_bps,
    best_worth_bps,
    fair_total_bps,
    least_flows,
    least_utilisation_s,
    merging_trees,
    once_summed_trees,
    summing,
    worth_bps,
)
from planner_cases import FRAGMENT, GRADIENT_BYTES, QUICKEST, quick_plan
from tiers import long_unless

from inakit.planner.core.method import Options
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, Plan, SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.atro.atro import optimise
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.planner.registry import KIT, METHODS
from inakit.topo.errors import InputError, SolverError
from inakit.topo.fabric.fabric import Chip, Fabric, Switch
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_chip_as_wired, with_links, with_switches

PRECISION = 1e-5
UNIT = 20e6

# -- Problems.

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


def problem_on(draw: Draw, fabric: Fabric, *, jobs: int = 1, servers: int = 1, workers: int = 4) -> Problem:
    """Jobs on random hosts, which they may share, with up to `workers` workers each."""
    hosts = [host.name for host in fabric.hosts]
    chosen = []
    for number in range(1, jobs + 1):
        taken = draw.sample(hosts, min(len(hosts), servers + draw.randint(2, workers)))
        chosen.append(Job(number, tuple(taken[servers:]), tuple(taken[:servers]), GRADIENT_BYTES))
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


# -- What each planner claims.


@dataclass(frozen=True)
class Claim:
    """The value of a plan by its planner's objective, and the best value of any plan of its kind; higher is better.

    A planner that `always` has the best says so without an outcome. Kinds of problems in `without` are too large for
    the enumeration, or beyond the claim.
    """

    value: Callable[[Problem, Plan], float]
    best: Callable[[Problem], float]
    always: bool = False
    without: tuple[str, ...] = ()


def rates_of_jobs(plan: Plan) -> dict[int, float]:
    rates: defaultdict[int, float] = defaultdict(float)
    for planned in plan.trees:
        rates[planned.job] += planned.rate_bps
    return rates


def worth_of_plan(problem: Problem, plan: Plan) -> float:
    return worth_bps(problem, rates_of_jobs(plan))


def least_rate(_: Problem, plan: Plan) -> float:
    return min(rates_of_jobs(plan).values())


def loads_of_trees(problem: Problem, plan: Plan) -> list[Loads]:
    """The loads of each tree of the plan, counted branch by branch."""
    found = []
    for planned in plan.trees:
        loads: Counter[tuple[str, ...]] = Counter(link for branch in planned.tree.branches for link in branch.links)
        for aggregator in planned.tree.aggregators:
            loads += summing(problem.fabric, aggregator.inp, len(aggregator.children))
        found.append(frozenset(loads.items()))
    return found


def fair_total(problem: Problem, plan: Plan) -> float:
    return fair_total_bps(problem.fabric, loads_of_trees(problem, plan))


def idleness(problem: Problem, plan: Plan) -> float:
    """Minus the seconds that links from switches are busy with a bit of every flow."""
    flows = (count for loads in loads_of_trees(problem, plan) for count in loads)
    links = ((link, n) for link, n in flows if len(link) == 2 and link[0] in problem.fabric.switch_by_name)
    return -sum(n / problem.fabric.capacities_bps[link[0], link[1]] for link, n in links)


ARO = Claim(worth_of_plan, partial(best_worth_bps, trees=merging_trees, one_each=True))
FOREST = Claim(worth_of_plan, partial(best_worth_bps, trees=merging_trees, one_each=False))
ONCE = partial(best_equal_bps, trees=once_summed_trees)
ROUTING = Claim(fair_total, partial(best_fair_total_bps, trees=partial(merging_trees, one_next_hop=True)))
CLAIMS: dict[str, Claim] = {
    "aro": ARO,
    "aro-raw": ARO,
    "aro-qsr": ARO,
    "forest": FOREST,
    "forest-any": FOREST,
    "inart": Claim(least_rate, partial(ONCE, one_each=True, equal_split=False), without=("many flows",)),
    "inart-raw": Claim(least_rate, partial(ONCE, one_each=True, equal_split=False), without=("many flows",)),
    "inart-equal": Claim(least_rate, partial(ONCE, one_each=True, equal_split=True), without=("many flows",)),
    "inart-forest": Claim(least_rate, partial(ONCE, one_each=False, equal_split=False), without=("many flows",)),
    "inarouting": ROUTING,
    "inarouting-opt": ROUTING,
    "soar": Claim(
        idleness,
        lambda problem: -least_utilisation_s(problem, switches=4),
        always=True,
        without=("many flows", "chips", "chips and servers"),  # it ignores the bits of a slot
    ),
}
FOUND = {("inart-raw", "chips and servers", 41)}
"""Planners, kinds and seeds with a claim that is known to be wrong."""
SHORT, LONG = range(2), range(2, 42)

best_of = cache(lambda claim, kind, seed: claim.best(problem_of(kind, seed)))


def cases(seeds: range) -> list[Any]:
    return [
        long_unless(seeds == SHORT, name, kind, seeds)
        for name, claim in CLAIMS.items()
        for kind in KINDS
        if kind not in claim.without
    ]


@pytest.mark.parametrize(("name", "kind", "seeds"), [*cases(SHORT), *cases(LONG)])
def test_no_plan_of_its_kind_is_better_than_a_planner_says(name: str, kind: str, seeds: range) -> None:
    wrong = {
        seed: why
        for seed in seeds
        for why in wrong_claims(name, kind, seed, QUICKEST.get(name, Options(time_limit_s=5)))
    }
    known = {seed for seed in seeds if (name, kind, seed) in FOUND}
    assert wrong.keys() == known, f"{name} on {kind}: {wrong}"


def wrong_claims(name: str, kind: str, seed: int, options: Options) -> Iterator[str]:
    """What a planner says wrongly of its plan, in words. A pipeline without slots for all its trees may be refused."""
    problem, claim = problem_of(kind, seed), CLAIMS[name]
    try:
        plan = METHODS[name].plan(problem, options)
    except InputError as error:
        if kind != "few slots":
            yield f"refused: {error}"
        return
    value, best, outcome = claim.value(problem, plan), best_of(claim, kind, seed), plan.outcome
    room = PRECISION * abs(best)
    said = f"{outcome.status} at {value:.6g}" + (f", gap {outcome.gap:.2%}" if outcome.gap else "")
    if value > best + room:
        yield f"{said}: beyond the best plan of its kind, {best:.6g}"
    if (outcome.status == OPTIMAL or claim.always) and value < best - room:
        yield f"{said}: {best:.6g} exists"
    if outcome.status == FEASIBLE and value * (1 + (outcome.gap or 0.0)) < best - room:
        yield f"{said}: {best:.6g} exists"


@pytest.mark.parametrize("name", [name for name in KIT if name not in CLAIMS])
def test_a_planner_without_a_claim_proves_nothing(name: str) -> None:
    """A planner that says more than "heuristic" needs a row in `CLAIMS`."""
    for kind in ("pipelines", "servers", "jobs"):
        assert quick_plan(name, problem_of(kind, 0)).outcome.status == "heuristic"


# -- A gap that is asked for.


@pytest.mark.parametrize("name", ["aro", "aro-raw", "forest", "forest-any", "inarouting-opt"])
def test_a_stated_gap_is_one_of_the_rate(name: str) -> None:
    """Planners that may end early say by how much at most a better plan is better."""
    wrong = [
        (seed, gap, why)
        for seed in (2, 3, 6, 18, 26)
        for gap in (0.3, 0.6)
        for why in wrong_claims(name, "links", seed, Options(gap=gap, time_limit_s=5))
    ]
    assert not wrong


# -- ATRO designs the network, too: every wiring of up to three switches.


def random_cluster(seed: int) -> SwitchCluster:
    draw = random.Random(f"cluster {seed}")
    aggregators = draw.randint(0, 3)
    common = draw.randint(0 if aggregators else 1, 3 - aggregators)
    ports, children = draw.choice([(draw.randint(2, 6), draw.choice([2, 3, 4, 64])), (draw.randint(64, 80), 64)])
    workers = draw.randint(1, (aggregators + common) * ports)
    return SwitchCluster(aggregators, common, ports, workers, layers=draw.randint(1, 4), children=children)


@pytest.mark.parametrize("seeds", [long_unless(low == 0, range(low, low + 12)) for low in range(0, 240, 12)])
def test_no_wiring_has_a_higher_rate_than_an_optimal_design(seeds: range) -> None:
    wrong = [(cluster, why) for cluster in map(random_cluster, seeds) for why in wrong_design(cluster)]
    assert not wrong


def wrong_design(cluster: SwitchCluster) -> Iterator[str]:
    best = least_flows(cluster)
    try:
        wiring, outcome = optimise(cluster, SolverOptions(time_limit_s=10))
    except SolverError as error:
        if best is not None and "no proof" not in str(error):
            yield f"refused, and {best} flows are possible: {error}"
        return
    said = f"{outcome.status} at {wiring.most_flows} flows, gap {outcome.gap}"
    if best is None or wiring.most_flows < best:
        yield f"{said}: beyond the best wiring, {best}"
    elif best * (1 + (outcome.gap or 0.0)) < wiring.most_flows:
        yield f"{said}: {best} exists"
