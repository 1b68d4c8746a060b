"""Plans under chips: none breaks a rule, and a looser limit never makes the optimum worse."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from planner_cases import job, papers_setting

from inakit.planner.core.check import check
from inakit.planner.core.method import Options
from inakit.planner.core.problem import FragmentFormat, Problem
from inakit.planner.methods.aro.accelerations import VARIANTS
from inakit.planner.registry import METHODS
from inakit.topo.fabric.fabric import Chip
from inakit.topo.fabric.generators import aro_figure1, fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_chip, with_ina, with_pipelines

FRAGMENT = FragmentFormat(values=64, wire_bytes=326)
BPS = 100e9
CHIP = Chip("drawn", 64, 512, 64, 8, 65536, 65535, recirculation_bps=BPS)
QUICK = Options(time_limit_s=10)
EXACT = ("aro", "aro-raw")
PLANNERS = sorted({*METHODS} - {*VARIANTS} - {"aro-raw", "grid-milp", "forest-any", "inarouting-opt"})
"""All but those that take seconds for the smallest problem."""
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]


def chip_of(draw: random.Random) -> Chip:
    """A chip that binds somewhere in small fabrics."""
    return replace(
        CHIP,
        values_per_pass=draw.choice([16, 32, 64]),
        children_per_slot=draw.choice([2, 3, 8]),
        slots_per_pipeline=draw.choice([64, 512]),
        recirculation_bps=draw.choice([0.5, 1.0, 4.0]) * BPS,
    )


def problem_of(draw: random.Random, chip: Chip, servers: int = 1) -> Problem:
    """A job on a small fabric whose switches have this chip."""
    bare = draw.choice([leaf_spine(3, 2, 4, capacity_bps=BPS), fat_tree(4, capacity_bps=BPS), aro_figure1(BPS)])
    fabric = with_chip(bare, chip)
    if draw.random() < 0.5:
        fabric = with_pipelines(fabric, 2)
    if draw.random() < 0.3:
        fabric = with_ina(fabric, share=0.6, seed=1)
    hosts = [host.name for host in fabric.hosts]
    chosen = draw.sample(hosts, min(len(hosts), servers + 8))
    return Problem(fabric, (job(chosen[servers:], *chosen[:servers]),), FRAGMENT)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("planner", PLANNERS)
def test_no_plan_under_a_chip_breaks_a_rule(planner: str, seed: int) -> None:
    draw = random.Random(f"{planner} {seed}")
    problem = problem_of(draw, chip_of(draw))
    check(problem, METHODS[planner].plan(problem, QUICK))


@pytest.mark.parametrize("planner", ["aro", "inart", "forest"])
def test_nor_with_several_servers(planner: str) -> None:
    draw = random.Random(5)
    problem = problem_of(draw, replace(CHIP, values_per_pass=32, children_per_slot=3), servers=2)
    check(problem, METHODS[planner].plan(problem, QUICK))


LOOSENED = {
    "recirculation": [replace(CHIP, values_per_pass=32, recirculation_bps=r * BPS) for r in (0.3, 0.7, 1.5, 3, 9)],
    "passes": [replace(CHIP, values_per_pass=values) for values in (8, 16, 32, 64)],
    "children": [replace(CHIP, children_per_slot=children) for children in (2, 3, 4, 64)],
    "slots": [replace(CHIP, slots_per_pipeline=slots) for slots in (4, 64, 512)],
}
"""By limit, chips that differ in it alone, the strictest first."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limit", LOOSENED)
@pytest.mark.parametrize("planner", EXACT)
def test_loosening_a_limit_never_lowers_the_optimum(planner: str, limit: str, seed: int) -> None:
    rates = []
    for chip in LOOSENED[limit]:
        plan = METHODS[planner].plan(problem_of(random.Random(f"{limit} {seed}"), chip), QUICK)
        assert plan.outcome.status == "optimal"
        rates.append(plan.trees[0].rate_bps)
    assert all(strict <= loose * (1 + 1e-6) for strict, loose in pairwise(rates)), rates


@pytest.mark.parametrize("seed", SEEDS)
def test_aro_is_as_good_as_the_printed_model_under_a_chip(seed: int) -> None:
    draw = random.Random(f"both {seed}")
    problem = problem_of(draw, chip_of(draw))
    fast, printed = (METHODS[name].plan(problem, QUICK) for name in EXACT)
    assert fast.trees[0].rate_bps == pytest.approx(printed.trees[0].rate_bps, rel=1e-6)


def test_chips_bind_in_these_problems() -> None:
    """Else the others would say nothing."""
    for limit in ("recirculation", "passes"):
        strict, *_, loose = (
            METHODS["aro"].plan(problem_of(random.Random("x"), chip), QUICK).trees[0].rate_bps
            for chip in LOOSENED[limit]
        )
        assert strict < 0.9 * loose


def test_generic_costs_aros_default_setting_nothing() -> None:
    problem = papers_setting(0)
    generic = replace(CHIP, name="generic", recirculation_bps=None)
    switches = tuple(replace(switch, chip=generic) for switch in problem.fabric.switches)
    under = replace(problem, fabric=replace(problem.fabric, switches=switches))
    rates = [METHODS["aro"].plan(each).trees[0].rate_bps for each in (problem, under)]
    assert rates[0] == rates[1]
