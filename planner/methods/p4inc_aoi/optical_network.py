"""A scheduling problem as the kit's own types: units as fabric and interconnect, jobs on their servers, INC as trees.

The schedulers' data of a worker are here the bytes of its frames. A plan contains no time: its trees name the units,
and stay the same while circuits and rates change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import combinations
from math import lcm

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY
from inakit.planner.core.slots import assign_slots
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import Schedule, Slot, pair
from inakit.planner.trees.from_paths import numbered, tree_from_paths
from inakit.planner.trees.headroom import under_policies
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import Interconnect, optical_ports
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import Pool, joined_units
from inakit.topo.fabric.variations import with_switches

IN_NETWORK = "p4inc-aoi"
"""The slot policy of jobs that a switch sums completely (section VI)."""


def scaled(scheduling: Scheduling, schedule: Schedule, factor: float) -> tuple[Scheduling, Schedule]:
    """The problem with all rates and sizes multiplied by `factor`, so that all times stay the same.

    Raises `InputError` for a job of whose gradient nothing is left.
    """
    center = scheduling.center
    units = tuple(
        replace(
            unit,
            switch_bps=unit.switch_bps * factor,
            nic_bps=None if unit.nic_bps is None else unit.nic_bps * factor,
            uplink_bps=None if unit.uplink_bps is None else unit.uplink_bps * factor,
        )
        for unit in center.units
    )
    smaller = replace(center, units=units, port_bps=center.port_bps * factor, step_bps=center.step_bps * factor)
    for job in scheduling.jobs:
        if not round(job.gradient_bytes * factor):
            raise InputError(f"scale {factor:g} leaves nothing of the {job.gradient_bytes:,} bytes of job {job.number}")
    jobs = tuple(replace(job, gradient_bytes=round(job.gradient_bytes * factor)) for job in scheduling.jobs)
    slots = tuple(
        replace(slot, grants=tuple(replace(grant, rate_bps=grant.rate_bps * factor) for grant in slot.grants))
        for slot in schedule.slots
    )
    return replace(scheduling, center=smaller, jobs=jobs), replace(schedule, slots=slots)


def with_a_host_for_each_gpu(scheduling: Scheduling) -> Scheduling:
    """The problem with servers of one GPU, in units with fewer servers than a job has workers and a PS there.

    On a host, a job has one worker or its PS. Rates that were scheduled stay within the parts of the servers' links. A
    unit has one more server for PSs on standby, which no schedule counts; a pod one on each leaf, with uplinks for it.
    Raises `InputError` for such a pod whose servers have several GPUs.
    """
    center = scheduling.center
    most = {
        unit.name: max(job.workers.get(unit.name, 0) + (job.server == unit.name) for job in scheduling.jobs)
        for unit in center.units
    }
    units = tuple(one_gpu_each(unit) if most[unit.name] > unit.servers else unit for unit in center.units)
    return replace(scheduling, center=replace(center, units=units))


def one_gpu_each(unit: Unit) -> Unit:
    """The unit with a server for each GPU, and for PSs on standby."""
    servers = unit.places + max(1, unit.leaves)
    if unit.uplink_bps is None:
        return replace(unit, servers=servers, gpus=1)
    if unit.gpus > 1:
        raise InputError(
            f"unit '{unit.name}': by packets a job has one worker on a host; give the pod a server for each GPU"
        )
    return replace(unit, servers=servers, uplink_bps=unit.uplink_bps * servers / unit.servers)


def fabric_of(center: DataCenter) -> Fabric:
    """Every unit with its servers, and an optical link for every possible circuit.

    Where servers' links do not limit, every link has the bandwidth of its switch (Eq. 5).
    """
    pools = {unit.name: pool_of(center, unit) for unit in center.units}
    fabric = joined_units(f"aoi-{len(pools)}", pools, combinations(pools, 2), center.port_bps)
    units = units_of(center)
    return with_switches(fabric, lambda switch: {"aggregator_slots": units[switch.name].aggregator_slots})


def pool_of(center: DataCenter, unit: Unit) -> Pool:
    """A unit's servers and switches. The spines of a pod carry all that its optical ports do."""
    egress_bps = unit.optical_ports * center.port_bps / max(1, unit.spines) or unit.switch_bps
    own_bps = unit.nic_bps or unit.switch_bps
    return Pool(unit.servers, own_bps, unit.leaves, unit.spines, unit.uplink_bps or unit.switch_bps, egress_bps)


def units_of(center: DataCenter) -> dict[str, Unit]:
    """The unit of each switch, by the switch's name."""
    return {switch: unit for unit in center.units for switch in pool_of(center, unit).tiers(unit.name)}


def interconnect_of(center: DataCenter, fabric: Fabric) -> Interconnect:
    """The circuit switch and all units' optical ports."""
    ports = {unit.name: unit.optical_ports for unit in center.units}
    return optical_ports(fabric, ports, center.port_bps, center.reconfiguration_s)


