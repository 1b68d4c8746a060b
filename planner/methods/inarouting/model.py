"""INARouting's mixed-integer program, with the names of its published code, and its linear relaxation.

For task j: x[j, l] = 1 if it uses link l, y[j, v] = 1 if it passes switch v, a[j, v] = 1 if switch v sums it, lambda[j]
is its rate. Rates are in units of the largest capacity.

    maximise sum of lambda[j]
    out flow        sum of x[j, l] over links l out of v = y[j, v]
    in flow         x[j, l] <= y[j, v] for links l into v; y[j, v] <= in flow of v
    aggregation     2 a[j, v] <= in flow of v <= 1 + M a[j, v]
    fair shares     lambda[j] n[r] <= C[r] where j uses r; n[r] = number of flows on link r, of tasks that r sums

The published code gives the products of the last line to Gurobi. Here a count n[r] of at most N is written in binaries
u[r, 1] >= u[r, 2] >= ... that sum to n[r], and 1 / n = 1 - sum of u[r, i] / (i (i - 1)) over i >= 2 is linear in them.
In the relaxation that sum is its chord (n - 1) / N. A switch that cannot sum, which INARouting does not have, passes on
as many flows as enter: variables f[j, l] count them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import inf
from typing import Any

import pulp

from inakit.planner.methods.inarouting.routes import Network, NextHops, Resource
from inakit.planner.trees.summed_once import SplitTask
from inakit.planner.trees.unfolding import DirectedLink

Key = tuple[int, Any]
"""A task's place, and a link or a switch."""


ROUNDING = 1e-6
"""By this share a total rate that is known to be possible is lowered."""


@dataclass(frozen=True)
class Model:
    """The program and its variables by task and link or switch. `unit_bps` is the rate of lambda = 1."""

    program: pulp.LpProblem
    x: dict[Key, Any]
    y: dict[Key, Any]
    a: dict[Key, Any]
    rate: list[Any]
    unit_bps: float


def build(network: Network, *, relaxed: bool = False, at_least_bps: float = 0.0) -> Model:
    """The program of a network. `at_least_bps` is a total rate that is known to be possible."""
    builder = Builder(network, relaxed)
    for place, task in enumerate(network.tasks):
        builder.add_routes(place, task)
    builder.add_fair_shares()
    total = pulp.lpSum(builder.rate)
    builder.program += total, "total_rate"
    builder.program += total >= at_least_bps / builder.unit_bps * (1 - ROUNDING), "known_total"
    return Model(builder.program, builder.x, builder.y, builder.a, builder.rate, builder.unit_bps)


