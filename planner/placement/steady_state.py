"""The rates that running jobs settle at: max-min fair on links, with INA as far as switch memory goes.

A job's tree sums at every INA switch where flows meet, of the part `summed` of its fragments: all of them where INA is
exclusive, none without INA. Statistical INA sums what finds a free slot. A switch of S slots that are held for a round
trip T sums S fragments in T; where jobs bring more, each loses the same part (NetPack's steady state, our reading).
Fragments that are not summed go on as they came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import FragmentFormat
from inakit.planner.placement.cluster import Cluster, JobTree
from inakit.planner.placement.queue import QueuedJob

ROUNDS = 2
"""How often rates and the summed parts of jobs are computed from one another."""


@dataclass(frozen=True, eq=False)
class Usage:
    """The flows of a job on links, by the links' places in `Cluster.places`; both of the shape (links used,)."""

    links: NDArray[np.int64]
    flows: NDArray[np.float64]


@dataclass(eq=False)
class Running:
    """A job that runs: its tree, whether it has INA, the iterations that are left, and its rate in bit/s."""

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
        """The seconds of an iteration that computes, and then sends so many bits."""
        return self.job.compute_s + bits / self.rate_bps

    def tree_of(self, turn: int) -> JobTree:
        """The job's static tree of that number."""
        if turn not in self.trees:
            self.trees[turn] = self.cluster.tree(self.tree.workers, self.tree.server, turn)
        return self.trees[turn]

    def usage(self, summed: float) -> Usage:
        """What the job uses when the part `summed` of its fragments is summed where flows meet."""
        key = id(self.tree), summed
        if key not in self.usages:
            self.usages[key] = usage_of(self.cluster, self.tree, summed)
        return self.usages[key]


def usage_of(cluster: Cluster, tree: JobTree, summed: float) -> Usage:
    """The flows of a tree on every link, when the part `summed` of its fragments is summed where flows meet."""
    flows: defaultdict[str, float] = defaultdict(float, tree.entering)
    found = {(worker, cluster.fabric.tor_of(worker)): 1.0 for worker in tree.workers}
    for node in tree.order:
        leaving = flows[node]
        if leaving > 1 and node in cluster.fabric.ina_names:
            leaving = summed + (1 - summed) * leaving
        found[node, tree.parents[node]] = leaving
        flows[tree.parents[node]] += leaving
    return Usage(np.array([cluster.places[link] for link in found]), np.array(list(found.values())))


def settle(
    cluster: Cluster, running: Sequence[Running], fragment: FragmentFormat, statistical: bool, round_trip_s: float
) -> NDArray[np.float64]:
    """Set the rates of all running jobs; the part of each link's capacity that they use, of the shape (links,)."""
    summed = [1.0 if job.ina else 0.0 for job in running]
    rates = max_min([job.usage(part) for job, part in zip(running, summed, strict=True)], cluster)
    for _ in range(ROUNDS if statistical else 0):
        before, summed = summed, summed_parts(cluster, running, rates, fragment, round_trip_s)
        if summed == before:
            break
        rates = max_min([job.usage(part) for job, part in zip(running, summed, strict=True)], cluster)
    load = np.zeros(len(cluster.places))
    for job, part, rate in zip(running, summed, rates.tolist(), strict=True):
        job.rate_bps = rate
        used = job.usage(part)
        load[used.links] += used.flows * rate
    return load / cluster.capacities_bps


def summed_parts(
    cluster: Cluster,
    running: Sequence[Running],
    rates: NDArray[np.float64],
    fragment: FragmentFormat,
    round_trip_s: float,
) -> list[float]:
    """The part of each job's fragments that finds a slot at every switch that sums it."""
    wanted: defaultdict[str, float] = defaultdict(float)
    for job, rate in zip(running, rates.tolist(), strict=True):
        for switch in job.tree.summing:
            wanted[switch] += rate
    switches = cluster.fabric.switch_by_name
    bits = 8 * fragment.wire_bytes
    parts = {s: min(1.0, switches[s].aggregator_slots * bits / round_trip_s / rate) for s, rate in wanted.items()}
    return [min((parts[s] for s in job.tree.summing), default=1.0) for job in running]


def max_min(usages: Sequence[Usage], cluster: Cluster) -> NDArray[np.float64]:
    """The max-min fair rates in bit/s, of the shape (jobs,): all grow together until a link of theirs is full."""
    owner = np.repeat(np.arange(len(usages)), [len(used.links) for used in usages])
    column = np.concatenate([used.links for used in usages])
    flows = np.concatenate([used.flows for used in usages])
    links, column = np.unique(column, return_inverse=True)
    left = cluster.capacities_bps[links]
    rates, growing = np.zeros(len(usages)), np.ones(len(usages), np.bool_)
    while growing.any():
        active = growing[owner]
        load = np.bincount(column, flows * active, len(links))
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(load > 0, left / load, np.inf)
        rate = room.min()
        full = room <= rate * (1 + 1e-9)
        ended = np.zeros(len(usages), np.bool_)
        ended[owner[active & full[column]]] = True
        ended &= growing
        rates[ended] = rate
        left = np.maximum(left - np.bincount(column, flows * ended[owner], len(links)) * rate, 0.0)
        growing &= ~ended
    return rates
