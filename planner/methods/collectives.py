"""The planners of end-host collectives: their schemes, with ranks in racks and routes that share links evenly.

`-random` stands for ranks that know nothing of racks and paths by ECMP's hash, `-ecmp` for ranks in racks and the hash,
`-best` for the best order of ranks that a search finds.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf
from operator import itemgetter
from time import monotonic

from inakit.planner.core.collective_times import acknowledging_share
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Collective, Connection, Plan, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.collective_schemes import (
    Group,
    Make,
    Order,
    by_rack,
    double_tree,
    drawn,
    halving_doubling,
    hierarchical,
    hierarchical_across,
    ps_sharded,
    racks_of,
    recursive_doubling,
    ring,
)
from inakit.planner.trees.unfolding import Unfolded, unfold, unreachable
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- A path for each connection: by a hash, or so that connections which send at the same time share links evenly.

Ends = tuple[str, str]
"""The hosts of a connection's source and destination."""


class Paths:
    """The shortest up-down paths between hosts."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.towards: dict[str, Unfolded] = {}
        self.found: dict[Ends, tuple[Path, ...]] = {}

    def of(self, ends: Ends) -> tuple[Path, ...]:
        """All of them. Raises `InputError` where there is none."""
        if ends not in self.found:
            source, destination = ends
            if destination not in self.towards:
                self.towards[destination] = unfold(self.fabric, destination)
            if source not in self.towards[destination].next_hops:
                raise unreachable(source, destination)
            self.found[ends] = tuple(self.towards[destination].paths(source))
        return self.found[ends]


Sets = Mapping[Ends, Sequence[int]]
"""For each connection, the numbers of the sets of connections that send at the same time and contain it."""
Routes = Callable[[Paths, Sets, int], dict[Ends, Path]]
"""A path for each connection; the last argument is a seed."""


def hashed(paths: Paths, together: Sets, seed: int) -> dict[Ends, Path]:
    """Any of a connection's paths, as ECMP takes it by a hash of addresses."""
    return {ends: random.Random(f"{seed} {ends}").choice(paths.of(ends)) for ends in together}


ROUNDS = 8
"""How often every connection may choose again, now that it knows what the others have chosen."""


def even(paths: Paths, together: Sets, seed: int) -> dict[Ends, Path]:
    """For one connection after another the path whose busiest link is the least busy, until none changes its mind.

    Of paths that are equally good the seed decides.
    """
    draw, loads = random.Random(seed), Loads(paths.fabric.capacities_bps)
    options = {ends: draw.sample(found, len(found)) for ends, found in ((ends, paths.of(ends)) for ends in together)}
    chosen: dict[Ends, Path] = {}
    for _ in range(ROUNDS):
        before = dict(chosen)
        for ends, sets in together.items():
            if len(options[ends]) == 1 and ends in chosen:
                continue
            if ends in chosen:
                loads.count(sets, chosen[ends], -1)
            chosen[ends] = min(options[ends], key=lambda path: (*loads.cost(sets, path), path != before.get(ends)))
            loads.count(sets, chosen[ends], 1)
        if chosen == before:
            break
    return chosen


class Loads:
    """How many connections of each set have chosen each link."""

    def __init__(self, capacities_bps: Mapping[DirectedLink, float]) -> None:
        self.capacities_bps = capacities_bps
        self.counts: Counter[tuple[int, DirectedLink]] = Counter()

    def count(self, sets: Iterable[int], path: Path, times: int) -> None:
        for link in pairwise(path):
            for each in sets:
                self.counts[each, link] += times

    def cost(self, sets: Iterable[int], path: Path) -> tuple[float, float]:
        """The greatest load on a path with one more connection, in connections per bit/s, and the sum of all loads."""
        links = list(pairwise(path))
        shares = [(self.counts[each, link] + 1) / self.capacities_bps[link] for each in sets for link in links]
        return max(shares), sum(shares)


# -- From a scheme to a plan: an order of ranks, a path for each connection, and rates that links carry together.


@dataclass(frozen=True)
class Ways:
    """How workers get their ranks, and connections their paths."""

    order: Order = by_rack
    routes: Routes = even


def plan_scheme(make: Make, name: str, ways: Ways, problem: Problem, paths: Paths, seed: int) -> Plan:
    """The plan in which every job uses the scheme that `make` makes for it, by paths of the problem's fabric."""
    begun = monotonic()
    routed = [routed_collective(make, ways, problem, job, paths, seed) for job in problem.jobs]
    rated = with_shared_rates(problem, routed)
    return Plan(name, problem.fabric.name, (), SolverOutcome("heuristic", monotonic() - begun), tuple(rated))


Together = tuple[tuple[int, int], ...]
"""Connections that send at the same time: their numbers, and how many chunks each sends."""

Routed = tuple[Collective, tuple[Together, ...]]
"""A collective without rates, and the sets of its connections that send at the same time."""


def routed_collective(make: Make, ways: Ways, problem: Problem, job: Job, paths: Paths, seed: int) -> Routed:
    """A job's collective with paths. Raises `InputError` for a job with one worker."""
    if len(job.workers) < 2:
        raise InputError(f"job {job.number} has one worker: a collective needs at least two")
    ranks = ways.order(problem.fabric, job, seed)
    group = Group(len(ranks), racks_of(problem.fabric, ranks), problem.fragment.count(job.gradient_bytes))
    scheme = make(group)
    bare = [Connection(*pair, (), 0.0, transfers) for pair, transfers in scheme.transfers.items()]
    together = Collective(job.number, tuple(ranks), scheme.chunks, tuple(bare)).concurrent
    if scheme.pipelined:
        together = (tuple((n, sum(t.count for t in each.transfers)) for n, each in enumerate(bare)),)
    sets: defaultdict[Ends, list[int]] = defaultdict(list)
    for number, members in enumerate(together):
        for ends in (bare[member] for member, _ in members):
            sets[ranks[ends.source], ranks[ends.destination]].append(number)
    found = ways.routes(paths, sets, seed)
    connections = tuple(replace(c, path=found[ranks[c.source], ranks[c.destination]]) for c in bare)
    return Collective(job.number, tuple(ranks), scheme.chunks, connections), together


