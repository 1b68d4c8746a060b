"""Designs for clusters whose switches differ, and for several jobs and parameter servers (PSs) at once.

The paper has one job, one PS and switches of a kind. Here a switch has ports of its own rate in its own pipelines, an
aggregator sums each pipeline and each task (a job and one of its PSs) by itself, `children` flows at most into one, and
the circuit switch has a limited number of ports. All tasks of all jobs share the links, every job has the same rate,
and a job's PSs take equal parts of its gradient. The rate is the highest of those at which a link is full, found by
bisection: a program decides for one rate whether there is a wiring.
"""

from __future__ import annotations

import pathlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from math import floor, isfinite, lcm
from typing import Any, NamedTuple

import pulp
from pydantic import Field, StrictStr

from inakit.planner.core.check import check
from inakit.planner.core.method import Design, Options
from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, MOST_BITS, OPTIMAL, SolverOptions
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.core.slots import slot_bits
from inakit.planner.methods.atro import atro
from inakit.planner.methods.atro.switch_cluster import SERVER, SwitchCluster, most_workers_bound
from inakit.planner.methods.atro.wiring_models import UNKNOWN
from inakit.planner.solvers import proven, run
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import FabricError, SolverError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Path, Switch
from inakit.topo.files.fabric_records import ChipRecord, PartRecord, chip_of, switch_of
from inakit.topo.files.fabrics import YAML
from inakit.topo.files.quantities import DURATION, RATE, Duration, Rate, Whole
from inakit.topo.files.reader import Record, read_file, validate

# -- The switches of a reconfigurable cluster before it is wired, and the file that describes them.
#
#     name: hall
#     hosts: 100G                     # the rate of every host's port
#     layers: 5                       # the most switches on a way to a PS
#     panel: {ports: 384, reconfiguration: 10ms}
#     switches:
#       agg: {count: 4, ports: 24, capacity: 100G, pipelines: 2}
#       cs: {count: 16, ports: 24, capacity: 100G, ina: false}
#       old: {ports: 32, capacity: 25G, chip: tofino1}
#
# A switch with a count stands for agg1, agg2, ... Its other keys are those of a fabric file's switches, without a tier.


@dataclass(frozen=True)
class Device:
    """A switch of a cluster before it is wired: all its ports, in pipelines, and their rate."""

    switch: Switch
    port_bps: float

    @property
    def ports(self) -> int:
        return len(self.switch.ports)

    @property
    def children(self) -> int:
        return slot_bits(self.switch)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The groups of ports whose flows are summed together; a common switch has one of all its ports."""
        if not self.switch.ina:
            return (Gate(self.switch.name, 0, self.ports),)
        return tuple(Gate(self.switch.name, n, len(ports)) for n, ports in enumerate(self.switch.pipelines))

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for switches that can take each other's place."""
        return replace(self.switch, name="x"), self.port_bps


class Gate(NamedTuple):
    """A pipeline of a switch, through which flows enter it, and its number of ports."""

    switch: str
    pipeline: int
    ports: int


@dataclass(frozen=True)
class Cluster:
    """The switches whose ports, like those of all hosts, are connected to one circuit switch.

    `host_bps` is the rate of every host's port, `layers` the most switches on a way (L), `panel_ports` the ports of the
    circuit switch, two for each link, and `reconfiguration_s` the time in which it changes circuits.
    """

    name: str
    devices: tuple[Device, ...]
    host_bps: float
    layers: int = 5
    panel_ports: int | None = None
    reconfiguration_s: float = 0.0

    @cached_property
    def by_name(self) -> dict[str, Device]:
        return {device.switch.name: device for device in self.devices}

    @cached_property
    def gates(self) -> dict[Gate, Device]:
        return {gate: device for device in self.devices for gate in device.gates}

    @cached_property
    def gate_ports(self) -> dict[Gate, tuple[int, ...]]:
        """The port numbers of each gate."""
        return {
            gate: device.switch.pipelines[gate.pipeline] if device.switch.ina else device.switch.ports
            for gate, device in self.gates.items()
        }

    def link_bps(self, *ends: str) -> float:
        """The capacity of a link between these nodes: the slower end's."""
        return min(self.by_name[end].port_bps if end in self.by_name else self.host_bps for end in ends)


# -- The file.

