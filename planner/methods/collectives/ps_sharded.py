"""A parameter server in every worker, each for an equal share of the gradient, as BytePS places them without CPU
machines (Jiang et al., OSDI 2020).

Every rank sends each other rank that one's share, and later the sum of its own share. Ranks begin with the next one, so
that in each step every rank receives from one other: 2 (n - 1) steps, of which none waits for more than the last sum.
"""

from __future__ import annotations

from planner.methods.collectives.scheme import Builder, Group, Scheme


def ps_sharded(group: Group) -> Scheme:
    """Push shares, then pull sums."""
    n = group.ranks
    builder = Builder(n)
    for rank in range(n):
        for turn in range(n - 1):
            other = (rank + turn + 1) % n
            builder.add(turn, (rank, other), other)
            builder.put(n - 1 + turn, (rank, other), rank)
    return builder.scheme()
