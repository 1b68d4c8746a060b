"""Applies a P4INC-AOI schedule to a running network: each time slot sets circuits and rates, and starts jobs.

When circuits change, the units' table entries change at once, and new circuits are dark during the reconfiguration:
packets sent over them are lost and sent again. A slot begins only after all jobs that the schedule ends before it have
ended, so that a late job keeps its circuits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from threading import Event

import numpy as np

from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.observation import AUTO
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.record import InterferenceRecord
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.world import Beside, Feature, World
from inakit.planner.core.check import check
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.circuit_entries import CircuitEntries, Rates
from inakit.planner.methods.p4inc_aoi.optical_network import (
    Segment,
    interconnect_of,
    pairs_of,
    plan_of,
    problem_of,
    segments,
)
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Failure, Schedule, Slot, UnitPair, pair, traffic_bps
from inakit.planner.methods.p4inc_aoi.schedule import check as check_schedule
from inakit.planner.methods.p4inc_aoi.schedulers import replan
from inakit.planner.prepared import Prepared
from inakit.switch.circuit_switch import CircuitSwitch
from inakit.switch.entries import Entries, SwitchEntries
from inakit.topo.fabric.circuits import INTERCONNECT, Circuit, Interconnect
from inakit.topo.files.quantities import in_words
from inakit.traffic.closed_loop import ClosedLoop, JobState, Progress, ReliableOptions
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout, in_flight
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.wire.packet_format import FRAGMENT

CIRCUITS = "circuits"
"""The interference's kind in `run.json`."""


@dataclass(frozen=True)
class Course:
    """A schedule, with the problem and the plan that carry it out on a network."""

    scheduling: Scheduling
    schedule: Schedule
    problem: Problem
    plan: Plan

    @staticmethod
    def of(scheduling: Scheduling, schedule: Schedule) -> Course:
        """Return the course of a schedule. Raises `InakitError` for a schedule that cannot be emulated."""
        problem = problem_of(scheduling, schedule, FRAGMENT)
        return Course(scheduling, schedule, problem, plan_of(scheduling, schedule, problem))

    @property
    def trees(self) -> dict[int, int]:
        """The number of trees of each job."""
        return Counter(planned.job for planned in self.plan.trees)

    def label_rates(self, slot: Slot) -> dict[tuple[int, ...], float]:
        """The rates in a slot (bit/s) of all labels whose branches lead to another unit, by (job, tree, label)."""
        units, trees = self.scheduling.center.index.keys(), self.trees
        return {
            (planned.job, planned.tree.number, branch.label): slot.rates_bps.get(planned.job, 0.0) / trees[planned.job]
            for planned in self.plan.trees
            for branch in planned.tree.branches
            if any(set(link) <= units for link in branch.links)
        }

    def check(self, failure: Failure | None = None) -> None:
        """Raise `PlanError` unless the schedule keeps its rules and, in every slot, the plan of its jobs keeps its own.

        Jobs of one slot have segments of their own; jobs that run one after another can have the same.
        """
        check_schedule(
            self.scheduling, self.schedule, failure
        )  # a job transfers in all slots from its first to its last
        for running in {frozenset(slot.rates_bps) for slot in self.schedule.slots} - {frozenset()}:
            jobs = tuple(job for job in self.problem.jobs if job.number in running)
            trees = tuple(planned for planned in self.plan.trees if planned.job in running)
            check(replace(self.problem, jobs=jobs), replace(self.plan, trees=trees))

    def busiest(self, number: int) -> UnitPair:
        """The two units that exchange most in a slot in which units exchange packets."""
        loads: Counter[UnitPair] = Counter()
        for (_, unit, server), bps in traffic_bps(self.scheduling, self.schedule, self.schedule.slots[number]).items():
            loads[pair(unit, server)] += round(bps)
        return max(loads, key=lambda units: (loads[units], units))

    def after(self, fault: CircuitFault) -> Course:
        """The course with the schedule anew after a circuit that stays dark; with the same hosts, trees and segments.

        Raises `PlanError`, which names the job, if one cannot go on.
        """
        held = segments(self.schedule)
        spans = {job.number: self.schedule.spans[job.number] for job in self.problem.jobs}
        uses = {
            job.number: {*job.workers, *job.servers, *((held[job.number],) if job.number in held else ())}
            for job in self.problem.jobs
        }
        behind = {
            number: [other for other in spans if spans[other][1] < span[0] and uses[other] & uses[number]]
            for number, span in spans.items()
        }
        failure = Failure(fault.slot, fault.units or self.busiest(fault.slot))
        found = replace(self, schedule=replan(self.scheduling, self.schedule, failure, behind))
        found.check(failure)
        return found

    @property
    def options(self) -> ReliableOptions:
        """The endpoints' options: with these timeouts, workers send lost packets again soon after a reconfiguration.

        Workers send nothing directly to the PS, because a circuit to it may not exist.
        """
        patience_s = max(WorkerOptions().min_timeout_s, self.scheduling.center.reconfiguration_s)
        worker = WorkerOptions(first_timeout_s=patience_s, min_timeout_s=patience_s, direct_after_s=inf)
        return ReliableOptions(worker)


