"""One cell of the exactness matrix: a policy, levels and a condition, tried on a switch, and what came of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil

from inakit.experiments.exactness.conditions import CONDITIONS, HEAVY
from inakit.experiments.exactness.networks import case
from inakit.experiments.exactness.scales import scale_of
from inakit.experiments.run.outcome import Outcome, switch_events
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import WORLDS
from inakit.planner.core.problem import Problem
from inakit.planner.install.data_plane_program import INA, DataPlaneProgram
from inakit.topo.errors import MachineError, RunError
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.wire.frames import FRAGMENT
from inakit.traffic.wire.packet_format import Event

GRADIENTS = RandomGradients(1)


@dataclass(frozen=True)
class Cell:
    """One combination to be tried. `switch` is the name of a world of `inakit.experiments.worlds.registry`."""

    policy: str
    levels: int
    condition: str
    switch: str = "virtual"

    def __str__(self) -> str:
        return f"{self.switch}, {self.policy}, {self.levels} levels, {self.condition}"


@dataclass(frozen=True)
class Tried:
    """The result of one cell, tried with this number of `fragments`.

    `failure`: why sums are not exact, or why the run does not show it; empty if they are exact. `time_s`: the
    communication time. `again`: retransmissions per fragment of each worker. `counts`: how many packets each event
    happened to, see `event_counts`.
    """

    cell: Cell
    fragments: int
    failure: str = ""
    time_s: float = 0.0
    again: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the run shows that all sums are exact."""
        return not self.failure

    def __str__(self) -> str:
        return f"{short(self.time_s)}s ×{short(1 + self.again)}" if self.exact else "[bold red]FAILED[/]"


def short(number: float) -> str:
    """A number with one decimal, or with none from 10 on."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def weight(cell: Cell) -> float:
    """The number of fragments of a cell, relative to that of a cell whose condition is not in `HEAVY`."""
    return 1 / HEAVY.get(cell.condition, 1)


def check_memory(problem: Problem) -> None:
    """Raise `MachineError` if the gradients and the sums of a run do not fit this machine."""
    (job,) = problem.jobs
    # In gradients: each worker takes 3.5, for its gradient twice, its sums, and a head for each packet. The PS and the
    # check take 8 in all, for 64-bit sums of both, and as much again for the work of the check.
    needed = job.gradient_bytes * (len(job.workers) * 3.5 + 8)
    available = psutil.virtual_memory().available
    if needed > available:
        raise MachineError(
            f"gradients of {job.gradient_bytes / 1e6:,.0f} MB at {len(job.workers)} workers take {needed / 1e9:.1f} GB "
            f"in all, and {available / 1e9:.1f} GB are free: choose fewer --fragments, or more cells to share them"
        )


def attempt(cell: Cell, fragments: int | None = None, program: DataPlaneProgram = INA) -> Tried:
    """Run one iteration of a cell on switches of this program.

    It has `fragments` (by default those of its world) times the cell's weight.
    """
    scale = scale_of(cell.switch)
    count = max(2, math.ceil((fragments or scale.fragments) * weight(cell)))
    problem, plan = case(cell.policy, cell.levels, fragments=count, slots=scale.slots, rate_bps=scale.rate_bps)
    check_memory(problem)
    sending_s = 8 * FRAGMENT.wire_bytes * count / scale.rate_bps
    faults = CONDITIONS[cell.condition].faults(problem.fabric, sending_s)
    run = Run(problem, plan, gradients=GRADIENTS, options=scale.options, faults=faults)
    try:
        outcome = run_plan(run, WORLDS[cell.switch](program=program))
    except RunError as error:
        return Tried(cell, count, str(error))
    (iteration,) = outcome.measured.iterations
    again = iteration.retransmissions / (count * len(problem.jobs[0].workers))
    return Tried(cell, count, failure_of(outcome), iteration.communication_time_s, again, event_counts(outcome))


def failure_of(outcome: Outcome) -> str:
    """Why a run does not show that sums are exact; empty where it does."""
    if not outcome.measured.exact:
        return "; ".join(outcome.measured.wrong)
    not_reached = (outcome.faults or {}).get("not_reached")
    return f"the run ended before {', '.join(not_reached)} could happen: choose more --fragments" if not_reached else ""


def event_counts(outcome: Outcome) -> dict[str, int]:
    """The number of packets of a run per event of the P4 program, over all switches, and per fault at hosts."""
    counted = Counter({event.name.lower(): 0 for event in Event})
    for _, events in switch_events(outcome.monitor):
        counted.update({event.name.lower(): events[event] for event in Event})
    at_hosts = (outcome.faults or {})["counts"]
    counted["lost"] += at_hosts["lost_on_departure"]
    counted["doubled"] += at_hosts["doubled_by_hosts"]
    return dict(counted) | {"unheard": at_hosts["lost_at_silent_hosts"]}
