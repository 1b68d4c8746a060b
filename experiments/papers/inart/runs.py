"""One plan on the emulated network as a line of a sweep, and what several such lines say together.

Sizes and rates are those of whole frames, as tcpreplay's are in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from rich.console import Console

from experiments.papers.common.emulated_runs import EmulatedRun, run_emulated
from experiments.papers.common.figure import Request
from experiments.papers.common.sweep import Result, Trial
from experiments.papers.common.verdicts import OTHERWISE, first_not_valid, is_near
from experiments.run.outcome import measured_figures, planned_figures
from planner.core.evaluate import evaluate
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.replan import rate_bps, with_rate
from planner.trees.headroom import with_room_for_results
from traffic.measure.figures import Iteration
from traffic.measure.verdict import VALID
from traffic.wire.packet import FRAGMENT

FILLED = 0.97
"""Of the planned rates: a queue in a link that is full would never get shorter."""
QUANTITIES = ("sending_rate_bps", "communication_time_s", "ps_ingress_bytes")
FORESEEN = "planned_"
"""Before the name of a quantity: as planned, not as measured."""


def gradient_bytes(frame_bytes: int) -> int:
    """Of a gradient whose frames have so many bytes in all."""
    return round(frame_bytes / FRAGMENT.wire_bytes) * 4 * FRAGMENT.values


def emulate(name: str, problem: Problem, plan: Plan, trial: Trial, switch: str, results: Path) -> Result:
    """Run a plan, in a run folder of its own. What is planned leaves room for results, as any closed loop has to."""
    plan = with_room_for_results(problem, plan)
    plan = with_rate(plan, FILLED * rate_bps(plan))
    quiet = Console(file=StringIO())
    done = run_emulated(name, [EmulatedRun("run", problem, plan, trial)], Request(results, switch=switch), quiet)
    (outcome,) = done.outcomes
    planned = planned_figures(evaluate(problem, plan))
    measured = measured_figures(outcome.measured, outcome.monitor)
    return {
        **{FORESEEN + quantity: planned[quantity] for quantity in QUANTITIES},
        **{quantity: measured[quantity] for quantity in QUANTITIES},
        "iteration_s": iteration_s(outcome.measured.iterations),
        "exact": int(bool(measured["exact"])),
        "verdict": outcome.verdict,
        "folder": done.folder.path.name,
    }


def iteration_s(iterations: Sequence[Iteration]) -> float:
    """From the start of one to the start of the next, in the mean; 0 if there is only one."""
    starts = [iteration.started_s for iteration in iterations]
    return fmean(later - earlier for earlier, later in pairwise(starts)) if len(starts) > 1 else 0.0


def in_iterations(problem: Problem, number: int, compute_s: float = 0.0) -> Problem:
    """The problem with so many iterations of its jobs, each after so much computing."""
    jobs = (replace(job, iterations=number, compute_s=compute_s) for job in problem.jobs)
    return replace(problem, jobs=tuple(jobs))


def deviation(result: Result) -> float:
    """Of the measured sending rate from the planned one, relatively."""
    return float(result["sending_rate_bps"]) / float(result[f"{FORESEEN}sending_rate_bps"]) - 1


def verdict(results: Sequence[Result]) -> str:
    """The first that is not VALID; VALID if all are, and have their planned rates."""
    near = all(is_near(float(r["sending_rate_bps"]), float(r[f"{FORESEEN}sending_rate_bps"])) for r in results)
    return first_not_valid([*(str(result["verdict"]) for result in results), VALID if near else OTHERWISE])


def conclusion(results: Sequence[Result]) -> str:
    valid = sum(result["verdict"] == VALID for result in results)
    exact = sum(int(result["exact"]) for result in results)
    farthest = max(map(deviation, results), key=abs)
    return (
        f"{len(results)} runs: {valid} valid, {exact} with exact sums; "
        f"the measured rate farthest from the planned one is off by {farthest:+.1%}"
    )
