"""Static trees: every switch has one next hop towards a root, whoever sends."""

from __future__ import annotations

from collections.abc import Iterable

from inakit.planner.trees.unfolding import Path, Unfolded, unreachable


def static_paths(unfolded: Unfolded, workers: Iterable[str], turn: int = 0) -> list[Path]:
    """The path of each worker to the root, where every switch sends to the next hop number `turn` of those it has.

    In a Clos network all paths then pass one switch of each tier on their way up. Raises `InputError` for a worker that
    does not reach the root.
    """
    return [static_path(unfolded, worker, turn) for worker in workers]


def static_path(unfolded: Unfolded, source: str, turn: int = 0) -> Path:
    """The path of one host or switch to the root, as `static_paths` has it."""
    if source not in unfolded.next_hops:
        raise unreachable(source, unfolded.root)
    path = [source]
    while path[-1] != unfolded.root:
        following = unfolded.next_hops[path[-1]]
        path.append(following[turn % len(following)])
    return tuple(path)


def turns(unfolded: Unfolded) -> int:
    """The number of different turns: the most next hops that a switch has."""
    return max(map(len, unfolded.next_hops.values()))
