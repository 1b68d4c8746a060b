"""A scheduling problem as the kit's own types: units as fabric and interconnect, jobs on their servers, INC as trees.

The schedulers' data of a worker are here the bytes of its frames. A plan contains no time: its trees name the units,
and stay the same while circuits and rates change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import combinations

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Schedule, Slot, pair
from inakit.planner.trees.from_paths import numbered, tree_from_paths
from inakit.planner.trees.headroom import with_policies
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import Interconnect, optical_ports
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import Pool, joined_units

IN_NETWORK = "p4inc-aoi"
"""The slot policy of jobs that a switch sums completely (section VI)."""


def scaled(scheduling: Scheduling, schedule: Schedule, factor: float) -> tuple[Scheduling, Schedule]:
    """The problem with all rates and sizes multiplied by `factor`, so that all times stay the same."""
    center = scheduling.center
    units = tuple(
        replace(
            unit,
            switch_bps=unit.switch_bps * factor,
            nic_bps=None if unit.nic_bps is None else unit.nic_bps * factor,
        )
        for unit in center.units
    )
    smaller = replace(center, units=units, port_bps=center.port_bps * factor, step_bps=center.step_bps * factor)
    jobs = tuple(replace(job, gradient_bytes=round(job.gradient_bytes * factor)) for job in scheduling.jobs)
    slots = tuple(
        replace(slot, grants=tuple(replace(grant, rate_bps=grant.rate_bps * factor) for grant in slot.grants))
        for slot in schedule.slots
    )
    return replace(scheduling, center=smaller, jobs=jobs), replace(schedule, slots=slots)


def fabric_of(center: DataCenter) -> Fabric:
    """Every unit with its servers, and an optical link for every possible circuit.

    Where servers' links do not limit, every link has the bandwidth of its switch (Eq. 5).
    """
    pools = {unit.name: Pool(unit.servers, unit.nic_bps or unit.switch_bps) for unit in center.units}
    return joined_units(f"aoi-{len(pools)}", pools, combinations(pools, 2), center.port_bps)


def interconnect_of(center: DataCenter, fabric: Fabric) -> Interconnect:
    """The circuit switch and all units' optical ports."""
    ports = {unit.name: unit.optical_ports for unit in center.units}
    return optical_ports(fabric, ports, center.port_bps, center.reconfiguration_s)


def pairs_of(slot: Slot) -> list[tuple[str, str]]:
    """The two units of each connection of a slot; a pair occurs once for each of its connections."""
    return [(circuit.a, circuit.b) for circuit in slot.circuits for _ in range(circuit.ports)]


def problem_of(scheduling: Scheduling, schedule: Schedule, fragment: FragmentFormat) -> Problem:
    """Jobs on servers of their units, in the order of their arrival. Between iterations they compute and update.

    Raises `InputError` for a unit without a server for the PS of a job: on a host, a job has one role.
    """
    pools = {unit.name: [f"{unit.name}h{n}" for n in range(1, unit.servers + 1)] for unit in scheduling.center.units}

    def take(unit: str, count: int, without: Collection[str] = ()) -> list[str]:
        taken = [host for host in pools[unit] if host not in without][:count]
        pools[unit] = [host for host in pools[unit] if host not in taken] + taken
        return taken

    jobs = []
    for job in scheduling.jobs:
        workers = [host for unit, count in job.workers.items() for host in take(unit, count)]
        server = take(job.server, 1, workers)
        if not server:
            raise InputError(
                f"job {job.number}: unit '{job.server}' has a worker on each of its {len(pools[job.server])} servers "
                "and none for the PS: give the unit one more server"
            )
        size = 4 * fragment.values * max(1, round(job.gradient_bytes / fragment.wire_bytes))
        pause_s = job.compute_s + job.update_time(schedule.inc.get(job.number))
        jobs.append(Job(job.number, tuple(workers), tuple(server), size, iterations=job.iterations, compute_s=pause_s))
    return Problem(fabric_of(scheduling.center), tuple(jobs), fragment)


def plan_of(scheduling: Scheduling, schedule: Schedule, problem: Problem) -> Plan:
    """Trees for each job: to its PS, summed where the schedule has INC. If this is the complete sum, the PS is on
    standby.

    A flow can need more than one connection, so a job has as many equal trees as the maximum number of connections of
    its flows. Rates are those at which all jobs could send at once, with a circuit between every two units.
    """
    fabric, policies = problem.fabric, {}
    trees: list[tuple[int, int, AggregationTree]] = []  # the job, the number of its trees, and one of them
    for placed, job in zip(scheduling.jobs, problem.jobs, strict=True):
        inc, server = schedule.inc.get(job.number), job.servers[0]
        pairs = [pair(unit, placed.server) for unit, _ in placed.flows(inc)]
        slots = [slot for slot in schedule.slots if job.number in slot.rates_bps]
        count = max((slot.ports.get(units, 1) for slot in slots for units in pairs), default=1)
        nodes = [(worker, fabric.tor_of(worker), fabric.tor_of(server), server) for worker in job.workers]
        paths = [tuple(dict.fromkeys(path)) for path in nodes]  # which enter each unit once
        trees += [(job.number, count, tree_from_paths(fabric, 1, paths, () if inc is None else (inc,)))] * count
        whole = placed.home is not None and inc == placed.home
        policies[job.number] = IN_NETWORK if whole else DEFAULT_POLICY
    rate_bps = sending_rate_bps(fabric, ((tree, 1 / count) for _, count, tree in trees))
    in_order = numbered((number, tree) for number, _, tree in trees)
    planned = tuple(
        PlannedTree(number, 1 / count, rate_bps / count, tree)
        for (number, count, _), tree in zip(trees, in_order, strict=True)
    )
    return with_policies(problem, Plan(schedule.method, fabric.name, planned, schedule.outcome), policies)
