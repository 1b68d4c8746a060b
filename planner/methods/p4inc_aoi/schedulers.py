"""The contract of a scheduler of optical circuits, and the functions behind the schedulers of the registry.

A scheduler decides which job uses in-network computing (INC), when it transfers and at what rate, and which circuits
are set in every time slot (P4INC-AOI, section III).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.online import FirstCome, GrantPolicy, SlotSimulation, TimeWindow
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.methods.p4inc_aoi.pack import pack
from inakit.planner.methods.p4inc_aoi.schedule import Schedule, check
from inakit.planner.methods.p4inc_aoi.slot_resources import uniform

Function = Callable[[Scheduling, SolverOptions], Schedule]


@dataclass(frozen=True)
class Scheduler:
    """A scheduling method: its summary, and its function from a problem to a schedule.

    Heuristics ignore all options but the seed.
    """

    summary: str
    function: Function

    def schedule(self, problem: Scheduling, options: SolverOptions | None = None) -> Schedule:
        """The scheduler's schedule, checked. Raises `PlanError` or `SolverError` where there is none."""
        found = self.function(problem, options or SolverOptions())
        check(problem, found)
        return found


def slot_by_slot(name: str, policy: GrantPolicy) -> Function:
    """The scheduler that decides slot after slot by this policy; `name` is what its schedules say of their origin."""
    return lambda problem, _options: SlotSimulation(problem, policy).run(name)


no_inc_first_come = slot_by_slot("noINC-FCFS", FirstCome(inc=False))
inc_first_come = slot_by_slot("INC-FCFS", FirstCome())
no_inc_time_window = slot_by_slot("noINC-TW", TimeWindow(inc=False))
inc_time_window = slot_by_slot("INC-TW", TimeWindow())


def without_reconfiguration(problem: Scheduling, _options: SolverOptions) -> Schedule:
    """INC-TW on the same circuits between any two units, which never change."""
    return SlotSimulation(problem, TimeWindow(), uniform(problem.center)).run("INC-TW-NoRecon")


def packed(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The schedule of the kit's own planner, which packs jobs into slots."""
    return pack(problem, "pack", seed=options.seed)
