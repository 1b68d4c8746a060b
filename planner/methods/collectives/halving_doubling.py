"""Recursive halving and doubling (Thakur, Rabenseifner and Gropp, IJHPCA 2005), and recursive doubling.

Ranks whose numbers differ in one bit exchange halves of what they are left with, the nearest ranks first, and then go
the same way back: 2 log2 n steps in which each rank sends 2 (n - 1) / n of the gradient. Where n is no power of two,
ranks send to the one that is a *skip* further on instead, in as many steps and no more bytes (Träff, "Optimal,
non-pipelined reduce-scatter and allreduce algorithms", arXiv 2410.14234).

Recursive doubling exchanges the whole gradient in log2 n steps, which is quicker for short ones. Where n is no power of
two, the ranks beyond the last one first give all they have to a neighbour, and get the sums from it at the end (MPICH's
way).
"""

from __future__ import annotations

from itertools import groupby

from inakit.planner.methods.collectives.scheme import Builder, Group, Scheme


def halving_doubling(group: Group) -> Scheme:
    """Halving, then doubling."""
    return exchanged_halves(group.ranks) if group.ranks.bit_count() == 1 else skipping(group.ranks)


def exchanged_halves(ranks: int) -> Scheme:
    """The scheme for a power of two: pairs of ranks exchange halves."""
    rounds, builder = ranks.bit_length() - 1, Builder(ranks)
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
    """The scheme for any number of ranks, which are a circle: chunk c is summed at rank c.

    A chunk that is i ranks away gets there by the skips whose sum i is, the least skip first. Half of the chunks, or
    about that, have the least skip among theirs.
    """
    skips, builder = skips_of(ranks), Builder(ranks)
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
    """n / 2, rounded up, half of that, rounded up, and so on to 1, in ascending order."""
    skips, rest = [], ranks
    while rest > 1:
        rest = (rest + 1) // 2
        skips.append(rest)
    return skips[::-1]


def parts_of(distance: int, skips: list[int]) -> list[int]:
    """The skips of which a distance is the sum, in ascending order: the greatest that fit, each once."""
    parts = []
    for skip in reversed(skips):
        if skip <= distance:
            parts.append(skip)
            distance -= skip
    return parts[::-1]


def ranges_of(chunks: list[int]) -> list[tuple[int, int]]:
    """Ascending chunks as ranges: the first of each, and how many follow one another."""
    found = []
    for _, members in groupby(enumerate(chunks), key=lambda entry: entry[1] - entry[0]):
        own = [chunk for _, chunk in members]
        found.append((own[0], len(own)))
    return found


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
        builder.add(0, (rank, rank + 1), 0)
        builder.put(last, (rank + 1, rank), 0)
