"""A queue on a cluster over time: jobs come, are placed first come, first served, share links, and go.

Rates change when a job comes or goes, and are steady in between. A job that finds too few free hosts keeps all behind
it waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from inakit.planner.core.problem import FragmentFormat
from inakit.planner.placement.cluster import Cluster, check_queue
from inakit.planner.placement.policies import Policy, grant
from inakit.planner.placement.queue import PlacedJob, QueuedJob
from inakit.planner.placement.steady_state import Running, settle
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class InaOptions:
    """`quota`: the jobs that a switch serves where INA is exclusive. `round_trip_s`: how long a slot is held."""

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
    """When and where every job runs, in the order in which they end. Raises `InputError` for a job that never fits."""
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
        """When a running job ends if its rate stays as it is."""
        return self.now + job.left * self.iteration_s(job)

    def advance(self, until_s: float) -> None:
        """Let all running jobs go on until then.

        A job whose end is then has nothing left, although the clock may not resolve so small a rest of its time.
        """
        for job in self.running:
            passed = (until_s - self.now) / self.iteration_s(job)
            job.left = job.left - passed if self.end_s(job) > until_s else 0.0
            job.ina_s += (until_s - self.now) if job.ina else 0.0
        self.now = until_s

    def end_jobs(self) -> None:
        """Take the hosts back of the jobs that have no iterations left."""
        for job in [job for job in self.running if job.left <= 1e-9 * job.job.iterations]:
            self.running.remove(job)
            self.cluster.give_back(job.hosts)
            self.done.append(PlacedJob(job.job, job.hosts, job.start_s, self.now, job.ina_s))

    def start(self, job: QueuedJob) -> None:
        """Place a job. Of several PSs, which share the gradient, the first stands for all."""
        hosts = tuple(self.policy.place(self.cluster, job, self.busy))
        self.cluster.take(hosts)
        tree = self.cluster.tree(hosts[: job.workers], hosts[job.workers], job.number)
        self.running.append(
            Running(self.cluster, job, hosts, tree, self.now, float(job.iterations), self.policy.statistical)
        )

    def settle(self) -> None:
        """Give INA, and set all rates."""
        if not self.policy.statistical:
            grant(self.running, self.options.quota)
        if self.running:
            fragment, round_trip_s = self.fragment, self.options.round_trip_s
            self.busy = settle(self.cluster, self.running, fragment, self.policy.statistical, round_trip_s)
