"""Placement of jobs that come and go: the hosts of each job, and the jobs that have INA. The step before planners.

`netpack` follows the public description of NetPack (Zhao et al., Training Job Placement in Clusters with Statistical
In-Network Aggregation, ASPLOS 2024): by its abstract, free servers are valued by their GPUs and the bandwidth that an
estimate of the steady state leaves, and a dynamic program finds the servers of highest value; all jobs have statistical
INA. Its formulas were not available. Ours: a rack costs 1, plus the busy fraction of its busiest uplink, plus a little
for every free host that remains; the program finds the racks of least cost.

`mina` follows MINA's public simulator (Dong et al., MINA: Fine-grained In-network Aggregation Resource Scheduling for
Machine Learning Service, INFOCOM 2025): a dynamic program over racks, pods and all finds hosts that leave the fewest
fragments, where a completely free block counts 0.5 and one that the job fills counts 1. INA is exclusive: a switch
serves `quota` jobs. Jobs get it in the order of their hosts, by the first of five static trees that is free; MINA
solves for a maximum weighted independent set, moves trees, and lets jobs share INA in turns within an iteration.
"""

from __future__ import annotations

import pathlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from math import inf
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.fair_rates import Usage, max_min_rates
from inakit.planner.core.files import with_job_numbers
from inakit.planner.core.problem import FragmentFormat, Job
from inakit.planner.solvers import Numbers, divided, min_plus
from inakit.planner.trees.unfolding import Unfolded, static_path, unfold
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path
from inakit.topo.files.quantities import Duration, Size, Whole
from inakit.topo.files.reader import FileKind, read_file, validate

# -- Jobs that wait for hosts, and their placement.
#
#     version: 1
#     jobs:
#       - {workers: 8, gradient_bytes: 548000, iterations: 100, compute_s: 0.05, arrival_s: 2.5}
#
# A file of queued jobs is one of jobs whose `workers` and `servers` are numbers.

FILE = FileKind("file of queued jobs", max_bytes=64 << 20)


@dataclass(frozen=True)
class QueuedJob:
    """A job with its number of hosts. The constructor checks it, and raises `InputError` for a mistake."""

    number: Whole
    workers: Whole
    gradient_bytes: Size
    servers: Whole = 1
    iterations: Whole = 1
    compute_s: Duration = 0.0
    arrival_s: Duration = 0.0

    def __post_init__(self) -> None:
        for name in ("workers", "servers", "iterations"):
            if getattr(self, name) < 1:
                raise InputError(f"queued job {self.number}: {name} {getattr(self, name)}; at least 1 is expected")
        if self.gradient_bytes <= 0 or self.gradient_bytes % 4:
            raise InputError(
                f"queued job {self.number}: {self.gradient_bytes} bytes; a positive multiple of 4 is expected"
            )
        if not (0 <= self.compute_s < inf and 0 <= self.arrival_s < inf):
            raise InputError(f"queued job {self.number}: times must be finite and not negative")

    @property
    def hosts(self) -> int:
        """The hosts that the job needs: workers and parameter servers (PSs)."""
        return self.workers + self.servers


@dataclass(frozen=True)
class QueueFile:
    """The contents of a file of queued jobs."""

    version: Literal[1]
    jobs: tuple[QueuedJob, ...]


@dataclass(frozen=True)
class PlacedJob:
    """A queued job with its hosts, the first of which are its workers, and the times at which it ran.

    `ina_s` is the time for which it had INA.
    """

    job: QueuedJob
    hosts: tuple[str, ...]
    start_s: float
    end_s: float
    ina_s: float

    @property
    def completion_s(self) -> float:
        """The job completion time (JCT): from arrival to the end, including waiting."""
        return self.end_s - self.job.arrival_s

    @property
    def planned(self) -> Job:
        """The job for planners; it begins at once."""
        workers, servers = self.hosts[: self.job.workers], self.hosts[self.job.workers :]
        one = self.job
        return Job(one.number, workers, servers, one.gradient_bytes, iterations=one.iterations, compute_s=one.compute_s)


def load_queue(path: pathlib.Path) -> tuple[QueuedJob, ...]:
    """The queued jobs of a YAML or JSON file; one without a number gets its position, from 1. Raises `InputError`."""
    jobs = validate(with_job_numbers(read_file(path, FILE)), QueueFile).jobs
    if not jobs:
        raise InputError(f"{path}: no job: the list `jobs` is empty")
    for number, count in Counter(job.number for job in jobs).items():
        if count > 1:
            raise InputError(f"{path}: job {number} is listed {count} times: every job needs its own number")
    return jobs


