"""The planners of end-host collectives: schemes, with ranks in racks and routes that share links evenly.

A scheme defines source, destination and step of all chunks; it has neither hosts, nor paths, nor rates. Among the
planners, `-random` has ranks that ignore racks and paths by ECMP's hash, `-ecmp` ranks in racks and the hash, `-best`
the best order of ranks that a search finds.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from math import gcd, inf
from operator import itemgetter
from time import monotonic

from inakit.planner.core.collective_times import acknowledging_share
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Collective, Connection, Plan, SolverOutcome, Transfer
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.unfolding import Unfolded, unfold, unreachable
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

RankPair = tuple[int, int]
"""A source and a destination, by rank."""


@dataclass(frozen=True)
class Scheme:
    """`transfers[source, destination]` in the order of their steps; the gradient is divided into `chunks` equal parts.

    `pipelined`: all pairs send at the same time, because each has many successive chunks.
    """

    chunks: int
    transfers: dict[RankPair, tuple[Transfer, ...]]
    pipelined: bool = False


@dataclass(frozen=True)
class RankGroup:
    """The input of a scheme: `ranks` ranks, their racks, and a gradient of `fragments` fragments.

    `racks` has the consecutive ranks of each rack.
    """

    ranks: int
    racks: tuple[tuple[int, ...], ...]
    fragments: int


Make = Callable[[RankGroup], Scheme]
"""A function that makes the scheme of a group."""


class SchemeBuilder:
    """Collects the transfers of a scheme; the order in which they are added does not matter."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.found: defaultdict[RankPair, list[Transfer]] = defaultdict(list)

    def add(self, step: int, pair: RankPair, first: int, count: int = 1) -> None:
        """Send chunks from the source in a step; the destination adds them to its own."""
        self.found[pair].append(Transfer(step, first, count, adds=True))

    def put(self, step: int, pair: RankPair, first: int, count: int = 1) -> None:
        """Send chunks from the source in a step; they replace the destination's own."""
        self.found[pair].append(Transfer(step, first, count, adds=False))

    def scheme(self, *, pipelined: bool = False) -> Scheme:
        ordered = {pair: tuple(sorted(own, key=lambda t: (t.step, t.first))) for pair, own in self.found.items()}
        return Scheme(self.chunks, ordered, pipelined)


# -- The ranks of workers: drawn at random, or rack by rack.

RankOrder = Callable[[Fabric, Job, int], list[str]]
"""The hosts of a job's workers in the order of their ranks; the last argument is a seed."""


def drawn(fabric: Fabric, job: Job, seed: int) -> list[str]:
    _ = fabric
    return random.Random(f"{seed} {job.number}").sample(job.workers, len(job.workers))


def by_rack(fabric: Fabric, job: Job, seed: int) -> list[str]:
    """The order in which the workers of each rack, and the racks below the same switches, are consecutive.

    Racks and hosts are in the order of the fabric.
    """
    _ = seed
    place = {switch.name: number for number, switch in enumerate(fabric.switches)}
    tiers = fabric.tiers
    above = {
        name: min(place[peer] for peer in (*fabric.neighbors[name], name) if peer == name or tiers[peer] > tiers[name])
        for name in place
    }
    host = {each.name: number for number, each in enumerate(fabric.hosts)}
    tor = fabric.tor_of
    return sorted(job.workers, key=lambda worker: (above[tor(worker)], place[tor(worker)], host[worker]))


