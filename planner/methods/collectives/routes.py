"""A path for each connection: by a hash, or so that connections which send at the same time share links evenly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from inakit.planner.trees.unfolding import DirectedLink, Path, Unfolded, unfold, unreachable
from inakit.topo.fabric.fabric import Fabric

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
            self.found[ends] = self.search(*ends)
        return self.found[ends]

    def search(self, source: str, destination: str) -> tuple[Path, ...]:
        """All of them, not from memory."""
        if destination not in self.towards:
            self.towards[destination] = unfold(self.fabric, destination)
        unfolded = self.towards[destination]
        if source not in unfolded.next_hops:
            raise unreachable(source, destination)
        return tuple(unfolded.paths(source))

    @cached_property
    def capacities_bps(self) -> dict[DirectedLink, float]:
        """The capacity of every link."""
        return self.fabric.capacities_bps


Together = Mapping[Ends, Sequence[int]]
"""For each connection, the numbers of the sets of connections that send at the same time and contain it."""
Routes = Callable[[Paths, Together, int], dict[Ends, Path]]
"""A path for each connection; the last argument is a seed."""


def hashed(paths: Paths, together: Together, seed: int) -> dict[Ends, Path]:
    """Any of a connection's paths, as ECMP takes it by a hash of addresses."""
    return {ends: random.Random(f"{seed} {ends}").choice(paths.of(ends)) for ends in together}


ROUNDS = 8
"""How often every connection may choose again, now that it knows what the others have chosen."""


def even(paths: Paths, together: Together, seed: int) -> dict[Ends, Path]:
    """For one connection after another the path whose busiest link is the least busy, until none changes its mind.

    Of paths that are equally good the seed decides.
    """
    draw, loads = random.Random(seed), Loads(paths.capacities_bps)
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
        """Add a connection of these sets, or take it away."""
        for link in pairwise(path):
            for each in sets:
                self.counts[each, link] += times

    def cost(self, sets: Iterable[int], path: Path) -> tuple[float, float]:
        """The greatest load on a path with one more connection, in connections per bit/s, and the sum of all loads."""
        links = list(pairwise(path))
        shares = [(self.counts[each, link] + 1) / self.capacities_bps[link] for each in sets for link in links]
        return max(shares), sum(shares)
