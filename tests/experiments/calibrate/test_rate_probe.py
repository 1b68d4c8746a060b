"""Rates for a run whose user gives none: found by trials on machines that are made up, then on a real slow target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inakit.experiments.calibrate.capacity import Fit, Load, Use, save_result, this_machine
from inakit.experiments.calibrate.rate_probe import FLOOR_BPS, Trial, climb, first_rung, packets, round_rates, simplest
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.check import check
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.errors import MachineError
from inakit.traffic.measure.verdict import OVERLOADED, VALID

RATES = round_rates(20e6)


def problem() -> Problem:
    return build_problem(FabricChoice("aro-figure1"), JobChoice())


class MadeUp:
    """A machine that carries links up to `limit_bps`, and on which a trial's processors are as busy as that says."""

    def __init__(self, limit_bps: float) -> None:
        self.limit_bps = limit_bps
        self.tried: list[float] = []

    def trial(self, rung: int) -> Trial:
        self.tried.append(RATES[rung])
        busy = min(1.0, RATES[rung] / self.limit_bps)
        valid = RATES[rung] <= self.limit_bps
        reasons = () if valid else ("CPU: 0% idle",)
        return Trial(1.0, VALID if valid else OVERLOADED, reasons, Load(1, 1), 1.0, Use(busy, busy / 2))


def test_rates_are_the_described_one_and_round_ones_below_it() -> None:
    assert RATES[:6] == (20e6, 10e6, 5e6, 2e6, 1e6, 500e3)
    assert RATES[-1] == FLOOR_BPS
    assert round_rates(13.3e6)[:3] == (13.3e6, 10e6, 5e6)


@pytest.mark.parametrize("limit_bps", [25e6, 20e6, 19e6, 4e6, 300e3, FLOOR_BPS])
@pytest.mark.parametrize("first", [0, 4, len(RATES) - 1])
def test_the_highest_rate_that_is_carried_is_found_from_anywhere(limit_bps: float, first: int) -> None:
    """From above it is found exactly; from below, where busy processors end the search, perhaps one step too low."""
    machine = MadeUp(limit_bps)
    found = climb(machine.trial, first, len(RATES))
    best = next(rung for rung, rate in enumerate(RATES) if rate <= limit_bps)
    assert RATES[found] <= limit_bps
    assert found in ({best} if first <= best else {best, best + 1})
    assert len(machine.tried) == len(set(machine.tried))


def test_a_rate_that_is_known_takes_one_trial() -> None:
    machine = MadeUp(5.1e6)
    assert RATES[climb(machine.trial, RATES.index(5e6), len(RATES))] == 5e6
    assert machine.tried == [5e6]


def test_a_machine_that_carries_nothing_says_why_and_what_to_do() -> None:
    with pytest.raises(MachineError, match=r"no link rate down to 20 kbit/s: CPU: 0% idle.*Stop other programs"):
        climb(MadeUp(1.0).trial, 0, len(RATES))


def test_a_program_that_fails_on_an_idle_machine_is_not_taken_for_a_slow_one() -> None:
    """The sums of a wrong program are wrong at every rate. The search ignores that, and the run itself reports it."""

    def wrong(rung: int) -> Trial:
        return replace(MadeUp(1e9).trial(rung), verdict="WRONG", reasons=("sums",), by_machine=False)

    assert climb(wrong, 3, len(RATES)) == 0


def test_the_plan_that_asks_most_is_the_one_probed() -> None:
    one = problem()
    plans = {name: Prepared(one, make_plan(one, name, 0)) for name in ("lbmm", "aro", "atp")}
    assert max(plans, key=lambda name: packets(plans[name])) == "aro"


@pytest.mark.parametrize("planner", ["inart", "goat", "atp"])
def test_a_plan_is_probed_without_what_else_may_slow_it_down(planner: str) -> None:
    """The plan that is probed shares no slots, and loads no link beyond its capacity, results included."""
    one = build_problem(FabricChoice("inart-testbed"), JobChoice(servers=2))
    probed = simplest(Prepared(one, METHODS[planner].plan(one)))
    check(one, probed.plan)
    assert not any(policy_of(planned.tree.policy).shared for planned in probed.plan.trees)
    loads, capacities = probed.prediction.loads_with_results_bps, one.fabric.capacities_bps
    assert all(load <= capacities[link] * (1 + 1e-9) for link, load in loads.items())


def test_a_probe_begins_at_what_was_found_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = problem()
    assert RATES[first_rung(one, "fast", RATES)] == 10e6
    assert RATES[first_rung(one, "bmv2", RATES)] == 200e3
    kept = Fit("bmv2", one.fabric.name, 6, 100e3)
    save_result(kept)
    save_result(replace(kept, hosts=7, link_bps=10e3))
    assert RATES[first_rung(one, "bmv2", RATES)] == 100e3
    assert RATES[first_rung(one, "fast", RATES)] == 10e6
    save_result(replace(kept, link_bps=50e3))
    assert RATES[first_rung(one, "bmv2", RATES)] == 50e3
    save_result(replace(kept, link_bps=20e3), machine=replace(this_machine(), quota="50000 100000"))
    assert RATES[first_rung(one, "bmv2", RATES)] == 200e3
