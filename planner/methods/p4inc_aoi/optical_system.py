"""The input of P4INC-AOI's schedulers: a data centre of units joined by optical circuits, and jobs placed on it.

A unit is a rack, a programmable switch and its pool of servers, or a pod, in which leaves, spines and the switch at its
egress are this switch together (section III). Its optical ports lead to an all-optical interconnect (AOI),
which joins any port to any other; a connection carries `port_bps` both ways (footnote 1). Time goes in slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite

from inakit.topo.errors import InputError

TRAINING, MAPREDUCE = "training", "mapreduce"
KINDS = (TRAINING, MAPREDUCE)


@dataclass(frozen=True)
class Unit:
    """A switch and its servers. The symbols are the paper's (section IV-B).

    `switch_bps` is the total rate of all its ports to servers, up and down together; `inc_jobs` of its jobs can use INC
    at a time, each with an equal part of `aggregator_slots`.

    A server has `gpus` GPUs, each for one worker at a time, with an equal part of the server's link of `nic_bps` in
    each direction; None is a link that never limits. A PS needs a server, and its link, for itself; spread over several
    servers, as BytePS spreads it, it receives over `ps_links` links. In a unit without GPUs servers run PSs only. The
    paper's equations have neither limit; its text has both (sections III and VII-B).

    A pod has `leaves` with equally many servers, each joined to each of its `spines` by a link of `uplink_bps` (None:
    never limits); jobs use all spines equally. Of its leaf's uplinks, as of its own link, a server has an equal part,
    for jobs with INC too, so that uplinks carry all jobs wherever in the pod they are. Every switch of a pod can sum.
    """

    name: str
    servers: int
    optical_ports: int  # P_oxc
    switch_bps: float  # B_PDP
    inc_jobs: int  # N_INC
    aggregator_slots: int = 512
    gpus: int = 1
    nic_bps: float | None = None
    ps_links: int = 1
    leaves: int = 1
    spines: int = 0
    uplink_bps: float | None = None

    @property
    def server_uplink_bps(self) -> float:
        """A server's part of its leaf's uplinks."""
        return inf if self.uplink_bps is None else self.spines * self.uplink_bps * self.leaves / self.servers

    @property
    def places(self) -> int:
        """The servers, in parts that one worker takes."""
        return self.servers * self.server_places

    @property
    def most_workers(self) -> int:
        """The most workers at a time: one on each GPU."""
        return self.servers * self.gpus

    @property
    def server_places(self) -> int:
        """The parts of a server, all of which a PS takes: one for each GPU."""
        return max(1, self.gpus)

    @property
    def worker_bps(self) -> float:
        """The highest rate of a worker: its GPU's part of the server's link, and of the leaf's uplinks."""
        return min(inf if self.nic_bps is None else self.nic_bps, self.server_uplink_bps) / self.server_places

    @property
    def ps_bps(self) -> float:
        """The highest rate at which a PS receives: that of its servers' links, and of their parts of uplinks."""
        return min(inf if self.nic_bps is None else self.nic_bps, self.server_uplink_bps) * self.ps_links