@dataclass(frozen=True)
class CourseOutcome:
    """The measured figures of a course.

    - `jct_s`: completion times by job, as `inakit.planner.methods.p4inc_aoi.schedule.ScheduleFigures` defines them
    - `connections`: the number of new connections
    - `lost`: the number of packets that arrived at a dark port of the circuit switch
    - `behind_s`: the total time for which slots waited for late jobs, in seconds
    - `schedule`: what was carried out, which after a circuit that stays dark is another schedule than the course's
    """

    outcome: Outcome
    jct_s: Mapping[int, float]
    connections: int
    lost: int
    behind_s: float
    schedule: Schedule


@dataclass(frozen=True)
class CircuitFault:
    """The circuit that fails: in a slot, `after_s` after the slot's start, it is dark for `lasting_s` seconds.

    It is one between `units`, or for None between the two that exchange most in the slot. The schedule does not change:
    jobs send again what is lost, and the next slots wait for those that are late. A circuit that would be dark for as
    long as a run waits for results (`stall_s`) is dark for good: next slots are planned anew, without its two ports.
    """

    slot: int
    after_s: float
    lasting_s: float
    units: UnitPair | None = None


class Conductor(Interference):
    """Steps a run through the slots of a course, which begins with the `circuits` of the interconnect."""

    needs = (Feature.CIRCUITS,)
    circuits: CircuitSwitch
    ports: Interconnect
    beside: Beside

    def __init__(
        self, course: Course, tables: CircuitEntries, circuits: frozenset[Circuit], fault: CircuitFault | None = None,
        then: Course | None = None,
    ) -> None:  # fmt: skip
        self.course, self.tables, self.wanted, self.fault, self.then = course, tables, circuits, fault, then
        self.failed: frozenset[Circuit] = frozenset()
        self.fault_at = inf
        self.slots = course.schedule.slots
        self.index = {job.number: index for index, job in enumerate(course.problem.jobs)}
        self.slot, self.next_at, self.behind_s, self.is_late = -1, 0.0, 0.0, False
        self.connections = self.lost = 0
        self.segments = segments(course.schedule)
        self.holder = self.starting(0)
        self.changes: list[tuple[float, frozenset[Circuit]]] = []
        self._change: Future[None] | None = None
        self._repair: Future[None] | None = None
        self._starts: list[tuple[Event, JobState]] = []

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The entries for the circuits and the rates of the first slot."""
        _ = prepared, installed
        return self.tables.first(self.wanted, self.course.label_rates(self.slots[0]), self.holder.values())

    def excuses(self, scene: Scene) -> Excuses:
        """Excuse rates other than the plan's, because slots set them, and packets that go astray at a circuit."""
        _ = scene
        return Excuses(rates=True, astray=frozenset({INTERCONNECT}))

    @contextmanager
    def acting(self, scene: Scene) -> Iterator[Conductor]:
        """Step the run through its slots. Then raise the error of a failed reconfiguration, or count lost packets."""
        assert scene.network.circuits is not None
        own = Conductor(self.course, self.tables, self.wanted, self.fault, self.then)
        own.scene, own.circuits, own.ports = scene, scene.network.circuits, scene.network.circuits.interconnect
        with scene.network.beside() as own.beside:
            yield own
        own.raise_failures()
        own.lost = sum(each.lost for each in own.circuits.carried().values())

    def raise_failures(self) -> None:
        """Raise the error of a reconfiguration that has failed. Ignore one in progress."""
        for each in (self._change, self._repair):
            if each is not None and each.done():
                each.result()

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        """Give every stream its job's highest rate of all slots, and the fragments in flight that this rate needs."""
        rate_fps = np.zeros(len(layout.streams.host))
        for slot in self.slots:
            for index, fps in self.rates_fps(slot):
                of = layout.streams_of(index)
                rate_fps[of] = np.maximum(rate_fps[of], fps)
        trees = (layout.parts[tree].tree for tree in layout.streams.tree)
        most = np.array([in_flight(tree, rate) for tree, rate in zip(trees, rate_fps, strict=True)])
        return replace(layout, streams=replace(layout.streams, rate_fps=rate_fps, in_flight=most))

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Begin the next slot when its time has come, unless a job or the last slot's reconfiguration is late."""
        self.raise_failures()
        if self.slot < 0:
            self.next_at = now
            for job in loop.jobs:
                job.start_at = inf
        if now >= self.next_at and self.slot + 1 < len(self.slots):
            if self.changing or self.awaited(loop):
                self.is_late = True
            else:
                if self.is_late:
                    self.behind_s += now - self.next_at
                    self.next_at, self.is_late = now, False
                self.slot += 1
                self.next_at += self.course.scheduling.center.slot_s
                self.begin_slot(loop, self.slots[self.slot])
                self.changes.append((now - loop.started_at, self.wanted))
                if self.fault is not None and self.fault.slot == self.slot:
                    self.fault_at = now + self.fault.after_s
        if self.fault is not None and now >= self.fault_at:
            self.fault_at = inf
            self.fail(self.fault)
        self.start(now)

    def next_due(self, loop: ClosedLoop) -> float:
        """The time at which the next slot begins, unless it is late: it waits for a job, or for the last change."""
        if self.slot < 0 or any(entered.is_set() for entered, _ in self._starts):
            return -inf
        at = self.next_at if self.slot + 1 < len(self.slots) else inf
        if at <= loop.ports.now():
            at = inf if self.changing or self.awaited(loop) else -inf
        return min(self.fault_at, at)

    # -- slots

    def starting(self, slot: int) -> dict[Segment, int]:
        """The jobs that start in a slot and use INC, by their segments."""
        spans = self.course.schedule.spans
        return {segment: job for job, segment in self.segments.items() if spans[job][0] == slot}

    @property
    def changing(self) -> bool:
        """Whether entries or circuits are being changed."""
        return self._change is not None and not self._change.done()

    def awaited(self, loop: ClosedLoop) -> bool:
        """Whether a job is late: it should have ended by the end of this slot, and has not ended its last iteration."""
        due = (number for number, (_, last) in self.course.schedule.spans.items() if last <= self.slot)
        return any((self.index[number], self.iterations(number) - 1) not in loop.iterations for number in due)

    def iterations(self, number: int) -> int:
        """The number of iterations of a job."""
        return self.course.problem.jobs[self.index[number]].iterations

    def begin_slot(self, loop: ClosedLoop, slot: Slot) -> None:
        """Begin a slot: set its rates at once, and the units' entries and its circuits beside the run."""
        wanted = self.wanted = self.ports.between(pairs_of(slot), self.wanted)
        rates, entered, before = self.course.label_rates(slot), Event(), self.holder
        self.holder = before | self.starting(self.slot)
        after = set(self.holder.values())

        def change() -> None:
            for jobs in ({*before.values()} & after, after):  # who gets a segment gets it after its last holder
                self.enter(wanted, rates, jobs)
            entered.set()
            self.connections += self.circuits.darken(wanted) - len(self.failed & wanted)

        dark_s = self.circuits.interconnect.reconfiguration_s
        self._change = self.beside.during(change, dark_s, lambda: self.circuits.light(wanted - self.failed))
        for index, fps in self.rates_fps(slot):
            loop.endpoints.set_rates(loop.layout.streams_of(index), fps, loop.ports.now_ps())
        spans = self.course.schedule.spans.items()
        self._starts += [(entered, loop.jobs[self.index[job]]) for job, (first, _) in spans if first == self.slot]

    def fail(self, fault: CircuitFault) -> None:
        """Make a circuit between two units dark, and light it again if it is still wanted.

        If it stays dark, go on with the schedule that is planned for this case.
        """
        units = fault.units or self.course.busiest(self.slot)
        failed = frozenset({min(each for each in self.wanted if pair(each[0][0], each[1][0]) == units)})

        def darken() -> None:
            self.failed = failed
            self.circuits.darken(self.circuits.circuits - failed)

        def mend() -> None:
            self.failed = frozenset()
            self.circuits.light(failed & self.wanted)

        if self.then is not None:
            self.course, self.slots, self.wanted = self.then, self.then.schedule.slots, self.wanted - failed
            ends = {end for each in failed for end in each}
            self.ports = Interconnect(
                tuple(fibre for fibre in self.ports.fibres if fibre.end not in ends), self.ports.reconfiguration_s
            )
        self._repair = self.beside.during(darken, None if self.then is not None else fault.lasting_s, mend)

    def start(self, now: float) -> None:
        """Start the slot's new jobs once the units have their entries, even if the circuits are still dark."""
        for each in [each for each in self._starts if each[0].is_set()]:
            self._starts.remove(each)
            each[1].start_at = now

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The time at which each slot began, in seconds from the start of the run, and the circuits that it set.

        A circuit that the previous slot did not have is dark during the reconfiguration.
        """
        _ = monitor
        changes = [{"at_s": at_s, "circuits": [list(map(list, each)) for each in sorted(wanted)]}
                   for at_s, wanted in self.changes]  # fmt: skip
        said = (
            f"{len(changes)} slots set up {self.connections} connections; dark ports lost {self.lost:,} packets; slots "
            f"waited {in_words(self.behind_s, 's', 3)} for late jobs"
        )
        reconfiguration_s = self.circuits.interconnect.reconfiguration_s
        return InterferenceRecord(
            kind=CIRCUITS,
            said=[said, "workers send at the rates of the slots, which may be above the plan's"],
            counts={"connections": self.connections, "lost": self.lost},
            details={"behind_s": self.behind_s, "reconfiguration_s": reconfiguration_s, "slots": changes},
        )

    def enter(self, wanted: frozenset[Circuit], rates: Rates, jobs: Collection[int]) -> None:
        """Install in the units the groups and entries that the slot's circuits, rates and INC jobs change."""
        for unit in self.tables.changes(wanted, rates, jobs):
            switch = self.scene.network.switches[unit.switch]
            switch.install(SwitchEntries(unit.switch, groups=unit.groups, registers=unit.registers))
            switch.change(unit.tables)

    def rates_fps(self, slot: Slot) -> Iterator[tuple[int, float]]:
        """Yield each job's index and the rate of a worker along each of the job's trees, in frames/s."""
        for number, rate_bps in slot.rates_bps.items():
            yield self.index[number], rate_bps / self.course.trees[number] / (8 * FRAGMENT.wire_bytes)


