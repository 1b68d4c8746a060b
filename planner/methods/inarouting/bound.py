"""What no routes exceed, by counting the flows that are in the same place whatever is chosen.

A task enters the switches of its racks, is summed there if several of its workers are, and ends at its parameter server
(PS). A switch with one next hop leads all on. The fair shares of these flows alone bound the rate of each task, and
their sum the total. It takes milliseconds where the integer program's proof takes seconds to minutes.
"""

from __future__ import annotations

from collections import Counter

from inakit.planner.methods.inarouting.routes import Network, Resource, Usage, fair_rates
from inakit.planner.trees.summed_once import SplitTask


def total_bound_bps(network: Network) -> float:
    """A total of fair rates, in bit/s, that no routes of the tasks exceed."""
    usages = [certain_usage(network, task) for task in network.tasks]
    return sum(fair_rates(usages, network.capacities_bps))


def certain_usage(network: Network, task: SplitTask) -> Usage:
    """The least that a task uses of each resource, counted as `usage` does, for every choice of routes."""
    found: Counter[Resource] = Counter({(worker, network.fabric.tor_of(worker)): 1 for worker in task.job.workers})
    flows, last = network.entering(task), network.fabric.tor_of(task.server)
    own, racks = flows[last], len(+flows)
    for node in sorted(task.unfolded.next_hops, key=lambda node: -task.unfolded.rank[node])[:-1]:
        if node == last and flows[last] == own and racks > bool(own):
            flows[last] += 1  # from the other racks, by a link that is not known
        summed = flows[node] > 1 and network.sums(node)
        found[node] += summed
        if len(hops := task.unfolded.next_hops[node]) == 1:
            leaving = 1 if summed else flows[node]
            found[node, hops[0]] += leaving
            flows[hops[0]] += leaving
    return +found
