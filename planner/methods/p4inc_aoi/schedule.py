"""The decisions of a P4INC-AOI scheduler, slot by slot, and their results: completion times and reconfigurations.

The circuits of the first slot are set before it begins, since Eq. (7) starts at slot 1. New connections between two
units in a later slot are dark during the reconfiguration, and rates that rise there lose the traffic of this time (Eq.
10).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, pairwise, repeat
from math import isfinite
from pathlib import Path
from typing import Literal

from inakit.planner.core.files import FILE, to_json, with_job_numbers
from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.topo.errors import PlanError, writing
from inakit.topo.files.reader import read_file, validate

UnitPair = tuple[str, str]
"""Two units, in the order of their names."""

MOST_SLOTS = 1_000_000
"""The most slots of a schedule that is read from a file, or of jobs of a trace."""

DUST = 1e-9
"""A smaller remaining fraction of a job's data is rounding."""


@dataclass(frozen=True)
class UnitCircuit:
    """The connections between two units, `ports` of them (P of Eq. 6)."""

    a: str
    b: str
    ports: int


@dataclass(frozen=True)
class Grant:
    """The rate at which each worker of a job may send (B_j, bit/s)."""

    job: int
    rate_bps: float


@dataclass(frozen=True)
class Slot:
    """One slot: the circuits that are set, including idle ones, and the jobs that transfer."""

    circuits: tuple[UnitCircuit, ...]
    grants: tuple[Grant, ...]

    @cached_property
    def ports(self) -> dict[UnitPair, int]:
        return {pair(circuit.a, circuit.b): circuit.ports for circuit in self.circuits}

    @cached_property
    def rates_bps(self) -> dict[int, float]:
        return {grant.job: grant.rate_bps for grant in self.grants}


@dataclass(frozen=True)
class Schedule:
    """Slots from 0 on; `inc[job]` is the unit whose switch sums for it (k = 1), for jobs that use INC."""

    method: str
    inc: dict[int, str]
    slots: tuple[Slot, ...]
    outcome: SolverOutcome

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The first and the last slot in which each job transfers."""
        found: dict[int, tuple[int, int]] = {}
        for number, slot in enumerate(self.slots):
            for grant in slot.grants:
                found[grant.job] = found.get(grant.job, (number, number))[0], number
        return found


@dataclass(frozen=True)
class Failure:
    """A connection between two units that is dark for good from some time within a slot on.

    In that slot no traffic between the two units counts as sent; after it each of them has a port less.
    """

    slot: int
    units: UnitPair

    def after(self, center: DataCenter) -> DataCenter:
        """The data centre with the remaining ports. Raises `PlanError` if a unit has none."""
        if without := [unit for unit in self.units if not center.unit(unit).optical_ports]:
            raise PlanError(f"unit '{without[0]}' has no optical port, and no connection that could fail")
        units = (replace(unit, optical_ports=unit.optical_ports - (unit.name in self.units)) for unit in center.units)
        return replace(center, units=tuple(units))

    def stops(self, slot: int, job: PlacedJob, inc: str | None) -> bool:
        """Whether nothing that a job sends in a slot counts."""
        return slot == self.slot and any(pair(unit, job.server) == self.units for unit, _ in job.flows(inc))


@dataclass(frozen=True)
class ScheduleFigures:
    """The results of a schedule. Times are in seconds, by job.

    `iteration_s` is t of Eq. (11), to the end of the last slot; `jct_s` goes from the job's arrival to its end,
    including waiting. `reconfigured` counts the new connections of each slot.
    """

    iteration_s: dict[int, float]
    jct_s: dict[int, float]
    reconfigured: tuple[int, ...]

    @property
    def ct_bti_s(self) -> float:
        """Completion time of a batch training iteration, Eq. (1)."""
        return max(self.iteration_s.values())

    @property
    def connections(self) -> int:
        """The reconfigured connections of all slots."""
        return sum(self.reconfigured)

    @property
    def reconfigurations(self) -> int:
        """The number of slots with a reconfiguration."""
        return sum(map(bool, self.reconfigured))


def pair(a: str, b: str) -> UnitPair:
    """Two units in the order of their names."""
    return (a, b) if a < b else (b, a)


def traffic_bps(problem: Scheduling, schedule: Schedule, slot: Slot) -> dict[tuple[int, str, str], float]:
    """The traffic of each job from unit to unit in a slot: B[job, v, u] of Eq. (4) for v other than u, in bit/s."""
    return {
        (grant.job, unit, problem.job_of[grant.job].server): weight * grant.rate_bps
        for grant in slot.grants
        for unit, weight in problem.job_of[grant.job].flows(schedule.inc.get(grant.job))
    }


def increases(schedule: Schedule) -> Iterator[dict[UnitPair, int]]:
    """For each slot the pairs that get more connections (alpha = 1), and the number of new ones (Eq. 7)."""
    if schedule.slots:
        yield {}
    for before, after in pairwise(schedule.slots):
        if after.circuits == before.circuits:
            yield {}
            continue
        more = {units: ports - before.ports.get(units, 0) for units, ports in after.ports.items()}
        yield {units: count for units, count in more.items() if count > 0}


def figures(problem: Scheduling, schedule: Schedule, failure: Failure | None = None) -> ScheduleFigures:
    """The figures of a schedule that `check` has passed."""
    slot_s, spans = problem.center.slot_s, schedule.spans
    iterations, completions = {}, {}
    ends = transfer_ends(problem, schedule, failure)
    for job in problem.jobs:
        update = job.update_time(schedule.inc.get(job.number))
        iterations[job.number] = (spans[job.number][1] + 1) * slot_s + update
        completions[job.number] = ends[job.number] + update - job.arrival * slot_s
    return ScheduleFigures(iterations, completions, tuple(sum(more.values()) for more in increases(schedule)))


def transfer_ends(problem: Scheduling, schedule: Schedule, failure: Failure | None = None) -> dict[int, float]:
    """The end of each job's last transfer, in seconds from slot 0. A job that is not done has no entry."""
    runs = {job.number: JobProgress(problem.center, job, schedule.inc.get(job.number)) for job in problem.jobs}
    ends: dict[int, float] = {}
    for number, (slot, more) in enumerate(zip(schedule.slots, increases(schedule), strict=True)):
        for grant in slot.grants:
            if failure is not None and failure.stops(number, runs[grant.job].job, schedule.inc.get(grant.job)):
                continue
            used = runs[grant.job].advance(grant.rate_bps, more)
            if used is not None:
                ends.setdefault(grant.job, number * problem.center.slot_s + used)
    return ends


