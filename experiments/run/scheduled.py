"""Schedules of one's own data centre: its files and a trace as a problem, a schedule with its figures, its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from inakit.experiments.run.circuit_schedule import CircuitFault, Course, CourseOutcome, run_course
from inakit.experiments.worlds.world import World
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.job_traces import TraceReading, listed, place, read_trace
from inakit.planner.methods.p4inc_aoi.optical_network import scaled, with_a_host_for_each_gpu
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import (
    MOST_SLOTS,
    Failure,
    Schedule,
    ScheduleFigures,
    UnitPair,
    check,
    increases,
    load_center,
    pair,
    traffic_bps,
)
from inakit.planner.methods.p4inc_aoi.schedule import figures as figures_of
from inakit.planner.methods.p4inc_aoi.schedulers import replan
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import InputError, writing

MOST_STEPS = 100_000
"""The most steps of bandwidth of a port: a scheduler that grants steps takes time for each."""


@dataclass(frozen=True)
class CenterChanges:
    """Values that replace those of a data centre's file; None for the file's. Ports are those of every unit."""

    optical_ports: int | None = None
    slot_s: float | None = None
    reconfiguration_s: float | None = None

    def applied(self, center: DataCenter) -> DataCenter:
        """The data centre with these values. Raises `InputError` for values that it cannot have."""
        units = center.units
        if self.optical_ports is not None:
            units = tuple(replace(unit, optical_ports=self.optical_ports) for unit in units)
        slot_s = center.slot_s if self.slot_s is None else self.slot_s
        dark_s = center.reconfiguration_s if self.reconfiguration_s is None else self.reconfiguration_s
        return replace(center, units=units, slot_s=slot_s, reconfiguration_s=dark_s)


def read_problem(
    center: Path, trace: Path | None, reading: TraceReading, changes: CenterChanges = CenterChanges()
) -> tuple[Scheduling, list[str]]:
    """The problem of the files, and notes on jobs of the trace that were left out. Raises `InputError`."""
    found = load_center(center)
    with faults_of(center):
        found = replace(found, center=changes.applied(found.center))
    if found.center.step_bps * MOST_STEPS < found.center.port_bps:
        least = f"at least port_bps / {MOST_STEPS:,} is expected"
        raise InputError(f"{center}: step_bps {found.center.step_bps:g}: {least}; make steps larger")
    if trace is None:
        if not found.jobs:
            raise InputError(f"{center}: no job: list them under `jobs`, or give a file of them with --trace")
        with faults_of(center):
            return ending(Scheduling(found.center, found.jobs, found.horizon)), []
    if found.jobs:
        raise InputError(f"{center}: it has jobs, and so has --trace {trace}: remove those of one")
    if not any(unit.most_workers for unit in found.center.units):
        raise InputError(f"{center}: no unit has a server with a GPU for a worker: raise servers or gpus")
    read = read_trace(trace, reading)
    notes = [f"{trace.name} is a trace of {read.name}: {jobs_text(len(read.requests))}"]
    notes += [f"left out: {jobs_text(count)} {kind}" for kind, count in read.left_out.items()]
    with faults_of(trace):
        placed = place(read.requests, found.center, np.random.default_rng(reading.seed), free_servers=None)
        return ending(Scheduling(found.center, placed, found.horizon)), notes


def jobs_text(count: int) -> str:
    """A number of jobs."""
    return "1 job" if count == 1 else f"{count:,} jobs"


@contextmanager
def faults_of(file: Path) -> Iterator[None]:
    """Begin every line of an `InputError` of the block with the file."""
    try:
        yield
    except InputError as error:
        raise InputError("\n".join(f"{file}: {line}" for line in str(error).splitlines())) from error


def ending(problem: Scheduling) -> Scheduling:
    """The problem. Raises `InputError`, with a line for each job, if a schedule of it would hardly come to an end."""
    center, faults = problem.center, []
    for job in problem.jobs:
        ways = (None, *center.inc_units(job))
        most_bps = min(max(job.most_bps(center, inc) for inc in ways), max(unit.switch_bps for unit in center.units))
        least_s = job.iterations * job.compute_s + (job.bits / most_bps if most_bps else 0.0)
        if job.arrival + least_s / center.slot_s >= MOST_SLOTS:
            faults.append(
                f"job {job.number}: it ends after slot {MOST_SLOTS:,} of {center.slot_s:g} s at the earliest; "
                "make slot_s longer, or the job's iterations or gradient smaller"
            )
    if faults:
        raise listed(faults)
    return problem


@dataclass(frozen=True)
class Scheduled:
    """A scheduler's schedule of the problem, its figures and, where it was run by packets, what was measured.

    After a `fault` it is the schedule anew; it was `planned` before.
    """

    name: str
    problem: Scheduling
    schedule: Schedule
    figures: ScheduleFigures
    ran: CourseOutcome | None = None
    fault: CircuitFault | None = None
    planned: Schedule | None = None

    @staticmethod
    def by(name: str, problem: Scheduling, options: SolverOptions) -> Scheduled:
        """The schedule of the scheduler with this name."""
        made = find_scheduler(name).schedule(problem, options)
        return Scheduled(name, problem, made, figures_of(problem, made))

    def anew(self, fault: CircuitFault, schedule: Schedule | None = None) -> Scheduled:
        """The schedule after a circuit between the fault's units is dark for good; `schedule` is that of a run.

        Raises `PlanError`, which names the job, if one cannot go on.
        """
        assert fault.units is not None
        failure, planned = Failure(fault.slot, fault.units), self.planned or self.schedule
        found = schedule or replan(self.problem, planned, failure)
        check(self.problem, found, failure)
        figures = figures_of(self.problem, found, failure)
        return replace(self, schedule=found, figures=figures, fault=fault, planned=planned)

    def run(
        self, world: World, factor: float, output: Path | None, console: Console, *, quiet: bool = False
    ) -> Scheduled:
        """Run the schedule by packets, with rates and sizes times `factor`; times stay the same."""
        found, wider, planned = self, with_a_host_for_each_gpu(self.problem), self.planned or self.schedule
        if self.fault is not None:  # jobs keep the hosts that the course gives them
            found = self.anew(self.fault, Course.of(wider, planned).after(self.fault).schedule)
        course = Course.of(*scaled(wider, planned, factor))
        if output is not None:
            with writing(output):  # before a run that can take long
                output.mkdir(parents=True, exist_ok=True)
        with (
            TemporaryDirectory() as spare,
            Progress(console=console, disable=quiet, transient=True) as bar,
        ):
            task = bar.add_task(f"{self.name} by packets", total=1.0)
            folder = Path(spare) if output is None else output / "runs" / self.name
            ran = run_course(course, world, folder, lambda part: bar.update(task, completed=part), fault=self.fault)
        return replace(found, ran=ran)

    @property
    def mean_jct_s(self) -> float:
        return fmean(self.figures.jct_s.values())

    @property
    def mean_wait_s(self) -> float:
        """The mean time from a job's arrival to its first slot."""
        slot_s, spans = self.problem.center.slot_s, self.schedule.spans
        return fmean((spans[job.number][0] - job.arrival) * slot_s for job in self.problem.jobs)

    def as_json(self, color: str) -> dict[str, Any]:
        """The figures, the jobs and the circuits."""
        ran = self.ran
        return {
            "name": self.name,
            "color": color,
            "outcome": self.schedule.outcome.status,
            "seconds": self.schedule.outcome.seconds,
            "slots": len(self.schedule.slots),
            "ct_bti_s": self.figures.ct_bti_s,
            "mean_jct_s": self.mean_jct_s,
            "mean_wait_s": self.mean_wait_s,
            "connections": self.figures.connections,
            "reconfigurations": self.figures.reconfigurations,
            "verdict": None if ran is None else ran.outcome.verdict,
            "exact": None if ran is None else ran.outcome.measured.exact,
            "measured_connections": None if ran is None else ran.connections,
            "measured_mean_jct_s": None if ran is None else fmean(ran.jct_s.values()),
            "behind_s": None if ran is None else ran.behind_s,
            "jobs": list(self.jobs()),
            "circuits": list(circuits_of(self.problem, self.schedule)),
        }

    def jobs(self) -> Iterator[dict[str, Any]]:
        """Each job: its units, its times in s, its highest rate, and the unit that sums for it."""
        slot_s, spans = self.problem.center.slot_s, self.schedule.spans
        most: dict[int, float] = defaultdict(float)
        for slot, _ in groupby(self.schedule.slots):
            for number, rate_bps in slot.rates_bps.items():
                most[number] = max(most[number], rate_bps)
        for job in self.problem.jobs:
            arrival_s = job.arrival * slot_s
            yield {
                "job": job.number,
                "workers": job.workers,
                "server": job.server,
                "inc": self.schedule.inc.get(job.number),
                "arrival_s": arrival_s,
                "start_s": spans[job.number][0] * slot_s,
                "end_s": arrival_s + self.figures.jct_s[job.number],
                "jct_s": self.figures.jct_s[job.number],
                "rate_bps": most[job.number],
                "measured_jct_s": None if self.ran is None else self.ran.jct_s[job.number],
            }


