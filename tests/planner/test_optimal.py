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

`random_problems` draws them: with several pipelines, unequal links, unequal PSs, many flows, little summing, few slots,
several jobs, unequal weights. A planner of the registry without a row fails as soon as it says more than "heuristic".
The `milp` of optical circuits is held against enumeration in `methods/p4inc_aoi/test_p4inc_aoi_milp.py`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
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
from planner_cases import COLLECTIVES, QUICKEST, quick_plan
from random_problems import KINDS, problem_of
from tiers import long_unless

from inakit.planner.core.method import Options
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, AggregationTree, Plan, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import most_children
from inakit.planner.methods.atro.atro import optimise
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.planner.registry import KIT, METHODS
from inakit.topo.errors import InputError, PlanError, SolverError
from inakit.topo.fabric.fabric import Fabric

PRECISION = 1e-5

# -- What each planner claims.


@dataclass(frozen=True)
class Claim:
    """The value of a plan by its planner's objective, and the best value of any plan of its kind; higher is better.

    A planner that `always` has the best says so without an outcome. Kinds of problems in `without` are too large for
    the enumeration, or beyond the claim. `one_each` and `tree` tell plans of the kind.
    """

    value: Callable[[Problem, Plan], float]
    best: Callable[[Problem], float]
    always: bool = False
    without: tuple[str, ...] = ()
    one_each: bool = True
    tree: Callable[[Fabric, AggregationTree], bool] = lambda *_: True

    def covers(self, fabric: Fabric, plan: Plan) -> bool:
        """Whether the plan is of this kind: `one_each` allows a tree per task, each of which must be a `tree` of it."""
        tasks = Counter((planned.job, planned.tree.root) for planned in plan.trees)
        few = not self.one_each or max(tasks.values()) == 1
        return few and all(
            not planned.tree.in_network_root and self.tree(fabric, planned.tree) for planned in plan.trees
        )


def sums_what_meets(fabric: Fabric, tree: AggregationTree) -> bool:
    """Whether flows that enter a pipeline of an INA switch leave it as one, or as one for each slot's bits."""
    entering: Counter[tuple[str, int]] = Counter()
    for branch in tree.branches:
        entering.update(
            (node, fabric.ingress_pipeline(node, before)) for before, node in branch.links if node in fabric.ina_names
        )
    kept = Counter(aggregator.inp for aggregator in tree.aggregators)
    for aggregator in tree.aggregators:
        kept[aggregator.inp] -= len(aggregator.children)
    return all(flows + kept[inp] == -(-flows // most_children(fabric, inp[0])) for inp, flows in entering.items())


def sums_once(_: Fabric, tree: AggregationTree) -> bool:
    """Whether no sum is summed again."""
    return not any(child in tree.aggregator_of for aggregator in tree.aggregators for child in aggregator.children)


def has_one_next_hop(fabric: Fabric, tree: AggregationTree) -> bool:
    """Whether all flows leave a switch by one link, and are summed where they meet."""
    used = {link for branch in tree.branches for link in branch.links}
    return sums_what_meets(fabric, tree) and max(Counter(node for node, _ in used).values()) == 1


def rates_of_jobs(plan: Plan) -> dict[int, float]:
    rates: defaultdict[int, float] = defaultdict(float)
    for planned in plan.trees:
        rates[planned.job] += planned.rate_bps
    return rates


def worth_of_plan(problem: Problem, plan: Plan) -> float:
    return worth_bps(problem, rates_of_jobs(plan))


def least_rate(_: Problem, plan: Plan) -> float:
    return min(rates_of_jobs(plan).values())


def least_equal_rate(problem: Problem, plan: Plan) -> float:
    """The least rate of a job whose gradient is split equally over its PSs."""
    rates: defaultdict[tuple[int, str], float] = defaultdict(float)
    for planned in plan.trees:
        rates[planned.job, planned.tree.root] += planned.rate_bps
    return min(rates[job.number, server] * len(job.servers) for job in problem.jobs for server in job.servers)


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
    """The total that equal shares have; 0 where a task has no tree, since the others then have its share."""
    if len(plan.trees) < sum(len(job.servers) for job in problem.jobs):
        return 0.0
    return fair_total_bps(problem.fabric, loads_of_trees(problem, plan))


def idleness(problem: Problem, plan: Plan) -> float:
    """Minus the seconds that links from switches are busy with a bit of every flow."""
    flows = (count for loads in loads_of_trees(problem, plan) for count in loads)
    links = ((link, n) for link, n in flows if len(link) == 2 and link[0] in problem.fabric.switch_by_name)
    return -sum(n / problem.fabric.capacities_bps[link[0], link[1]] for link, n in links)


ARO = Claim(worth_of_plan, partial(best_worth_bps, trees=merging_trees, one_each=True), tree=sums_what_meets)
FOREST = Claim(worth_of_plan, partial(best_worth_bps, trees=merging_trees, one_each=False), one_each=False)
ONCE = partial(best_equal_bps, trees=once_summed_trees)
ROUTING = Claim(
    fair_total, partial(best_fair_total_bps, trees=partial(merging_trees, one_next_hop=True)), tree=has_one_next_hop
)
INART = Claim(
    least_rate, partial(ONCE, one_each=True, equal_split=False), without=("many flows", "weights"), tree=sums_once
)
CLAIMS: dict[str, Claim] = {
    "aro": ARO,
    "aro-raw": ARO,
    "aro-qsr": ARO,
    "forest": FOREST,
    "forest-any": FOREST,
    "inart": INART,
    "inart-raw": INART,
    "inart-equal": replace(INART, value=least_equal_rate, best=partial(ONCE, one_each=True, equal_split=True)),
    "inart-forest": replace(INART, best=partial(ONCE, one_each=False, equal_split=False), one_each=False),
    "inarouting": ROUTING,
    "inarouting-opt": ROUTING,
    "soar": Claim(
        idleness,
        lambda problem: -least_utilisation_s(problem, switches=4),
        always=True,
        without=("many flows", "chips", "chips and servers"),  # it ignores the bits of a slot
    ),
}
FOUND: set[tuple[str, str, int]] = set()
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


# -- Stated bounds beside the plans of all planners.


@cache
def plans_of(kind: str, seed: int) -> dict[str, Plan]:
    """The plans that all planners with parameter servers have for a problem; planners may refuse it."""
    found = {}
    for name in KIT:
        if name not in (*COLLECTIVES, "sharp"):
            with suppress(InputError, PlanError, SolverError):
                found[name] = METHODS[name].plan(problem_of(kind, seed), QUICKEST.get(name, Options(time_limit_s=2)))
    return found


@pytest.mark.parametrize(
    ("kind", "seeds"), [long_unless(seeds == SHORT, kind, seeds) for kind in KINDS for seeds in (SHORT, LONG)]
)
def test_no_planner_has_a_plan_beyond_the_bound_of_another(kind: str, seeds: range) -> None:
    """A bound covers all plans of its kind, whichever planner has them."""
    beyond = []
    for seed in seeds:
        problem, plans = problem_of(kind, seed), plans_of(kind, seed)
        for name in plans.keys() & CLAIMS.keys():
            claim, outcome = CLAIMS[name], plans[name].outcome
            if outcome.status == OPTIMAL or outcome.gap is not None:
                bound = claim.value(problem, plans[name]) * (1 + (outcome.gap or 0.0) + PRECISION)
                for other, plan in plans.items():
                    if claim.covers(problem.fabric, plan) and claim.value(problem, plan) > bound:
                        beyond.append((seed, name, outcome.status, bound, other, claim.value(problem, plan)))
    assert not beyond


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
