"""From one design to the next: a port has one circuit at any time, and what runs uses lit circuits alone."""

from __future__ import annotations

import random
from collections import Counter

from planner_cases import FRAGMENT
from test_several_jobs import device, jobs

from inakit.planner.core.check import check
from inakit.planner.core.method import Design
from inakit.planner.methods.atro.rewiring import Step, circuits_of, rewire
from inakit.planner.methods.atro.several_jobs import Cluster, design
from inakit.topo.fabric.circuits import circuit

CLUSTER = Cluster(
    "hall",
    (*(device(f"agg{n}", 8) for n in (1, 2)), *(device(f"cs{n}", 8, ina=False) for n in (1, 2, 3))),
    host_bps=100.0,
)


def check_steps(before: Design, after: Design, steps: list[Step]) -> None:
    """Carry the steps out; what runs during one is valid, and its links are lit before and after the step."""
    lit = set(circuits_of(before.fabric))
    for step in steps:
        assert step.disconnected <= lit
        lit -= step.disconnected
        if step.running is not None:
            check(step.running.problem, step.running.plan)
            ports = step.running.fabric.port_numbers
            trees = [planned.tree for planned in step.running.plan.trees]
            used = {link for tree in trees for branch in tree.branches for link in branch.links}
            circuits = {circuit((u, ports[u, v]), (v, ports[v, u])) for u, v in used}
            assert circuits <= lit
        lit |= step.connected
        assert max(Counter(end for each in lit for end in each).values()) == 1
    assert lit == circuits_of(after.fabric).keys()


def test_a_job_that_comes_stops_no_other_where_ports_are_dark() -> None:
    """The second job's hosts and a switch of its own get dark ports, and no link of the first job changes."""
    before = design(CLUSTER, jobs(6), FRAGMENT)
    after = design(CLUSTER, jobs(6, 5), FRAGMENT, before=before.fabric)
    steps = rewire(before, after)
    check_steps(before, after, steps)
    assert [step.rate_bps(1) for step in steps] == [100.0]
    assert circuits_of(before.fabric).keys() <= circuits_of(after.fabric).keys()


def test_hosts_that_move_stop_their_job() -> None:
    """Eight workers on two aggregators make room for six others: dark ports first, then the moves."""
    before = design(CLUSTER, jobs(8), FRAGMENT)
    after = design(CLUSTER, jobs(8, 6), FRAGMENT, before=before.fabric)
    steps = rewire(before, after)
    check_steps(before, after, steps)
    assert [step.rate_bps(1) for step in steps] == [100.0, 0.0]
    assert not steps[0].disconnected


def test_the_same_design_needs_no_steps_and_a_job_that_ends_stops_none() -> None:
    both = design(CLUSTER, jobs(6, 5), FRAGMENT)
    assert rewire(both, both) == []
    alone = design(CLUSTER, jobs(6), FRAGMENT, before=both.fabric)
    steps = rewire(both, alone)
    check_steps(both, alone, steps)


def test_every_step_can_be_carried_out() -> None:
    draw = random.Random(1)
    for _ in range(8):
        first, second = (jobs(*(draw.randint(1, 6) for _ in range(draw.randint(1, 2)))) for _ in range(2))
        before = design(CLUSTER, first, FRAGMENT)
        after = design(CLUSTER, second, FRAGMENT, before=before.fabric)
        assert after.rate_bps == design(CLUSTER, second, FRAGMENT).rate_bps
        check_steps(before, after, rewire(before, after))
