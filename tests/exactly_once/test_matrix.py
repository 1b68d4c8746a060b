"""The exactness matrix: what it says of runs that show nothing or are wrong, and how many fragments each cell gets."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import psutil
import pytest
from mutation import Mutation, mutant, one_more, unassigned
from rich.console import Console
from tiers import long_unless

from inakit.experiments.bench.exactness import (
    CONDITIONS,
    GRADIENTS,
    LONG,
    Cell,
    Tried,
    attempt,
    case,
    cells,
    chosen_worlds,
    failure_of,
    matrix_tables,
    shared_out,
)
from inakit.experiments.run.faults import Event, When
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.install.ina_program import INA, INA_HW
from inakit.planner.prepared import Prepared
from inakit.topo.errors import InputError, MachineError

ONE_WORKER_TOO_MANY = one_more("add", "meta.slot_workers =")
ONE_VALUE_UNCHANGED = unassigned("add", "values", "v3")


def attempt_with(mutate: Mutation, cell: Cell, folder: Path) -> Tried:
    """Run a cell with few fragments on switches whose P4 program has a mistake."""
    mutant(mutate, folder)
    return attempt(cell, 8, replace(INA, path=folder / "mutant.json"))


@pytest.mark.compiler
def test_wrong_sums_are_named(tmp_path: Path) -> None:
    tried = attempt_with(ONE_VALUE_UNCHANGED, Cell("goat", 1, "no loss"), tmp_path)
    problem, _ = case("goat", 1, fragments=8, slots=8, rate_bps=2e6)
    first, second = (GRADIENTS.of(problem.jobs[0], worker, 0)[3] for worker in range(2))
    assert not tried.exact
    start, got = tried.failure.split("got ")
    assert start == (
        "job 1, iteration 0: 8 elements in 8 fragments are wrong at 2 hosts (w1, w2); "
        f"the first: element 3 (tree 1, fragment 0) at w1, expected {first + second}, "
    )
    assert int(got) in (first, second)


@pytest.mark.compiler
@pytest.mark.parametrize("policy", [long_unless(name in ("goat", "atp", "switchml"), name) for name in POLICIES])
def test_a_wrong_number_of_workers_is_named(policy: str, tmp_path: Path) -> None:
    tried = attempt_with(ONE_WORKER_TOO_MANY, Cell(policy, 2, "no loss"), tmp_path)
    assert not tried.exact
    label = 0 if POLICIES[policy].needs_root else 101
    assert re.fullmatch(
        r"job 1, iteration 0: \d+ sums say a wrong number of workers; "
        rf"the first: tree 1, fragment 0, from switch s1 \(label {label}\), says 7 and covers 4",
        tried.failure,
    )


@pytest.mark.compiler
def test_a_run_that_is_over_too_early_shows_nothing() -> None:
    late = FaultPlan(events=(Event(When(1000.0), "restart", ("s1",)),))
    problem, plan = case("goat", 1, fragments=8, slots=8, rate_bps=2e6)
    outcome = run_plan(Run(Prepared(problem, plan), interferences=late.interferences), VirtualWorld())
    assert outcome.measured.exact
    assert "the run ended before restart s1 could happen" in failure_of(outcome)


@pytest.mark.compiler
def test_a_run_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inakit.experiments.bench.exactness.STALL_S", 0.5)
    tried = attempt(Cell("goat", 1, "worker paused"), 100)
    assert not tried.exact
    assert "stalled: no result for 0.5 s" in tried.failure
    assert "w1" in tried.failure


def test_the_table_says_how_much_of_the_rate_is_kept() -> None:
    found = [
        Tried(Cell("goat", 1, "no loss"), 1000, time_s=2.0),
        Tried(Cell("goat", 1, "1 % loss"), 1000, time_s=2.5),
        Tried(Cell("atp", 1, "no loss"), 1000, time_s=2.0),
        Tried(Cell("atp", 1, "1 % loss"), 1000, failure="it stalled"),
    ]
    console = Console(file=StringIO(), width=80)
    console.print(*matrix_tables(found))
    (row,) = [line for line in console.file.getvalue().splitlines() if "rate at" in line]  # type: ignore[attr-defined]
    assert row.split() == ["rate", "at", "1", "%", "80%"]


def test_the_long_form_has_a_million_fragments_on_each_switch() -> None:
    wanted = cells(["atp", "goat"], [1, 2], ["no loss", "30 % loss"], ["fast", "bmv2"])
    each = shared_out(LONG, wanted)
    assert LONG <= 4 * each + 4 * each / 50 < LONG + len(wanted)
    assert shared_out(LONG, [Cell("atp", 2, "1 % loss", "fast")]) == LONG


def test_what_does_not_fit_the_memory_is_refused() -> None:
    fragments = psutil.virtual_memory().total // 256
    with pytest.raises(MachineError, match="choose fewer --fragments"):
        attempt(Cell("goat", 1, "no loss"), fragments)


def test_unknown_switches_are_refused() -> None:
    with pytest.raises(InputError, match="unknown switch 'fats': did you mean 'fast'"):
        chosen_worlds(["fats"])
    assert chosen_worlds(["virtual", "virtual"]) == ["virtual"]


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_possible_and_within_the_run(name: str) -> None:
    problem, _ = case("goat", 2, fragments=8, slots=8, rate_bps=2e6)
    faults = CONDITIONS[name].faults(problem.fabric, 10.0, 2e6)
    assert set(faults.links) == set(problem.fabric.capacities_bps)
    assert not any(found.reorder for (_, peer), found in faults.links.items() if peer in problem.fabric.host_names)
    assert all(0 < (event.at.seconds or 0) < 10 for event in faults.events)


def test_the_table_has_a_cell_for_each_and_fits_a_terminal() -> None:
    wanted = cells([*POLICIES], [1, 2], ["no loss", "switches wiped"], ["virtual"])
    found = [Tried(cell, 10, time_s=12.34, again=0.5) for cell in wanted]
    found[0] = replace(found[0], failure="why")
    text = StringIO()
    Console(width=80, file=text).print(*matrix_tables(found))
    assert (text.getvalue().count("12s"), text.getvalue().count("×1.5")) == (len(wanted) - 1, len(wanted) - 1)
    assert text.getvalue().count("FAILED") == 1
    assert "…" not in text.getvalue()


def test_the_chips_program_is_exact_in_every_pipeline() -> None:
    """The matrix has its aggregators in pipeline 0; a packet that comes in again keeps the pipeline it came in by."""
    fabric = FabricChoice("leafspine", leaves=2, spines=2, hosts_per_leaf=4, pipelines=2)
    problem = build_problem(fabric, JobChoice(workers=6, gradient_bytes=512, iterations=1))
    plan = plan_to_run(problem, "aro", 0).plan
    assert {a.pipeline for planned in plan.trees for a in planned.tree.aggregators} == {0, 1}
    outcome = run_plan(Run(Prepared(problem, plan)), VirtualWorld(program=INA_HW))
    assert (outcome.verdict, outcome.measured.wrong) == ("VALID", ())
