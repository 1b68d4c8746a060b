"""Placement policies by name: they choose the free hosts of a job, and the running jobs that have INA.

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

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf

import numpy as np

from inakit.planner.core.problem import FragmentFormat
from inakit.planner.placement.cluster import Block, Cluster, Running, check_queue, settle
from inakit.planner.placement.queue import PlacedJob, QueuedJob
from inakit.planner.solvers import Numbers, divided, min_plus
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import Fabric

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
        """All jobs of the queue, placed and done."""
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
        """Assign INA, and set all rates."""
        if not self.policy.statistical:
            grant(self.running, self.options.quota)
        if self.running:
            fragment, round_trip_s = self.fragment, self.options.round_trip_s
            self.busy = settle(self.cluster, self.running, fragment, self.policy.statistical, round_trip_s)