def pairs_of(slot: Slot) -> list[tuple[str, str]]:
    """The two units of each connection of a slot; a pair occurs once for each of its connections."""
    return [(circuit.a, circuit.b) for circuit in slot.circuits for _ in range(circuit.ports)]


class ServerPool:
    """The servers of a unit, and the parts of them that jobs hold."""

    def __init__(self, unit: Unit) -> None:
        self.whole = unit.server_places
        self.held = {f"{unit.name}h{n}": 0 for n in range(1, unit.servers + 1)}  # in the order in which they are taken
        self.ends: list[tuple[int, str, int]] = []  # the last slot, the server, the parts

    def take(self, count: int, span: tuple[int, int]) -> list[str]:
        """Servers for workers, each with a part: such that others use, as long as they have a free part."""
        self.give_back(span[0])
        full = {host: held >= self.whole for host, held in self.held.items()}
        order = sorted(self.held, key=lambda host: (full[host], self.held[host] if full[host] else -self.held[host]))
        return [self.hold(host, 1, span) for host in order[:count]]

    def take_for_ps(self, span: tuple[int, int], without: Collection[str], standby: bool) -> list[str]:
        """The server for a PS, all of it, or on standby nothing of it; none if the unit has only those in `without`."""
        self.give_back(span[0])
        order = sorted((host for host in self.held if host not in without), key=lambda host: self.held[host])
        return [self.hold(host, 0 if standby else self.whole, span) for host in order[:1]]

    def hold(self, host: str, parts: int, span: tuple[int, int]) -> str:
        """Take parts of a server, which becomes the last of all."""
        self.held[host] = self.held.pop(host) + parts
        heappush(self.ends, (span[1], host, parts))
        return host

    def give_back(self, slot: int) -> None:
        """Give back what jobs hold that end before `slot`."""
        while self.ends and self.ends[0][0] < slot:
            _, host, parts = heappop(self.ends)
            self.held[host] -= parts


def problem_of(scheduling: Scheduling, schedule: Schedule, fragment: FragmentFormat) -> Problem:
    """Jobs on servers of their units, in the order of their arrival. Between iterations they compute and update.

    A job takes free servers, if there are any, from its first slot to its last, and gives them back. Raises
    `InputError` for a unit without a server for the PS of a job: on a host, a job has one role; and for a PS that is
    spread over several servers.
    """
    center, spans = scheduling.center, schedule.spans
    if spread := [unit.name for unit in center.units if unit.ps_links > 1]:
        raise InputError(f"unit '{spread[0]}': by packets a PS runs on one host; ps_links of 1 is expected")
    pools = {unit.name: ServerPool(unit) for unit in center.units}
    placed: dict[int, tuple[list[str], list[str]]] = {}
    for job in sorted(scheduling.jobs, key=lambda job: (spans.get(job.number, (0, 0)), job.number)):
        span = spans.get(job.number, (0, 0))
        if sum(job.workers.values()) == 1 and job.number in schedule.inc:
            raise InputError(
                f"job {job.number}: its only worker leaves a switch nothing to sum; give the job two workers, or "
                "choose a scheduler without INC"
            )
        for unit, count in job.workers.items():
            if count > center.unit(unit).servers:
                raise InputError(
                    f"job {job.number}: {count} workers on the {center.unit(unit).servers} servers of unit '{unit}': "
                    "a job has one worker on a host; give the unit a server for each GPU"
                )
        workers = [host for unit, count in job.workers.items() for host in pools[unit].take(count, span)]
        standby = not job.incast(schedule.inc.get(job.number))
        placed[job.number] = workers, pools[job.server].take_for_ps(span, workers, standby)

    jobs = []
    for job in scheduling.jobs:
        workers, server = placed[job.number]
        if not server:
            raise InputError(
                f"job {job.number}: unit '{job.server}' has a worker on each of its {len(pools[job.server].held)} "
                "servers and none for the PS: give the unit one more server"
            )
        size = 4 * fragment.values * max(1, round(job.gradient_bytes / fragment.wire_bytes))
        pause_s = job.compute_s + job.update_time(schedule.inc.get(job.number))
        jobs.append(Job(job.number, tuple(workers), tuple(server), size, iterations=job.iterations, compute_s=pause_s))
    return Problem(fabric_of(scheduling.center), tuple(jobs), fragment)


