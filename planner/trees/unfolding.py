"""The unfolded graph of ARO: every switch's next hops towards one root, by up-down routing; and static trees.

A switch that can descend to the root descends, one that cannot crosses to a switch of its tier that can, and only the
rest climb. In a Clos network these are exactly the shortest paths. Each switch thus has one direction, so the graph has
no cycle, and flows that meet in a switch can share the rest of the way, regardless of their origin.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf

from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path
from inakit.topo.fabric.up_down import Move, move


@dataclass(frozen=True)
class Unfolded:
    """`next_hops[node]`: the possible next nodes of a packet at `node`. Nodes that do not reach the root are absent."""

    root: str
    next_hops: dict[str, tuple[str, ...]]

    @cached_property
    def rank(self) -> dict[str, int]:
        """The position of every node in an order in which each comes after its next hops."""
        return {node: place for place, node in enumerate(self.next_hops)}

    def links(self, sources: Iterable[str]) -> tuple[DirectedLink, ...]:
        """The directed links that paths from `sources` to the root can use."""
        nodes = list(dict.fromkeys(sources))
        known = set(nodes)
        for node in nodes:  # the list grows in the loop
            nodes += [peer for peer in self.next_hops[node] if peer not in known]
            known.update(self.next_hops[node])
        return tuple((node, peer) for node in nodes for peer in self.next_hops[node])

    def paths(self, source: str) -> Iterator[Path]:
        """All paths from `source` to the root."""
        if source == self.root:
            yield (source,)
        for peer in self.next_hops[source]:
            yield from ((source, *rest) for rest in self.paths(peer))


def unfold(fabric: Fabric, root: str, sources: Iterable[str] = ()) -> Unfolded:
    """The unfolded graph towards `root`, a host or a switch. Raises `InputError` unless all `sources` reach it."""
    hops: dict[str, float] = {root: 0}
    next_hops: dict[str, tuple[str, ...]] = {root: ()}
    for step in (Move.DOWN, Move.CROSS, Move.UP):
        reached = reach(fabric, hops, step)
        hops |= reached
        for node in reached:
            next_hops[node] = tuple(
                peer
                for peer in fabric.neighbors[node]
                if move(fabric, node, peer) == step and hops.get(peer) == hops[node] - 1
            )
    for source in sources:
        if source not in next_hops:
            raise unreachable(source, root)
    return Unfolded(root, next_hops)


def reach(fabric: Fabric, hops: dict[str, float], step: Move) -> dict[str, float]:
    """The fewest hops of every node outside `hops` that reaches a node of `hops` by moves of the kind `step`."""
    reached: dict[str, float] = {}
    queue = [(count, node) for node, count in hops.items()]
    heapq.heapify(queue)
    while queue:
        count, node = heapq.heappop(queue)
        if node in fabric.host_names and count > 0:
            continue  # paths only begin or end at a host
        for peer in fabric.neighbors[node]:
            nearer = count + 1 < reached.get(peer, inf)
            if peer not in hops and nearer and move(fabric, peer, node) == step:
                reached[peer] = count + 1
                heapq.heappush(queue, (count + 1, peer))
    return reached


def unreachable(worker: str, server: str) -> InputError:
    """The error for a worker that has no route to its parameter server."""
    return InputError(
        f"parameter server '{server}' cannot be reached from worker '{worker}' by up-down routing: "
        "add the missing links to the fabric, or choose another host"
    )


# -- Static trees: every switch has one next hop towards a root, for all senders.


def static_paths(unfolded: Unfolded, workers: Iterable[str], turn: int = 0) -> list[Path]:
    """The path of each worker to the root, where every switch sends to its next hop number `turn`.

    In a Clos network all paths then pass one switch of each tier on their way up. Raises `InputError` for a worker that
    does not reach the root.
    """
    return [static_path(unfolded, worker, turn) for worker in workers]


def static_path(unfolded: Unfolded, source: str, turn: int = 0) -> Path:
    """The path of one host or switch to the root, by the rule of `static_paths`."""
    if source not in unfolded.next_hops:
        raise unreachable(source, unfolded.root)
    path = [source]
    while path[-1] != unfolded.root:
        following = unfolded.next_hops[path[-1]]
        path.append(following[turn % len(following)])
    return tuple(path)


def turns(unfolded: Unfolded) -> int:
    """The number of different turns: the maximum number of next hops of a switch."""
    return max(map(len, unfolded.next_hops.values()))
