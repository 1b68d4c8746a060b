"""One plan on the emulated network as a result of a sweep, and what several such results say together.

Sizes and rates are those of whole frames, as tcpreplay counts them in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from rich.console import Console

from inakit.experiments.papers.common.emulated_runs import EmulatedRun, run_emulated
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.planned_measured import is_near
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.run.outcome import measured_figures, planned_figures
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.replan import rate_bps, with_rate
from inakit.planner.trees.headroom import with_room_for_results
from inakit.traffic.measure.measured import Iteration
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of
from inakit.traffic.wire.frames import FRAGMENT

FILLED = 0.97
"""The share of the planned rates at which workers send: the queue of a full link would never get shorter."""
QUANTITIES = ("sending_rate_bps", "communication_time_s", "ps_ingress_bytes")
FORESEEN = "planned_"
"""The prefix of a quantity's name in a result that stands for its planned value."""


def gradient_bytes(frame_bytes: float) -> int:
    """The size of a gradient whose frames have so many bytes in all."""
    return round(frame_bytes / FRAGMENT.wire_bytes) * 4 * FRAGMENT.values


def emulate(name: str, problem: Problem, plan: Plan, trial: Trial, switch: str, results: Path) -> Result:
    """Run a plan, which gets room for results, in a run folder of its own; its planned and measured quantities."""
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
    """The mean time from the start of an iteration to the start of the next; 0 if there is only one."""
    starts = [iteration.started_s for iteration in iterations]
    return fmean(later - earlier for earlier, later in pairwise(starts)) if len(starts) > 1 else 0.0


def in_iterations(problem: Problem, number: int, compute_s: float = 0.0) -> Problem:
    """The problem with `number` iterations of its jobs, each of which begins with computing for `compute_s`."""
    jobs = (replace(job, iterations=number, compute_s=compute_s) for job in problem.jobs)
    return replace(problem, jobs=tuple(jobs))


def deviation(result: Result) -> float:
    """The measured sending rate over the planned one, less 1."""
    return float(result["sending_rate_bps"]) / float(result[f"{FORESEEN}sending_rate_bps"]) - 1


def verdict(results: Sequence[Result]) -> str:
    """The worst verdict of the runs; DIFFERS if all are valid but not all have their planned rates."""
    near = all(is_near(float(r["sending_rate_bps"]), float(r[f"{FORESEEN}sending_rate_bps"])) for r in results)
    return worst_of([*(str(result["verdict"]) for result in results), VALID if near else Verdict.DIFFERS])


def conclusion(results: Sequence[Result]) -> str:
    """A sentence about all runs: how many are valid and exact, and how far a rate is off at most."""
    valid = sum(result["verdict"] == VALID for result in results)
    exact = sum(int(result["exact"]) for result in results)
    farthest = max(map(deviation, results), key=abs)
    return (
        f"{len(results)} runs: {valid} valid, {exact} with exact sums; "
        f"the measured rate farthest from the planned one is off by {farthest:+.1%}"
    )
