"""Double binary trees, as NCCL has had them since 2.4 (Sanders, Speck and Traeff, "Two-tree algorithms for full
bandwidth broadcast, reduction and scan", Parallel Computing 2009).

Each of two binary trees sums half of the gradient up to its root and sends the sums down again, chunk after chunk. The
second tree is the first one mirrored or, for an odd number of ranks, shifted by one: a rank that has children in one
tree is a leaf of the other, so that every rank sends about as much as in a ring, in a number of steps that grows with
log n.
"""

from __future__ import annotations

from collections.abc import Mapping

from inakit.planner.methods.collectives.scheme import Builder, Group, Scheme

Parents = Mapping[int, int]
"""The parent of every rank but the root."""


def double_tree(group: Group) -> Scheme:
    """Both trees, with so many chunks that all levels of a tree send at the same time."""
    trees = both_trees(group.ranks)
    levels = max(max(heights(tree).values()) for tree in trees)
    chunks = max(1, min(group.fragments // 2, 2 * levels + 2))
    builder = Builder(2 * chunks)
    for number, tree in enumerate(trees):
        add_tree(builder, tree, number * chunks, chunks)
    return builder.scheme(pipelined=True)


def add_tree(builder: Builder, tree: Parents, first: int, chunks: int) -> None:
    """Sum `chunks` chunks from `first` on up a tree, and send the sums down."""
    height, depth = heights(tree), depths(tree)
    top = max(height.values())
    for rank, parent in tree.items():
        for turn in range(chunks):
            builder.add(height[rank] + turn, (rank, parent), first + turn)
            builder.put(top + depth[parent] + turn, (parent, rank), first + turn)


def both_trees(ranks: int) -> tuple[Parents, Parents]:
    """The two trees: the second one is mirrored, or shifted by one rank where their number is odd."""
    tree = binary_tree(ranks)
    if ranks % 2:
        return tree, {(rank + 1) % ranks: (parent + 1) % ranks for rank, parent in tree.items()}
    return tree, {ranks - 1 - rank: ranks - 1 - parent for rank, parent in tree.items()}


def binary_tree(ranks: int) -> Parents:
    """A tree with root 0 whose odd ranks are leaves.

    With b the lowest bit of a rank that is set, its parent has b clear and the next bit set; where there is no such
    rank, that bit is clear too.
    """
    parents: dict[int, int] = {}
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | bit << 1
        parents[rank] = parent if parent < ranks else rank ^ bit
    return parents


def depths(tree: Parents) -> dict[int, int]:
    """How many links lead from each rank to the root."""
    found: dict[int, int] = {}
    for rank in set(tree) | set(tree.values()):
        above, found[rank] = rank, 0
        while above in tree:
            above, found[rank] = tree[above], found[rank] + 1
    return found


def heights(tree: Parents) -> dict[int, int]:
    """How many links lead from each rank to the deepest leaf below it."""
    found = dict.fromkeys(set(tree) | set(tree.values()), 0)
    for rank in sorted(tree, key=depths(tree).__getitem__, reverse=True):
        found[tree[rank]] = max(found[tree[rank]], found[rank] + 1)
    return found
