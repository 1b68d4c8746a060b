"""A ring in every rack, then rings among racks, then the rings in the racks again (2D ring, as in NCCL and Horovod).

Racks are cut into groups of as many ranks as the smallest rack has. A group sums its gradients by a reduce-scatter, the
ranks at the same place of all groups sum these sums by a ring, and an all-gather brings them to their groups. Per
group, one gradient leaves the rack, and one enters it. Ranks that are left over in a rack give what they have to a
neighbour first, and get the sums from it last.
"""

from __future__ import annotations

from planner.methods.collectives.ring import all_gather, reduce_scatter
from planner.methods.collectives.scheme import Builder, Group, Scheme


def hierarchical(group: Group) -> Scheme:
    """Rings in racks and among them."""
    size = min(map(len, group.racks))
    groups = [rack[at : at + size] for rack in group.racks for at in range(0, len(rack) - size + 1, size)]
    among, whole = len(groups), size * len(groups)
    builder = Builder(whole)
    middle, end = size, size + 2 * (among - 1)
    for rack in group.racks:
        for left_over in rack[len(rack) // size * size :]:
            builder.add(0, (left_over, rack[left_over % size]), 0, whole)
            builder.put(end + size - 1, (rack[left_over % size], left_over), 0, whole)
    for members in groups:
        reduce_scatter(builder, members, 1, count=among)
        all_gather(builder, members, end, count=among)
    for place in range(size):
        peers, first = [members[place] for members in groups], (place + 1) % size * among
        reduce_scatter(builder, peers, middle, first)
        all_gather(builder, peers, middle + among - 1, first)
    return builder.scheme()
