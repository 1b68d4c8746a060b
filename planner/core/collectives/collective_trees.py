"""A collective as switches and endpoints know it: a tree for each rank that receives, without aggregators.

The tree's root is the rank, its workers are the ranks that send to it, and its branches are their paths.
"""

from __future__ import annotations

from collections import defaultdict

from inakit.planner.core.collectives.collective import Collective, Connection
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Branch


def trees_of(collective: Collective) -> tuple[AggregationTree, ...]:
    """The trees, with the destinations' ranks, counted from 1, as their numbers and the sources' ranks as labels."""
    into: defaultdict[int, list[Connection]] = defaultdict(list)
    for connection in collective.connections:
        into[connection.destination].append(connection)
    return tuple(tree_to(collective, rank, into[rank]) for rank in sorted(into))


def tree_to(collective: Collective, rank: int, connections: list[Connection]) -> AggregationTree:
    """The tree of all connections to one rank."""
    workers = {label_of(each): collective.ranks[each.source] for each in connections}
    branches = tuple(Branch(label_of(each), ROOT_LABEL, each.path) for each in connections)
    return AggregationTree(tree_number(rank), collective.ranks[rank], workers, (), branches)


def tree_number(destination: int) -> int:
    """The number of the tree to a rank."""
    return destination + 1


def label_of(connection: Connection) -> int:
    """The label of a connection's packets."""
    return connection.source + 1