class Builder:
    """Adds the variables and constraints of tasks to a program, and remembers who uses which resource."""

    def __init__(self, network: Network, relaxed: bool) -> None:
        self.network, self.relaxed = network, relaxed
        self.unit_bps = max(network.fabric.capacities_bps.values())
        self.program = pulp.LpProblem("inarouting", pulp.LpMaximize)
        self.x: dict[Key, Any] = {}
        self.y: dict[Key, Any] = {}
        self.a: dict[Key, Any] = {}
        self.rate: list[Any] = []
        self.users: dict[Resource, list[tuple[int, Any, Any, int]]] = defaultdict(list)
        """By resource: the task, whether it uses it, how many flows it has there, and the most that it can have."""

    def binary(self, name: str) -> Any:
        """A variable of 0 or 1, or between them in the relaxation."""
        return self.program.add_variable(name, 0, 1, pulp.LpContinuous if self.relaxed else pulp.LpInteger)

    def add_routes(self, place: int, task: SplitTask) -> None:
        """Add the tree of one task: out flow, in flow and aggregation of every switch that it may pass."""
        entering = self.network.entering(task)
        links = list(task.unfolded.links(entering))
        most = self.most_flows(task, links)
        self.rate.append(self.program.add_variable(f"lambda_{place}", 0, self.access_rate(task)))
        for number, link in enumerate(links):
            self.x[place, link] = self.binary(f"x_{place}_{number}")
        flows = {link: self.flow_variable(place, link, number, most[link]) for number, link in enumerate(links)}
        for number, node in enumerate(dict.fromkeys(tail for tail, _ in links)):
            self.add_switch(place, node, number, entering[node], links, flows, most)
        for worker in task.job.workers:
            self.users[worker, self.network.fabric.tor_of(worker)].append((place, 1, 1, 1))
        for link in links:
            self.users[link].append((place, self.x[place, link], flows[link], most[link]))

    def access_rate(self, task: SplitTask) -> float:
        """The rate that the narrowest link of a worker allows."""
        fabric = self.network.fabric
        return min(fabric.capacities_bps[w, fabric.tor_of(w)] for w in task.job.workers) / self.unit_bps

    def most_flows(self, task: SplitTask, links: list[DirectedLink]) -> dict[DirectedLink, int]:
        """The most flows that a task can have on a link: 1 behind a switch that sums, else all its workers."""
        entering = self.network.entering(task)
        inner = {head for _, head in links}
        return {
            link: 1 if self.network.sums(link[0]) else len(task.job.workers) if link[0] in inner else entering[link[0]]
            for link in links
        }

    def flow_variable(self, place: int, link: DirectedLink, number: int, most: int) -> Any:
        """The flows of a task on a link: x itself where there can only be one."""
        if most == 1:
            return self.x[place, link]
        flow = self.program.add_variable(f"f_{place}_{number}", 0, most)
        self.program += flow <= most * self.x[place, link], f"flows_{place}_{number}"
        self.program += flow >= self.x[place, link], f"flow_{place}_{number}"
        return flow

    def add_switch(
        self,
        place: int,
        node: str,
        number: int,
        workers: int,
        links: list[DirectedLink],
        flows: dict[DirectedLink, Any],
        most: dict[DirectedLink, int],
    ) -> None:
        """Add one switch of a task, below which `workers` of its workers hang directly."""
        name = f"{place}_{number}"
        into = [link for link in links if link[1] == node]
        out = [link for link in links if link[0] == node]
        entered = pulp.lpSum(flows[link] for link in into) + workers
        self.y[place, node] = y = 1 if workers else self.binary(f"y_{name}")
        self.program += pulp.lpSum(self.x[place, link] for link in out) == y, f"out_flow_{name}"
        for position, link in enumerate(into):
            self.program += self.x[place, link] <= y, f"in_flow_{name}_{position}"
        self.program += pulp.lpSum(self.x[place, link] for link in into) + workers >= y, f"active_{name}"
        if not self.network.sums(node):
            self.program += pulp.lpSum(flows[link] for link in out) == entered, f"passes_on_{name}"
        elif self.network.capacities_bps[node] < inf:
            self.a[place, node] = a = self.binary(f"a_{name}")
            limit = workers + sum(most[link] for link in into)
            self.program += entered >= 2 * a, f"aggregation_needs_two_{name}"
            self.program += entered <= 1 + limit * a, f"aggregation_of_two_{name}"
            self.users[node].append((place, a, a, 1))

    def add_fair_shares(self) -> None:
        """Add, for every resource, that no task has more than the fair share of each of its flows there."""
        for number, (resource, users) in enumerate(self.users.items()):
            most = sum(limit for _, _, _, limit in users)
            capacity = self.network.capacities_bps[resource] / self.unit_bps
            if capacity == inf or (most == 1 and capacity >= 1):
                continue
            count = pulp.lpSum(flows for _, _, flows, _ in users)
            lost = (count - 1) * (1 / most) if self.relaxed else self.lost_share(number, count, most)
            for place, uses, _, _ in users:
                limit = self.rate[place].upBound
                self.program += (
                    self.rate[place] <= capacity * (1 - lost) + limit * (1 - uses),
                    f"fair_{number}_{place}",
                )

    def lost_share(self, number: int, count: Any, most: int) -> Any:
        """1 - 1 / n of a count n that is at least 1 and at most `most`; 0 where it is 0."""
        u = [self.program.add_variable(f"u_{number}_{n}", 0, 1, pulp.LpInteger) for n in range(1, most + 1)]
        self.program += pulp.lpSum(u) == count, f"count_{number}"
        for n in range(1, most):
            self.program += u[n] <= u[n - 1], f"order_{number}_{n}"
        return pulp.lpSum(u[n - 1] * (1 / (n * (n - 1))) for n in range(2, most + 1))


def extract(network: Network, model: Model) -> list[NextHops]:
    """The next hops of every task in a solution of the integer program."""
    hops: list[NextHops] = [{} for _ in network.tasks]
    for (place, (tail, head)), x in model.x.items():
        if x.varValue > 0.5:
            hops[place][tail] = head
    return hops
