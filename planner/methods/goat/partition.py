"""Sub-models: a gradient cut between the layers of its model (GOAT, section II-D), in whole fragments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from inakit.planner.core.fragment_ranges import split
from inakit.planner.core.models import find_model


def partition(model: str, fragments: int, most: int) -> list[int]:
    """The fragments of each sub-model, at most `most` of them: consecutive layers, the largest as small as can be.

    A gradient without a model is cut into equal parts. A layer that is less than a fragment may count with its
    neighbour.
    """
    sizes = [layer.parameters for layer in find_model(model).layers] if model else [1] * min(most, fragments)
    parts = split(fragments, [size / sum(sizes) for size in grouped(sizes, most)])
    return [len(part) for part in parts if part]


def grouped(sizes: Sequence[int], most: int) -> list[int]:
    """The sums of consecutive sizes in at most `most` groups, of which the largest is as small as can be."""
    limits = range(max(sizes), sum(sizes) + 1)
    return filled(sizes, limits[bisect_left(limits, True, key=lambda limit: len(filled(sizes, limit)) <= most)])


def filled(sizes: Sequence[int], limit: int) -> list[int]:
    """The sums of consecutive sizes in groups that are each filled as far as `limit` allows."""
    groups = [0]
    for size in sizes:
        if groups[-1] + size > limit:
            groups.append(0)
        groups[-1] += size
    return groups
