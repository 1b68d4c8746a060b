"""Which aggregator slots each tree owns: exclusive segments in every pipeline of every switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from planner.plan import AggregationTree, Aggregator
from topo.errors import InputError
from topo.fabric import Fabric

DEFAULT_WINDOW = 256
"""Fragments on their way at once: at 20 Mbit/s and 326 B a packet, 33 ms of data, well beyond any round trip here."""

Pipeline = tuple[str, int]


def assign_slots(
    fabric: Fabric, trees: Sequence[AggregationTree], window: int = DEFAULT_WINDOW
) -> tuple[AggregationTree, ...]:
    """The trees with segments that do not overlap: in each pipeline one after another.

    A tree's aggregators all get its window, since it can use no more: the least equal share of a pipeline
    that it passes, at most `window`. Raises `InputError` when a pipeline has fewer slots than trees.
    """
    users = Counter(pipeline_of(aggregator) for tree in trees for aggregator in tree.aggregators)
    shares = {pipeline: fair_share(fabric, pipeline, count) for pipeline, count in users.items()}
    taken: Counter[Pipeline] = Counter()
    assigned = []
    for tree in trees:
        slots = min((shares[pipeline_of(aggregator)] for aggregator in tree.aggregators), default=0)
        aggregators = []
        for aggregator in tree.aggregators:
            first = taken[pipeline_of(aggregator)]
            aggregators.append(replace(aggregator, first_slot=first, slots=min(slots, window)))
            taken[pipeline_of(aggregator)] += min(slots, window)
        assigned.append(replace(tree, aggregators=tuple(aggregators)))
    return tuple(assigned)


def pipeline_of(aggregator: Aggregator) -> Pipeline:
    return aggregator.switch, aggregator.pipeline


def fair_share(fabric: Fabric, pipeline: Pipeline, users: int) -> int:
    available = fabric.switch_by_name[pipeline[0]].aggregator_slots
    if available < users:
        raise InputError(
            f"switch '{pipeline[0]}': {users} trees aggregate in pipeline {pipeline[1]}, which has {available} "
            "aggregator slots; raise aggregator_slots to at least one per tree"
        )
    return available // users