def racks_of(fabric: Fabric, ranks: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The ranks of each rack. A rack whose ranks are not consecutive counts as several."""
    found = groupby(range(len(ranks)), key=lambda rank: fabric.tor_of(ranks[rank]))
    return tuple(tuple(members) for _, members in found)


# -- Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009), as in NCCL and Horovod.
#
# In n - 1 steps every rank sends the next rank a chunk to be added, in n - 1 more the sums go round. Each rank sends 2
# (n - 1) / n of the gradient, which is the possible minimum, in 2 (n - 1) steps, which is the maximum.


def ring(group: RankGroup) -> Scheme:
    """The ring of all ranks, in their order."""
    builder = SchemeBuilder(group.ranks)
    go_round(builder, range(group.ranks), 0, sums=True)
    go_round(builder, range(group.ranks), group.ranks - 1, sums=False)
    return builder.scheme()


def go_round(
    builder: SchemeBuilder, members: Sequence[int], step: int, first: int = 0, count: int = 1, *, sums: bool
) -> None:
    """Send blocks of `count` chunks, from chunk `first` on, round a ring, from `step` on; one block per member.

    A reduce-scatter `sums` them: member i ends with the sum of block i + 1. The all-gather begins with these sums.
    """
    n, send = len(members), builder.add if sums else builder.put
    for turn in range(n - 1):
        for place, rank in enumerate(members):
            block = (place + (not sums) - turn) % n
            send(step + turn, (rank, members[(place + 1) % n]), first + block * count, count)


# -- A ring in every group of ranks, rings among groups, and again the rings in groups (2D ring, as in NCCL and
# Horovod).
#
# A group sums its gradients by a reduce-scatter, the ranks at the same place of all groups sum these sums by a ring,
# and an all-gather brings them to their groups. All groups have the same size, so that all complete a ring at the same
# time. A group is a rack, or a part of one if racks can be divided into parts of the size of the greatest common
# divisor of their sizes. One gradient leaves and one enters each group.


def hierarchical(group: RankGroup) -> Scheme:
    """Rings in racks, or in equal parts of racks, and among them."""
    return rings_of(group, gcd(*map(len, group.racks)))


def hierarchical_across(group: RankGroup) -> Scheme:
    """Rings in and among the largest equal groups of at most the mean size of racks: groups can span racks."""
    mean = group.ranks // len(group.racks)
    return rings_of(group, max(size for size in range(1, mean + 1) if group.ranks % size == 0))


def rings_of(group: RankGroup, size: int) -> Scheme:
    """Rings in groups of `size` consecutive ranks, and among the groups."""
    groups = [range(at, at + size) for at in range(0, group.ranks, size)]
    among, builder = len(groups), SchemeBuilder(group.ranks)
    middle, end = size - 1, size - 1 + 2 * (among - 1)
    for members in groups:
        go_round(builder, members, 0, count=among, sums=True)
        go_round(builder, members, end, count=among, sums=False)
    for place in range(size):
        peers, first = [members[place] for members in groups], (place + 1) % size * among
        go_round(builder, peers, middle, first, sums=True)
        go_round(builder, peers, middle + among - 1, first, sums=False)
    return builder.scheme()


# -- Recursive halving and doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005), and recursive doubling.
#
# Ranks whose numbers differ in one bit exchange halves of their remaining data, the nearest ranks first, and then do
# the same in reverse: 2 log2 n steps in which each rank sends 2 (n - 1) / n of the gradient. If n is not a power of
# two, ranks send to the rank one *skip* further on instead, in the same number of steps and bytes (Träff, "Optimal,
# non-pipelined reduce-scatter and allreduce algorithms", arXiv 2410.14234).
#
# Recursive doubling exchanges the whole gradient in log2 n steps, which is quicker for short ones. If n is not a power
# of two, the ranks beyond the greatest one first give all their data to a neighbour, and get the sums from it at the
# end (MPICH's way).


def halving_doubling(group: RankGroup) -> Scheme:
    return exchanged_halves(group.ranks) if group.ranks.bit_count() == 1 else skipping(group.ranks)


def exchanged_halves(ranks: int) -> Scheme:
    """The scheme for a power of two: pairs of ranks exchange halves."""
    rounds, builder = ranks.bit_length() - 1, SchemeBuilder(ranks)
    for rank in range(ranks):
        first, count = 0, ranks
        for turn in range(rounds):
            count //= 2
            bit = rank >> turn & 1
            pair = rank, rank ^ 1 << turn
            kept, given = (first + count, first) if bit else (first, first + count)
            builder.add(turn, pair, given, count)
            builder.put(2 * rounds - 1 - turn, pair, kept, count)
            first = kept
    return builder.scheme()


def skipping(ranks: int) -> Scheme:
    """The scheme for any number of ranks on a circle: chunk c is summed at rank c.

    A chunk that is i ranks away travels by the skips whose sum is i, the least skip first. The least skip is among
    those of about half of the chunks.
    """
    skips, builder = skips_of(ranks), SchemeBuilder(ranks)
    moves = {skip: [i for i in range(1, ranks) if parts_of(i, skips)[0] == skip] for skip in skips}
    for turn, skip in enumerate(skips):
        for rank in range(ranks):
            pair = rank, (rank + skip) % ranks
            back = pair[::-1]
            for first, count in ranges_of(sorted((rank + i) % ranks for i in moves[skip])):
                builder.add(turn, pair, first, count)
                builder.put(2 * len(skips) - 1 - turn, back, first, count)
    return builder.scheme()


def skips_of(ranks: int) -> list[int]:
    """n / 2, rounded up, half of this, rounded up, and so on to 1, in ascending order."""
    skips, rest = [], ranks
    while rest > 1:
        rest = (rest + 1) // 2
        skips.append(rest)
    return skips[::-1]


def parts_of(distance: int, skips: list[int]) -> list[int]:
    """The skips whose sum is a distance, in ascending order: the greatest that fit, each once."""
    parts = []
    for skip in reversed(skips):
        if skip <= distance:
            parts.append(skip)
            distance -= skip
    return parts[::-1]


def ranges_of(chunks: list[int]) -> list[tuple[int, int]]:
    """Ascending chunks as ranges: the first chunk and the length of each."""
    found = []
    for _, members in groupby(enumerate(chunks), key=lambda entry: entry[1] - entry[0]):
        own = [chunk for _, chunk in members]
        found.append((own[0], len(own)))
    return found


def recursive_doubling(group: RankGroup) -> Scheme:
    """Doubling only, of the whole gradient, among the greatest power of two of ranks.

    For each rank beyond it, one of every two of the first ranks is left out: it gives its data to the next rank in the
    first step, and gets the sums from it in the last.
    """
    beyond = group.ranks - (1 << group.ranks.bit_length() - 1)
    core = [*range(1, 2 * beyond, 2), *range(2 * beyond, group.ranks)]
    rounds = len(core).bit_length() - 1
    builder = SchemeBuilder(1)
    for rank in range(0, 2 * beyond, 2):
        builder.add(0, (rank, rank + 1), 0)
        builder.put(rounds + 1, (rank + 1, rank), 0)
    for place, rank in enumerate(core):
        for turn in range(rounds):
            builder.add(1 + turn, (rank, core[place ^ 1 << turn]), 0)
    return builder.scheme()


# -- Double binary trees, as NCCL has them since 2.4 (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
# broadcast, reduction and scan", Parallel Computing 2009).
#
# Each of two binary trees sums half of the gradient up to its root and sends the sums down again, chunk after chunk.
# The second tree is the first one mirrored or, for an odd number of ranks, shifted by one: a rank with children in one
# tree is a leaf of the other, so every rank sends about as much as in a ring, in a number of steps that grows with log
# n.

Parents = Mapping[int, int]
"""The parent of every rank but the root."""


def double_tree(group: RankGroup) -> Scheme:
    """Both trees, with enough chunks for all levels of a tree to send at the same time."""
    trees = both_trees(group.ranks)
    levels = max(max(heights(tree).values()) for tree in trees)
    chunks = max(1, min(group.fragments // 2, 2 * levels + 2))
    builder = SchemeBuilder(2 * chunks)
    for number, tree in enumerate(trees):  # sum chunks up the tree, and send the sums down
        height, depth = heights(tree), depths(tree)
        top = max(height.values())
        for rank, parent in tree.items():
            for turn in range(chunks):
                builder.add(height[rank] + turn, (rank, parent), number * chunks + turn)
                builder.put(top + depth[parent] + turn, (parent, rank), number * chunks + turn)
    return builder.scheme(pipelined=True)


def both_trees(ranks: int) -> tuple[Parents, Parents]:
    """The two trees: the second one is mirrored, or shifted by one rank where their number is odd."""
    tree = binary_tree(ranks)
    if ranks % 2:
        return tree, {(rank + 1) % ranks: (parent + 1) % ranks for rank, parent in tree.items()}
    return tree, {ranks - 1 - rank: ranks - 1 - parent for rank, parent in tree.items()}


def binary_tree(ranks: int) -> Parents:
    """A tree with root 0 whose odd ranks are leaves.

    With b the lowest bit of a rank that is set, its parent has b clear and the next bit set; where there is no such
    rank, that bit is clear too.
    """
    parents: dict[int, int] = {}
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | bit << 1
        parents[rank] = parent if parent < ranks else rank ^ bit
    return parents


def depths(tree: Parents) -> dict[int, int]:
    """The number of links from each rank to the root."""
    found: dict[int, int] = {}
    for rank in set(tree) | set(tree.values()):
        above, found[rank] = rank, 0
        while above in tree:
            above, found[rank] = tree[above], found[rank] + 1
    return found


def heights(tree: Parents) -> dict[int, int]:
    """The number of links from each rank to the deepest leaf below it."""
    found = dict.fromkeys(set(tree) | set(tree.values()), 0)
    for rank in sorted(tree, key=depths(tree).__getitem__, reverse=True):
        found[tree[rank]] = max(found[tree[rank]], found[rank] + 1)
    return found


# -- A parameter server in every worker, each for an equal share of the gradient, as BytePS places them without CPU
# machines (Jiang et al., OSDI 2020).
#
# Every rank sends each other rank that rank's share, and later the sum of its own share: two steps, in which all
# connections send at the same time. Ranks begin with the next one, so that no rank receives from all at once.
#
# A gradient with fewer fragments than ranks has one share per fragment, at ranks that are spread over all.


def ps_sharded(group: RankGroup) -> Scheme:
    """Push shares, then pull sums."""
    n, shares = group.ranks, min(group.ranks, group.fragments)
    share_of = {n * share // shares: share for share in range(shares)}
    builder = SchemeBuilder(shares)
    for rank in range(n):
        for other in ((rank + turn) % n for turn in range(1, n)):
            if other in share_of:
                builder.add(0, (rank, other), share_of[other])
            if rank in share_of:
                builder.put(1, (rank, other), share_of[rank])
    return builder.scheme()


# -- A path for each connection: by a hash, or so that connections that send at the same time share links evenly.

Ends = tuple[str, str]
"""The hosts of a connection's source and destination."""


class HostPaths:
    """The shortest up-down paths between hosts."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.towards: dict[str, Unfolded] = {}
        self.found: dict[Ends, tuple[Path, ...]] = {}

    def of(self, ends: Ends) -> tuple[Path, ...]:
        """Return all paths. Raises `InputError` if there are none."""
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
Routes = Callable[[HostPaths, Sets, int], dict[Ends, Path]]
"""A path for each connection; the last argument is a seed."""


def hashed(paths: HostPaths, together: Sets, seed: int) -> dict[Ends, Path]:
    """One of a connection's paths, as ECMP selects it by a hash of addresses."""
    return {ends: random.Random(f"{seed} {ends}").choice(paths.of(ends)) for ends in together}


ROUNDS = 8
"""The number of rounds in which every connection may choose again, given the choices of the others."""


def even(paths: HostPaths, together: Sets, seed: int) -> dict[Ends, Path]:
    """For each connection in turn, the path whose busiest link is the least busy, until no choice changes.

    The seed decides among equally good paths.
    """
    draw, loads = random.Random(seed), SetLoads(paths.fabric.capacities_bps)
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


class SetLoads:
    """The number of connections of each set that have chosen each link."""

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


# -- From a scheme to a plan: an order of ranks, a path for each connection, and rates that fit all links together.


@dataclass(frozen=True)
class RankMapping:
    """The assignment of ranks to workers, and of paths to connections."""

    order: RankOrder = by_rack
    routes: Routes = even


def plan_scheme(make: Make, name: str, ways: RankMapping, problem: Problem, paths: HostPaths, seed: int) -> Plan:
    """The plan in which every job uses the scheme that `make` builds for it, on paths of the problem's fabric."""
    begun = monotonic()
    routed = [routed_collective(make, ways, problem, job, paths, seed) for job in problem.jobs]
    rated = with_shared_rates(problem, routed)
    return Plan(name, problem.fabric.name, (), SolverOutcome("heuristic", monotonic() - begun), tuple(rated))


Together = tuple[tuple[int, int], ...]
"""Connections that send at the same time: their numbers, and the number of chunks that each sends."""

RoutedCollective = tuple[Collective, tuple[Together, ...]]
"""A collective without rates, and the sets of its connections that send at the same time."""


def routed_collective(
    make: Make, ways: RankMapping, problem: Problem, job: Job, paths: HostPaths, seed: int
) -> RoutedCollective:
    """A job's collective with paths. Raises `InputError` for a job with one worker."""
    if len(job.workers) < 2:
        raise InputError(f"job {job.number} has one worker: a collective needs at least two")
    ranks = ways.order(problem.fabric, job, seed)
    group = RankGroup(len(ranks), racks_of(problem.fabric, ranks), problem.fragment.count(job.gradient_bytes))
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


def with_shared_rates(problem: Problem, routed: Sequence[RoutedCollective]) -> list[Collective]:
    """The collectives with the highest rates at which connections that send at the same time end together.

    Their rates are in proportion to the numbers of chunks that they send. A connection of several sets has the least of
    its rates. Jobs that use the same link for chunks or acknowledgements get parts of it by their weights.
    """
    weights = {job.number: job.weight for job in problem.jobs}
    users: defaultdict[DirectedLink, float] = defaultdict(float)
    for collective, _ in routed:
        for link in {way for c in collective.connections for a, b in c.links for way in ((a, b), (b, a))}:
            users[link] += weights[collective.job]
    parts_bps = {link: problem.fabric.capacities_bps[link] / total for link, total in users.items()}
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
            rate = weights[collective.job] * min(parts_bps[link] / load for link, load in loads.items())
            for number, chunks in members:
                rates[number] = min(rates[number], chunks * rate)
        rated = (replace(each, rate_bps=rate) for each, rate in zip(collective.connections, rates, strict=True))
        found.append(replace(collective, connections=tuple(rated)))
    return found


def plan_quickest(makes: Sequence[Make], name: str, ways: RankMapping, problem: Problem, options: Options) -> Plan:
    """Among the plans of several schemes, the one whose slowest job takes the least time."""
    paths = HostPaths(problem.fabric)
    plans = [plan_scheme(make, name, ways, problem, paths, options.seed) for make in makes]
    return plans[0] if len(plans) == 1 else quickest(problem, plans)[1]


def quickest(problem: Problem, plans: Sequence[Plan]) -> tuple[float, Plan]:
    """The least time in seconds that the slowest job takes in any of the plans, and the first plan with this time."""
    return min(((evaluate(problem, plan).communication_time_s, plan) for plan in plans), key=itemgetter(0))


# -- The best order of ranks that a search finds: it begins with racks, and varies the best order so far.
#
# A trial exchanges two ranks, or reverses a part of the order. It is kept if the plan that the schemes make with it
# takes less time. The seed decides the trials; their number decides the cost.

WORK = 800
"""A search makes this number of trials divided by the number of ranks, which is about the cost of a trial."""
LEAST, MOST = 10, 50
"""The minimum and the maximum number of trials."""

Orders = dict[int, list[str]]
"""The ranks' hosts in their order, by job."""


def plan_best_order(makes: Sequence[Make], name: str, ways: RankMapping, problem: Problem, options: Options) -> Plan:
    draw = random.Random(options.seed)
    orders = {job.number: by_rack(problem.fabric, job, options.seed) for job in problem.jobs}

    paths = HostPaths(problem.fabric)

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

plan_ring = partial(plan_quickest, (ring,), "ring", RankMapping())
plan_ring_ecmp = partial(plan_quickest, (ring,), "ring-ecmp", RankMapping(routes=hashed))
plan_ring_random = partial(plan_quickest, (ring,), "ring-random", RankMapping(drawn, hashed))
plan_halving_doubling = partial(plan_quickest, HALVING, "halving-doubling", RankMapping())
plan_halving_doubling_best = partial(plan_best_order, HALVING, "halving-doubling-best", RankMapping())
plan_double_tree = partial(plan_quickest, (double_tree,), "double-tree", RankMapping())
plan_double_tree_best = partial(plan_best_order, (double_tree,), "double-tree-best", RankMapping())
plan_hierarchical = partial(plan_quickest, (hierarchical, hierarchical_across), "hierarchical", RankMapping())
plan_ps_sharded = partial(plan_quickest, (ps_sharded,), "ps-sharded", RankMapping())
