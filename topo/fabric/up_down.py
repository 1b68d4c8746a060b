"""Up-down (valley-free) paths: climb, cross between switches of one tier, descend, and never climb again.

Crossing is for fabrics whose top is not a tree: the two- and three-switch testbeds, or a flat graph from GraphML. In a
Clos network no link joins two switches of one tier, so that a path only climbs and descends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.fabric import Fabric, Path


class Move(IntEnum):
    """The direction of a hop between tiers. On an up-down path, moves never decrease."""

    UP = 0
    CROSS = 1
    DOWN = 2


State = tuple[str, Move]
"""A node, and the move by which it was reached."""


def move(fabric: Fabric, node: str, peer: str) -> Move:
    """The direction of the hop from `node` to `peer`."""
    rise = fabric.tiers[peer] - fabric.tiers[node]
    return Move.UP if rise > 0 else Move.DOWN if rise < 0 else Move.CROSS


def is_path(fabric: Fabric, path: Sequence[str]) -> bool:
    """Whether `path` follows links, visits no node twice, and passes through switches only."""
    linked = all(hop in fabric.capacities_bps for hop in pairwise(path))
    return bool(path) and linked and len(set(path)) == len(path) and not fabric.host_names & set(path[1:-1])


def is_up_down(fabric: Fabric, path: Sequence[str]) -> bool:
    """Whether `path` is a path of the fabric that climbs, crosses and descends, in that order."""
    if not is_path(fabric, path):
        return False
    moves = [move(fabric, node, peer) for node, peer in pairwise(path)]
    return all(first <= second for first, second in pairwise(moves))


def up_down_paths(fabric: Fabric, src: str, dst: str) -> list[Path]:
    """All shortest up-down paths from `src` to `dst` (hosts or switches), in the order of the links.

    The list is empty where there is no path, and `[(src,)]` where both are the same node. Raises `FabricError` for a
    node that the fabric does not have.
    """
    for node in (src, dst):
        if node not in fabric.tiers:
            raise FabricError(str(unknown_name("host or switch", node, fabric.tiers)))
    hops = hops_to(fabric, dst)
    start = (src, Move.UP)
    return list(walk(fabric, (src,), start, hops)) if start in hops else []


def walk(fabric: Fabric, path: Path, state: State, hops: dict[State, int]) -> Iterator[Path]:
    """Yield every continuation of `path` on which each hop is one nearer to the destination of `hops`."""
    if hops[state] == 0:
        yield path
        return
    for following in successors(fabric, state):
        if hops.get(following) == hops[state] - 1:
            yield from walk(fabric, (*path, following[0]), following, hops)


def hops_to(fabric: Fabric, dst: str) -> dict[State, int]:
    """The smallest number of hops to `dst` from every state that reaches it."""
    hops = {(dst, last): 0 for last in Move}
    queue = deque(hops)
    while queue:
        state = queue.popleft()
        for previous in predecessors(fabric, state, dst):
            if previous not in hops:
                hops[previous] = hops[state] + 1
                queue.append(previous)
    return hops


def successors(fabric: Fabric, state: State) -> Iterator[State]:
    """Yield the states that one hop from `state` reaches without climbing again."""
    node, last = state
    for peer in fabric.neighbors[node]:
        step = move(fabric, node, peer)
        if step >= last:
            yield peer, step


def predecessors(fabric: Fabric, state: State, dst: str) -> Iterator[State]:
    """Yield the states from which one hop leads to `state`. A host can only be the end of a path."""
    node, step = state
    if node in fabric.host_names and node != dst:
        return
    for peer in fabric.neighbors[node]:
        if move(fabric, peer, node) == step:
            yield from ((peer, last) for last in Move if last <= step)
