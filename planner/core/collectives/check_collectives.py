"""Whether the collectives of a plan keep their rules: `check_collective(problem, collective)`.

Nothing here is shared with planners or with the endpoints. What ranks hold is followed symbolically, step by step.

========== ==============================================================================================
rule       every collective keeps it
========== ==============================================================================================
rank       its ranks are the workers of its job, each once
chunk      it has at least one chunk, and transfers are of chunks that it has
connection a connection joins two different ranks, and no two join the same two in the same direction
rate       a connection's rate is finite and greater than 0
path       a connection's path follows links over switches, from its source's host to its destination's
up-down    a path climbs, crosses, descends, in that order, and passes no switch twice
step       a connection's transfers are in the order of their steps
place      nothing else comes to a rank for a chunk in a step in which chunks take the place of its own
sum        no rank adds a gradient to a chunk twice, and each ends with every chunk's sum over all ranks
========== ==============================================================================================
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from math import fsum, isfinite

from inakit.planner.core.collectives.collective import ACKNOWLEDGED_AT_ONCE, Collective, Connection, Transfer
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import Fabric

Sent = list[tuple[Connection, Transfer]]
Held = list[list[int]]
"""`held[rank][chunk]`: a bit for each rank whose gradient is in the sum that a rank has of a chunk."""


def broken(rule: str, collective: Collective, what: str, why: str) -> PlanError:
    """The error for a broken rule, which names the job, the place and the reason."""
    return PlanError(f"rule {rule} broken at job {collective.job}, {what}: {why}")


def check_collective(problem: Problem, collective: Collective) -> None:
    """Raise `PlanError`, naming the rule and where it is broken, unless a collective keeps all rules."""
    job = next(job for job in problem.jobs if job.number == collective.job)
    check_ranks(job, collective)
    check_pairs(collective)
    for connection in collective.connections:
        check_connection(problem.fabric, collective, connection)
        check_transfers(collective, connection)
    check_sums(collective)


def check_ranks(job: Job, collective: Collective) -> None:
    """Check rule rank, and that there is a chunk."""
    hosts = Counter(collective.ranks)
    for host in sorted(set(hosts) | set(job.workers)):
        expected = 1 if host in job.workers else 0
        if hosts[host] != expected:
            raise broken("rank", collective, f"host {host}", f"it has {hosts[host]} ranks, not {expected}")
    if collective.chunks < 1:
        raise broken("chunk", collective, "its gradient", f"it is divided into {collective.chunks} chunks")


def check_pairs(collective: Collective) -> None:
    """Check rule connection."""
    known = range(len(collective.ranks))
    pairs = Counter((connection.source, connection.destination) for connection in collective.connections)
    for (source, destination), count in pairs.items():
        what = f"connection {source}->{destination}"
        if source == destination or source not in known or destination not in known:
            raise broken("connection", collective, what, f"two different ranks of 0 to {len(known) - 1} are expected")
        if count > 1:
            raise broken("connection", collective, what, f"there are {count} of them")


def check_connection(fabric: Fabric, collective: Collective, connection: Connection) -> None:
    """Check the rate and the path of a connection."""
    what = f"connection {connection.source}->{connection.destination}"
    if not (isfinite(connection.rate_bps) and connection.rate_bps > 0):
        raise broken("rate", collective, what, f"{connection.rate_bps:g} bit/s is no rate to send at")
    ends = collective.ranks[connection.source], collective.ranks[connection.destination]
    path = connection.path
    if len(path) < 2 or (path[0], path[-1]) != ends:
        raise broken("path", collective, what, f"it is {'->'.join(path)}, not from {ends[0]} to {ends[1]}")
    for link in pairwise(path):
        if link not in fabric.capacities_bps:
            raise broken("path", collective, f"{what}, link {'->'.join(link)}", "the fabric has no such link")
    for node, count in Counter(path).items():
        if count > 1:
            raise broken("up-down", collective, what, f"it passes {node} {count} times")
    for node in path[1:-1]:
        if node not in fabric.switch_by_name:
            raise broken("path", collective, what, f"it passes host {node}")
    falls = [(fabric.tiers[a] > fabric.tiers[b]) - (fabric.tiers[a] < fabric.tiers[b]) for a, b in pairwise(path)]
    if any(after < before for before, after in pairwise(falls)):
        raise broken("up-down", collective, what, f"{'->'.join(path)} climbs or crosses after going down or across")


def check_transfers(collective: Collective, connection: Connection) -> None:
    """Check rules chunk and step for the transfers of a connection."""
    what = f"connection {connection.source}->{connection.destination}"
    for transfer in connection.transfers:
        last = transfer.first + transfer.count
        if not (0 <= transfer.first < last <= collective.chunks):
            why = f"{transfer.count} chunks from {transfer.first} on, of {collective.chunks}"
            raise broken("chunk", collective, f"{what}, step {transfer.step}", why)
    steps = [transfer.step for transfer in connection.transfers]
    if not steps or steps != sorted(steps) or steps[0] < 0:
        raise broken("step", collective, what, f"its steps are {steps[:8]}; ascending ones from 0 on are expected")


def check_sums(collective: Collective) -> None:
    """Check that every rank ends with every chunk's sum, by doing all steps with sets of ranks instead of numbers."""
    ranks = range(len(collective.ranks))
    held: Held = [[1 << rank] * collective.chunks for rank in ranks]
    by_step: defaultdict[int, Sent] = defaultdict(list)
    for connection in collective.connections:
        for transfer in connection.transfers:
            by_step[transfer.step].append((connection, transfer))
    for step in sorted(by_step):
        do_step(collective, step, by_step[step], held)
    everyone = (1 << len(ranks)) - 1
    for rank in ranks:
        for chunk, got in enumerate(held[rank]):
            if got != everyone:
                absent = next(other for other in ranks if not got >> other & 1)
                why = f"its sum of chunk {chunk} lacks {collective.ranks[absent]} (rank {absent})"
                raise broken("sum", collective, f"host {collective.ranks[rank]} (rank {rank})", why)


