"""A collective without the network's help: which rank sends which chunks to which other rank, and in which step.

Ranks, steps and chunks are those of MPI and NCCL. All transfers of a step send what their ranks held before the step:
a rank holds its own gradient plus all that steps before have added to it, or what a step before has put in its place.
Nobody waits for a step of others. A transfer begins as soon as the steps before it have brought its own chunks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

ACKNOWLEDGED_AT_ONCE = 32
"""How many fragments a receiver acknowledges with one packet, as long as they come without a gap."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """`count` chunks, from chunk `first` on, that are sent in a step.

    If it `adds`, the receiver sums them with what it holds; otherwise they take the place of that.
    """

    step: int
    first: int
    count: int
    adds: bool

    @property
    def chunks(self) -> range:
        """The chunks."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Connection:
    """All that one rank sends another: transfers in the order of their steps, by one path, at one rate on the wire.

    `path` leads from the source's host to the destination's, both included.
    """

    source: int
    destination: int
    path: tuple[str, ...]
    rate_bps: float
    transfers: tuple[Transfer, ...]

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """The directed links of the path."""
        return tuple(pairwise(self.path))


@dataclass(frozen=True)
class Collective:
    """How the workers of a job sum their gradients among themselves.

    `ranks`: their hosts, each once. The gradient is divided into `chunks` equal parts. `connections` has at most one
    for each source and destination. Connections that send in the same step share links at the same time; those of
    different steps follow one another.
    """

    job: int
    ranks: tuple[str, ...]
    chunks: int
    connections: tuple[Connection, ...]

    @cached_property
    def steps(self) -> dict[int, tuple[tuple[int, Transfer], ...]]:
        """The transfers of every step, in ascending order, with the numbers of their connections."""
        found: defaultdict[int, list[tuple[int, Transfer]]] = defaultdict(list)
        for number, connection in enumerate(self.connections):
            for transfer in connection.transfers:
                found[transfer.step].append((number, transfer))
        return {step: tuple(found[step]) for step in sorted(found)}

    @cached_property
    def concurrent(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The different sets of connections that send in one step: their numbers, and how many chunks each sends."""
        found: dict[tuple[tuple[int, int], ...], None] = {}
        for sent in self.steps.values():
            chunks: Counter[int] = Counter()
            for number, transfer in sent:
                chunks[number] += transfer.count
            found[tuple(sorted(chunks.items()))] = None
        return tuple(found)

    def chunk_fragments(self, total: int) -> list[range]:
        """The fragments of each chunk of a gradient of `total` fragments; there may be more chunks than fragments."""
        bounds = [total * chunk // self.chunks for chunk in range(self.chunks + 1)]
        return [range(low, high) for low, high in pairwise(bounds)]

    def with_rates_times(self, factor: float) -> Collective:
        """The collective with every rate times `factor`."""
        connections = (replace(each, rate_bps=each.rate_bps * factor) for each in self.connections)
        return replace(self, connections=tuple(connections))