def plan_of(scheduling: Scheduling, schedule: Schedule, problem: Problem) -> Plan:
    """Trees for each job: to its PS, summed where the schedule has INC. If this is the complete sum, the PS is on
    standby.

    A flow can need more than one connection, so a job has as many equal trees as the maximum number of connections of
    its flows, and in pods a multiple of the number of spines, which its trees use in turn. Rates are those at which all
    jobs could send at once, with a circuit between every two units. Jobs that run one after another can have the same
    `segments`.
    """
    fabric, policies, units = problem.fabric, {}, units_of(scheduling.center)
    trees: list[tuple[int, int, AggregationTree]] = []  # the job, the number of its trees, and one of them
    for placed, job in zip(scheduling.jobs, problem.jobs, strict=True):
        inc, server = schedule.inc.get(job.number), job.servers[0]
        pairs = [pair(unit, placed.server) for unit, _ in placed.flows(inc)]
        first, last = schedule.spans.get(job.number, (0, -1))
        slots = [slot for slot in schedule.slots[first : last + 1] if job.number in slot.rates_bps]
        count = max((slot.ports.get(units, 1) for slot in slots for units in pairs), default=1)
        count = lcm(count, *(units[fabric.tor_of(host)].spines or 1 for host in (*job.workers, server)))
        sums = [switch for switch, unit in units.items() if unit.name == inc]
        for turn in range(count):
            paths = [path_between(fabric, units, worker, server, turn) for worker in job.workers]
            trees.append((job.number, count, tree_from_paths(fabric, 1, paths, sums)))
        whole = placed.home is not None and inc == placed.home
        policies[job.number] = IN_NETWORK if whole else DEFAULT_POLICY
    rate_bps = sending_rate_bps(fabric, ((tree, 1 / count) for _, count, tree in trees))
    in_order = numbered((number, tree) for number, _, tree in trees)
    planned = tuple(
        PlannedTree(number, 1 / count, rate_bps / count, tree)
        for (number, count, _), tree in zip(trees, in_order, strict=True)
    )
    plan = Plan(schedule.method, fabric.name, planned, schedule.outcome)
    return plan.with_trees(
        in_segments(scheduling.center, schedule, fabric, plan, under_policies(problem, plan, policies))
    )


def path_between(fabric: Fabric, units: Mapping[str, Unit], one: str, other: str, turn: int) -> tuple[str, ...]:
    """The path from a host to another, over the spine of each pod whose turn it is."""
    tors = fabric.tor_of(one), fabric.tor_of(other)
    a, b = (units[tor] for tor in tors)
    up, down = (f"{unit.name}s{turn % unit.spines + 1}" if unit.spines else unit.name for unit in (a, b))
    if tors[0] == tors[1]:
        between: tuple[str, ...] = ()
    else:
        between = (up,) if a == b else (up, a.name, b.name, down)
    return tuple(dict.fromkeys((one, tors[0], *between, tors[1], other)))


# -- Aggregator segments <MemID, Size>, which jobs get when they start and give back when they end (section VI-B).

Segment = tuple[str, int]
"""A unit and the number of one of its segments, from 0 on. All segments of a unit have the same size."""


def segments(schedule: Schedule) -> dict[int, Segment]:
    """The segment of each job that uses INC: the first that no job holds from its first slot to its last."""
    found: dict[int, Segment] = {}
    free: defaultdict[str, list[int]] = defaultdict(list)
    held: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # the last slot and the segment
    for job in sorted(schedule.inc.keys() & schedule.spans.keys(), key=lambda job: (schedule.spans[job][0], job)):
        (first, last), unit = schedule.spans[job], schedule.inc[job]
        while held[unit] and held[unit][0][0] < first:
            heappush(free[unit], heappop(held[unit])[1])
        number = heappop(free[unit]) if free[unit] else len(held[unit])
        heappush(held[unit], (last, number))
        found[job] = unit, number
    return found


def in_segments(
    center: DataCenter, schedule: Schedule, fabric: Fabric, plan: Plan, trees: Sequence[AggregationTree]
) -> list[AggregationTree]:
    """The plan's trees with the slots of their jobs' segments, which the trees of a job share equally.

    A unit has `inc_jobs` segments of its `aggregator_slots`, or more if so many jobs hold one at a time. Raises
    `InputError` for a unit with too few slots.
    """
    where = segments(schedule)
    count = Counter({unit.name: max(1, unit.inc_jobs) for unit in center.units})
    for unit, number in where.values():
        count[unit] = max(count[unit], number + 1)
    size = {unit.name: unit.aggregator_slots // count[unit.name] for unit in center.units}
    for unit in dict.fromkeys(unit for unit, _ in where.values()):
        if not size[unit]:
            raise InputError(
                f"unit '{unit}': {count[unit]} jobs use INC at a time, and its {center.unit(unit).aggregator_slots} "
                "aggregator slots leave them none; raise aggregator_slots"
            )
    units = units_of(center)
    alone = with_switches(fabric, lambda switch: {"aggregator_slots": max(1, size[units[switch.name].name])})
    of_job: defaultdict[int, list[AggregationTree]] = defaultdict(list)
    for planned, tree in zip(plan.trees, trees, strict=True):
        of_job[planned.job].append(tree)
    first = {job: number * size[unit] for job, (unit, number) in where.items()}
    found = {
        job: iter([shifted(tree, first.get(job, 0)) for tree in assign_slots(alone, own)])
        for job, own in of_job.items()
    }
    return [next(found[planned.job]) for planned in plan.trees]


def shifted(tree: AggregationTree, slots: int) -> AggregationTree:
    """The tree with segments that begin `slots` later."""
    return replace(tree, aggregators=tuple(replace(a, first_slot=a.first_slot + slots) for a in tree.aggregators))
