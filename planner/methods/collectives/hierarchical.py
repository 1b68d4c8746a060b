"""A ring in every group of ranks, rings among groups, and again the rings in groups (2D ring, as in NCCL and Horovod).

A group sums its gradients by a reduce-scatter, the ranks at the same place of all groups sum these sums by a ring, and
an all-gather brings them to their groups. All groups have the same size, so that all are done with a ring at the same
time, and a group is a rack or a part of one if racks can be cut like that: into as many ranks as the greatest common
divisor of their sizes. Per group, one gradient leaves it, and one enters it.
"""

from __future__ import annotations

from math import gcd

from inakit.planner.methods.collectives.ring import all_gather, reduce_scatter
from inakit.planner.methods.collectives.scheme import Builder, Group, Scheme


def hierarchical(group: Group) -> Scheme:
    """Rings in racks, or in equal parts of them, and among these."""
    return rings_of(group, gcd(*map(len, group.racks)))


def hierarchical_across(group: Group) -> Scheme:
    """The same in the largest equal groups that are no larger than a rack by the mean: they may reach across racks."""
    mean = group.ranks // len(group.racks)
    return rings_of(group, max(size for size in range(1, mean + 1) if group.ranks % size == 0))


def rings_of(group: Group, size: int) -> Scheme:
    """Rings in groups of `size` ranks that follow one another, and among the groups."""
    groups = [range(at, at + size) for at in range(0, group.ranks, size)]
    among, builder = len(groups), Builder(group.ranks)
    middle, end = size - 1, size - 1 + 2 * (among - 1)
    for members in groups:
        reduce_scatter(builder, members, 0, count=among)
        all_gather(builder, members, end, count=among)
    for place in range(size):
        peers, first = [members[place] for members in groups], (place + 1) % size * among
        reduce_scatter(builder, peers, middle, first)
        all_gather(builder, peers, middle + among - 1, first)
    return builder.scheme()