# -- Blocks of hosts (racks, pods, all), free hosts, and static routes.


# -- The cluster: its hosts, static routes, and the steady-state rates of running jobs.


@dataclass(frozen=True)
class Block:
    """A group of hosts: a rack, whose `parts` are empty, or a block of smaller ones."""

    hosts: tuple[str, ...]
    parts: tuple[Block, ...] = ()

    @property
    def racks(self) -> tuple[Block, ...]:
        return tuple(rack for part in self.parts for rack in part.racks) if self.parts else (self,)


@dataclass
class Cluster:
    """A fabric whose hosts are free or taken; every host takes one worker or PS at a time."""

    fabric: Fabric
    free: set[str] = field(init=False)
    routes: dict[tuple[str, str, int], Path] = field(default_factory=dict)
    unfolded: dict[str, Unfolded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = set(self.fabric.host_names)

    @cached_property
    def blocks(self) -> Block:
        """All hosts: racks, and above them the blocks that the switches up to each tier connect."""
        graph: nx.Graph[str] = nx.Graph()
        racks: dict[str, list[str]] = {}
        for host in self.fabric.hosts:
            racks.setdefault(self.fabric.tor_of(host.name), []).append(host.name)
        blocks = {tor: Block(tuple(hosts)) for tor, hosts in racks.items()}
        for tier in sorted({switch.tier for switch in self.fabric.switches}):
            graph.add_nodes_from(switch.name for switch in self.fabric.switches if switch.tier <= tier)
            graph.add_edges_from((x.a, x.b) for x in self.fabric.links if x.a in graph and x.b in graph)
            for joined in nx.connected_components(graph):
                parts = {id(blocks[tor]): blocks[tor] for tor in racks if tor in joined}
                if len(parts) > 1:
                    above = Block(tuple(h for part in parts.values() for h in part.hosts), tuple(parts.values()))
                    blocks |= {tor: above for tor in racks if tor in joined}
        return next(iter(blocks.values()))

    @cached_property
    def places(self) -> dict[DirectedLink, int]:
        """The place of every directed link in arrays."""
        return {link: place for place, link in enumerate(self.fabric.capacities_bps)}

    @cached_property
    def uplinks(self) -> dict[str, NDArray[np.int64]]:
        """By switch, the places of its links to other switches."""
        neighbors, switches = self.fabric.neighbors, self.fabric.switch_by_name
        return {
            name: np.array([self.places[name, peer] for peer in neighbors[name] if peer in switches], np.int64)
            for name in switches
        }

    @cached_property
    def capacities_bps(self) -> NDArray[np.float64]:
        """The capacity of every link by its place, in bit/s."""
        return np.array(list(self.fabric.capacities_bps.values()))

    def free_hosts(self, block: Block) -> list[str]:
        return [host for host in block.hosts if host in self.free]

    def take(self, hosts: Iterable[str]) -> None:
        self.free -= set(hosts)

    def give_back(self, hosts: Iterable[str]) -> None:
        """Free the hosts of a job that has ended."""
        self.free |= set(hosts)

    def route(self, tor: str, root: str, turn: int) -> Path:
        """The static path between two ToRs."""
        key = tor, root, turn
        if key not in self.routes:
            if root not in self.unfolded:
                self.unfolded[root] = unfold(self.fabric, root)
            self.routes[key] = static_path(self.unfolded[root], tor, turn)
        return self.routes[key]

    def tree(self, workers: Sequence[str], server: str, turn: int) -> JobTree:
        """The static tree of a job's workers to one PS."""
        root = self.fabric.tor_of(server)
        entering = Counter(map(self.fabric.tor_of, workers))
        parents = {root: server}
        for tor in entering:
            parents |= dict(pairwise(self.route(tor, root, turn)))
        return JobTree(tuple(workers), server, dict(entering), parents, self.fabric.ina_names)


@dataclass(frozen=True)
class JobTree:
    """A tree towards a PS: the workers below each ToR, every switch's next hop, and the switches that can sum."""

    workers: tuple[str, ...]
    server: str
    entering: dict[str, int]
    parents: dict[str, str]
    ina_names: frozenset[str]

    @cached_property
    def summing(self) -> list[str]:
        """The INA switches at which flows meet if every such switch sums."""
        flows = Counter(self.entering)
        found = []
        for node in self.order:
            leaving = flows[node]
            if leaving > 1 and node in self.ina_names:
                found.append(node)
                leaving = 1
            flows[self.parents[node]] += leaving
        return found

    @cached_property
    def order(self) -> list[str]:
        depth: dict[str, int] = {self.server: 0}

        def depth_of(node: str) -> int:
            if node not in depth:
                depth[node] = 1 + depth_of(self.parents[node])
            return depth[node]

        return sorted(self.parents, key=lambda node: -depth_of(node))


def check_queue(fabric: Fabric, queue: Sequence[QueuedJob]) -> None:
    """Raise `InputError` for a job that is larger than the cluster."""
    for job in queue:
        if job.hosts > len(fabric.hosts):
            raise InputError(
                f"queued job {job.number} needs {job.hosts} hosts, fabric '{fabric.name}' has {len(fabric.hosts)}"
            )


# -- The steady-state rates of running jobs: max-min fair on links, with INA within the memory of switches.
#
# A job's tree sums the fraction `summed` of its fragments at every INA switch where flows meet: all of them if INA is
# exclusive, none without INA. Statistical INA sums fragments that find a free slot. A switch of S slots that are held
# for a round trip T sums S fragments in T; if jobs bring more, each loses the same fraction (NetPack's steady state, as
# we read it). Fragments that are not summed continue unchanged.

ROUNDS = 2
"""The number of rounds in which rates and summed fractions are computed from one another."""


@dataclass(eq=False)
class Running:
    """A running job: its tree, whether it has INA, the remaining iterations, and its rate in bit/s."""

    cluster: Cluster
    job: QueuedJob
    hosts: tuple[str, ...]
    tree: JobTree
    start_s: float
    left: float
    ina: bool = False
    ina_s: float = 0.0
    rate_bps: float = 0.0
    trees: dict[int, JobTree] = field(default_factory=dict)
    usages: dict[tuple[int, float], Usage] = field(default_factory=dict)

    def iteration_s(self, bits: float) -> float:
        """The seconds of an iteration that computes and then sends the given number of bits."""
        return self.job.compute_s + bits / self.rate_bps

    def tree_of(self, turn: int) -> JobTree:
        """The job's static tree of this number."""
        if turn not in self.trees:
            self.trees[turn] = self.cluster.tree(self.tree.workers, self.tree.server, turn)
        return self.trees[turn]

    def usage(self, summed: float) -> Usage:
        """The usage of a job if the fraction `summed` of its fragments is summed where flows meet."""
        key = id(self.tree), summed
        if key not in self.usages:
            self.usages[key] = usage_of(self.cluster, self.tree, summed)
        return self.usages[key]


def usage_of(cluster: Cluster, tree: JobTree, summed: float) -> Usage:
    """The flows of a tree on every link if the fraction `summed` of its fragments is summed where flows meet."""
    flows: defaultdict[str, float] = defaultdict(float, tree.entering)
    found = {(worker, cluster.fabric.tor_of(worker)): 1.0 for worker in tree.workers}
    for node in tree.order:
        leaving = flows[node]
        if leaving > 1 and node in cluster.fabric.ina_names:
            leaving = summed + (1 - summed) * leaving
        found[node, tree.parents[node]] = leaving
        flows[tree.parents[node]] += leaving
    return Usage.of(found, cluster.places)


def settle(
    cluster: Cluster, running: Sequence[Running], fragment: FragmentFormat, statistical: bool, round_trip_s: float
) -> NDArray[np.float64]:
    """Set the rates of all running jobs; return the used fraction of each link's capacity, of the shape (links,)."""
    summed = [1.0 if job.ina else 0.0 for job in running]
    usages = [job.usage(part) for job, part in zip(running, summed, strict=True)]
    rates = max_min_rates(usages, cluster.capacities_bps)
    for _ in range(ROUNDS if statistical else 0):
        before, summed = summed, summed_parts(cluster, running, rates, fragment, round_trip_s)
        if summed == before:
            break
        usages = [job.usage(part) for job, part in zip(running, summed, strict=True)]
        rates = max_min_rates(usages, cluster.capacities_bps)
    load = np.zeros(len(cluster.places))
    for job, used, rate in zip(running, usages, rates.tolist(), strict=True):
        job.rate_bps = rate
        load[used.places] += used.amounts * rate
    return load / cluster.capacities_bps


def summed_parts(
    cluster: Cluster,
    running: Sequence[Running],
    rates: NDArray[np.float64],
    fragment: FragmentFormat,
    round_trip_s: float,
) -> list[float]:
    """The fraction of each job's fragments that finds a slot at every switch that sums it."""
    wanted: defaultdict[str, float] = defaultdict(float)
    for job, rate in zip(running, rates.tolist(), strict=True):
        for switch in job.tree.summing:
            wanted[switch] += rate
    switches = cluster.fabric.switch_by_name
    bits = 8 * fragment.wire_bytes
    parts = {s: min(1.0, switches[s].aggregator_slots * bits / round_trip_s / rate) for s, rate in wanted.items()}
    return [min((parts[s] for s in job.tree.summing), default=1.0) for job in running]


# -- The policies.

Busy = Numbers
"""The used fraction of every link's capacity, by its place in `Cluster.places`."""
Place = Callable[[Cluster, QueuedJob, Busy], list[str]]
"""The free hosts for a job; enough hosts are free."""

ALPHA = 0.5
"""MINA's weight of a block that stays completely free."""
LEFT_BEHIND = 0.01
"""The cost of a free host that remains in a rack that the job uses: it decides between equally busy racks."""
TREES = 5
"""The static trees that MINA tries for a job."""


@dataclass(frozen=True)
class Policy:
    """A way to place jobs, and whether INA is `statistical`, shared by all, or exclusive."""

    summary: str
    place: Place
    statistical: bool


def place_first(cluster: Cluster, job: QueuedJob, _: Busy) -> list[str]:
    """The first free hosts, in the order of the fabric."""
    return cluster.free_hosts(cluster.blocks)[: job.hosts]


def place_netpack(cluster: Cluster, job: QueuedJob, busy: Busy) -> list[str]:
    """The hosts of the racks of least cost, as many as possible from the cheapest."""
    racks = [rack for rack in cluster.blocks.racks if cluster.free_hosts(rack)]
    tables = []
    for rack in racks:
        free = len(cluster.free_hosts(rack))
        counts = np.arange(min(free, job.hosts) + 1)
        busiest = busy[cluster.uplinks[cluster.fabric.tor_of(rack.hosts[0])]].max(initial=0.0)
        tables.append(np.where(counts == 0, 0.0, 1 + busiest + LEFT_BEHIND * (free - counts)))
    shares = divided(all_given(job.hosts), tables)
    chosen = sorted(zip(racks, shares, strict=True), key=lambda found: -found[1])
    return [host for rack, number in chosen for host in cluster.free_hosts(rack)[:number]]


def place_mina(cluster: Cluster, job: QueuedJob, _: Busy) -> list[str]:
    """The hosts that leave the fewest fragments."""
    return taken_from(cluster, cluster.blocks, job.hosts, job.hosts)


def fragments(cluster: Cluster, block: Block, most: int) -> Numbers:
    """MINA's score of a block by the number of hosts that the job takes, from 0 to `most` or to the free hosts."""
    free, size = len(cluster.free_hosts(block)), len(block.hosts)
    if not block.parts:
        counts = np.arange(min(free, most) + 1)
        score = counts + ALPHA * (free - counts)
    else:
        score = reduce(min_plus, (fragments(cluster, part, most) for part in block.parts), all_given(min(free, most)))
    if free == size:
        score[0] = ALPHA
        if size < len(score):
            score[size] = 1.0
    return score


def taken_from(cluster: Cluster, block: Block, number: int, most: int) -> list[str]:
    """The hosts of the least score, `number` in a block."""
    free = cluster.free_hosts(block)
    if not block.parts or number in (0, len(free)):
        return free[:number]
    shares = divided(all_given(number), [fragments(cluster, part, number) for part in block.parts])
    return [
        host for part, share in zip(block.parts, shares, strict=True) for host in taken_from(cluster, part, share, most)
    ]


def all_given(number: int) -> Numbers:
    """The costs of 0 to `number` hosts that blocks do not provide: all hosts have to be in blocks."""
    return np.array([0.0, *[inf] * number])


def grant(running: Sequence[Running], quota: int) -> None:
    """Give INA to running jobs, largest first, if every switch that would sum serves fewer than `quota` other jobs.

    A job with INA keeps it.
    """
    serving = Counter(switch for job in running if job.ina for switch in job.tree.summing)
    for job in sorted(running, key=lambda job: -len(job.tree.workers)):
        if job.ina:
            continue
        for turn in range(TREES):
            tree = job.tree_of(turn)
            if all(serving[switch] < quota for switch in tree.summing):
                job.tree, job.ina = tree, True
                serving.update(tree.summing)
                break


POLICIES: Mapping[str, Policy] = {
    "netpack": Policy("racks of least cost by busy uplinks; statistical INA for all (NetPack)", place_netpack, True),
    "mina": Policy("hosts that leave the fewest fragments; exclusive INA (MINA)", place_mina, False),
    "first": Policy("the first free hosts; exclusive INA", place_first, False),
}


def find_policy(name: str) -> Policy:
    """Return the policy of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in POLICIES:
        raise unknown_name("placement", name, POLICIES)
    return POLICIES[name]


# -- A queue on a cluster over time: jobs arrive, are placed first come, first served, share links, and leave.
#
# Rates change when a job arrives or leaves, and are constant in between. A job that finds too few free hosts delays all
# jobs behind it.


@dataclass(frozen=True)
class InaOptions:
    """`quota`: the jobs that a switch serves if INA is exclusive. `round_trip_s`: the time for which a slot is held."""

    quota: int = 1
    round_trip_s: float = 1e-3

    def __post_init__(self) -> None:
        if self.quota < 1:
            raise InputError(f"quota {self.quota}: a switch serves at least 1 job")
        if not self.round_trip_s > 0:
            raise InputError(f"round trip {self.round_trip_s:g} s: it must be greater than 0")


def place_queue(
    fabric: Fabric,
    queue: Sequence[QueuedJob],
    policy: Policy,
    fragment: FragmentFormat,
    options: InaOptions | None = None,
) -> list[PlacedJob]:
    """The hosts and times of every job, in the order of their ends. Raises `InputError` for a job that never fits."""
    check_queue(fabric, queue)
    return Simulation(Cluster(fabric), policy, fragment, options or InaOptions()).run(queue)


class Simulation:
    """The state of a cluster over time."""

    def __init__(self, cluster: Cluster, policy: Policy, fragment: FragmentFormat, options: InaOptions) -> None:
        self.cluster, self.policy, self.fragment, self.options = cluster, policy, fragment, options
        self.running: list[Running] = []
        self.done: list[PlacedJob] = []
        self.busy = np.zeros(len(cluster.places))
        self.now = 0.0

    def run(self, queue: Sequence[QueuedJob]) -> list[PlacedJob]:
        coming = deque(sorted(queue, key=lambda job: job.arrival_s))
        waiting: deque[QueuedJob] = deque()
        while coming or waiting or self.running:
            arrives = coming[0].arrival_s if coming else inf
            ends = min(map(self.end_s, self.running), default=inf)
            self.advance(min(arrives, ends))
            while coming and coming[0].arrival_s <= self.now:
                waiting.append(coming.popleft())
            self.end_jobs()
            while waiting and waiting[0].hosts <= len(self.cluster.free):
                self.start(waiting.popleft())
            self.settle()
        return self.done

    def iteration_s(self, job: Running) -> float:
        """The seconds of one iteration of a running job at its rate."""
        return job.iteration_s(8 * self.fragment.wire_bytes * self.fragment.count(job.job.gradient_bytes))

    def end_s(self, job: Running) -> float:
        """The end of a running job at its current rate."""
        return self.now + job.left * self.iteration_s(job)

    def advance(self, until_s: float) -> None:
        """Advance all running jobs to the given time.

        A job that ends then has no iterations left, even where the clock cannot resolve its last fraction of time.
        """
        for job in self.running:
            passed = (until_s - self.now) / self.iteration_s(job)
            job.left = job.left - passed if self.end_s(job) > until_s else 0.0
            job.ina_s += (until_s - self.now) if job.ina else 0.0
        self.now = until_s

    def end_jobs(self) -> None:
        """Free the hosts of the jobs without remaining iterations."""
        for job in [job for job in self.running if job.left <= 1e-9 * job.job.iterations]:
            self.running.remove(job)
            self.cluster.give_back(job.hosts)
            self.done.append(PlacedJob(job.job, job.hosts, job.start_s, self.now, job.ina_s))

    def start(self, job: QueuedJob) -> None:
        """Place a job. Of several PSs, which share the gradient, the first represents all."""
        hosts = tuple(self.policy.place(self.cluster, job, self.busy))
        self.cluster.take(hosts)
        tree = self.cluster.tree(hosts[: job.workers], hosts[job.workers], job.number)
        self.running.append(
            Running(self.cluster, job, hosts, tree, self.now, float(job.iterations), self.policy.statistical)
        )

    def settle(self) -> None:
        if not self.policy.statistical:
            grant(self.running, self.options.quota)
        if self.running:
            fragment, round_trip_s = self.fragment, self.options.round_trip_s
            self.busy = settle(self.cluster, self.running, fragment, self.policy.statistical, round_trip_s)
