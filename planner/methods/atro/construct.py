"""Wirings that reach, or nearly reach, the bound: aggregators in a tree, and common switches that feed them.

A feeder is a common switch that workers enter and that sends their flows over few links, of t flows each, to as many
aggregators, each of which spends one port for t flows. Where a feeder's ports are too few to fill its links, other
common switches send to it: relays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, product

from inakit.planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring

MIXED, LEVEL = "mixed", "level"
"""Whether a feeder's aggregators may stand at different distances from the PS (mixed) or not (level). Level routes are
all shortest paths, which is what ARO plans with."""


@dataclass(frozen=True)
class Recipe:
    """What tells apart the wirings that are tried.

    `aggregators`: how many are used. `server_at_common`: whether the PS is at a common switch. `feeding`: `MIXED` or
    `LEVEL`. `full`: no feeder has a link that is not full, and no relay has relays.
    """

    aggregators: int
    server_at_common: bool
    feeding: str
    full: bool


@dataclass
class Skeleton:
    """Switches and their links while a wiring grows, without workers yet.

    `parents` are those to which a switch sends, `layer` is its layer, `free` counts its ports that are not used.
    """

    cluster: Cluster
    t: int
    recipe: Recipe
    parents: dict[str, list[str]] = field(default_factory=dict)
    layer: dict[str, int] = field(default_factory=lambda: {SERVER: 0})
    free: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    """The flows that a common switch could take in addition. Aggregators are not in it, as they are not limited."""

    @property
    def aggregators(self) -> list[str]:
        """The aggregators that are wired."""
        return [switch for switch in self.parents if switch not in self.room]

    @property
    def spare(self) -> list[str]:
        """The common switches that are not wired yet."""
        return [name for name in self.cluster.common_names if name not in self.parents]

    def add(self, switch: str, parents: list[str], room: int | None = None) -> None:
        """Wire a switch that sends to `parents`; a common one gets `room` for that many flows."""
        self.parents[switch] = parents
        self.layer[switch] = 1 + max(self.layer[parent] for parent in parents)
        self.free[switch] = self.cluster.ports - len(parents)
        for parent in parents:
            if parent != SERVER:
                self.free[parent] -= 1
        if room is not None:
            self.room[switch] = room

    def entries(self, switch: str) -> int:
        """How many workers could hang from a switch."""
        return min(self.free[switch], self.room.get(switch, self.free[switch]))

    @property
    def capacity(self) -> int:
        """How many workers could hang from all switches together."""
        return sum(map(self.entries, self.parents))

    def may_have_children(self, switch: str) -> bool:
        """Whether another switch could send to this one, by its ports, its room and the number of layers."""
        return self.entries(switch) > 0 and self.layer[switch] < self.cluster.layers


def construct(cluster: Cluster, t: int) -> Wiring | None:
    """The wiring of fewest switches with at most `t` flows on every link; None if no recipe leads to one.

    Wirings with level feeding, on which ARO's plan has the same rate, go before all others.
    """
    for feeding in (LEVEL, MIXED):
        grown = (grow(cluster, t, recipe) for recipe in recipes(cluster, feeding))
        enough = [skeleton for skeleton in grown if skeleton and skeleton.capacity >= cluster.workers]
        if enough:
            return wiring_of(min(enough, key=lambda skeleton: len(skeleton.parents)))
    return None


def most_constructed(cluster: Cluster, t: int) -> int:
    """The most workers for which `construct` finds a wiring, at most `cluster.workers`."""
    grown = (grow(cluster, t, recipe) for feeding in (LEVEL, MIXED) for recipe in recipes(cluster, feeding))
    return min(cluster.workers, max((skeleton.capacity for skeleton in grown if skeleton), default=0))


def recipes(cluster: Cluster, feeding: str) -> Iterator[Recipe]:
    """The recipes with this feeding, those with few aggregators first."""
    for number, server_at_common, full in product(range(cluster.aggregators + 1), (False, True), (False, True)):
        if cluster.common if server_at_common else number:
            yield Recipe(number, server_at_common, feeding, full)


def grow(cluster: Cluster, t: int, recipe: Recipe) -> Skeleton | None:
    """The skeleton of a recipe with the feeders and relays that workers need; None if its aggregators do not fit."""
    skeleton = Skeleton(cluster, t, recipe)
    if recipe.server_at_common:
        skeleton.add(cluster.common_names[0], [SERVER], room=t)
    for name in cluster.aggregator_names[: recipe.aggregators]:
        if not add_aggregator(skeleton, name):
            return None
    for step in (add_feeder, add_relay):
        while skeleton.capacity < cluster.workers and skeleton.spare and step(skeleton):
            pass
    return skeleton


def add_aggregator(skeleton: Skeleton, name: str) -> bool:
    """Wire an aggregator under the first switch that has a port for it, so as near to the PS as it can be.

    Returns whether there is such a switch.
    """
    if not skeleton.parents:
        skeleton.add(name, [SERVER])
        return True
    parent = next(filter(skeleton.may_have_children, skeleton.parents), None)
    if parent is None:
        return False
    skeleton.add(name, [parent])
    if parent in skeleton.room:
        skeleton.room[parent] -= 1
    return True


def add_feeder(skeleton: Skeleton) -> bool:
    """Wire the common switch that gains most workers, under the best aggregators for it; returns whether one gains."""
    choices = [(*gain(skeleton, group[:links]), group[:links]) for group in groups(skeleton)
               for links in range(1, len(group) + 1)]  # fmt: skip
    useful = [choice for choice in choices if choice[0] > 0]
    if not useful:
        return False
    _, room, parents = max(useful, key=lambda choice: (choice[0], -len(choice[2])))
    skeleton.add(skeleton.spare[0], parents, room)
    return True


def groups(skeleton: Skeleton) -> Iterator[list[str]]:
    """The groups of aggregators to which one feeder may send, those with most free ports first."""
    willing = sorted(filter(skeleton.may_have_children, skeleton.aggregators), key=lambda name: -skeleton.free[name])
    if skeleton.recipe.feeding == MIXED:
        yield willing
        return
    for layer in sorted({skeleton.layer[name] for name in willing}):
        yield [name for name in willing if skeleton.layer[name] == layer]


def gain(skeleton: Skeleton, parents: list[str]) -> tuple[int, int]:
    """How many more workers a feeder of these aggregators brings, and how many flows its links hold."""
    links, ports = len(parents), skeleton.cluster.ports
    room = skeleton.t * links
    if skeleton.recipe.full and links > 1 and room > ports - links:
        return 0, room
    return min(room, ports - links) - links, room


def add_relay(skeleton: Skeleton) -> bool:
    """Wire a common switch under one whose links hold more flows than its ports take in; returns whether there is one.

    It gets the room that the parent's other ports leave, and unless it may have relays itself, no more than its own
    ports take in.
    """
    own = skeleton.cluster.ports - 1
    extra = {
        parent: min(skeleton.t, room - (skeleton.free[parent] - 1))
        for parent, room in skeleton.room.items()
        if skeleton.may_have_children(parent)
    }
    parent = max(extra, key=lambda name: extra[name], default="")
    if not parent or min(extra[parent], own) < 2:
        return False
    last = skeleton.recipe.full or skeleton.layer[parent] + 1 == skeleton.cluster.layers
    room = min(extra[parent], own) if last else extra[parent]
    skeleton.room[parent] -= room
    skeleton.add(skeleton.spare[0], [parent], room)
    return True


def wiring_of(skeleton: Skeleton) -> Wiring:
    """The skeleton with its workers, at aggregators first: what these sum costs no more links."""
    flows: dict[Link, int] = {}
    number = count(1)
    workers = skeleton.cluster.workers
    received = dict.fromkeys(skeleton.parents, 0)
    for switch in [*skeleton.aggregators, *skeleton.room]:
        received[switch] = min(workers, skeleton.entries(switch))
        workers -= received[switch]
        flows |= {(f"w{next(number)}", switch): 1 for _ in range(received[switch])}
    for switch in sorted(skeleton.parents, key=lambda name: -skeleton.layer[name]):
        for parent, sent in sends(skeleton, switch, received[switch]):
            flows[switch, parent] = sent
            if parent != SERVER:
                received[parent] += sent
    used = {node for link in flows for node in link}
    return Wiring(flows, {switch: layer for switch, layer in skeleton.layer.items() if switch in used - {SERVER}})


def sends(skeleton: Skeleton, switch: str, received: int) -> Iterator[tuple[str, int]]:
    """What a switch sends to each parent: an aggregator one sum, a common switch all that it gets, in even parts."""
    parents = skeleton.parents[switch]
    total = received if switch in skeleton.room else min(1, received)
    for position, parent in enumerate(parents):
        part = total // len(parents) + (position < total % len(parents))
        if part:
            yield parent, part
