"""InArt: what its relaxation bounds, what its roundings keep, and how near they come on its own network."""

from __future__ import annotations

import random

import pytest
from planner_cases import single

from planner.methods import METHODS
from planner.methods.inart import InartOptions
from planner.once import tasks_of
from planner.plan import Plan
from planner.problem import Problem
from planner.relaxation import relax_whole
from planner.solve import SolverOptions
from topo.clos import fat_tree, leaf_spine
from topo.fabric import Fabric
from topo.generators import inart_testbed
from topo.variations import with_aggregators, with_capacities, with_ina, with_pipelines


def rate(plan: Plan) -> float:
    return sum(shard.rate_bps for shard in plan.shards)


def bound(problem: Problem) -> float:
    return relax_whole(problem.fabric, tasks_of(problem), SolverOptions()).bound_bps


def drawn_hosts(fabric: Fabric, workers: int, servers: int, seed: int) -> Problem:
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], workers + servers)
    return single(fabric, hosts[servers:], *hosts[:servers])


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_keeps_the_rules_and_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    base = draw.choice([leaf_spine(3, 2, 3), leaf_spine(4, 3, 2), fat_tree(4)])
    fabric = with_ina(with_pipelines(base, draw.randint(1, 3)), share=draw.choice([0, 0.5, 1]), seed=seed)
    fabric = with_aggregators(with_capacities(fabric, 10e6, 30e6, seed), rate_bps=draw.choice([9e6, 30e6]))
    problem = drawn_hosts(fabric, 6, 2, seed)
    plan = METHODS["inart"].plan(problem, InartOptions(seed=seed, moves=5000))
    assert 0 < rate(plan) <= bound(problem) * (1 + 1e-9)
    assert plan.outcome.gap == pytest.approx(bound(problem) / rate(plan) - 1, abs=1e-6)


def test_the_same_seed_makes_the_same_plan() -> None:
    problem = drawn_hosts(with_aggregators(fat_tree(4), rate_bps=9e6), 10, 2, 0)
    first, again = (METHODS["inart"].plan(problem, InartOptions(seed=3, moves=5000)).shards for _ in range(2))
    assert first == again


def test_inarts_own_network_is_planned_better_than_by_atp() -> None:
    problem = drawn_hosts(with_aggregators(fat_tree(6), rate_bps=9e6), 50, 4, 1)
    plan = METHODS["inart"].plan(problem, InartOptions(moves=50_000))
    assert rate(plan) > 1.5 * rate(METHODS["atp"].plan(problem))
    assert len({a.switch for shard in plan.shards for a in shard.trees[0].aggregators}) > 18


def test_figure_1_can_do_better_than_the_paper_shows() -> None:
    """Its 2.5 units are those of one plan. Equal parts allow 8/3: V1 sums W1..W4 for S1, V2 sums W3..W6 for S2."""
    problem = single(inart_testbed(6e6), [f"w{i}" for i in range(1, 7)], "ps1", "ps2")
    assert rate(METHODS["inart"].plan(problem, InartOptions(moves=20_000))) == pytest.approx(8e6 / 3)
