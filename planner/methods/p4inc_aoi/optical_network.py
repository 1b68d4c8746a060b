"""A scheduling problem as the kit's own types: units as fabric and interconnect, jobs on their servers, INC as trees.

What the schedulers call data of a worker are here bytes of its frames. A plan has no time in it: its trees name the
units, and stay as they are while circuits and rates change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import combinations

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree
from inakit.planner.core.policies import DEFAULT_POLICY
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Schedule, Slot, pair
from inakit.planner.trees.from_paths import tree_from_paths
from inakit.planner.trees.under_policy import with_policies
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import Interconnect, optical_ports
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import Pool, joined_units

IN_NETWORK = "p4inc-aoi"
"""The slot policy of jobs whose sums a switch makes alone (section VI)."""


def scaled(scheduling: Scheduling, schedule: Schedule, factor: float) -> tuple[Scheduling, Schedule]:
    """The same with all rates and sizes multiplied by `factor`, so that all times stay as they are."""
    center = scheduling.center
    units = tuple(replace(unit, switch_bps=unit.switch_bps * factor) for unit in center.units)
    smaller = replace(center, units=units, port_bps=center.port_bps * factor, step_bps=center.step_bps * factor)
    jobs = tuple(replace(job, gradient_bytes=round(job.gradient_bytes * factor)) for job in scheduling.jobs)
    slots = tuple(
        replace(slot, grants=tuple(replace(grant, rate_bps=grant.rate_bps * factor) for grant in slot.grants))
        for slot in schedule.slots
    )
    return replace(scheduling, center=smaller, jobs=jobs), replace(schedule, slots=slots)


def fabric_of(center: DataCenter) -> Fabric:
    """Every unit with its servers, and an optical link for every circuit that there may be.

    In the data centre only the switches limit the bandwidth of servers (Eq. 5), so no server's link is narrower than
    its switch.
    """
    pools = {unit.name: Pool(unit.servers, unit.switch_bps) for unit in center.units}
    return joined_units(f"aoi-{len(pools)}", pools, combinations(pools, 2), center.port_bps)


def interconnect_of(center: DataCenter, fabric: Fabric) -> Interconnect:
    """The circuit switch and all units' optical ports."""
    ports = {unit.name: unit.optical_ports for unit in center.units}
    return optical_ports(fabric, ports, center.port_bps, center.reconfiguration_s)


def pairs_of(slot: Slot) -> list[tuple[str, str]]:
    """The two units of each connection of a slot; a pair occurs once for each of its connections."""
    return [(circuit.a, circuit.b) for circuit in slot.circuits for _ in range(circuit.ports)]


def problem_of(scheduling: Scheduling, schedule: Schedule, fragment: FragmentFormat) -> Problem:
    """The jobs on servers of their units, in turn. Between iterations they compute and update.

    Raises `InputError` for a unit that has no server left for the PS of a job: on a host, a job has one role.
    """
    pools = Pools(scheduling.center)
    jobs = tuple(pools.place(job, schedule.inc.get(job.number), fragment) for job in scheduling.jobs)
    return Problem(fabric_of(scheduling.center), jobs, fragment)


class Pools:
    """The servers of every unit, those that have waited longest first."""

    def __init__(self, center: DataCenter) -> None:
        self.of = {unit.name: [f"{unit.name}h{n}" for n in range(1, unit.servers + 1)] for unit in center.units}

    def place(self, job: PlacedJob, inc: str | None, fragment: FragmentFormat) -> Job:
        """The job on the next servers of its units. Raises `InputError` where none is left for its PS."""
        workers = [host for unit, count in job.workers.items() for host in self.take(unit, count)]
        server = self.take(job.server, 1, workers)
        if not server:
            raise InputError(
                f"job {job.number}: unit '{job.server}' has a worker on each of its {len(self.of[job.server])} servers "
                "and none left for the PS: give it one more"
            )
        size = 4 * fragment.values * max(1, round(job.gradient_bytes / fragment.wire_bytes))
        pause_s = job.compute_s + job.update_time(inc)
        return Job(job.number, tuple(workers), tuple(server), size, iterations=job.iterations, compute_s=pause_s)

    def take(self, unit: str, count: int, without: Collection[str] = ()) -> list[str]:
        """The next servers of a unit that are not in `without`; fewer than `count` where there are not so many."""
        taken = [host for host in self.of[unit] if host not in without][:count]
        self.of[unit] = [host for host in self.of[unit] if host not in taken] + taken
        return taken


def plan_of(scheduling: Scheduling, schedule: Schedule, problem: Problem) -> Plan:
    """Trees for each job: to its PS, summed where the schedule has INC. Where that is the whole sum, the PS stands by.

    A flow may need more than one connection, so a job has as many trees as it has connections side by side. Rates are
    those at which all jobs could send at once, on a circuit between every two units.
    """
    trees = {
        placed.number: trees_of(problem.fabric, job, schedule.inc.get(job.number), side_by_side(schedule, placed))
        for placed, job in zip(scheduling.jobs, problem.jobs, strict=True)
    }
    shares = [(number, 1 / len(found), tree) for number, found in trees.items() for tree in found]
    rate_bps = sending_rate_bps(problem.fabric, ((tree, share) for _, share, tree in shares))
    planned = tuple(PlannedTree(number, share, rate_bps / len(trees[number]), tree) for number, share, tree in shares)
    policies = {
        job.number: IN_NETWORK if job.home is not None and schedule.inc.get(job.number) == job.home else DEFAULT_POLICY
        for job in scheduling.jobs
    }
    return with_policies(problem, Plan(schedule.method, problem.fabric.name, planned, schedule.outcome), policies)


def side_by_side(schedule: Schedule, job: PlacedJob) -> int:
    """The most connections that any flow of a job has."""
    pairs = [pair(unit, job.server) for unit, _ in job.flows(schedule.inc.get(job.number))]
    slots = (slot for slot in schedule.slots if job.number in slot.rates_bps)
    return max((slot.ports.get(units, 1) for slot in slots for units in pairs), default=1)


def trees_of(fabric: Fabric, job: Job, inc: str | None, count: int) -> tuple[AggregationTree, ...]:
    """So many equal trees of a job, summed in unit `inc` if it is given."""
    server = job.servers[0]
    paths = [along((worker, fabric.tor_of(worker), fabric.tor_of(server), server)) for worker in job.workers]
    aggregate_at = () if inc is None else (inc,)
    return tuple(tree_from_paths(fabric, number, paths, aggregate_at) for number in range(1, count + 1))


def along(nodes: Iterable[str]) -> tuple[str, ...]:
    """A path of these nodes that enters each of its units once."""
    return tuple(dict.fromkeys(nodes))
