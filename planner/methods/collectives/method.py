"""From a scheme to a plan: an order of ranks, a path for each connection, and rates that links carry together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from operator import itemgetter
from time import monotonic

from inakit.planner.core.collectives.collective import Collective, Connection
from inakit.planner.core.collectives.collective_load import acknowledging_share
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.solving import SolverOutcome
from inakit.planner.methods.collectives.rank_order import Order, by_rack, racks_of
from inakit.planner.methods.collectives.routes import Ends, Paths, Routes, even
from inakit.planner.methods.collectives.scheme import Group, Make, Scheme
from inakit.planner.trees.unfolding import DirectedLink
from inakit.topo.errors import InputError


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


@dataclass(frozen=True)
class Routed:
    """A collective without rates, and the sets of its connections that send at the same time."""

    collective: Collective
    together: tuple[Together, ...]

    @property
    def links(self) -> set[DirectedLink]:
        """The links by which it sends chunks or acknowledgements."""
        return {way for c in self.collective.connections for a, b in c.links for way in ((a, b), (b, a))}


def routed_collective(make: Make, ways: Ways, problem: Problem, job: Job, paths: Paths, seed: int) -> Routed:
    """A job's collective with paths. Raises `InputError` for a job with one worker."""
    if len(job.workers) < 2:
        raise InputError(f"job {job.number} has one worker: a collective needs at least two")
    ranks = ways.order(problem.fabric, job, seed)
    group = Group(len(ranks), racks_of(problem.fabric, ranks), problem.fragment.count(job.gradient_bytes))
    scheme = make(group)
    bare = without_paths(job, ranks, scheme)
    together = (all_at_once(bare),) if scheme.pipelined else bare.concurrent
    sets: defaultdict[Ends, list[int]] = defaultdict(list)
    for number, members in enumerate(together):
        for ends in (bare.connections[member] for member, _ in members):
            sets[ranks[ends.source], ranks[ends.destination]].append(number)
    found = ways.routes(paths, sets, seed)
    connections = (replace(c, path=found[ranks[c.source], ranks[c.destination]]) for c in bare.connections)
    return Routed(replace(bare, connections=tuple(connections)), together)


def without_paths(job: Job, ranks: Sequence[str], scheme: Scheme) -> Collective:
    """The scheme as a collective of a job, whose connections have neither paths nor rates yet."""
    connections = (Connection(*pair, (), 0.0, transfers) for pair, transfers in scheme.transfers.items())
    return Collective(job.number, tuple(ranks), scheme.chunks, tuple(connections))


def all_at_once(collective: Collective) -> Together:
    """All connections, with the chunks of all their steps."""
    return tuple((n, sum(t.count for t in each.transfers)) for n, each in enumerate(collective.connections))


def with_shared_rates(problem: Problem, routed: Sequence[Routed]) -> list[Collective]:
    """The collectives with the highest rates by which connections that send at the same time end together.

    Their rates are as the numbers of chunks that they send. A connection of several sets has the least of its rates.
    Jobs that use the same link get equal parts of it.
    """
    users = Counter(link for each in routed for link in each.links)
    parts = {link: problem.fabric.capacities_bps[link] / count for link, count in users.items()}
    share = acknowledging_share(problem.fragment)
    return [with_rates(each, parts, share) for each in routed]


def with_rates(routed: Routed, parts_bps: Mapping[DirectedLink, float], share: float) -> Collective:
    """The collective with the highest rates on its parts of links; acknowledgements need `share` of the way back."""
    collective = routed.collective
    rates = [inf] * len(collective.connections)
    for members in routed.together:
        loads: defaultdict[DirectedLink, float] = defaultdict(float)
        for number, chunks in members:
            for a, b in collective.connections[number].links:
                loads[a, b] += chunks
                loads[b, a] += chunks * share
        rate = min(parts_bps[link] / load for link, load in loads.items())
        for number, chunks in members:
            rates[number] = min(rates[number], chunks * rate)
    rated = (replace(each, rate_bps=rate) for each, rate in zip(collective.connections, rates, strict=True))
    return replace(collective, connections=tuple(rated))


def plan_quickest(makes: Sequence[Make], name: str, ways: Ways, problem: Problem, options: Options) -> Plan:
    """Of the plans of several schemes the one whose slowest job takes the least time."""
    paths = Paths(problem.fabric)
    plans = [plan_scheme(make, name, ways, problem, paths, options.seed) for make in makes]
    return plans[0] if len(plans) == 1 else quickest(problem, plans)[1]


def quickest(problem: Problem, plans: Sequence[Plan]) -> tuple[float, Plan]:
    """The least time that the slowest job takes in any of the plans, in seconds, and the first plan that takes it."""
    return min(((evaluate(problem, plan).communication_time_s, plan) for plan in plans), key=itemgetter(0))
