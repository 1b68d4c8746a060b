"""A parameter server in every worker, each for an equal share of the gradient, as BytePS places them without CPU
machines (Jiang et al., OSDI 2020).

Every rank sends each other rank that one's share, and later the sum of its own share: two steps, in which all
connections send at the same time. Ranks begin with the next one, so that nobody is sent to by all at once.
"""

from __future__ import annotations

from planner.methods.collectives.scheme import Builder, Group, Scheme


def ps_sharded(group: Group) -> Scheme:
    """Push shares, then pull sums."""
    n = group.ranks
    builder = Builder(n)
    for rank in range(n):
        for turn in range(1, n):
            other = (rank + turn) % n
            builder.add(0, (rank, other), other)
            builder.put(1, (rank, other), rank)
    return builder.scheme()
