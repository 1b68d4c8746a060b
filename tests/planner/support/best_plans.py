"""The best plans of small problems by enumeration: the second way by which "optimal" is believed.

Trees are enumerated as the loads that one unit of rate puts on every link and on every limited aggregator. Flows of a
task are counted, not named, so that 70 workers take no longer than 7. CBC then chooses trees and rates. Nothing is
shared with the planners but fabrics, problems and the shortest up-down paths.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise, product
from math import inf, prod

import numpy as np
import pulp
from pulp.apis.coin_api import pulp_cbc_path

from inakit.planner.core.problem import Problem
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.up_down import up_down_paths

Resource = tuple[str, ...]
"""A link (two nodes), the aggregators of a switch (its name), or those of a pipeline (switch, "", number)."""
Loads = frozenset[tuple[Resource, int]]
"""By resource, the flows of a tree."""
Inp = tuple[str, int]

BITS = 64
MU = 0.001


@dataclass(frozen=True)
class Task:
    """A job's number, its workers and one of its parameter servers (PSs)."""

    job: int
    workers: tuple[str, ...]
    server: str


def tasks_of(problem: Problem) -> list[Task]:
    return [Task(job.number, job.workers, server) for job in problem.jobs for server in job.servers]


def capacity_bps(fabric: Fabric, resource: Resource) -> float:
    """The capacity of a link, or the rate that a switch or a pipeline sums; infinite where nothing limits it."""
    switch = fabric.switch_by_name.get(resource[0])
    if len(resource) == 1:
        return (switch and switch.aggregation_rate_bps) or inf
    if len(resource) == 2:
        return fabric.capacities_bps[resource[0], resource[1]]
    chip = switch.chip if switch else None
    if chip is None or chip.recirculation_bps is None or chip.values_per_pass >= BITS:
        return inf
    return chip.recirculation_bps / (-(-BITS // chip.values_per_pass) - 1)


def bits(fabric: Fabric, switch: str) -> int:
    """The flows that one slot of the switch sums."""
    chip = fabric.switch_by_name[switch].chip
    return BITS if chip is None else min(BITS, chip.children_per_slot)


def summing(fabric: Fabric, inp: Inp, flows: int) -> Counter[Resource]:
    """The load of `flows` that a pipeline sums, on its aggregators and on those of its switch, where they are limited.

    One flow alone is forwarded.
    """
    found: Counter[Resource] = Counter()
    if flows > 1:
        for resource in ((inp[0],), (inp[0], "", str(inp[1]))):
            if capacity_bps(fabric, resource) < inf:
                found[resource] = flows
    return found


def parts(total: int, ways: int) -> Iterator[tuple[int, ...]]:
    """The ways to write `total` as a sum of `ways` whole numbers, in order."""
    if ways == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in parts(total - first, ways - 1))


def least(loads: Iterable[Loads]) -> list[Loads]:
    """The loads without those that another tree undercuts everywhere."""
    found = list(dict.fromkeys(loads))
    if len(found) < 2:
        return found
    places = {resource: place for place, resource in enumerate(dict.fromkeys(r for own in found for r, _ in own))}
    table = np.zeros((len(found), len(places)), np.int16)
    for row, own in zip(table, found, strict=True):
        for resource, count in own:
            row[places[resource]] = count
    order = np.argsort(table.sum(axis=1), kind="stable")
    kept: list[int] = []
    for number in order:
        if not kept or not (table[kept] <= table[number]).all(axis=1).any():
            kept.append(int(number))
    return [found[number] for number in kept]


# -- Classes of trees.


@cache
def next_hops(fabric: Fabric, task: Task) -> dict[str, tuple[str, ...]]:
    """By switch, the next nodes of the shortest up-down paths from the workers' racks; each node before its next ones.

    In a Clos network every way along these hops is such a path.
    """
    hops: defaultdict[str, set[str]] = defaultdict(set)
    lengths: dict[str, int] = {task.server: 0}
    count = {}
    for tor in {fabric.tor_of(worker) for worker in task.workers}:
        paths = up_down_paths(fabric, tor, task.server)
        assert paths, "a worker cannot reach its PS"
        for path in paths:
            for place, (node, following) in enumerate(pairwise(path)):
                hops[node].add(following)
                assert lengths.setdefault(node, len(path) - place) == len(path) - place
        count[tor] = len(paths)

    def ways(node: str) -> int:
        return sum(map(ways, hops[node])) if node in hops else 1

    assert all(ways(tor) == number for tor, number in count.items()), "not a Clos network"
    order = sorted(hops, key=lambda node: -lengths[node])
    return {node: tuple(sorted(hops[node])) for node in order}


def merging_trees(fabric: Fabric, task: Task, *, one_next_hop: bool = False) -> list[Loads]:
    """ARO's trees: flows that enter a pipeline of an INA switch leave it as one, or as one for each slot's bits.

    With `one_next_hop` all flows leave a switch by one link (INARouting).
    """
    hops = next_hops(fabric, task)

    def ports(flows: Mapping[tuple[str, str], int]) -> frozenset[tuple[tuple[str, str], int]]:
        return frozenset((link, n) for link, n in flows.items() if n)

    access: Counter[tuple[str, str]] = Counter()
    for worker in task.workers:
        access[worker, fabric.tor_of(worker)] += 1
    waiting: dict[frozenset[tuple[tuple[str, str], int]], list[Loads]] = {ports(access): [frozenset(access.items())]}
    for node, peers in hops.items():
        following: defaultdict[frozenset[tuple[tuple[str, str], int]], list[Loads]] = defaultdict(list)
        for arrived, known in waiting.items():
            here = Counter({link: n for link, n in arrived if link[1] == node})
            others = {link: n for link, n in arrived if link[1] != node}
            leaving, summed = leave(fabric, node, here)
            choices: Iterable[tuple[int, ...]] = parts(leaving, len(peers))
            if one_next_hop:
                choices = (tuple(leaving * (peer == other) for other in peers) for peer in peers)
            for chosen in set(choices):
                out = {(node, peer): n for peer, n in zip(peers, chosen, strict=True) if n}
                added = frozenset((*out.items(), *summed.items()))
                following[ports(others | out)] += [own | added for own in known]
        waiting = {arrived: least(known) for arrived, known in following.items()}
    return least(own for known in waiting.values() for own in known)


def leave(fabric: Fabric, node: str, here: Counter[tuple[str, str]]) -> tuple[int, Counter[Resource]]:
    """The flows that leave a switch into which `here` come, and the loads of its aggregators."""
    if not fabric.switch_by_name[node].ina:
        return sum(here.values()), Counter()
    entered: Counter[int] = Counter()
    for (before, _), n in here.items():
        entered[fabric.ingress_pipeline(node, before)] += n
    summed: Counter[Resource] = Counter()
    for pipeline, n in entered.items():
        summed += summing(fabric, (node, pipeline), n)
    return sum(-(-n // bits(fabric, node)) for n in entered.values()), summed


def once_summed_trees(fabric: Fabric, task: Task) -> list[Loads]:
    """InArt's trees: a flow is summed in one pipeline of an INA switch on its way, or nowhere; sums only travel on."""
    racks = Counter((tor := fabric.tor_of(w), fabric.ingress_pipeline(tor, w)) for w in task.workers)
    access: Counter[Resource] = Counter({(worker, fabric.tor_of(worker)): 1 for worker in task.workers})
    states: dict[tuple[tuple[Inp, int], ...], list[Loads]] = {(): [frozenset(access.items())]}
    for (tor, pipeline), flows in racks.items():
        ways = list(once_summed_ways(fabric, task, tor, pipeline))
        following: defaultdict[tuple[tuple[Inp, int], ...], list[Loads]] = defaultdict(list)
        for chosen in parts(flows, len(ways)):
            links: Counter[Resource] = Counter()
            into: Counter[Inp] = Counter()
            for (path, inp), n in zip(ways, chosen, strict=True):
                links.update(dict.fromkeys(pairwise(path), n))
                if inp is not None and n:
                    into[inp] += n
            for known, all_loads in states.items():
                key = tuple(sorted((Counter(dict(known)) + into).items()))
                following[key] += [together(own, links) for own in all_loads]
        states = {known: least(all_loads) for known, all_loads in following.items()}
    found: list[Loads] = []
    for known, all_loads in states.items():
        if any(n == 1 for _, n in known):
            continue  # the same flow summed nowhere has these loads too
        sums = [sums_of_inp(fabric, task, inp, n) for inp, n in known]
        for chosen_sums in product(*sums):
            more: Counter[Resource] = Counter()
            for own in chosen_sums:
                more.update(own)
            found += [together(own, more) for own in all_loads]
    return least(found)


def once_summed_ways(
    fabric: Fabric, task: Task, tor: str, pipeline: int
) -> Iterator[tuple[tuple[str, ...], Inp | None]]:
    """From a rack: the nodes up to the switch that sums, with its pipeline; or up to the PS, with none."""
    known: dict[tuple[tuple[str, ...], Inp | None], None] = {}
    for path in up_down_paths(fabric, tor, task.server):
        known[path, None] = None
        for place, switch in enumerate(path[:-1]):
            if fabric.switch_by_name[switch].ina:
                entered = fabric.ingress_pipeline(switch, path[place - 1]) if place else pipeline
                known[path[: place + 1], (switch, entered)] = None
    yield from known


def sums_of_inp(fabric: Fabric, task: Task, inp: Inp, flows: int) -> list[Counter[Resource]]:
    """The loads of a pipeline that sums: of its aggregators, and of its sums on all ways to the PS."""
    onward = up_down_paths(fabric, inp[0], task.server)
    found = []
    for chosen in parts(-(-flows // bits(fabric, inp[0])), len(onward)):
        loads = summing(fabric, inp, flows)
        for path, n in zip(onward, chosen, strict=True):
            loads.update(dict.fromkeys(pairwise(path), n))
        found.append(+loads)
    return found


def together(loads: Loads, more: Counter[Resource]) -> Loads:
    return frozenset((Counter(dict(loads)) + more).items())


def cbc() -> pulp.COIN_CMD:
    """CBC, the installed one or PuLP's, which proves its solutions."""
    path = shutil.which("cbc") or pulp_cbc_path
    return pulp.COIN_CMD(path=path, msg=False, options=["ratioGap 0", "allowableGap 0", "increment 1e-9"])


# -- The best rates of chosen trees, or of the best choice of trees.

Trees = Callable[[Fabric, Task], list[Loads]]
"""The trees of a task."""


@dataclass(frozen=True)
class Choice:
    """A model of rates over all trees of all tasks: `rate[i]` is that of task i, in units of `unit_bps`."""

    problem: Problem
    model: pulp.LpProblem
    rate: list[pulp.LpAffineExpression]
    unit_bps: float

    def of_job(self, number: int) -> pulp.LpAffineExpression:
        pairs = zip(tasks_of(self.problem), self.rate, strict=True)
        return pulp.lpSum(rate for task, rate in pairs if task.job == number)

    def best_bps(self, objective: pulp.LpAffineExpression) -> float:
        """The highest value of the objective, by CBC."""
        self.model.setObjective(objective)
        self.model.solve(cbc())
        assert self.model.status == pulp.LpStatusOptimal
        return float(pulp.value(self.model.objective)) * self.unit_bps


def choice(problem: Problem, trees: Trees, *, one_each: bool) -> Choice:
    """All trees of all tasks: with `one_each` a task uses one of them, otherwise any number."""
    fabric, model = problem.fabric, pulp.LpProblem("choice", pulp.LpMaximize)
    unit = max(fabric.capacities_bps.values())
    used: defaultdict[Resource, list[pulp.LpAffineExpression]] = defaultdict(list)
    rates = []
    for i, task in enumerate(tasks_of(problem)):
        own, chosen = [], []
        for k, loads in enumerate(trees(fabric, task)):
            most = min(capacity_bps(fabric, resource) / n for resource, n in loads) / unit
            r = model.add_variable(f"r_{i}_{k}", 0, most)
            if one_each:
                chosen.append(model.add_variable(f"z_{i}_{k}", cat=pulp.LpBinary))
                model += r <= most * chosen[-1]
            own.append(r)
            for resource, n in loads:
                used[resource].append(n * r)
        if one_each:
            model += pulp.lpSum(chosen) == 1
        rates.append(pulp.lpSum(own))
    for resource, terms in used.items():
        model += pulp.lpSum(terms) <= capacity_bps(fabric, resource) / unit
    return Choice(problem, model, rates, unit)


def best_worth_bps(problem: Problem, trees: Trees, *, one_each: bool) -> float:
    """ARO's Eq. (2) for one job, Eq. (3) for several: the least weighted rate of a job, plus a little of all."""
    if one_each and len(tasks_of(problem)) == 1:
        (task,) = tasks_of(problem)
        return max(rate_alone_bps(problem.fabric, loads) for loads in trees(problem.fabric, task))
    rates = choice(problem, trees, one_each=one_each)
    if len(problem.jobs) == 1:
        return rates.best_bps(pulp.lpSum(rates.rate))
    model = rates.model
    bottom = model.add_variable("least", 0)
    weighted = [beta(problem, job.number) * rates.of_job(job.number) for job in problem.jobs]
    for rate in weighted:
        model += bottom <= rate
    return rates.best_bps(bottom + MU * pulp.lpSum(weighted))


def beta(problem: Problem, number: int) -> float:
    """ARO's beta of a job: the inverse of its weight, so that the least rate per weight is raised."""
    return 1 / next(job.weight for job in problem.jobs if job.number == number)


def worth_bps(problem: Problem, rates_bps: Mapping[int, float]) -> float:
    """ARO's Eq. (2) or (3) of the jobs' rates."""
    if len(rates_bps) == 1:
        return sum(rates_bps.values())
    weighted = [beta(problem, number) * rate for number, rate in rates_bps.items()]
    return min(weighted) + MU * sum(weighted)


def best_equal_bps(problem: Problem, trees: Trees, *, one_each: bool, equal_split: bool) -> float:
    """InArt's f: the highest rate of all workers of all jobs; their gradients are split over PSs freely or equally."""
    rates = choice(problem, trees, one_each=one_each)
    model = rates.model
    f = model.add_variable("f", 0)
    for job in problem.jobs:
        model += f <= rates.of_job(job.number)
    if equal_split:
        servers = {job.number: len(job.servers) for job in problem.jobs}
        for task, rate in zip(tasks_of(problem), rates.rate, strict=True):
            model += f <= servers[task.job] * rate
    return rates.best_bps(pulp.lpSum([f]))


def rate_alone_bps(fabric: Fabric, loads: Loads) -> float:
    return min(capacity_bps(fabric, resource) / n for resource, n in loads)


def best_fair_total_bps(problem: Problem, trees: Trees) -> float:
    """INARouting's objective: a resource gives each of its flows an equal part, and tasks' rates are added."""
    options = [trees(problem.fabric, task) for task in tasks_of(problem)]
    assert prod(map(len, options)) < 200_000, "too large a problem"
    return max(fair_total_bps(problem.fabric, chosen) for chosen in product(*options))


def fair_total_bps(fabric: Fabric, chosen: Sequence[Loads]) -> float:
    """The sum of the equal shares that the tasks with these loads have."""
    flows: Counter[Resource] = Counter()
    for loads in chosen:
        flows.update(dict(loads))
    return sum(min(capacity_bps(fabric, resource) / flows[resource] for resource, _ in loads) for loads in chosen)


# -- SOAR: the time that links between switches, and the PS's, are busy with a message of one bit from each worker.


def least_utilisation_s(problem: Problem, switches: int) -> float:
    """The least over all static trees, where each switch sends to its next hop of one number, and all sets of switches
    that sum, summed over tasks.
    """
    return sum(least_of_task_s(problem.fabric, task, switches) for task in tasks_of(problem))


def least_of_task_s(fabric: Fabric, task: Task, switches: int) -> float:
    hops = {
        node: [peer for peer in fabric.neighbors[node] if peer in peers]
        for node, peers in next_hops(fabric, task).items()
    }
    found = inf
    for turn in range(max(map(len, hops.values()))):
        parent = {node: peers[turn % len(peers)] for node, peers in hops.items()}
        passed = {fabric.tor_of(worker) for worker in task.workers}
        for node in hops:  # each before its next hop
            passed |= {parent[node]} & set(hops) if node in passed else set()
        ina = [node for node in passed if fabric.switch_by_name[node].ina]
        for count in range(min(switches, len(ina)) + 1):
            for chosen in combinations(ina, count):
                found = min(found, utilisation_s(fabric, task, parent, chosen))
    return found


def utilisation_s(fabric: Fabric, task: Task, parent: Mapping[str, str], chosen: Sequence[str]) -> float:
    """The utilisation of a tree: a switch of `chosen` sends one message for each pipeline that messages enter."""
    arrived: dict[str, Counter[str]] = defaultdict(Counter)
    for worker in task.workers:
        arrived[fabric.tor_of(worker)][worker] += 1
    total = 0.0
    for node, peer in parent.items():
        leaving = arrived[node].total()
        if node in chosen:
            leaving = len({fabric.ingress_pipeline(node, before) for before in arrived[node]})
        if leaving:
            arrived[peer][node] += leaving
            total += leaving / fabric.capacities_bps[node, peer]
    return total


# -- ATRO: every wiring of a few switches.


def least_flows(cluster: SwitchCluster) -> int | None:
    """The fewest flows on the busiest link of any wiring of the cluster; None if its hosts cannot be wired."""
    names, summing_ones = cluster.switch_names, set(cluster.aggregator_names)
    pairs = list(combinations(names, 2))
    found: int | None = None
    roots = [own[0] for own in (cluster.aggregator_names, cluster.common_names) if own]
    for root, directions in product(roots, product((0, 1, 2), repeat=len(pairs))):
        links = [pair if way == 1 else pair[::-1] for pair, way in zip(pairs, directions, strict=True) if way]
        if in_layers(links, root, cluster.layers):
            t = least_flows_of(cluster, [*links, (root, "ps")], summing_ones)
            found = t if found is None or (t is not None and t < found) else found
    return found


def in_layers(links: Sequence[tuple[str, str]], root: str, layers: int) -> bool:
    """Whether all links lead to lower layers, from `layers` at most down to 1, that of the switch at the PS."""
    layer = {root: 1}
    for _ in range(layers + 1):
        for u, v in links:
            if v in layer:
                layer[u] = max(layer.get(u, 0), layer[v] + 1)
    return layer[root] == 1 and all(u in layer and v in layer for u, v in links) and max(layer.values()) <= layers


def least_flows_of(cluster: SwitchCluster, links: Sequence[tuple[str, str]], summing_ones: set[str]) -> int | None:
    """The fewest flows on the busiest of these links, by an integer program that places workers; None if none fit."""
    model = pulp.LpProblem("wiring", pulp.LpMinimize)
    t = model.add_variable("t", 1, cat=pulp.LpInteger)
    model += t
    flow = {link: model.add_variable(f"y_{number}", 0, cat=pulp.LpInteger) for number, link in enumerate(links)}
    switches = {node for link in links for node in link} - {"ps"}
    workers = {node: model.add_variable(f"w_{node}", 0, cat=pulp.LpInteger) for node in switches}
    model += pulp.lpSum(workers.values()) == cluster.workers
    for node in switches:
        model += workers[node] + sum(node in link for link in links) <= cluster.ports
        received = workers[node] + pulp.lpSum(y for (_, v), y in flow.items() if v == node)
        sent = pulp.lpSum(y for (u, _), y in flow.items() if u == node)
        model += received <= cluster.children * sent if node in summing_ones else received == sent
    for y in flow.values():
        model += y <= t
    model.solve(cbc())
    return round(t.varValue) if model.status == pulp.LpStatusOptimal else None