WHOLE = "a whole number, at least 1"


class DeviceRecord(PartRecord):
    """A switch, or `count` of a kind, in a cluster file."""

    ports: Whole = Field(ge=1, description=WHOLE)
    capacity: Rate = Field(description=RATE)
    count: Whole | None = Field(None, ge=1, description=WHOLE)


class PanelRecord(Record):
    """The circuit switch in a cluster file."""

    ports: Whole | None = Field(None, ge=2, description="a whole number, at least 2")
    reconfiguration: Duration = Field(0.0, description=DURATION)


class ClusterRecord(Record):
    """A cluster file."""

    name: StrictStr = Field(description="a name in letters")
    hosts: Rate = Field(description=RATE)
    switches: dict[str, DeviceRecord] = Field(description="switches by name", min_length=1)
    layers: Whole = Field(5, ge=1, description=WHOLE)
    panel: PanelRecord = Field(PanelRecord(), description="the circuit switch's ports and reconfiguration")
    chips: dict[str, ChipRecord] = Field({}, description="profiles of chips by name")


def load_cluster(path: pathlib.Path, scale: float = 1.0) -> Cluster:
    """Read a cluster file; all rates are multiplied by `scale`. Raises `FabricError` with file, place and remedy."""
    record = validate(read_file(path, YAML), ClusterRecord)
    try:
        chips = {name: chip_of(name, chip) for name, chip in record.chips.items()}
        devices = []
        for name, each in record.switches.items():
            rates = dict.fromkeys(range(1, each.ports + 1), each.capacity)
            for own in [name] if each.count is None else [f"{name}{n}" for n in range(1, each.count + 1)]:
                switch = switch_of(own, 1, each, rates, chips)
                chip = switch.chip and switch.chip.at_scale(scale)
                rate = switch.aggregation_rate_bps and switch.aggregation_rate_bps * scale
                devices.append(Device(replace(switch, chip=chip, aggregation_rate_bps=rate), each.capacity * scale))
    except FabricError as error:
        raise FabricError(f"{path}: {error}") from error
    panel = record.panel
    return Cluster(record.name, tuple(devices), record.hosts * scale, record.layers, panel.ports, panel.reconfiguration)


ROUNDING = 1e-9


class Task(NamedTuple):
    """A job's flows to one of its PSs. `weight` is its part of the job's rate, in units of 1 / `Demand.parts`."""

    job: int
    server: str
    weight: int