def circuits_of(problem: Scheduling, schedule: Schedule) -> Iterator[dict[str, Any]]:
    """The connections between two units, while their number stays the same, and whether they carry anything.

    `dark_s` is the time at the beginning in which new ones carry nothing, `used` the mean share of their rate in use.
    """
    center = problem.center
    open_: dict[UnitPair, tuple[int, int, float, bool]] = {}  # the first slot, ports, the used bits/s by slot, new
    number = 0

    def closed(units: UnitPair, until: int) -> dict[str, Any]:
        first, ports, used_bps, new = open_.pop(units)
        share = used_bps / (until - first) / (ports * center.port_bps)
        return {"a": units[0], "b": units[1], "ports": ports, "from_s": first * center.slot_s,
                "until_s": until * center.slot_s, "dark_s": center.reconfiguration_s if new else 0.0,
                "used": share}  # fmt: skip

    changes = zip(schedule.slots, increases(schedule), strict=True)
    for (slot, more), same in groupby(changes, key=lambda each: (each[0], {**each[1]})):
        lasting = sum(1 for _ in same)
        carried: dict[UnitPair, float] = defaultdict(float)
        for (_, a, b), bps in traffic_bps(problem, schedule, slot).items():
            carried[pair(a, b)] += bps
        for units, (_, ports, used_bps, _) in list(open_.items()):
            if slot.ports.get(units, 0) != ports or (carried[units] > 0) != (used_bps > 0):
                yield closed(units, number)
        for units, ports in slot.ports.items():
            first, _, used_bps, new = open_.get(units, (number, ports, 0.0, units in more))
            open_[units] = first, ports, used_bps + carried[units] * lasting, new
        number += lasting
    for units in list(open_):
        yield closed(units, number)