def run_course(
    course: Course,
    world: World,
    folder: Path,
    progress: Progress,
    queue_packets: int | None = None,
    fault: CircuitFault | None = None,
) -> CourseOutcome:
    """Run a course on a new network in a world with circuit switches. Raises `InakitError`.

    `queue_packets` is the length of the queue before every link; None selects the world's default. A `fault` is in a
    slot in which units exchange packets.
    """
    fabric = course.problem.fabric
    panel = interconnect_of(course.scheduling.center, fabric)
    panel = replace(panel, circuits=panel.between(pairs_of(course.schedule.slots[0])))  # they exist before the slot
    course.check()
    then = course.after(fault) if fault is not None and fault.lasting_s >= course.options.stall_s else None
    prepared = Prepared(course.problem, course.plan)
    tables = CircuitEntries(fabric, panel, prepared.entries)
    run = Run(
        prepared,
        options=course.options,
        folder=folder,
        interconnect=panel,
        queue_packets=queue_packets,
        interferences=(Conductor(course, tables, panel.circuits, fault, then),),
        observation=AUTO.of(world, prepared),
    )
    outcome = run_plan(run, world, stage=lambda _: nullcontext(progress))
    (done,) = outcome.interferences
    counts, behind_s = done.counts, done.details["behind_s"]
    done_jct_s, carried_out = jct_s(course, outcome.measured), (then or course).schedule
    return CourseOutcome(outcome, done_jct_s, counts["connections"], counts["lost"], behind_s, carried_out)


def jct_s(course: Course, measured: Measured) -> dict[int, float]:
    """The completion time of each job, in seconds from its arrival to the end of its last update.

    In the run a job begins with a transfer, which may meet a dark circuit, and ends with a transfer. This function adds
    the computing time before the first transfer and the last update.
    """
    found = {}
    for job in course.scheduling.jobs:
        last = max(measured.of_job(job.number).iterations, key=lambda iteration: iteration.number)
        rest_s = job.compute_s + job.update_time(course.schedule.inc.get(job.number))
        ended_s = last.started_s + last.communication_time_s + rest_s
        found[job.number] = ended_s - job.arrival * course.scheduling.center.slot_s
    return found