@dataclass(frozen=True)
class Demand:
    """What is wired: the tasks, the hosts that are PSs, and the other hosts by the jobs that they work for."""

    jobs: tuple[Job, ...]

    @cached_property
    def job_of(self) -> dict[int, Job]:
        return {job.number: job for job in self.jobs}

    @cached_property
    def parts(self) -> int:
        return lcm(*(len(job.servers) for job in self.jobs))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(Task(j.number, server, self.parts // len(j.servers)) for j in self.jobs for server in j.servers)

    def working(self, task: Task) -> int:
        """The number of workers of a task, which no number of its flows exceeds."""
        return len(self.job_of[task.job].workers)

    @cached_property
    def servers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(server for job in self.jobs for server in job.servers))

    @cached_property
    def jobs_of(self) -> dict[str, frozenset[int]]:
        """The jobs that every host works for; none for a host that is only a PS."""
        workers = [(worker, job.number) for job in self.jobs for worker in job.workers]
        hosts = dict.fromkeys([*(worker for worker, _ in workers), *self.servers])
        return {host: frozenset(number for worker, number in workers if worker == host) for host in hosts}

    @cached_property
    def workers(self) -> dict[frozenset[int], list[str]]:
        """Hosts that are not PSs, in classes of those that can take each other's place."""
        classes: dict[frozenset[int], list[str]] = {}
        for host, jobs in self.jobs_of.items():
            if host not in self.servers:
                classes.setdefault(jobs, []).append(host)
        return classes


@dataclass
class Wiring:
    """A wiring of a cluster: the gate that every host's link enters, and the flows of each task.

    `flows[task, gate]` are those that leave a gate, by the gate that they enter or the PS.
    """

    places: dict[str, Gate]
    flows: dict[tuple[Task, Gate], dict[Gate | str, int]]
    layer: dict[str, int]

    @property
    def links(self) -> list[tuple[str, Gate]]:
        """The links of switches with flows, each from a switch into a gate."""
        found = ((gate.switch, to) for (_, gate), sent in self.flows.items() for to in sent if isinstance(to, Gate))
        return list(dict.fromkeys(found))


# -- The program: is there a wiring in which every job has a rate?


@dataclass
class Program:
    """The program for one rate. A unit of a link's load is a flow of the rate over `demand.parts`.

    - `w[c, g]`: workers of class c at gate g; `h[s, g]`: whether the PS s is there
    - `a[u, g]`: whether switch u has a link into gate g of another switch
    - `y[k, f, g]`: flows of task k that leave gate f and enter gate g; `p[k, g]`: those from gate g to the PS
    - `layer[u]`: the layer of switch u
    """

    cluster: Cluster
    demand: Demand
    rate_bps: float
    model: pulp.LpProblem
    w: dict[tuple[frozenset[int], Gate], Any]
    h: dict[tuple[str, Gate], Any]
    a: dict[tuple[str, Gate], Any]
    y: dict[tuple[Task, Gate, Gate], Any]
    p: dict[tuple[Task, Gate], Any]
    layer: dict[str, Any]

    @staticmethod
    def of(cluster: Cluster, demand: Demand, rate_bps: float) -> Program:
        """The program with its variables, still without constraints."""
        model = pulp.LpProblem("atro_several_jobs", pulp.LpMinimize)
        name = {gate: str(position) for position, gate in enumerate(cluster.gates)}
        task_name = {task: str(position) for position, task in enumerate(demand.tasks)}
        own = Program(cluster, demand, rate_bps, model, {}, {}, {}, {}, {}, {})

        def integer(*parts: str, most: int) -> Any:
            return model.add_variable("_".join(parts), 0, most, pulp.LpInteger)

        for g, device in cluster.gates.items():
            for number, (c, members) in enumerate(demand.workers.items()):
                own.w[c, g] = integer("w", str(number), name[g], most=len(members))
            for s in demand.servers:
                own.h[s, g] = integer("h", s, name[g], most=1)
            for u in cluster.by_name:
                if u != g.switch:
                    own.a[u, g] = integer("a", u, name[g], most=1)
            for k in demand.tasks:
                workers = demand.working(k)
                own.p[k, g] = integer(
                    "p", task_name[k], name[g], most=min(workers, own.room(g.switch, k.server) // k.weight)
                )
                one = device.switch.ina and workers <= device.children
                for f in cluster.gates:
                    if f.switch != g.switch:
                        most = min(1 if one else workers, own.room(g.switch, f.switch) // k.weight)
                        own.y[k, g, f] = integer("y", task_name[k], name[g], name[f], most=most)
        for u in cluster.by_name:
            own.layer[u] = model.add_variable(f"l_{u}", 1, cluster.layers)
        return own

    def room(self, *ends: str) -> int:
        """The units that a link between these nodes carries."""
        return floor(self.cluster.link_bps(*ends) * self.demand.parts / self.rate_bps * (1 + ROUNDING))

    def received(self, k: Task, g: Gate) -> Any:
        workers = [w for (c, at), w in self.w.items() if at == g and k.job in c]
        servers = [h for (s, at), h in self.h.items() if at == g and k.job in self.demand.jobs_of[s]]
        return pulp.lpSum([*workers, *servers, *(self.y[k, f, g] for f in self.others(g))])

    def others(self, g: Gate) -> list[Gate]:
        return [f for f in self.cluster.gates if f.switch != g.switch]

    def place_hosts(self) -> None:
        """Every host has a place whose link carries its flows, a PS's those of all its tasks."""
        model, demand = self.model, self.demand
        for c, members in demand.workers.items():
            model += pulp.lpSum(self.w[c, g] for g in self.cluster.gates) == len(members)
            for g in self.cluster.gates:
                if self.room(g.switch, members[0]) < len(c) * demand.parts:
                    model += self.w[c, g] == 0
        for s in demand.servers:
            model += pulp.lpSum(self.h[s, g] for g in self.cluster.gates) == 1
            for u, device in self.cluster.by_name.items():
                room, here = self.room(u, s), pulp.lpSum(self.h[s, g] for g in device.gates)
                own = [k for k in demand.tasks if k.server == s]
                model += pulp.lpSum(k.weight * self.p[k, g] for k in own for g in device.gates) <= room * here
                if room < len(demand.jobs_of[s]) * demand.parts:
                    model += here == 0

    def count_ports(self) -> None:
        """Pipelines, switches and the panel have limited ports; a link takes one of the pipeline that it enters."""
        model, demand, cluster = self.model, self.demand, self.cluster
        for u, device in cluster.by_name.items():
            used = [self.a[u, g] for g in cluster.gates if g.switch != u]
            for g in device.gates:
                enters = [self.w[c, g] for c in demand.workers] + [self.a[v, g] for v in cluster.by_name if v != u]
                enters += [self.h[s, g] for s in demand.servers if demand.jobs_of[s]]
                model += pulp.lpSum(enters) <= g.ports
                used += enters + [self.h[s, g] for s in demand.servers if not demand.jobs_of[s]]
            model += pulp.lpSum(used) <= device.ports
        if cluster.panel_ports is not None:
            model += 2 * (len(demand.jobs_of) + pulp.lpSum(self.a.values())) <= cluster.panel_ports
        for one, other in pairwise(cluster.devices):
            if one.kind == other.kind:  # in the order of their workers, which removes symmetric solutions
                here, there = (pulp.lpSum(self.w[c, g] for c, g in self.w if g in each.gates) for each in (one, other))
                model += here >= there

    def order_layers(self) -> None:
        """Two switches have one link at most, to a lower layer."""
        for u, v in permutations(self.cluster.by_name, 2):
            linked = pulp.lpSum(self.a[u, g] for g in self.cluster.by_name[v].gates)
            self.model += linked <= 1
            self.model += self.layer[v] + 1 <= self.layer[u] + self.cluster.layers * (1 - linked)

    def carry_flows(self) -> None:
        """Links carry the flows, which aggregators sum by gate and task, and common switches forward."""
        for (u, g), linked in self.a.items():
            flows = [k.weight * self.y[k, f, g] for k in self.demand.tasks for f in self.cluster.by_name[u].gates]
            self.model += pulp.lpSum(flows) <= self.room(u, g.switch) * linked
        for k, (g, device) in product(self.demand.tasks, self.cluster.gates.items()):
            received, sent = self.received(k, g), self.p[k, g] + pulp.lpSum(self.y[k, g, f] for f in self.others(g))
            if device.switch.ina:
                self.model += sent <= received
                self.model += received <= min(device.children, self.demand.working(k)) * sent
                self.model += device.children * (sent - 1) + 1 <= received
            else:
                self.model += sent == received

    def limit_sums(self) -> None:
        """Pipelines sum no more than their chips recirculate.

        A pipeline that one flow of a task enters sums nothing. Where a task has more workers than a slot has children,
        a pipeline may forward one flow more without summing it. So no wiring is excluded that keeps the limit.
        """
        for number, (g, device) in enumerate(self.cluster.gates.items()):
            if not (device.switch.ina and isfinite(device.switch.pipeline_summing_bps)):
                continue
            summed = []
            for i, k in enumerate(self.demand.tasks):
                received, workers = self.received(k, g), self.demand.working(k)
                several = self.model.add_variable(f"several_{i}_{number}", cat=pulp.LpBinary)
                sums = self.model.add_variable(f"sums_{i}_{number}", 0)
                self.model += received <= 1 + workers * several
                self.model += sums >= received - 1 + (several if workers <= device.children else 0)
                summed.append(k.weight * sums)
            units = device.switch.pipeline_summing_bps * self.demand.parts / self.rate_bps
            self.model += pulp.lpSum(summed) <= units * (1 + ROUNDING)

    def extract(self) -> Wiring:
        """The wiring of the solution; hosts of a class take the gates in their order."""
        places: dict[str, Gate] = {}
        for c, members in self.demand.workers.items():
            gates = [g for g in self.cluster.gates for _ in range(round(self.w[c, g].varValue))]
            places |= dict(zip(members, gates, strict=True))
        places |= {s: g for (s, g), here in self.h.items() if round(here.varValue)}
        flows: dict[tuple[Task, Gate], dict[Gate | str, int]] = {}
        for (k, f, g), each in self.y.items():
            if number := round(each.varValue):
                flows.setdefault((k, f), {})[g] = number
        for (k, f), each in self.p.items():
            if number := round(each.varValue):
                flows.setdefault((k, f), {})[k.server] = number
        # Layers need not be integral: they differ by at least 1, and so do their floors. A sole switch's is in no row.
        return Wiring(places, flows, {u: floor((each.varValue or 1.0) + 1e-6) for u, each in self.layer.items()})


def decide(cluster: Cluster, demand: Demand, rate_bps: float, options: SolverOptions) -> Wiring | str:
    """A wiring in which every job has the rate; `INFEASIBLE` if none exists, `UNKNOWN` if this stays open."""
    if not allowed(cluster, demand, rate_bps):
        return INFEASIBLE
    program = Program.of(cluster, demand, rate_bps)
    program.place_hosts()
    program.count_ports()
    program.order_layers()
    program.carry_flows()
    program.limit_sums()
    status = run(program.model, options).status
    if status in (OPTIMAL, FEASIBLE):
        return program.extract()
    return INFEASIBLE if status == INFEASIBLE else UNKNOWN


def allowed(cluster: Cluster, demand: Demand, rate_bps: float) -> bool:
    """Whether counting permits every task by itself, on switches of a kind that are each as good as the best."""
    links = [cluster.host_bps, *(device.port_bps for device in cluster.devices)]
    ports = max(device.ports for device in cluster.devices)
    summing = [device for device in cluster.devices if device.switch.ina]
    for task, job in ((task, job) for job in demand.jobs for task in demand.tasks if task.job == job.number):
        alike = SwitchCluster(
            len(summing), len(cluster.devices) - len(summing), ports, len(job.workers), layers=cluster.layers,
            children=max((device.children for device in summing), default=MOST_BITS),
        )  # fmt: skip
        most_flows = floor(max(links) * demand.parts / (rate_bps * task.weight) * (1 + ROUNDING))
        if most_workers_bound(alike, min(most_flows, len(job.workers))) < len(job.workers):
            return False
    return True


# -- The highest rate.


def optimise(cluster: Cluster, demand: Demand, options: SolverOptions) -> tuple[Wiring, float, float, str]:
    """The wiring with the highest rate, this rate, an upper bound on the rate of any wiring, and the solver's name.

    Raises `SolverError` when the hosts cannot be wired, or no wiring is found in time.
    """
    if found := counted(cluster, demand, options):
        return found
    started = time.monotonic()
    rates = candidates(cluster, demand)
    best, low, high, excluded = None, -1, len(rates), len(rates)  # rates[excluded] and all above are impossible
    while high - low > 1:
        middle = (low + high) // 2
        left = options.time_limit_s - (time.monotonic() - started)
        trial = decide(cluster, demand, rates[middle], replace(options, time_limit_s=left / 2)) if left > 0 else UNKNOWN
        if isinstance(trial, Wiring):
            low, best = middle, trial
        else:
            high = middle
            excluded = middle if trial == INFEASIBLE else excluded
    if best is not None:
        return best, rates[low], rates[excluded - 1], options.solver
    hosts, switches = len(demand.jobs_of), len(cluster.devices)
    if excluded:
        raise SolverError(f"no wiring for {hosts} hosts found in {options.time_limit_s:g} s: raise the time limit")
    raise SolverError(
        f"{hosts} hosts cannot be wired to {switches} switches in {cluster.layers} layers: give the switches more "
        "ports, or add switches, layers or ports of the panel"
    )


def candidates(cluster: Cluster, demand: Demand) -> list[float]:
    """The rates at which a whole number of flows fills a link, or a pipeline's recirculation, lowest first."""
    rates = {cluster.host_bps, *(device.port_bps for device in cluster.devices)}
    rates |= {d.switch.pipeline_summing_bps for d in cluster.devices if isfinite(d.switch.pipeline_summing_bps)}
    most = sum(len(job.workers) for job in demand.jobs) * demand.parts
    return sorted({bps * demand.parts / units for bps in rates for units in range(demand.parts, most + 1)})


def counted(cluster: Cluster, demand: Demand, options: SolverOptions) -> tuple[Wiring, float, float, str] | None:
    """The result of `atro.optimise` for one task on switches that differ in nothing but summing.

    None for other clusters, and where the panel has too few ports for the wiring found.
    """
    alike = {(device.ports, device.port_bps, len(device.gates)) for device in cluster.devices}
    children = {device.children for device in cluster.devices if device.switch.ina}
    slow = any(isfinite(device.switch.pipeline_summing_bps) for device in cluster.devices if device.switch.ina)
    one = len(demand.tasks) == 1 and len(alike) == 1 and len(children) <= 1
    if not one or slow or alike != {(cluster.devices[0].ports, cluster.host_bps, 1)}:
        return None
    kinds = [[d for d in cluster.devices if d.switch.ina == ina] for ina in (True, False)]
    job, (task,) = demand.jobs[0], demand.tasks
    ports, most_children = cluster.devices[0].ports, max(children, default=MOST_BITS)
    summing, common = map(len, kinds)
    alone = SwitchCluster(summing, common, ports, len(job.workers), cluster.host_bps, cluster.layers, most_children)
    wired, outcome = atro.optimise(alone, options)
    if cluster.panel_ports is not None and 2 * len(wired.flows) > cluster.panel_ports:
        return None
    gates = dict(zip(alone.switch_names, (device.gates[0] for kind in kinds for device in kind), strict=True))
    hosts = dict(zip(alone.worker_names, job.workers, strict=True)) | {SERVER: task.server}
    flows: dict[tuple[Task, Gate], dict[Gate | str, int]] = {}
    places: dict[str, Gate] = {}
    for (u, v), number in wired.flows.items():
        if u in gates:
            flows.setdefault((task, gates[u]), {})[gates[v] if v in gates else hosts[v]] = number
        for host, switch in ((u, v), (v, u)):
            if host in hosts:
                places[hosts[host]] = gates[switch]
    layer = {gates[u].switch: layer for u, layer in wired.layer.items()}
    rate_bps = cluster.host_bps / wired.most_flows
    return Wiring(places, flows, layer), rate_bps, rate_bps * (1 + (outcome.gap or 0.0)), str(outcome.solver)


# -- The wiring as fabric and plan.


def design(
    cluster: Cluster,
    jobs: tuple[Job, ...],
    fragment: FragmentFormat,
    options: Options | None = None,
    before: Fabric | None = None,
) -> Design:
    """The network and the routes with the highest rate of all jobs, which is equal. The plan is checked.

    `plan.outcome` is optimal only if no higher rate is possible; else its gap is to the lowest rate that is known to be
    impossible. Links that the fabric `before` has keep their ports. Raises `SolverError` for a cluster that cannot be
    wired, `InputError` for jobs that contradict each other.
    """
    started = time.monotonic()
    options = options or Options()
    demand = Demand(jobs)
    wiring, rate_bps, bound_bps, solver = optimise(cluster, demand, options.for_solver)
    if before is not None:
        wiring = nearest(cluster, demand, wiring, before)
    fabric = fabric_of(cluster, demand, wiring, before)
    problem = Problem(fabric, jobs, fragment)
    paths = {job.number: [path for task in demand.tasks if task.job == job.number
                          for path in paths_of(cluster, demand, wiring, task)] for job in jobs}  # fmt: skip
    rates = {(task.job, task.server): rate_bps * task.weight / demand.parts for task in demand.tasks}
    plan = plan_from_paths(problem, paths, fabric.ina_names, rates_bps=rates, method="atro", window=options.window)
    reached_bps = min(plan.job_rate_bps(job.number) for job in jobs)
    outcome = proven(max(0.0, bound_bps / reached_bps - 1), started, solver)
    plan = replace(plan, outcome=outcome)
    check(problem, plan)
    return Design(problem, plan)


def fabric_of(cluster: Cluster, demand: Demand, wiring: Wiring, before: Fabric | None = None) -> Fabric:
    """The fabric of a wiring, with all links optical and switches with all their ports. Unused switches are omitted.

    Layers become tiers upside down. A link that the fabric `before` has keeps its ports, and new links have ports that
    were dark there, where a gate has some.
    """
    deepest = max(wiring.layer.values())
    ends = [(host, wiring.places[host]) for host in demand.jobs_of] + wiring.links
    used = {gate.switch for _, gate in ends} | {switch for switch, _ in wiring.links}
    free = {gate: set(ports) for gate, ports in cluster.gate_ports.items()}
    old = before.port_numbers if before else {}
    lit = {(node, port) for (node, _), port in old.items()}

    def take(gates: Sequence[Gate], node: str, peer: str) -> int:
        known = old.get((node, peer))
        _, port, gate = min(
            ((port != known, (node, port) in lit, -len(free[g])), port, g) for g in gates for port in free[g]
        )
        free[gate].remove(port)
        return port

    # A PS that is no worker and a link's sending end can have a port of any gate, so they come last.
    enters = [(node, g) for node, g in ends if node in cluster.by_name or demand.jobs_of[node]]
    at = {(node, g.switch): take([g], g.switch, node) for node, g in enters}
    at |= {(node, g.switch): take(cluster.by_name[g.switch].gates, g.switch, node) for node, g in ends
           if (node, g.switch) not in at}  # fmt: skip
    sends = {(u, g): take(cluster.by_name[u].gates, u, g.switch) for u, g in wiring.links}
    links = []
    for node, g in ends:
        bps = cluster.link_bps(node, g.switch)
        links.append(Link(node, g.switch, sends.get((node, g), 0), at[node, g.switch], bps, bps, optical=True))
    switches = tuple(
        replace(device.switch, tier=deepest + 1 - wiring.layer[name])
        for name, device in cluster.by_name.items()
        if name in used
    )
    return Fabric(cluster.name, tuple(map(Host, demand.jobs_of)), switches, tuple(links))


def paths_of(cluster: Cluster, demand: Demand, wiring: Wiring, task: Task) -> Iterator[Path]:
    """A path of the task for every worker along its flows."""
    workers = demand.job_of[task.job].workers
    starts: list[Gate | str] = [wiring.places[worker] for worker in workers]
    flows: dict[Gate | str, dict[Gate | str, int]] = {
        gate: sent for (each, gate), sent in wiring.flows.items() if each == task
    }
    children: dict[Gate | str, int] = {
        gate: device.children for gate, device in cluster.gates.items() if device.switch.ina
    }
    for worker, path in zip(workers, atro.merging_paths(starts, flows, children), strict=True):
        yield worker, *(node.switch if isinstance(node, Gate) else node for node in path)


def nearest(cluster: Cluster, demand: Demand, wiring: Wiring, before: Fabric) -> Wiring:
    """The wiring with switches of a kind and hosts of a class exchanged, so that more links of `before` stay.

    Pairs of switches change places as long as this keeps more links, so another exchange may keep still more.
    """
    old_at = {host: before.tor_of(host) for host in before.host_names}
    old_links = {frozenset((link.a, link.b)) for link in before.links}
    classes = [*demand.workers.values(), *([server] for server in demand.servers)]
    names = {name: name for name in cluster.by_name}

    def kept(names: Mapping[str, str]) -> int:
        hosts = (
            Counter(names[wiring.places[host].switch] for host in members)
            & Counter(old_at[host] for host in members if host in old_at)
            for members in classes
        )
        links = (frozenset((names[u], names[gate.switch])) in old_links for u, gate in wiring.links)
        return sum(each.total() for each in hosts) + sum(links)

    alike = [pair for pair in combinations(cluster.devices, 2) if pair[0].kind == pair[1].kind]
    exchanges = [(one.switch.name, other.switch.name) for one, other in alike]
    while True:
        trials = [names | {u: names[v], v: names[u]} for u, v in exchanges]
        best = max(trials, key=kept, default=names)
        if kept(best) <= kept(names):
            break
        names = best

    def moved(gate: Gate) -> Gate:
        return cluster.by_name[names[gate.switch]].gates[gate.pipeline]

    places: dict[str, Gate] = {}
    for members in classes:
        left = [moved(wiring.places[host]) for host in members]
        stay = sorted(members, key=lambda host: old_at.get(host) not in {gate.switch for gate in left})
        for host in stay:
            at = old_at.get(host)
            port = before.port_numbers[at, host] if at else 0
            gate = min(left, key=lambda gate: (gate.switch != at, port not in cluster.gate_ports[gate]))
            left.remove(gate)
            places[host] = gate
    flows = {
        (task, moved(gate)): {moved(to) if isinstance(to, Gate) else to: n for to, n in sent.items()}
        for (task, gate), sent in wiring.flows.items()
    }
    return Wiring(places, flows, {names[switch]: layer for switch, layer in wiring.layer.items()})