@dataclass(frozen=True)
class DataCenter:
    """The units, a port's rate B_port (bit/s), the time of a reconfiguration epsilon and of a slot Delta t (s).

    Bandwidth is granted to a worker in steps of `step_bps` (delta B of Algorithm 2). `inc_across` says whether a switch
    may sum for a job with workers in other units too, as Eqs. (2) to (4) allow and section VI-A does not.
    """

    units: tuple[Unit, ...]
    port_bps: float
    reconfiguration_s: float
    slot_s: float
    step_bps: float
    inc_across: bool = True

    def __post_init__(self) -> None:
        """Raise `InputError` unless names are unique and all numbers are in range."""
        for name, count in Counter(unit.name for unit in self.units).items():
            if count > 1:
                raise InputError(f"unit '{name}' is given {count} times: every unit needs its own name")
        for unit in self.units:
            for key in ("servers", "optical_ports", "switch_bps", "inc_jobs", "aggregator_slots", "gpus", "spines"):
                require(f"unit '{unit.name}': {key}", getattr(unit, key))
            require(f"unit '{unit.name}': ps_links", unit.ps_links, above=0)
            for key, bps in (("nic_bps", unit.nic_bps), ("uplink_bps", unit.uplink_bps)):
                if bps is not None:
                    require(f"unit '{unit.name}': {key}", bps, above=0)
            require(f"unit '{unit.name}': leaves", unit.leaves, above=0)
            if unit.spines and (unit.servers % unit.leaves or not unit.servers):
                raise InputError(
                    f"unit '{unit.name}': {unit.servers} servers on {unit.leaves} leaves: a multiple of the leaves is "
                    "expected"
                )
            if not unit.spines and (unit.leaves > 1 or unit.uplink_bps is not None):
                raise InputError(f"unit '{unit.name}': leaves and uplinks, and no spines: give the pod at least one")
        for key in ("port_bps", "slot_s", "step_bps"):
            require(key, getattr(self, key), above=0)
        require("reconfiguration_s", self.reconfiguration_s)
        if self.reconfiguration_s >= self.slot_s:
            raise InputError(
                f"a reconfiguration of {self.reconfiguration_s:g} s in slots of {self.slot_s:g} s: "
                "new circuits would never carry anything; make slots longer"
            )

    @cached_property
    def index(self) -> dict[str, int]:
        return {unit.name: place for place, unit in enumerate(self.units)}

    def unit(self, name: str) -> Unit:
        """The unit of that name."""
        return self.units[self.index[name]]

    def inc_units(self, job: PlacedJob) -> list[str]:
        """The units that may sum for a job (L of Eq. 2)."""
        return list(job.workers) if self.inc_across or job.home is not None else []


@dataclass(frozen=True)
class PlacedJob:
    """A job whose workers and PS already have units. Job numbers count from 1.

    `workers[unit]` is W, the number of workers there; `server` is the PS's unit. In an iteration each worker computes
    for `compute_s`, then sends `gradient_bytes` (d_j); without INC the PS needs another `update_s` (a_j). The workers
    of a MapReduce job are its mappers and its PS is its reducer. The job arrives at the beginning of slot `arrival`.
    """

    number: int
    workers: dict[str, int]
    server: str
    gradient_bytes: int
    update_s: float = 0.0
    arrival: int = 0
    iterations: int = 1
    compute_s: float = 0.0
    kind: str = TRAINING

    @property
    def bits(self) -> float:
        """The bits that each worker sends in all its iterations."""
        return 8.0 * self.gradient_bytes * self.iterations

    @property
    def home(self) -> str | None:
        """The unit of all workers (E = 1); None if they are in several."""
        return next(iter(self.workers)) if len(self.workers) == 1 else None

    def update_time(self, inc: str | None) -> float:
        """The seconds of the update at the end of an iteration (Eq. 11): 0 if a switch computes the complete sum."""
        return 0.0 if inc is not None and self.home == inc else self.update_s

    def pause(self, inc: str | None) -> float:
        """The seconds between its transfers: computing, and every update but the last, which no transfer follows."""
        return self.iterations * self.compute_s + (self.iterations - 1) * self.update_time(inc)

    def flows(self, inc: str | None) -> Iterator[tuple[str, int]]:
        """The units that send to the PS's unit, in multiples of a worker's rate (Eq. 4), if `inc` sums for the job."""
        for unit, workers in self.workers.items():
            if unit != self.server and not (unit == inc == self.home):
                yield unit, 1 if unit == inc else workers

    def switch_loads(self, inc: str | None) -> dict[str, int]:
        """For each unit, the load of its switch from and to its servers, in multiples of a worker's rate (Eq. 5)."""
        loads = Counter(self.workers)
        for _, weight in self.flows(inc):
            loads[self.server] += weight
        if inc != self.server:
            loads[self.server] += self.workers.get(self.server, 0)
        return {unit: load for unit, load in loads.items() if load}

    def incast(self, inc: str | None) -> int:
        """The rate at which the PS receives, in multiples of a worker's rate; 0 if a switch replaces it."""
        if inc is not None and inc == self.home:
            return 0
        local = 1 if inc == self.server else self.workers.get(self.server, 0)
        return local + sum(weight for _, weight in self.flows(inc))

    def most_bps(self, center: DataCenter, inc: str | None) -> float:
        """The highest rate of a worker that the links of the servers allow: of the workers', and of the PS's."""
        incast = self.incast(inc)
        own = min(center.unit(unit).worker_bps for unit in self.workers)
        return min(own, center.unit(self.server).ps_bps / incast) if incast else own

    def places(self, center: DataCenter, inc: str | None) -> dict[str, int]:
        """The parts of servers that the job takes in each unit while it runs: for its workers, and for its PS."""
        found = Counter(self.workers)
        if self.incast(inc):
            found[self.server] += center.unit(self.server).server_places
        return found


