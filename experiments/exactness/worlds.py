"""Where a cell of the matrix is tried: on switches in this process, or on those of an emulated network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from experiments.exactness.ran import Ran
from experiments.exactness.virtual import run_virtual
from experiments.faults.faults_file import FaultPlan
from planner.core.plan import Plan
from planner.core.problem import Problem
from switch.program.sources import check_sources
from switch.running_switch import PROGRAM
from switch.targets import TARGETS, choose_target
from topo.errors import unknown_name
from traffic.endpoints.gradient import Gradients
from traffic.endpoints.worker import WorkerOptions
from traffic.runs.closed_loop import ReliableOptions

STALL_S = 120.0
"""Neither a pause of seconds is a stall, nor that of 17 packets one comes through."""


@dataclass(frozen=True)
class World:
    """How a cell is run. `check` raises `MachineError` where this machine cannot.

    `rate_bps` is each worker's, `slots` each switch's: few enough for fragments to collide. `fragments` are those of
    a gradient. `timeouts` are the shortest and the longest; short ones, as fit short round trips, end the runs sooner
    in which most packets are lost.
    """

    run: Callable[[Problem, Plan, FaultPlan, Gradients, ReliableOptions], Ran]
    check: Callable[[], None]
    rate_bps: float
    slots: int
    fragments: int
    timeouts: tuple[float, float]

    @property
    def options(self) -> ReliableOptions:
        shortest, longest = self.timeouts
        return ReliableOptions(WorkerOptions(min_timeout_s=shortest, first_timeout_s=longest), stall_s=STALL_S)


def on_target(
    name: str, problem: Problem, plan: Plan, faults: FaultPlan, gradients: Gradients, options: ReliableOptions
) -> Ran:
    from experiments.exactness.emulated import run_emulated  # noqa: PLC0415, needs Mininet

    return run_emulated(name, problem, plan, faults, gradients, options)


def check_target(name: str) -> None:
    choose_target(name)
    from topo.live.network import check_machine  # noqa: PLC0415, needs Mininet

    check_machine()


WORLDS: Mapping[str, World] = {
    "process": World(
        run_virtual, lambda: check_sources(PROGRAM),
        rate_bps=2e6, slots=32, fragments=400, timeouts=(0.08, 0.25),
    ),
    "fast": World(
        partial(on_target, "fast"), partial(check_target, "fast"),
        rate_bps=16e6, slots=256, fragments=2000, timeouts=(0.04, 0.08),
    ),
    "bmv2": World(
        partial(on_target, "bmv2"), partial(check_target, "bmv2"),
        rate_bps=0.5e6, slots=32, fragments=200, timeouts=(0.08, 0.25),
    ),
}  # fmt: skip


def chosen_worlds(names: Iterable[str]) -> list[str]:
    """The worlds of these names; `auto` is every switch target that this machine has. Raises `InakitError`."""
    found = list(dict.fromkeys(each for name in names for each in (present_targets() if name == "auto" else [name])))
    for name in found:
        if name not in WORLDS:
            raise unknown_name("switch", name, [*WORLDS, "auto"])
        WORLDS[name].check()
    return found


def present_targets() -> list[str]:
    """Raises `MachineError` where there is none."""
    found = [name for name, target in TARGETS.items() if target.missing() is None]
    return found or [choose_target().name]
