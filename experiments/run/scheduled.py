"""Carries out a schedule of P4INC-AOI on a running network: in each slot its circuits, its rates, and who begins.

When circuits change, the units' entries follow at once, and what is new is dark for the time of a reconfiguration:
what is sent meanwhile is lost, and sent again. A slot does not begin before all are done who should be, so that no
circuit is taken from a job that is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import cast

import numpy as np

from experiments.run.outcome import Outcome
from experiments.run.run import Run, run_plan
from experiments.worlds.emulated import EmulatedNetwork
from experiments.worlds.world import LiveNetwork, World
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.install.circuit_entries import CircuitEntries, Rates
from planner.install.plan_entries import entries
from planner.methods.p4inc_aoi.network import interconnect_of, pairs_of, plan_of, problem_of
from planner.methods.p4inc_aoi.problem.schedule import Schedule, Slot
from planner.methods.p4inc_aoi.problem.system import Scheduling
from switch.entries import SwitchEntries
from topo.fabric.circuits import INTERCONNECT, Circuit, Interconnect
from traffic.endpoints.streams import StreamLayout, in_flight
from traffic.endpoints.worker_options import WorkerOptions
from traffic.measure.fidelity import Excuses
from traffic.measure.measured import Measured
from traffic.runs.closed_loop import JobState, Loop, Progress, ReliableOptions
from traffic.sockets.ports import Ports
from traffic.wire.frames import FRAGMENT

EXCUSES = Excuses(rates=True, astray=frozenset({INTERCONNECT}))
"""Rates are those of the slots, not of the plan. What waits before a circuit that changes comes to another unit."""


TICK_S = 0.002
"""An iteration may take no more than some hundredths of a second."""


@dataclass(frozen=True)
class Course:
    """A schedule and what it becomes on a network."""

    scheduling: Scheduling
    schedule: Schedule
    problem: Problem
    plan: Plan

    @staticmethod
    def of(scheduling: Scheduling, schedule: Schedule) -> Course:
        """Raises `InakitError` for a schedule that cannot be emulated."""
        problem = problem_of(scheduling, schedule, FRAGMENT)
        return Course(scheduling, schedule, problem, plan_of(scheduling, schedule, problem))

    @property
    def trees(self) -> dict[int, int]:
        """How many trees each job has."""
        return {shard.job: len(shard.trees) for shard in self.plan.shards}

    def label_rates(self, slot: Slot) -> dict[tuple[int, ...], float]:
        """What each label sends between units in a slot (bit/s)."""
        switches = self.problem.fabric.switch_by_name
        return {
            (shard.job, tree.number, branch.label): slot.rates_bps.get(shard.job, 0.0) / len(shard.trees)
            for shard in self.plan.shards
            for tree in shard.trees
            for branch in tree.branches
            if any(set(link) <= switches.keys() for link in branch.links)
        }

    @property
    def options(self) -> ReliableOptions:
        """What is lost in the dark is sent again soon after; a PS to which there is no circuit is of no help."""
        patience_s = max(WorkerOptions().min_timeout_s, self.scheduling.center.reconfiguration_s)
        worker = WorkerOptions(first_timeout_s=patience_s, min_timeout_s=patience_s, direct_after_s=inf)
        return ReliableOptions(worker, tick_s=TICK_S)


@dataclass(frozen=True)
class Ran:
    """What came of a course. `jct_s` by job, as `planner.methods.p4inc_aoi.problem.schedule.Figures` has it, measured.

    `connections` were set up anew; `lost` packets came to the circuit switch in the dark. `behind_s`: slots began so
    much later, in all.
    """

    outcome: Outcome
    jct_s: Mapping[int, float]
    connections: int
    lost: int
    behind_s: float


class Conductor:
    """As `traffic.faults.endpoint_faults.Interference`: leads a run through the slots of a course."""

    def __init__(self, course: Course, network: EmulatedNetwork, tables: CircuitEntries) -> None:
        assert network.circuits is not None
        self.course, self.network, self.circuits, self.tables = course, network, network.circuits, tables
        self.slots = course.schedule.slots
        self.index = {job.number: index for index, job in enumerate(course.problem.jobs)}
        self.slot, self.next_at, self.behind_s = -1, 0.0, 0.0
        self.wanted = self.circuits.circuits
        self.connections = self.lost = 0
        self._executor = ThreadPoolExecutor(1)
        self._work: list[Future[None]] = []
        self._starts: list[tuple[Future[None], JobState]] = []

    @contextmanager
    def leading(self) -> Iterator[None]:
        """In the end, what went wrong with a reconfiguration is raised."""
        with self._executor:
            yield
        self.raise_failures()
        self.lost = sum(each.lost for each in self.circuits.carried().values())

    def raise_failures(self) -> None:
        """Raise what went wrong with a reconfiguration that is over."""
        for work in self._work:
            if work.done():
                work.result()

    # -- as `Interference`

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """As many fragments on their way as the highest rate of each job needs."""
        rate_fps = np.zeros(len(layout.streams.host))
        for slot in self.slots:
            for index, fps in self.rates_fps(slot):
                of = layout.streams_of(index)
                rate_fps[of] = np.maximum(rate_fps[of], fps)
        trees = (layout.parts[tree].tree for tree in layout.streams.tree)
        most = np.array([in_flight(tree, rate) for tree, rate in zip(trees, rate_fps, strict=True)])
        return replace(layout, streams=replace(layout.streams, rate_fps=rate_fps, in_flight=most)), ports

    def act(self, loop: Loop, now: float) -> None:
        """Begin the next slot when it is time and all are done who should be."""
        self.raise_failures()
        if self.slot < 0:
            self.next_at = now
            for job in loop.jobs:
                job.start_at = inf
        if now >= self.next_at and self.slot + 1 < len(self.slots):
            if self.awaited(loop):
                self.behind_s += now - self.next_at
                self.next_at = now
            else:
                self.slot += 1
                self.next_at += self.course.scheduling.center.slot_s
                self.begin(loop, self.slots[self.slot])
        self.start(now)

    # -- slots

    def awaited(self, loop: Loop) -> bool:
        """Whether somebody is late who should be done by the end of this slot."""
        due = (number for number, (_, last) in self.course.schedule.spans.items() if last <= self.slot)
        return any((self.index[number], self.iterations(number) - 1) not in loop.iterations for number in due)

    def iterations(self, number: int) -> int:
        """How many iterations a job has."""
        return self.course.problem.jobs[self.index[number]].iterations

    def begin(self, loop: Loop, slot: Slot) -> None:
        """Begin a slot: set its rates at once, and its circuits and the units' entries beside the run."""
        self.wanted = self.circuits.interconnect.between(pairs_of(slot), self.wanted)
        entered = self._executor.submit(self.enter, self.wanted, self.course.label_rates(slot))
        self._work += [entered, self._executor.submit(self.connect, self.wanted)]
        for index, fps in self.rates_fps(slot):
            loop.layout.streams.rate_fps[loop.layout.streams_of(index)] = fps
        spans = self.course.schedule.spans.items()
        self._starts += [(entered, loop.jobs[self.index[job]]) for job, (first, _) in spans if first == self.slot]

    def start(self, now: float) -> None:
        """Let the slot's new jobs begin as soon as the units know where to send: the circuits may still be dark."""
        for each in [each for each in self._starts if each[0].done()]:
            self._starts.remove(each)
            each[1].start_at = now

    def enter(self, wanted: frozenset[Circuit], rates: Rates) -> None:
        """Install in the units what the slot's circuits and rates change."""
        for unit in self.tables.changes(wanted, rates):
            switch = self.network.switches[unit.switch]
            switch.install(SwitchEntries(unit.switch, groups=unit.groups))
            switch.change(unit.tables)

    def connect(self, wanted: frozenset[Circuit]) -> None:
        """Set the circuits, and count those that are new."""
        self.connections += self.circuits.connect(wanted)

    def rates_fps(self, slot: Slot) -> Iterator[tuple[int, float]]:
        """What each worker of a job sends along each of its trees, in frames a second."""
        for number, rate_bps in slot.rates_bps.items():
            yield self.index[number], rate_bps / self.course.trees[number] / (8 * FRAGMENT.wire_bytes)


