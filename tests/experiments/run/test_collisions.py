"""Runs in which fragments collide in shared slots may be slower than planned, and are not OVERLOADED by that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_up_record import planner

from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.run.console import unseen
from inakit.experiments.run.outcome import beside_collisions, collisions
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.printed_report import collision_lines
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.planner.trees.headroom import with_policy
from inakit.traffic.measure.counters import SwitchCounters
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.wire.packet_format import Event

PROBLEM: Problem = build_problem(FabricChoice("aro-figure3a"), JobChoice())
PLAN: Plan = plan_to_run(PROBLEM, "aro", 0).plan


class Saw:
    """Stands for a monitor that saw one switch count these events."""

    def __init__(self, **events: int) -> None:
        none = SwitchCounters({int(event): 0 for event in Event}, {}, {}, {})
        counted = {int(Event[name.upper()]): count for name, count in events.items()}
        self.before: Any = type("Before", (), {"switches": {"l1": none}})
        self.after: Any = type("After", (), {"switches": {"l1": replace(none, events={**none.events, **counted})}})


def excused(policy: str, monitor: Any, before: Excuses | None = None) -> Excuses | None:
    return beside_collisions(monitor, PROBLEM, with_policy(PROBLEM, PLAN, policy), before)


@pytest.mark.parametrize("policy", ["atp", "esa"])
def test_workers_that_collide_in_shared_slots_may_be_slower_than_planned(policy: str) -> None:
    found = excused(policy, Saw(collision=3, evicted=2), Excuses(hosts=frozenset({"other"})))
    assert found == Excuses(hosts=frozenset({"other", *PROBLEM.jobs[0].workers}), rates=True, congestion=True)
    assert collisions(Saw(collision=3, evicted=2)) == 5  # type: ignore[arg-type]


def test_shared_slots_without_a_collision_excuse_nothing() -> None:
    assert excused("atp", Saw()) is None


def test_slots_of_ones_own_excuse_nothing() -> None:
    assert excused("goat", Saw(collision=3)) is None


@pytest.mark.parametrize(("policy", "ends"), [("shadow-copy", True), ("goat", True), ("atp", False), ("esa", False)])
def test_a_run_that_collisions_slow_down_is_not_ended_for_its_pace(policy: str, ends: bool) -> None:
    with unseen("") as progress:
        pace = Emulation(PROBLEM, ("aro",)).pace(Prepared(PROBLEM, with_policy(PROBLEM, PLAN, policy)), progress)
    assert pace is not None
    assert bool(pace.planned) == ends


def test_the_report_says_how_often_fragments_met() -> None:
    assert not [*collision_lines("aro+goat", planner(collisions=0)), *collision_lines("ended early", planner())]
    (line,) = collision_lines("aro+atp", planner(collisions=1234))
    assert line.startswith("aro+atp: 1,234 packets found their slot taken")
