"""A path for each connection: by a hash, or so that connections which send at the same time share links evenly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import pairwise

from planner.trees.unfolding import DirectedLink, Path, Unfolded, unfold, unreachable
from topo.fabric.fabric import Fabric

Ends = tuple[str, str]
"""The hosts of a connection's source and destination."""


class Paths:
    """The shortest up-down paths between hosts."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.towards: dict[str, Unfolded] = {}

    def of(self, ends: Ends) -> list[Path]:
        """All of them. Raises `InputError` where there is none."""
        source, destination = ends
        if destination not in self.towards:
            self.towards[destination] = unfold(self.fabric, destination)
        unfolded = self.towards[destination]
        if source not in unfolded.next_hops:
            raise unreachable(source, destination)
        return list(unfolded.paths(source))

    @cached_property
    def capacities_bps(self) -> dict[DirectedLink, float]:
        """The capacity of every link."""
        return self.fabric.capacities_bps


Together = Mapping[Ends, Iterable[int]]
"""For each connection, the numbers of the sets of connections that send at the same time and contain it."""
Routes = Callable[[Paths, Together, int], dict[Ends, Path]]
"""A path for each connection; the last argument is a seed."""


def hashed(paths: Paths, together: Together, seed: int) -> dict[Ends, Path]:
    """Any of a connection's paths, as ECMP takes it by a hash of addresses."""
    return {ends: random.Random(f"{seed} {ends}").choice(paths.of(ends)) for ends in together}


def even(paths: Paths, together: Together, seed: int) -> dict[Ends, Path]:
    """For one connection after another the path whose busiest link is the least busy, and of these one by the seed."""
    draw, chosen = random.Random(seed), {}
    loads: Counter[tuple[int, DirectedLink]] = Counter()
    for ends, sets in together.items():
        own = tuple(sets)

        def cost(path: Path, own: tuple[int, ...] = own) -> tuple[float, float]:
            shares = [(loads[each, link] + 1) / paths.capacities_bps[link] for link in pairwise(path) for each in own]
            return max(shares), sum(shares)

        options = paths.of(ends)
        draw.shuffle(options)
        chosen[ends] = min(options, key=cost)
        loads.update((each, link) for link in pairwise(chosen[ends]) for each in own)
    return chosen


ROUTES: Mapping[str, Routes] = {"even": even, "ecmp": hashed}
