"""A parameter server in every worker, each for an equal share of the gradient, as BytePS places them without CPU
machines (Jiang et al., OSDI 2020).

Every rank sends each other rank that one's share, and later the sum of its own share: two steps, in which all
connections send at the same time. Ranks begin with the next one, so that nobody is sent to by all at once.

A gradient of fewer fragments than there are ranks has as many shares as fragments, at ranks spread over all.
"""

from __future__ import annotations

from inakit.planner.methods.collectives.scheme import Builder, Group, Scheme


def ps_sharded(group: Group) -> Scheme:
    """Push shares, then pull sums."""
    n, shares = group.ranks, min(group.ranks, group.fragments)
    share_of = {n * share // shares: share for share in range(shares)}
    builder = Builder(shares)
    for rank in range(n):
        for other in ((rank + turn) % n for turn in range(1, n)):
            if other in share_of:
                builder.add(0, (rank, other), share_of[other])
            if rank in share_of:
                builder.put(1, (rank, other), share_of[rank])
    return builder.scheme()
