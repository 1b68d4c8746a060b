"""The check holds plans to the chips of switches, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_cases import first_is_server

from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.used_limits import CHILDREN, LINK, RECIRCULATION, WINDOW, used_limits
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Chip
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_chip

CHIP = Chip("mine", 64, 512, 64, 1, 65536, 65535, recirculation_bps=100e9)
PROBLEM = first_is_server(with_chip(leaf_spine(3, 2, 3, capacity_bps=100e9), CHIP))


def under(chip: Chip) -> Problem:
    return replace(PROBLEM, fabric=with_chip(PROBLEM.fabric, chip))


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan at 100 Gbit/s, whose largest aggregators have three children."""
    made = METHODS["aro"].plan(PROBLEM)
    assert made.trees[0].rate_bps == pytest.approx(100e9)
    return made


@pytest.mark.parametrize(
    ("chip", "message"),
    [
        (replace(CHIP, children_per_slot=2), r"rule children broken at job 1, tree 1, .*: 3 children, not 1 to 2"),
        (replace(CHIP, slots_per_pipeline=100), r"rule slots broken at .*: they end at 512, and the pipeline has 100"),
        (
            replace(CHIP, values_per_pass=32),
            r"rule passes broken at switch \w+, pipeline 0: 2 passes of .e\+11 bit/s need .e\+11; the chip has 1e\+11",
        ),
    ],
)
def test_a_plan_for_a_greater_chip_breaks_a_rule(chip: Chip, message: str, plan: Plan) -> None:
    with pytest.raises(PlanError, match=message):
        check(under(chip), plan)


def test_a_bitmap_has_a_bit_for_each_worker_where_slots_are_shared(plan: Plan) -> None:
    """Where it has too few, it has one for each child."""
    shared = with_policy(PROBLEM, plan, "atp")
    check(PROBLEM, shared)
    fewer = under(replace(CHIP, children_per_slot=4))
    with pytest.raises(PlanError, match=r"rule children .* under policy 'atp' it sums 8 workers, and a bitmap has 4"):
        check(fewer, shared)
    check(fewer, with_policy(fewer, plan, "atp"))


def test_a_rate_that_fits_the_bandwidth_is_right(plan: Plan) -> None:
    """Three flows of a third each are recirculated once."""
    problem = under(replace(CHIP, values_per_pass=32))
    check(problem, plan.with_rates_times(1 / 3))
    with pytest.raises(PlanError, match="rule passes"):
        check(problem, plan.with_rates_times(1 / 3 + 1e-6))


def test_what_is_used_of_each_limit(plan: Plan) -> None:
    problem = under(replace(CHIP, values_per_pass=16))
    ninth = plan.with_rates_times(1 / 9)
    most, *_ = used_limits(problem, ninth)
    assert (most.kind, most.binds) == (RECIRCULATION, True)
    assert most.share == pytest.approx(1)
    assert {limit.kind for limit in used_limits(problem, ninth) if not limit.binds} == {
        RECIRCULATION,
        CHILDREN,
        LINK,
        WINDOW,
    }
    assert max(evaluate(problem, ninth).summed_bps.values()) == pytest.approx(100e9 / 3)
