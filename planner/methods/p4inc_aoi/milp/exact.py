"""The MILP's optimum by deadlines. A schedule of our own bounds it from above, deadlines that nothing meets from below.

A batch iteration ends with some slot and some job's update, so few deadlines come into question. Where the solver's
time is over before the bounds meet, the schedule is feasible, with its gap.
"""

from __future__ import annotations

import time
from dataclasses import replace

from inakit.planner.core.solving import INFEASIBLE, SolverOptions, SolverOutcome
from inakit.planner.methods.p4inc_aoi.milp.deadline import decide
from inakit.planner.methods.p4inc_aoi.online.pack import earliest_s, pack
from inakit.planner.methods.p4inc_aoi.problem.schedule import Schedule, figures
from inakit.planner.methods.p4inc_aoi.problem.system import Scheduling
from inakit.topo.errors import SolverError

ROUNDING_S = 1e-9


def optimise(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The shortest batch iteration that was found, and its gap. Raises `SolverError` when T is too short for any."""
    started = time.monotonic()
    best = first(problem, options)
    ends = deadlines(problem, len(best.slots))
    below, unknown = earliest_s(problem), float("inf")
    while True:
        reached = figures(problem, best).ct_bti_s
        open_ = [at for at in ends if below - ROUNDING_S <= at < min(reached, unknown) - ROUNDING_S]
        left_s = options.time_limit_s - (time.monotonic() - started)
        if not open_ or left_s <= 0:
            break
        asked = open_[len(open_) // 2]
        found, outcome = decide(problem, asked, replace(options, time_limit_s=left_s / 2))
        if found is not None:
            best = found
        elif outcome.status == INFEASIBLE:
            below = next((at for at in ends if at > asked + ROUNDING_S), reached)
        else:
            unknown = asked
    return concluded(problem, best, below, time.monotonic() - started, options)


def first(problem: Scheduling, options: SolverOptions) -> Schedule:
    """Some schedule within T. Raises `SolverError` where none is found."""
    packed = pack(problem, "milp", seed=options.seed)
    if problem.horizon is None or len(packed.slots) <= problem.horizon:
        return packed
    found, outcome = decide(problem, deadlines(problem, problem.horizon)[-1], options)
    if found is None:
        shown = "none exists" if outcome.status == INFEASIBLE else f"none was found in {options.time_limit_s:g} s"
        raise SolverError(
            f"constraint 'completion (10)': of schedules with T = {problem.horizon} slots {shown}; "
            "make T longer, or a slot"
        )
    return found


def concluded(problem: Scheduling, best: Schedule, below: float, seconds: float, options: SolverOptions) -> Schedule:
    """The schedule with its outcome, where `below` is a time in s before which no batch iteration ends."""
    gap = max(0.0, 1 - below / figures(problem, best).ct_bti_s)
    proven = gap < ROUNDING_S
    outcome = SolverOutcome("optimal" if proven else "feasible", seconds, 0.0 if proven else gap, options.solver)
    return replace(best, outcome=outcome)


def deadlines(problem: Scheduling, slots: int) -> list[float]:
    """Every time in s at which a batch iteration of at most so many slots may end, in order."""
    slot_s = problem.center.slot_s
    updates = {job.update_time(inc) for job in problem.jobs for inc in (*job.workers, None)}
    return sorted({(slot + 1) * slot_s + update for slot in range(slots) for update in updates})
