"""The plans that lab 5 draws are plans of the kit, and its entries are no more and no less than they need."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from inakit.experiments.labs.course.tree_lab import course_entries
from inakit.experiments.labs.course.tree_network import (
    HOSTS,
    MOST_HOSTS,
    DrawnPlan,
    ModelTree,
    TreeNetwork,
    drawn_plan,
    run_jobs,
)
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.grading.packets import GRADIENT, Agg
from inakit.experiments.labs.registry import COURSE
from inakit.planner.core.check import check
from inakit.planner.core.plan import FEASIBLE, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.switch.entries import SwitchEntries


@pytest.mark.parametrize("hosts_per_leaf", [HOSTS, MOST_HOSTS])
@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_plan_breaks_no_rule(seed: int, hosts_per_leaf: int) -> None:
    drawn = drawn_plan(Random(seed), hosts_per_leaf)
    jobs = tuple(
        Job(number, tuple(tree.workers.values()), (spare(drawn, number),), 2048) for number, tree in drawn.trees.items()
    )
    trees = tuple(PlannedTree(number, 1.0, 1e6, tree) for number, tree in drawn.trees.items())
    plan = Plan("drawn", drawn.fabric.name, trees, SolverOutcome(FEASIBLE, 0.0))
    check(Problem(drawn.fabric, jobs, FragmentFormat(8, 56)), plan)


def spare(drawn: DrawnPlan, job: int) -> str:
    """A host that is no worker of a job."""
    return next(host.name for host in drawn.fabric.hosts if host.name not in drawn.trees[job].workers.values())


def test_the_plan_that_students_get_is_one_of_them() -> None:
    assert json.loads((COURSE / "5-tree" / "plan.json").read_text()) == drawn_plan(Random("example")).document()


def test_without_any_one_entry_some_worker_lacks_a_result() -> None:
    drawn = drawn_plan(Random(5))
    all_entries = {name: course_entries(drawn, name) for name in drawn.switches}
    jobs = set(drawn.trees)
    for name, entries in all_entries.items():
        for left_out in Random(name).sample(entries.tables, 3):
            if left_out.table == "pipeline_of" and not needed(drawn, name, int(str(left_out.key[0]))):
                continue
            fewer = replace(entries, tables=tuple(each for each in entries.tables if each != left_out))
            switches = {each: ModelTree(fewer if each == name else known) for each, known in all_entries.items()}
            with pytest.raises(WrongError):
                run_jobs(TreeNetwork(drawn, switches.__getitem__), Random(1), tuple(jobs))


def needed(drawn: DrawnPlan, switch: str, port: int) -> bool:
    """Whether an aggregator's child comes in by a port."""
    return any(
        drawn.port(switch, branch.path[-2]) == port
        for tree in drawn.trees.values()
        for branch in tree.branches
        if branch.path[-1] == switch
    )


@pytest.mark.parametrize("table", ["pipeline_of", "child_of"])
def test_why_a_gradient_is_not_summed_is_said_where_it_is_dropped(table: str) -> None:
    drawn = drawn_plan(Random(5))
    tree = next(iter(drawn.trees.values()))
    root = next(each for each in tree.aggregators if each.label == 0)
    switches = {name: ModelTree(without(table, course_entries(drawn, name), root.switch)) for name in drawn.switches}
    with pytest.raises(WrongError, match=f"is not summed there either: table '{table}' of {root.switch} has no entry"):
        run_jobs(TreeNetwork(drawn, switches.__getitem__), Random(1), tuple(drawn.trees)[:1])


def without(table: str, entries: SwitchEntries, switch: str) -> SwitchEntries:
    """Entries, and at a switch all but those of a table."""
    kept = tuple(each for each in entries.tables if entries.switch != switch or each.table != table)
    return replace(entries, tables=kept)


def test_reports_call_a_label_a_label() -> None:
    gradient = Agg(GRADIENT, 7, 2, 1, (0,) * 8)
    assert str(gradient).startswith("gradient worker 7 slot 2 round 1 ")
    assert str(replace(gradient, job=9)).startswith("gradient job 9 label 7 slot 2 round 1 ")