def with_shared_rates(problem: Problem, routed: Sequence[Routed]) -> list[Collective]:
    """The collectives with the highest rates by which connections that send at the same time end together.

    Their rates are as the numbers of chunks that they send. A connection of several sets has the least of its rates.
    Jobs that use the same link for chunks or acknowledgements get equal parts of it.
    """
    users = Counter(
        link
        for collective, _ in routed
        for link in {way for c in collective.connections for a, b in c.links for way in ((a, b), (b, a))}
    )
    parts_bps = {link: problem.fabric.capacities_bps[link] / count for link, count in users.items()}
    share = acknowledging_share(problem.fragment)
    found = []
    for collective, together in routed:
        rates = [inf] * len(collective.connections)
        for members in together:
            loads: defaultdict[DirectedLink, float] = defaultdict(float)
            for number, chunks in members:
                for a, b in collective.connections[number].links:
                    loads[a, b] += chunks
                    loads[b, a] += chunks * share
            rate = min(parts_bps[link] / load for link, load in loads.items())
            for number, chunks in members:
                rates[number] = min(rates[number], chunks * rate)
        rated = (replace(each, rate_bps=rate) for each, rate in zip(collective.connections, rates, strict=True))
        found.append(replace(collective, connections=tuple(rated)))
    return found


def plan_quickest(makes: Sequence[Make], name: str, ways: Ways, problem: Problem, options: Options) -> Plan:
    """Of the plans of several schemes the one whose slowest job takes the least time."""
    paths = Paths(problem.fabric)
    plans = [plan_scheme(make, name, ways, problem, paths, options.seed) for make in makes]
    return plans[0] if len(plans) == 1 else quickest(problem, plans)[1]


def quickest(problem: Problem, plans: Sequence[Plan]) -> tuple[float, Plan]:
    """The least time that the slowest job takes in any of the plans, in seconds, and the first plan that takes it."""
    return min(((evaluate(problem, plan).communication_time_s, plan) for plan in plans), key=itemgetter(0))


# -- The best order of ranks that a search finds: that of racks first, then orders that differ from the best one so
# far.
#
# A trial exchanges two ranks, or turns a part of the order round. It is kept if the plan that the schemes make with
# it takes less time. The seed decides what is tried, and the number of trials what it costs.

WORK = 800
"""A search makes so many trials divided by the number of ranks: each costs about as much as there are ranks."""
LEAST, MOST = 10, 50
"""The fewest and the most trials."""

Orders = dict[int, list[str]]
"""The ranks' hosts in their order, by job."""


def plan_best_order(makes: Sequence[Make], name: str, ways: Ways, problem: Problem, options: Options) -> Plan:
    """The plan with the best order of ranks that is found."""
    draw = random.Random(options.seed)
    orders = {job.number: by_rack(problem.fabric, job, options.seed) for job in problem.jobs}

    paths = Paths(problem.fabric)

    def planned(found: Orders) -> tuple[float, Plan]:
        own = replace(ways, order=lambda _fabric, job, _seed: found[job.number])
        return quickest(problem, [plan_scheme(make, name, own, problem, paths, options.seed) for make in makes])

    least_s, best = planned(orders)
    for _ in range(min(MOST, max(LEAST, WORK // sum(map(len, orders.values()))))):
        tried = changed(orders, draw)
        time_s, plan = planned(tried)
        if time_s < least_s:
            orders, least_s, best = tried, time_s, plan
    return best


def changed(orders: Orders, draw: random.Random) -> Orders:
    """The orders with two ranks of a job exchanged, or with the ranks between two places in the opposite order."""
    job = draw.choice(sorted(orders))
    ranks = list(orders[job])
    low, high = sorted(draw.sample(range(len(ranks)), 2))
    if draw.random() < 0.5:
        ranks[low], ranks[high] = ranks[high], ranks[low]
    else:
        ranks[low : high + 1] = ranks[low : high + 1][::-1]
    return orders | {job: ranks}


# -- The planners.

HALVING = halving_doubling, recursive_doubling

plan_ring = partial(plan_quickest, (ring,), "ring", Ways())
plan_ring_ecmp = partial(plan_quickest, (ring,), "ring-ecmp", Ways(routes=hashed))
plan_ring_random = partial(plan_quickest, (ring,), "ring-random", Ways(drawn, hashed))
plan_halving_doubling = partial(plan_quickest, HALVING, "halving-doubling", Ways())
plan_halving_doubling_best = partial(plan_best_order, HALVING, "halving-doubling-best", Ways())
plan_double_tree = partial(plan_quickest, (double_tree,), "double-tree", Ways())
plan_double_tree_best = partial(plan_best_order, (double_tree,), "double-tree-best", Ways())
plan_hierarchical = partial(plan_quickest, (hierarchical, hierarchical_across), "hierarchical", Ways())
plan_ps_sharded = partial(plan_quickest, (ps_sharded,), "ps-sharded", Ways())