@dataclass(frozen=True)
class Scheduling:
    """A data centre and the jobs to schedule on it. The constructor checks it.

    `horizon` is T, the number of slots in which all jobs have to be done; None for no limit.
    """

    center: DataCenter
    jobs: tuple[PlacedJob, ...]
    horizon: int | None = None

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError("no job: give at least one")
        for number, count in Counter(job.number for job in self.jobs).items():
            if count > 1:
                raise InputError(f"job {number} is given {count} times: every job needs its own number")
        if self.horizon is not None:
            require("horizon", self.horizon, above=0)
        for job in self.jobs:
            check_job(self.center, job)

    @cached_property
    def job_of(self) -> dict[int, PlacedJob]:
        return {job.number: job for job in self.jobs}


def check_job(center: DataCenter, job: PlacedJob) -> None:
    """Raise `InputError`, which names the broken constraint, unless the job fits its units."""
    name = f"job {job.number}"
    for unit in (*job.workers, job.server):
        if unit not in center.index:
            raise InputError(f"{name}: unit '{unit}' is not in the data centre: choose from {', '.join(center.index)}")
    for unit, workers in job.workers.items():
        most = center.unit(unit).most_workers
        if not 1 <= workers <= most:
            raise InputError(
                f"{name}: {workers} workers in unit '{unit}', constraint 'servers': 1 to {most} are expected, "
                "each on a GPU"
            )
    if not job.workers:
        raise InputError(f"{name} has no worker: it needs at least one")
    if not any(fits_alone(center, job, inc) for inc in (None, *center.inc_units(job))):
        raise InputError(
            f"{name}, constraint 'servers': unit '{job.server}' has no server for the PS beside the job's workers; "
            "give the unit one more server"
        )
    if job.kind not in KINDS:
        raise InputError(f"{name}: kind '{job.kind}': choose from {', '.join(KINDS)}")
    require(f"{name}: gradient_bytes", job.gradient_bytes, above=0)
    require(f"{name}: iterations", job.iterations, above=0)
    for key in ("update_s", "compute_s", "arrival"):
        require(f"{name}: {key}", getattr(job, key))


def fits_alone(center: DataCenter, job: PlacedJob, inc: str | None) -> bool:
    """Whether the units have the servers for a job that runs alone."""
    if inc is not None and not center.unit(inc).inc_jobs:
        return False
    return all(count <= center.unit(unit).places for unit, count in job.places(center, inc).items())


def require(what: str, value: float, above: float = -inf) -> None:
    """Raise `InputError` unless the value is finite, not negative, and more than `above`."""
    if not (isfinite(value) and value >= 0 and value > above):
        raise InputError(
            f"{what} is {value:g}: a finite number {'above 0' if above == 0 else 'of at least 0'} is expected"
        )
