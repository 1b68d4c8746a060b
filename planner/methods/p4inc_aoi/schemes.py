"""The schedulers by name, as the paper and its figures call them. Every schedule is checked before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.solving import SolverOptions
from planner.methods.p4inc_aoi.milp.exact import optimise
from planner.methods.p4inc_aoi.online import pack
from planner.methods.p4inc_aoi.online.slot_by_slot import Policy, Simulation
from planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from planner.methods.p4inc_aoi.problem.check_schedule import check
from planner.methods.p4inc_aoi.problem.resources import uniform
from planner.methods.p4inc_aoi.problem.schedule import Schedule
from planner.methods.p4inc_aoi.problem.system import Scheduling
from topo.errors import unknown_name

Function = Callable[[Scheduling, SolverOptions], Schedule]


@dataclass(frozen=True)
class Scheme:
    """A way to schedule. Heuristics ignore all options but the seed."""

    summary: str
    function: Function

    def schedule(self, problem: Scheduling, options: SolverOptions | None = None) -> Schedule:
        """The scheme's schedule, checked. Raises `PlanError` or `SolverError` where there is none."""
        found = self.function(problem, options or SolverOptions())
        check(problem, found)
        return found


def online(name: str, policy: Policy) -> Function:
    """A scheduler that goes slot by slot with this policy."""
    return lambda problem, _options: Simulation(problem, policy).run(name)


def without_reconfiguration(problem: Scheduling, _options: SolverOptions) -> Schedule:
    """INC-TW on the same circuits between any two units, which never change."""
    return Simulation(problem, TimeWindow(), uniform(problem.center)).run("INC-TW-NoRecon")


def own(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The kit's own planner, which packs jobs into slots."""
    return pack.pack(problem, "pack", seed=options.seed)


SCHEMES: dict[str, Scheme] = {
    "noINC-FCFS": Scheme("first come, first served; no INC", online("noINC-FCFS", FirstCome(inc=False))),
    "INC-FCFS": Scheme("first come, first served", online("INC-FCFS", FirstCome())),
    "noINC-TW": Scheme("the paper's time window; no INC", online("noINC-TW", TimeWindow(inc=False))),
    "INC-TW": Scheme("the paper's time window (Algorithms 1 to 3)", online("INC-TW", TimeWindow())),
    "INC-TW-NoRecon": Scheme("INC-TW on circuits that never change", without_reconfiguration),
    "pack": Scheme("our own: jobs packed into slots, again and again", own),
    "milp": Scheme("Eqs. (1) to (11), to the optimum or with its gap", optimise),
}


def find_scheme(name: str) -> Scheme:
    """The scheme of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in SCHEMES:
        raise unknown_name("scheme", name, SCHEMES)
    return SCHEMES[name]
