"""Recursive halving and doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005), and recursive doubling.

Ranks whose numbers differ in one bit exchange halves of what they are left with, the nearest ranks first, and then go
the same way back: 2 log2 n steps in which each rank sends 2 (n - 1) / n of the gradient. Recursive doubling exchanges
the whole gradient in log2 n steps, which is quicker for short ones. Where n is no power of two, the ranks beyond the
last one first give all they have to a neighbour, and get the sums from it at the end (MPICH's way).
"""

from __future__ import annotations

from planner.methods.collectives.scheme import Builder, Group, Scheme


def halving_doubling(group: Group) -> Scheme:
    """Halving, then doubling."""
    core = core_ranks(group.ranks)
    rounds = len(core).bit_length() - 1
    builder = Builder(len(core))
    fold(builder, group.ranks, core, 2 * rounds + 1)
    for place, rank in enumerate(core):
        first, count = 0, len(core)
        for turn in range(rounds):
            count //= 2
            bit = place >> turn & 1
            pair = rank, core[place ^ 1 << turn]
            kept, given = (first + count, first) if bit else (first, first + count)
            builder.add(1 + turn, pair, given, count)
            builder.put(2 * rounds - turn, pair, kept, count)
            first = kept
    return builder.scheme()


def recursive_doubling(group: Group) -> Scheme:
    """Doubling only, of the whole gradient."""
    core = core_ranks(group.ranks)
    rounds = len(core).bit_length() - 1
    builder = Builder(1)
    fold(builder, group.ranks, core, rounds + 1)
    for place, rank in enumerate(core):
        for turn in range(rounds):
            builder.add(1 + turn, (rank, core[place ^ 1 << turn]), 0)
    return builder.scheme()


def core_ranks(ranks: int) -> list[int]:
    """As many ranks as the greatest power of two has; those beyond leave out every second one of the first."""
    beyond = ranks - (1 << ranks.bit_length() - 1)
    return [*range(1, 2 * beyond, 2), *range(2 * beyond, ranks)]


def fold(builder: Builder, ranks: int, core: list[int], last: int) -> None:
    """Let ranks that are not in the core give what they have to the next one in step 0, and get sums in step `last`."""
    for rank in sorted(set(range(ranks)) - set(core)):
        builder.add(0, (rank, rank + 1), 0, builder.chunks)
        builder.put(last, (rank + 1, rank), 0, builder.chunks)