class JobProgress:
    """A job in progress: the remainder of each of its flows, as a worker's bits (D of Eqs. 8 and 10)."""

    def __init__(self, center: DataCenter, job: PlacedJob, inc: str | None) -> None:
        self.center, self.job = center, job
        self.pause = job.pause(inc) / job.bits
        self.pairs = [pair(unit, job.server) for unit, _ in job.flows(inc)] or [("", "")]
        self.left = [job.bits] * len(self.pairs)
        self.speed = 0.0

    def advance(self, rate_bps: float, dark: Mapping[UnitPair, int]) -> float | None:
        """Transfer for a slot; return the seconds after which everything was sent, or None if data remains."""
        speed = rate_bps / (1 + rate_bps * self.pause)
        lost = max(0.0, speed - self.speed) * self.center.reconfiguration_s
        owed = [left + (lost if units in dark else 0.0) for left, units in zip(self.left, self.pairs, strict=True)]
        self.speed = speed
        self.left = [max(0.0, bits - speed * self.center.slot_s) for bits in owed]
        if max(self.left) > DUST * self.job.bits:
            return None
        return min(max(owed) / speed, self.center.slot_s)


# -- Checks a schedule of P4INC-AOI against its problem from the schedule alone: every constraint of Eqs. (1) to (11).
#
# | constraint | says |
# |---|---|
# | placement (2) | a job uses INC in one unit that has workers of the job |
# | servers | no server runs more workers than it has GPUs, and a PS has a server for itself |
# | server links | workers and PSs stay within their servers' links, and within their parts of a pod's uplinks |
# | INC capacity (3) | no switch sums for more jobs at a time than it can |
# | switch bandwidth (5) | the traffic of a unit's servers stays within the switch's bandwidth |
# | circuits (6) | a circuit joins two units of the data centre, once, by at least one connection |
# | ports (6) | no unit has more connections than optical ports |
# | port rate (6) | the traffic between two units stays within the rate of their connections |
# | completion (8), (10) | every job has sent all its data by the last slot, reconfigurations counted |
# | duration (11) | a job transfers in one run of slots, none of them before it arrives |