def run_course(course: Course, world: World, folder: Path, progress: Progress) -> Ran:
    """Run a course on a network of its own in a world with circuit switches. Raises `InakitError`."""
    fabric = course.problem.fabric
    panel = first_circuits(interconnect_of(course.scheduling.center, fabric), course.schedule)
    tables = CircuitEntries(fabric, panel, entries(course.problem, course.plan))
    conductors: list[Conductor] = []

    @contextmanager
    def led(network: LiveNetwork) -> Iterator[Conductor]:
        conductors.append(Conductor(course, cast(EmulatedNetwork, network), tables))
        with conductors[0].leading():
            yield conductors[0]

    run = Run(
        course.problem,
        course.plan,
        options=course.options,
        folder=folder,
        interconnect=panel,
        led_by=led,
        excuses=EXCUSES,
        given=tables.first(panel.circuits, course.label_rates(course.schedule.slots[0])),
    )
    outcome = run_plan(run, world, stage=lambda _: nullcontext(progress))
    (conductor,) = conductors
    return Ran(outcome, jct_s(course, outcome.measured), conductor.connections, conductor.lost, conductor.behind_s)


def first_circuits(panel: Interconnect, schedule: Schedule) -> Interconnect:
    """With the circuits of the first slot, which stand before it begins."""
    return replace(panel, circuits=panel.between(pairs_of(schedule.slots[0])))


def jct_s(course: Course, measured: Measured) -> dict[int, float]:
    """From each job's arrival to its very end.

    A job begins with a transfer, which may meet the dark: what it computes before its first is added in the end, as
    its last update is.
    """
    found = {}
    for job in course.scheduling.jobs:
        last = max(measured.of_job(job.number).iterations, key=lambda iteration: iteration.number)
        rest_s = job.compute_s + job.update_time(course.schedule.inc.get(job.number))
        ended_s = last.started_s + last.communication_time_s + rest_s
        found[job.number] = ended_s - job.arrival * course.scheduling.center.slot_s
    return found
