"""A collective's scheme: who sends which chunks to whom, and when; neither hosts, nor paths, nor rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from inakit.planner.core.collectives.collective import Transfer

Pair = tuple[int, int]
"""A source and a destination, by rank."""


@dataclass(frozen=True)
class Scheme:
    """`transfers[source, destination]` in the order of their steps; the gradient is divided into `chunks` equal parts.

    `pipelined`: all pairs send at the same time, because each has many chunks that follow one another.
    """

    chunks: int
    transfers: dict[Pair, tuple[Transfer, ...]]
    pipelined: bool = False


@dataclass(frozen=True)
class Group:
    """What a scheme is made for: `ranks` ranks, their racks, and a gradient of so many `fragments`.

    `racks` has the ranks of each rack, which follow one another.
    """

    ranks: int
    racks: tuple[tuple[int, ...], ...]
    fragments: int


Make = Callable[[Group], Scheme]
"""Makes the scheme of a group."""


class Builder:
    """Collects the transfers of a scheme; the order in which they are added does not matter."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.found: defaultdict[Pair, list[Transfer]] = defaultdict(list)

    def add(self, step: int, pair: Pair, first: int, count: int = 1) -> None:
        """Let the source send chunks in a step, which the destination adds to what it holds."""
        self.found[pair].append(Transfer(step, first, count, adds=True))

    def put(self, step: int, pair: Pair, first: int, count: int = 1) -> None:
        """Let the source send chunks in a step, which take the place of what the destination holds."""
        self.found[pair].append(Transfer(step, first, count, adds=False))

    def scheme(self, *, pipelined: bool = False) -> Scheme:
        """The scheme of all that was added."""
        ordered = {pair: tuple(sorted(own, key=lambda t: (t.step, t.first))) for pair, own in self.found.items()}
        return Scheme(self.chunks, ordered, pipelined)