TOLERANCE = 1e-6


def check(problem: Scheduling, schedule: Schedule, failure: Failure | None = None) -> None:
    """Raise `PlanError`, which names constraint, slot and unit or job, unless the schedule keeps all constraints.

    With a `failure`, also those of the ports that it leaves.
    """
    jobs = problem.job_of
    for number, unit in schedule.inc.items():
        expect("placement (2)", number in jobs, f"job {number}, which uses INC, is not a job of the problem")
        here = unit in problem.center.inc_units(jobs[number])
        why = (
            "has no worker" if unit not in jobs[number].workers else "has not all workers, as this data centre demands"
        )
        expect("placement (2)", here, f"job {number} uses INC in unit '{unit}', where it {why}")
    before: Slot | None = None
    for number, slot in enumerate(schedule.slots):
        if failure is not None and number == failure.slot + 1:
            problem, before = replace(problem, center=failure.after(problem.center)), None
        if slot != before:
            check_slot(problem, schedule, number, slot)
        before = slot
    served = Counter(grant.job for slot in schedule.slots for grant in slot.grants)
    for number, (first, last) in schedule.spans.items():
        early = f"job {number} transfers in slot {first}, before it arrives"
        expect("duration (11)", first >= jobs[number].arrival, early)
        pauses = f"job {number} pauses between slots {first} and {last}; one run of slots is expected"
        expect("duration (11)", served[number] >= last + 1 - first, pauses)
    slots, horizon = len(schedule.slots), problem.horizon
    expect("completion (10)", horizon is None or slots <= horizon, f"{slots} slots, but the horizon is T = {horizon}")
    late = sorted(set(jobs) - set(transfer_ends(problem, schedule, failure)))
    expect("completion (10)", not late, f"job {min(late, default=0)} has data left after the last slot, {slots - 1}")


def check_slot(problem: Scheduling, schedule: Schedule, number: int, slot: Slot) -> None:
    """Check that a slot serves jobs of the problem, each once, at finite rates above 0, within all capacities."""
    sums: Counter[str] = Counter()
    seated: Counter[str] = Counter()
    carried: defaultdict[str, float] = defaultdict(float)
    exchanged: defaultdict[UnitPair, float] = defaultdict(float)
    for grant in slot.grants:
        known = grant.job in problem.job_of
        expect("duration (11)", known, f"slot {number} serves job {grant.job}, which is not in the problem")
        given = f"slot {number} grants job {grant.job} {grant.rate_bps} bit/s: more than 0 is expected"
        expect("duration (11)", isfinite(grant.rate_bps) and grant.rate_bps > 0, given)
        job, inc = problem.job_of[grant.job], schedule.inc.get(grant.job)
        if inc is not None:
            sums[inc] += 1
        seated.update(job.places(problem.center, inc))
        linked = f"bit/s of a worker of job {grant.job} in slot {number}"
        within("server links", linked, grant.rate_bps, job.most_bps(problem.center, inc))
        for name, weight in job.switch_loads(inc).items():
            carried[name] += weight * grant.rate_bps
        for name, weight in job.flows(inc):
            exchanged[pair(name, job.server)] += weight * grant.rate_bps
    expect("duration (11)", len(slot.rates_bps) == len(slot.grants), f"slot {number} serves a job twice")
    used: Counter[str] = Counter()
    for circuit in slot.circuits:
        joins = circuit.a != circuit.b and circuit.ports >= 1 and {circuit.a, circuit.b} <= set(problem.center.index)
        expect("circuits (6)", joins, f"slot {number}: {circuit} does not join two units")
        used[circuit.a] += circuit.ports
        used[circuit.b] += circuit.ports
    twice = f"slot {number} joins two units twice: give one circuit with all its ports"
    expect("circuits (6)", len(slot.ports) == len(slot.circuits), twice)
    for unit in problem.center.units:
        where = f"of unit '{unit.name}' in slot {number}"
        within("ports (6)", f"connections {where}", used[unit.name], unit.optical_ports)
        within("servers", f"parts of servers taken {where}", seated[unit.name], unit.places)
        within("INC capacity (3)", f"jobs that use INC {where}", sums[unit.name], unit.inc_jobs)
        within("switch bandwidth (5)", f"bit/s {where}", carried[unit.name], unit.switch_bps)
    for units, load in exchanged.items():
        limit = slot.ports.get(units, 0) * problem.center.port_bps
        within("port rate (6)", f"bit/s between '{units[0]}' and '{units[1]}' in slot {number}", load, limit)


