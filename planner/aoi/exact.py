"""The MILP's optimum by deadlines: a schedule of our own bounds it from above, deadlines that cannot be met from below.

A batch iteration ends with some slot and some job's update, so few deadlines come into question. Where the solver's
time is over before the bounds meet, the schedule is feasible, with its gap.
"""

from __future__ import annotations

import time
from dataclasses import replace

from planner.aoi.deadline import decide
from planner.aoi.pack import earliest_s, pack
from planner.aoi.schedule import Schedule, figures
from planner.aoi.system import Scheduling
from planner.plan import SolverOutcome
from planner.solve import INFEASIBLE, SolverOptions
from topo.errors import SolverError

ROUNDING_S = 1e-9


def optimise(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The shortest batch iteration that was found, and how well. Raises `SolverError` when T is too short for any."""
    started = time.monotonic()
    best = pack(problem, "milp", seed=options.seed)
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


def concluded(problem: Scheduling, best: Schedule, below: float, seconds: float, options: SolverOptions) -> Schedule:
    reached = figures(problem, best).ct_bti_s
    gap = max(0.0, 1 - below / reached)
    proven = gap < ROUNDING_S
    outcome = SolverOutcome("optimal" if proven else "feasible", seconds, 0.0 if proven else gap, options.solver)
    if problem.horizon is not None and len(best.slots) > problem.horizon:
        shown = "none exists" if proven else "none was found"
        raise SolverError(
            f"constraint 'completion (10)': {shown} with T = {problem.horizon} slots, "
            f"{len(best.slots)} are needed; make T longer, or a slot"
        )
    return replace(best, method="milp", outcome=outcome)


def deadlines(problem: Scheduling, slots: int) -> list[float]:
    """Every time at which a batch iteration of so many slots may end."""
    slot_s = problem.center.slot_s
    updates = {job.update_time(inc) for job in problem.jobs for inc in (*job.workers, None)}
    return sorted({(slot + 1) * slot_s + update for slot in range(slots) for update in updates})
