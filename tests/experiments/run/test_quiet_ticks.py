"""Ticks at which nothing can happen are passed over: every packet and every figure is as with a step at each tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from recorded_network import RecordedWorld, Recording

from experiments.exactness.networks import case
from experiments.faults.fault_plan import Event, FaultPlan, Moment
from experiments.run.run import Run, run_plan
from experiments.run.scenario import FabricChoice, JobChoice, build_problem
from experiments.worlds.virtual import LiveVirtualNetwork
from planner.core.problem import Problem
from planner.install.fault_entries import LinkFaults
from planner.registry import METHODS
from topo.errors import RunError
from traffic.faults.endpoint_faults import Stragglers
from traffic.measure.measured import Measured
from traffic.runs.closed_loop import ReliableOptions
from traffic.runs.loop import ClosedLoop

pytestmark = pytest.mark.compiler

SLOW_BPS = 2e5
"""So slow that a worker sends at about one tick of seven."""
OPTIONS = ReliableOptions(tick_s=0.004)


class Sent(Recording):
    """A recording without the network as it stands before the run, in which there are addresses."""

    def begin(self, network: LiveVirtualNetwork) -> None:
        """Note nothing."""


@dataclass
class Watched:
    """What a run gave: its recording, its figures or the error that ended it, and how many steps it took."""

    recording: Sent = field(default_factory=Sent)
    measured: Measured | None = None
    error: str = ""
    steps: int = 0

    @property
    def result(self) -> tuple[object, ...]:
        """Every packet with its time, what switches and links hold at the end, and every figure."""
        return bytes(self.recording.script), self.recording.results, self.measured, self.error


def watched(run: Run, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Run a plan in virtual time."""
    found, step = Watched(), ClosedLoop.step

    def counted(self: ClosedLoop, now: float) -> None:
        found.steps += 1
        step(self, now)

    with monkeypatch.context() as patch:
        patch.setattr(ClosedLoop, "step", counted)
        try:
            found.measured = run_plan(run, RecordedWorld(recording=found.recording)).measured
        except RunError as error:
            found.error = str(error)
    return found


def with_all_steps(run: Run, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The same with a step at every tick."""
    with monkeypatch.context() as patch:
        patch.setattr(LiveVirtualNetwork, "is_quiet", lambda _: False)
        return watched(run, monkeypatch)


def everywhere(problem: Problem, faults: LinkFaults) -> FaultPlan:
    """The same faults on all links."""
    return FaultPlan(links=dict.fromkeys(problem.fabric.capacities_bps, faults))


def slow(policy: str = "shadow-copy", fragments: int = 24, **about: object) -> Run:
    """A run of two trees over one level, slower than its ticks."""
    problem, plan = case(policy, 1, fragments=fragments, slots=8, rate_bps=SLOW_BPS)
    return replace(Run(problem, plan, options=OPTIONS), **about)


def lossy(policy: str = "shadow-copy", fragments: int = 24) -> Run:
    """The same with losses on all links."""
    run = slow(policy, fragments)
    return replace(run, faults=everywhere(run.problem, LinkFaults(drop=0.05)))


def eventful(kind: str, node: str, lasting_s: float | None = None) -> Run:
    """The same with an event soon after the start."""
    return slow(faults=FaultPlan(events=(Event(Moment(0.05), kind, (node,), lasting_s),)))


def planned(planner: str, drop: float = 0.0, **about: object) -> Run:
    """A plan for three workers and a PS, whose two iterations compute between them."""
    fabric = FabricChoice("leafspine", leaves=2, spines=1, hosts_per_leaf=2, capacity="2M")
    problem = build_problem(fabric, JobChoice(workers=3, gradient_bytes=16_000, iterations=2))
    problem = replace(problem, jobs=tuple(replace(job, compute_s=0.05) for job in problem.jobs))
    run = Run(problem, METHODS[planner].plan(problem))
    return replace(run, faults=everywhere(problem, LinkFaults(drop=drop)) if drop else None, **about)


RUNS: Mapping[str, Callable[[], Run]] = {
    "pacing": slow,
    "losses": lossy,
    "a worker pauses": lambda: eventful("pause", "w1", 0.4),
    "a worker pauses for good": lambda: replace(eventful("kill", "w1"), options=replace(OPTIONS, stall_s=0.5)),
    "the PS restarts": lambda: eventful("restart", "ps"),
    "stragglers": lambda: slow(faults=FaultPlan(stragglers=Stragglers(spread=0.4))),
    "computing": lambda: planned("aro"),
    "a ring with losses": lambda: planned("ring", drop=0.02, options=OPTIONS),
}


@pytest.mark.parametrize("name", RUNS)
def test_all_is_the_same_without_steps_at_quiet_ticks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RUNS[name]()
    usual, all_steps = watched(run, monkeypatch), with_all_steps(run, monkeypatch)
    assert usual.result == all_steps.result
    assert usual.steps < all_steps.steps