def within(constraint: str, what: str, value: float, limit: float) -> None:
    """Raise the error for this constraint if the value exceeds the limit beyond rounding."""
    expect(constraint, value <= limit * (1 + TOLERANCE), f"{value:g} {what}: at most {limit:g} are possible")


def expect(constraint: str, holds: bool, what: str) -> None:
    """Raise the error with the broken constraint and its place, unless the constraint holds."""
    if not holds:
        raise PlanError(f"schedule breaks constraint '{constraint}': {what}")


# -- Problems and schedules of P4INC-AOI in files: YAML or JSON in, JSON out.
#
#     version: 1
#     center:
#       units: [{name: unit1, servers: 4, optical_ports: 8, switch_bps: 2.56e11, inc_jobs: 4, nic_bps: 4.0e10}]
#       port_bps: 4.0e10           # also: reconfiguration_s, slot_s, step_bps
#     jobs:
#       - {number: 1, workers: {unit1: 2}, server: unit1, gradient_bytes: 102000000}
#
# The keys are the fields of `DataCenter`, `PlacedJob` and `Schedule`; mistakes are reported as in files of jobs and
# plans.


@dataclass(frozen=True)
class SchedulingFile:
    version: Literal[1]
    center: DataCenter
    jobs: tuple[PlacedJob, ...] = ()
    horizon: int | None = None


@dataclass(frozen=True)
class ScheduleFile:
    """A schedule; `times` has for each slot the number of slots in a row that are equal to it, 1 without `times`."""

    version: Literal[1]
    schedule: Schedule
    times: tuple[int, ...] = ()


START = "; `inakit schedule --starter FOLDER` writes files to begin with"


def load_center(path: Path) -> SchedulingFile:
    """Read a data centre and, if the file has them, its jobs. Raises `InputError`."""
    file = read_file(path, FILE)
    found = validate(with_job_numbers(file), SchedulingFile, remedy=START)
    if not found.center.units:
        raise file.error(("center", "units"), f"no unit: give at least one{START}")
    return found


def load_scheduling(path: Path) -> Scheduling:
    """Read the problem of a file. Raises `InputError`."""
    found = load_center(path)
    return Scheduling(found.center, found.jobs, found.horizon)


def save_scheduling(problem: Scheduling, path: Path) -> None:
    """Write JSON that `load_scheduling` reads back as an equal problem."""
    with writing(path):
        path.write_text(to_json(SchedulingFile(1, problem.center, problem.jobs, problem.horizon)))


def load_schedule(path: Path) -> Schedule:
    """Read a schedule, not yet checked against any problem. Raises `InputError`."""
    file = read_file(path, FILE)
    found = validate(file, ScheduleFile)
    slots, times = found.schedule.slots, found.times or (1,) * len(found.schedule.slots)
    if len(times) != len(slots) or min(times, default=1) < 1 or sum(times) > MOST_SLOTS:
        raise file.error(
            ("times",), f"for each of the {len(slots)} slots a number from 1 is expected, {MOST_SLOTS:,} slots at most"
        )
    return replace(found.schedule, slots=tuple(chain.from_iterable(map(repeat, slots, times))))


def save_schedule(schedule: Schedule, path: Path) -> None:
    """Write JSON that `load_schedule` reads back as an equal schedule. Equal slots in a row are written once."""
    rows = [(slot, len(list(same))) for slot, same in groupby(schedule.slots)]
    short = replace(schedule, slots=tuple(slot for slot, _ in rows))
    with writing(path):
        path.write_text(to_json(ScheduleFile(1, short, tuple(count for _, count in rows))))
