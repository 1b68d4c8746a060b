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

from planner.core.problem import FragmentFormat
from planner.placement.cluster import Cluster, JobTree
from planner.placement.queue import QueuedJob

ROUNDS = 3
"""How often rates and the summed parts of jobs are computed from one another."""


@dataclass(eq=False)
class Running:
    """A job that runs: its tree, whether it has INA, the iterations that are left, and its rate in bit/s."""

    job: QueuedJob
    hosts: tuple[str, ...]
    tree: JobTree
    start_s: float
    left: float
    ina: bool = False
    ina_s: float = 0.0
    rate_bps: float = 0.0
    summing: list[str] = field(default_factory=list)

    def iteration_s(self, bits: float) -> float:
        """The seconds of an iteration that computes, and then sends so many bits."""
        return self.job.compute_s + bits / self.rate_bps


Usage = dict[tuple[str, str], float]
"""The flows of a job on every link that it uses."""


def usage(cluster: Cluster, job: Running, summed: float) -> Usage:
    """The flows of a job on every link, when the part `summed` of its fragments is summed where flows meet."""
    tree = job.tree
    flows: defaultdict[str, float] = defaultdict(float, tree.entering)
    found: Usage = {(worker, cluster.fabric.tor_of(worker)): 1.0 for worker in tree.workers}
    for node in tree.order:
        leaving = flows[node]
        if leaving > 1 and node in cluster.fabric.ina_names:
            leaving = summed + (1 - summed) * leaving
        found[node, tree.parents[node]] = leaving
        flows[tree.parents[node]] += leaving
    return found


def settle(
    cluster: Cluster, running: Sequence[Running], fragment: FragmentFormat, statistical: bool, round_trip_s: float
) -> dict[tuple[str, str], float]:
    """Set the rates of all running jobs; the part of each link's capacity that they use."""
    summed = np.array([1.0 if job.ina else 0.0 for job in running])
    rates = np.zeros(len(running))
    usages: list[Usage] = []
    for _ in range(ROUNDS if statistical else 1):
        usages = [usage(cluster, job, part) for job, part in zip(running, summed, strict=True)]
        rates = max_min(usages, cluster)
        if statistical:
            summed = summed_parts(cluster, running, rates, fragment, round_trip_s)
    for job, rate in zip(running, rates.tolist(), strict=True):
        job.rate_bps = rate
    busy: defaultdict[tuple[str, str], float] = defaultdict(float)
    for used, rate in zip(usages, rates.tolist(), strict=True):
        for link, flows in used.items():
            busy[link] += flows * rate / cluster.fabric.capacities_bps[link]
    return dict(busy)


def summed_parts(
    cluster: Cluster,
    running: Sequence[Running],
    rates: NDArray[np.float64],
    fragment: FragmentFormat,
    round_trip_s: float,
) -> NDArray[np.float64]:
    """The part of each job's fragments that finds a slot at every switch that sums it, of the shape (jobs,)."""
    wanted: defaultdict[str, float] = defaultdict(float)
    for job, rate in zip(running, rates.tolist(), strict=True):
        for switch in job.summing:
            wanted[switch] += rate
    switches = cluster.fabric.switch_by_name
    bits = 8 * fragment.wire_bytes
    parts = {s: min(1.0, switches[s].aggregator_slots * bits / round_trip_s / rate) for s, rate in wanted.items()}
    return np.array([min((parts[s] for s in job.summing), default=1.0) for job in running])


def max_min(usages: Sequence[Usage], cluster: Cluster) -> NDArray[np.float64]:
    """The max-min fair rates in bit/s, of the shape (jobs,): all grow together until a link of theirs is full."""
    links = {link: place for place, link in enumerate(dict.fromkeys(link for used in usages for link in used))}
    left = np.array([cluster.fabric.capacities_bps[link] for link in links])
    owner = np.repeat(np.arange(len(usages)), [len(used) for used in usages])
    column = np.array([links[link] for used in usages for link in used])
    flows = np.array([count for used in usages for count in used.values()], np.float64)
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
