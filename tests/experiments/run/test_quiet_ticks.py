"""Ticks at which nothing can happen are passed over: every packet and every figure is as with a step at each tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from inakit.experiments.bench.exactness import CONDITIONS, case
from inakit.experiments.run.faults import Event, When
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import POLICIES
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.errors import RunError
from inakit.traffic import closed_loop
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.measured import Measured
from inakit.traffic.sockets.ports import IntArray, Outgoing, Packets
from inakit.traffic.training.training_task import DataParallel, Recipe, TrainingTask
from inakit.traffic.wire.packet_format import FRAGMENT, Frames

pytestmark = pytest.mark.compiler

SLOW_BPS = 2e5
"""So slow that a worker sends at about one tick of seven."""
OPTIONS = ReliableOptions(tick_s=0.004)
PLANNERS = (
    "aro",
    "forest",
    "goat",
    "inart",
    "atp",
    "panama",
    "sharp",
    "ring",
    "halving-doubling",
    "double-tree",
    "ps-sharded",
)


@dataclass
class Watched:
    """What a run gave: every packet that hosts sent or heard, with its time, its figures or the error that ended it.

    `steps`: how many steps it took.
    """

    packets: list[tuple[object, ...]] = field(default_factory=list)
    measured: Measured | None = None
    error: str = ""
    steps: int = 0

    @property
    def result(self) -> tuple[object, ...]:
        """All but the steps."""
        return self.packets, self.measured, self.error

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """Let networks and loops tell of packets and steps."""
        send, receive, step = LiveVirtualNetwork.send, LiveVirtualNetwork.receive, ClosedLoop.step

        def noted_send(network: LiveVirtualNetwork, batches: Sequence[Outgoing]) -> list[IntArray]:
            for batch in batches:
                self.note(network, batch.heads[batch.rows], batch.values[batch.rows], batch.counts)
            return send(network, batches)

        def noted_receive(network: LiveVirtualNetwork) -> Packets:
            packets = receive(network)
            self.note(network, packets.heads, packets.values, packets.hosts)
            return packets

        def counted_step(loop: ClosedLoop, now: float) -> None:
            self.steps += 1
            step(loop, now)

        patch.setattr(LiveVirtualNetwork, "send", noted_send)
        patch.setattr(LiveVirtualNetwork, "receive", noted_receive)
        patch.setattr(ClosedLoop, "step", counted_step)

    def note(self, network: LiveVirtualNetwork, heads: Frames, *arrays: NDArray[np.signedinteger]) -> None:
        """Note packets, if there are any."""
        if len(heads):
            self.packets.append((network.moment, heads.tobytes(), *(array.tobytes() for array in arrays)))


def watched(run: Run, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Run a plan in virtual time."""
    found = Watched()
    with monkeypatch.context() as patch:
        found.patch(patch)
        try:
            found.measured = run_plan(run, VirtualWorld()).measured
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


def slow(policy: str = "shadow-copy", fragments: int = 24, faults: FaultPlan | None = None) -> Run:
    """A run of two trees over one level, slower than its ticks."""
    problem, plan = case(policy, 1, fragments=fragments, slots=8, rate_bps=SLOW_BPS)
    return Run(Prepared(problem, plan), options=OPTIONS, interferences=faults.interferences if faults else ())


def lossy(policy: str = "shadow-copy", fragments: int = 24) -> Run:
    """The same with losses on all links."""
    run = slow(policy, fragments)
    return replace(run, interferences=everywhere(run.problem, LinkFaults(drop=0.05)).interferences)


def eventful(kind: str, node: str, lasting_s: float | None = None) -> Run:
    """The same with an event soon after the start."""
    return slow(faults=FaultPlan(events=(Event(When(0.05), kind, (node,), lasting_s),)))


def planned(planner: str, drop: float = 0.0, options: ReliableOptions | None = None) -> Run:
    """A plan for three workers and a PS, whose two iterations compute between them."""
    fabric = FabricChoice("leafspine", leaves=2, spines=1, hosts_per_leaf=2, capacity="2M")
    problem = build_problem(fabric, JobChoice(workers=3, gradient_bytes=16_000, iterations=2))
    problem = replace(problem, jobs=tuple(replace(job, compute_s=0.05) for job in problem.jobs))
    run = Run(Prepared(problem, METHODS[planner].plan(problem)))
    losses = everywhere(problem, LinkFaults(drop=drop)).interferences if drop else ()
    return replace(run, interferences=losses, options=options)


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


@pytest.mark.parametrize("name", ["pacing", "a worker pauses"])
def test_a_bound_that_is_a_tick_late_would_be_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RUNS[name]()
    all_steps = with_all_steps(run, monkeypatch)
    monkeypatch.setattr(closed_loop, "ROUNDINGS", -1.0)
    assert watched(run, monkeypatch).result != all_steps.result


@pytest.mark.long
@pytest.mark.parametrize("drop", [0.0, 0.02])
@pytest.mark.parametrize("tick_s", [None, 0.0007, 0.02])
@pytest.mark.parametrize("planner", PLANNERS)
def test_all_is_the_same_with_every_planner(
    planner: str, tick_s: float | None, drop: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned(planner, drop, options=None if tick_s is None else ReliableOptions(tick_s=tick_s))
    assert watched(run, monkeypatch).result == with_all_steps(run, monkeypatch).result


@pytest.mark.long
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_is_the_same_under_every_condition(policy: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = slow(policy, fragments=60)
    sending_s = 60 * 8 * FRAGMENT.wire_bytes / SLOW_BPS
    faults = CONDITIONS[condition].faults(run.problem.fabric, sending_s)
    run = replace(run, interferences=faults.interferences)
    assert watched(run, monkeypatch).result == with_all_steps(run, monkeypatch).result


def test_training_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    task, found = TrainingTask(Recipe(hidden=(8,), epochs=1, batch=4, samples=36), 3), []
    for run_it in (watched, with_all_steps):
        run, learner = planned("aro"), DataParallel(task)
        job = replace(run.problem.jobs[0], gradient_bytes=task.gradient_bytes, iterations=task.iterations)
        prepared = Prepared(replace(run.problem, jobs=(job,)), run.plan)
        run = replace(run, prepared=prepared, gradients=learner, options=OPTIONS)
        found.append((run_it(run, monkeypatch).result, learner.history.losses.tolist()))
    assert found[0] == found[1]
