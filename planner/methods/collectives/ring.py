"""Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009), as in NCCL and Horovod.

In n - 1 steps every rank sends the next rank a chunk to be added, in n - 1 more the sums go round. Each rank sends
2 (n - 1) / n of the gradient, which is the least that is possible, in 2 (n - 1) steps, which is the most.
"""

from __future__ import annotations

from collections.abc import Sequence

from inakit.planner.methods.collectives.scheme import Builder, Group, Scheme


def ring(group: Group) -> Scheme:
    """The ring of all ranks, in their order."""
    builder = Builder(group.ranks)
    reduce_scatter(builder, range(group.ranks), 0)
    all_gather(builder, range(group.ranks), group.ranks - 1)
    return builder.scheme()


def reduce_scatter(builder: Builder, members: Sequence[int], step: int, first: int = 0, count: int = 1) -> None:
    """Sum blocks of `count` chunks, from chunk `first` on, round a ring, from `step` on; there are as many as members.

    Member i ends with the sum of block i + 1.
    """
    n = len(members)
    for turn in range(n - 1):
        for place, rank in enumerate(members):
            block = (place - turn) % n
            builder.add(step + turn, (rank, members[(place + 1) % n]), first + block * count, count)


def all_gather(builder: Builder, members: Sequence[int], step: int, first: int = 0, count: int = 1) -> None:
    """Send the blocks that `reduce_scatter` has left at each member round the ring, from `step` on."""
    n = len(members)
    for turn in range(n - 1):
        for place, rank in enumerate(members):
            block = (place + 1 - turn) % n
            builder.put(step + turn, (rank, members[(place + 1) % n]), first + block * count, count)
