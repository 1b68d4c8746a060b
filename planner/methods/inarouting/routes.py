"""Routes of tasks as next hops, what they use of links and switches, and the rates that fair shares give them.

A task (a job with one of its parameter servers, PSs) has one next hop at every switch, so its routes form a tree, and
every INA switch where two of its flows meet sums them: INARouting's hierarchical aggregation. `usage` counts flows on
links, and 1 for a switch that sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from inakit.planner.core.problem import Problem
from inakit.planner.trees.summed_once import SplitTask, split_equally
from inakit.planner.trees.unfolding import DirectedLink, Path
from inakit.topo.fabric.fabric import Fabric

Resource = str | DirectedLink
"""A switch that sums, by its name, or a directed link."""
NextHops = dict[str, str]
"""The next hop of each switch that a task passes."""
Usage = Mapping[Resource, float]


@dataclass(frozen=True)
class Network:
    """A fabric and the tasks that share it."""

    fabric: Fabric
    tasks: tuple[SplitTask, ...]

    @cached_property
    def capacities_bps(self) -> dict[Resource, float]:
        """Every directed link's capacity, and the rate at which every INA switch sums, infinite where it has none."""
        found: dict[Resource, float] = {s.name: s.aggregation_rate_bps or inf for s in self.fabric.switches}
        for link, capacity in self.fabric.capacities_bps.items():
            found[link] = capacity
        return found

    def entering(self, task: SplitTask) -> Counter[str]:
        """By switch, the task's workers that hang from it."""
        return Counter(self.fabric.tor_of(worker) for worker in task.job.workers)

    def sums(self, node: str) -> bool:
        """Whether a node is an INA switch."""
        return node in self.fabric.ina_names


def network_of(problem: Problem) -> Network:
    """The problem's fabric and tasks. Raises `InputError` for a worker that cannot reach a PS."""
    return Network(problem.fabric, tuple(split_equally(problem)))


def path_from(task: SplitTask, hops: NextHops, node: str) -> Path:
    """The way of the next hops from a node to the task's PS."""
    path = [node]
    while path[-1] != task.server:
        path.append(hops[path[-1]])
    return tuple(path)


def worker_paths(network: Network, task: SplitTask, hops: NextHops) -> list[Path]:
    """The path of every worker of the task, hosts included."""
    return [(worker, *path_from(task, hops, network.fabric.tor_of(worker))) for worker in task.job.workers]


def usage(network: Network, task: SplitTask, hops: NextHops) -> Counter[Resource]:
    """What a task uses: its flows on every link, and 1 for every switch where it is summed."""
    flows = network.entering(task)
    found: Counter[Resource] = Counter({(worker, network.fabric.tor_of(worker)): 1 for worker in task.job.workers})
    for node in farthest_first(task, hops, flows):
        leaving = flows[node]
        if leaving > 1 and network.sums(node):
            found[node] += 1
            leaving = 1
        found[node, hops[node]] += leaving
        flows[hops[node]] += leaving
    return found


def farthest_first(task: SplitTask, hops: NextHops, tors: Iterable[str]) -> list[str]:
    """The switches that the task passes, each before its next hop."""
    passed: set[str] = set()
    for tor in tors:
        node = tor
        while node != task.server and node not in passed:
            passed.add(node)
            node = hops[node]
    return sorted(passed, key=lambda node: -task.unfolded.rank[node])


def fair_rates(usages: Sequence[Usage], capacities: Mapping[Resource, float]) -> list[float]:
    """Each task's rate in bit/s when all flows on a resource have equal shares: INARouting's lambda of given routes."""
    total = totals(usages)
    return [min(capacities[r] / total[r] for r in used) for used in usages]


def totals(usages: Iterable[Usage]) -> Counter[Resource]:
    """What all tasks use together."""
    found: Counter[Resource] = Counter()
    for used in usages:
        found.update(used)
    return found


def max_min_rates(usages: Sequence[Usage], capacities: Mapping[Resource, float]) -> list[float]:
    """The max-min fair rates in bit/s: what a task leaves unused goes to others (INARouting's water-filling)."""
    rates = [0.0] * len(usages)
    left, growing = dict(capacities), set(range(len(usages)))
    while growing:
        total = totals(usages[task] for task in growing)
        rate = min(left[r] / count for r, count in total.items())
        full = {r for r, count in total.items() if left[r] <= rate * count * (1 + 1e-12)}
        ended = {task for task in growing if not full.isdisjoint(usages[task])}
        for task in ended:
            rates[task] = rate
            for r, count in usages[task].items():
                left[r] = max(0.0, left[r] - rate * count)
        growing -= ended
    return rates
