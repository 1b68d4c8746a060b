"""Which worker has which rank: drawn at random, or rack by rack."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import groupby

from inakit.planner.core.problem import Job
from inakit.topo.fabric.fabric import Fabric

Order = Callable[[Fabric, Job, int], list[str]]
"""The hosts of a job's workers in the order of their ranks; the last argument is a seed."""


def drawn(fabric: Fabric, job: Job, seed: int) -> list[str]:
    """Any order."""
    _ = fabric
    return random.Random(f"{seed} {job.number}").sample(job.workers, len(job.workers))


def by_rack(fabric: Fabric, job: Job, seed: int) -> list[str]:
    """The workers of each rack follow one another, and so do the racks below the same switches.

    Racks and hosts are in the order of the fabric.
    """
    _ = seed
    place = {switch.name: number for number, switch in enumerate(fabric.switches)}
    above = {name: min(place[peer] for peer in (*peers_above(fabric, name), name)) for name in place}
    host = {each.name: number for number, each in enumerate(fabric.hosts)}
    tor = fabric.tor_of
    return sorted(job.workers, key=lambda worker: (above[tor(worker)], place[tor(worker)], host[worker]))


def peers_above(fabric: Fabric, switch: str) -> list[str]:
    """The switches above a switch to which it has a link."""
    return [peer for peer in fabric.neighbors[switch] if fabric.tiers[peer] > fabric.tiers[switch]]


def racks_of(fabric: Fabric, ranks: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The ranks of each rack. Ranks of a rack that do not follow one another count as those of several."""
    found = groupby(range(len(ranks)), key=lambda rank: fabric.tor_of(ranks[rank]))
    return tuple(tuple(members) for _, members in found)
