"""The figures of losses: what a trial measures, and what makes a figure differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inakit.experiments.papers.collectives import losses
from inakit.experiments.papers.collectives.losses import (
    BOUND,
    CORE,
    EVERYWHERE,
    INA,
    LOSSES,
    OLD,
    POLICIES,
    ROOTED,
    WORKER,
    WORST,
)
from inakit.experiments.papers.common.figure_engine import Findings
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.sweep import Result, Trial, name_of
from inakit.experiments.run.planning import plan_to_run
from inakit.planner.core.slot_policies import policy_of
from inakit.traffic.measure.verdict import VALID, Verdict

QUICK = Request(quick=True)
TINY: Trial = {**losses.network("one switch", 15, 200_000), "seed": 0}


def test_policies_are_known_and_the_chosen_ones_among_them() -> None:
    assert [policy_of(name) for name in POLICIES]
    assert {INA, ROOTED, OLD} <= POLICIES.keys()


@pytest.mark.compiler
def test_no_recovery_is_quicker_than_the_bound() -> None:
    by_name = {
        name: losses.measure({**TINY, **losses.line("aro", INA, bound=bound), **losses.losing(loss, burst)})
        for name, bound, loss, burst in (
            ("without", False, 0.0, 1), ("bound", True, WORST, 1), ("recovered", False, WORST, 1),
            ("bound of bursts", True, WORST, 8),
        )
    }  # fmt: skip
    assert all(result["exact"] and result["judged"] == VALID for result in by_name.values())
    assert by_name["bound"]["retransmissions"] == 0 < int(by_name["recovered"]["retransmissions"])
    times = {name: float(result["over_plan"]) for name, result in by_name.items()}
    assert times["without"] < times["bound"] < times["recovered"]
    assert times["bound"] < 1.05
    assert times["without"] < times["bound of bursts"]


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("network", "loss", "burst"), [("fat-tree 4", 1e-3, 64), ("fat-tree 4", 1e-2, 1), ("fat-tree 8", 1e-2, 1)]
)
def test_questions_do_not_fill_the_links(network: str, loss: float, burst: float) -> None:
    workers = {"fat-tree 4": 15, "fat-tree 8": 127}[network]
    size = losses.network(network, workers, 1_000_000)
    found = losses.measure({**size, **losses.line("aro", INA), **losses.losing(loss, burst), "seed": 1})
    assert found["exact"]
    assert found["judged"] == VALID
    assert float(found["over_plan"]) < 1.3


def test_losses_are_on_all_links_or_on_both_directions_of_one() -> None:
    trial: Trial = {**losses.SMALL, **losses.line("aro")}
    prepared = plan_to_run(losses.problem_of(trial), "aro", 0)
    fabric = prepared.problem.fabric
    assert set(losses.lossy_links(prepared, EVERYWHERE)) == set(fabric.capacities_bps)
    (worker, tor), back = losses.lossy_links(prepared, WORKER)
    assert (worker, back) == (prepared.problem.jobs[0].workers[0], (tor, worker))
    one, other = losses.lossy_links(prepared, CORE)
    assert set(one) == set(other) <= set(fabric.switch_by_name)
    assert prepared.prediction.link_loads_bps[one] > 0


def judged(over_plan: Callable[[Trial], float], **changed: int | str) -> tuple[str, dict[str, str]]:
    """The verdict of the quick figure `bound` with these times over plan, and its statements that differ."""
    figure = losses.FIGURES["bound"]
    trials = [trial for cell in figure.cells(QUICK) for trial in losses.draws(cell, 1)]
    results: dict[str, Result] = {
        name_of(trial): {"over_plan": over_plan(trial), "exact": 1, "judged": VALID, **changed} for trial in trials
    }
    found = Findings(results, QUICK, 1, losses.draws)
    statements = list(losses.bound_statements(found, losses.bound_charts(QUICK)))
    return losses.verdict(found, statements), {each.says: each.ours for each in statements if not each.holds}


def good(trial: Trial) -> float:
    return 1 + float(trial["loss"]) * (1 if trial["bound"] else 5)


def test_the_bound_differs_where_a_limit_is_exceeded_a_sum_is_wrong_or_a_run_is_not_valid() -> None:
    assert judged(good) == (VALID, {})
    assert judged(good, exact=0)[0] == Verdict.DIFFERS
    assert judged(good, judged=Verdict.OVERLOADED)[0] == Verdict.DIFFERS
    slow = judged(lambda trial: good(trial) + (0.12 if trial["loss"] == WORST and not trial["bound"] else 0))
    assert slow[0] == Verdict.DIFFERS
    assert [policy for policy in (INA, ROOTED) if any(policy in says and "over its" in says for says in slow[1])]


def test_a_bound_that_a_line_undercuts_is_none() -> None:
    verdict, differing = judged(lambda trial: good(trial) + 0.1 * int(trial["bound"]))
    assert verdict == Verdict.DIFFERS
    assert any("no line is below its bound" in says for says in differing)


def test_ina_wins_where_the_quickest_collective_takes_longer() -> None:
    seconds = dict.fromkeys(losses.COLLECTIVES, 3.0) | {losses.COLLECTIVES[1]: 2.0, INA: 1.6}
    shown: dict[str, Trial] = {name: {"name": name, "loss": WORST} for name in seconds}
    results: dict[str, Result] = {
        name_of({**trial, "seed": 0}): {"measured_s": seconds[name]} for name, trial in shown.items()
    }
    found = Findings(results, QUICK, 1)
    assert losses.gain(found, INA, shown).value == pytest.approx(1.25)


def test_collectives_of_very_many_workers_are_planned_once() -> None:
    cells = [cell for cell in losses.cells(losses.duels(Request())) if cell["planner"] in losses.COLLECTIVES]
    large = [trial for cell in cells if cell["workers"] == 1023 for trial in losses.draws(cell, 3)]
    assert {name_of(trial) for trial in large} == {
        name_of({**losses.SHORT[1023], **losses.NO_LOSS, **losses.line(name), "seed": 0}) for name in losses.COLLECTIVES
    }
    assert len(losses.draws(next(cell for cell in cells if cell["workers"] == 127), 3)) == 3


def test_charts_over_losses_have_a_cell_without_losses_for_each_line() -> None:
    cells = list(losses.cells(losses.duels(QUICK)))
    lines = len(losses.INA_LINES) + len(losses.COLLECTIVES)
    assert sum(cell["loss"] == 0 for cell in cells) == lines
    assert len(cells) == lines * (len(LOSSES) + 1)
    assert INA + BOUND in losses.with_bounds(losses.INA_LINES)