def do_step(collective: Collective, step: int, sent: Sent, held: Held) -> None:
    """Let all transfers of a step happen at once, each with what its source held before."""
    carried = [held[connection.source][t.first : t.first + t.count] for connection, t in sent]
    came: set[tuple[int, int]] = set()
    placed: set[tuple[int, int]] = set()
    for (connection, transfer), values in zip(sent, carried, strict=True):
        mine, rank = held[connection.destination], connection.destination
        for chunk, value in enumerate(values, start=transfer.first):
            what = f"step {step}, connection {connection.source}->{rank}, chunk {chunk}"
            at = rank, chunk
            if at in placed or (at in came and not transfer.adds):
                raise broken("place", collective, what, "something else comes for the chunk in the same step")
            (came if transfer.adds else placed).add(at)
            if transfer.adds and mine[chunk] & value:
                raise broken("sum", collective, what, f"it adds {overlap(collective, mine[chunk] & value)} again")
            mine[chunk] = mine[chunk] | value if transfer.adds else value


def overlap(collective: Collective, both: int) -> str:
    """The hosts whose bits are set; the first of them, and how many more."""
    hosts = [host for rank, host in enumerate(collective.ranks) if both >> rank & 1]
    return hosts[0] if len(hosts) == 1 else f"{hosts[0]} and {len(hosts) - 1} more"


def busiest_step(problem: Problem, collective: Collective) -> dict[tuple[str, str], tuple[int, float]]:
    """By link, how many connections send in the step that loads it most, and its load in bit/s.

    What is acknowledged loads the way back: a packet without values for every 32 with values.
    """
    header_bytes = problem.fragment.wire_bytes - 4 * problem.fragment.values
    share = header_bytes / problem.fragment.wire_bytes / ACKNOWLEDGED_AT_ONCE
    by_step: defaultdict[int, set[int]] = defaultdict(set)
    for number, connection in enumerate(collective.connections):
        for transfer in connection.transfers:
            by_step[transfer.step].add(number)
    most: dict[tuple[str, str], tuple[int, float]] = {}
    for together in {frozenset(numbers) for numbers in by_step.values()}:
        loads: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for connection in (collective.connections[number] for number in together):
            for a, b in pairwise(connection.path):
                loads[a, b].append(connection.rate_bps)
                loads[b, a].append(connection.rate_bps * share)
        for link, rates in loads.items():
            most[link] = max(most.get(link, (0, 0.0)), (len(rates), fsum(rates)), key=lambda found: found[1])
    return most
