"""ATRO's optimum with a proof, without solving its model: the bound, a construction, and a small model between them.

With one capacity b everywhere the rate is b / t, where t is the maximum number of flows on a link. A wiring for t flows
also serves more, so the optimum is the least t for which a wiring exists. The bound excludes smaller t, the
construction provides a wiring, and the small model decides the remaining cases.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, product
from string import ascii_lowercase, digits
from typing import TypeVar

from inakit.planner.core.check import check
from inakit.planner.core.method import Design, Options
from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.methods.atro.switch_cluster import (
    SERVER,
    ClusterWiring,
    Link,
    SwitchCluster,
    check_wiring,
    most_workers_bound,
)
from inakit.planner.methods.atro.wiring_models import UNKNOWN, decide
from inakit.planner.trees.from_paths import plan_from_paths, sums_of
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.generators import Cable, wire
from inakit.topo.fabric.variations import with_ina

# -- Wirings that reach, or nearly reach, the bound: aggregators in a tree, and common switches that feed them.
#
# A feeder is a common switch that workers enter and that sends their flows over few links, of t flows each, to the same
# number of aggregators, each of which uses one port for t flows. If a feeder has too few ports to fill its links, other
# common switches send to it: relays.

MIXED, LEVEL = "mixed", "level"
"""Whether a feeder's aggregators may have different distances from the PS (mixed) or not (level). Level routes are all
shortest paths, as in ARO's plans.
"""


@dataclass(frozen=True)
class WiringRecipe:
    """A recipe for a wiring. All recipes are tried.

    `aggregators`: the number in use. `sums`: the most flows that each of them sends to others, and each is of no more
    flows than a slot has children. `server_at_common`: whether the PS is at a common switch. `feeding`: `MIXED` or
    `LEVEL`. `full`: every link of a feeder is full, and no relay has relays.
    """

    aggregators: int
    sums: int
    server_at_common: bool
    feeding: str
    full: bool


@dataclass
class Skeleton:
    """Switches and their links while a wiring grows, still without workers.

    `parents[switch]` are the switches to which it sends and the flows that each of them has room for, `layer` is its
    layer, `free` counts its unused ports, `room` the additional flows that it can take.
    """

    cluster: SwitchCluster
    t: int
    recipe: WiringRecipe
    parents: dict[str, dict[str, int]] = field(default_factory=dict)
    layer: dict[str, int] = field(default_factory=lambda: {SERVER: 0})
    free: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)

    @property
    def aggregators(self) -> list[str]:
        return [switch for switch in self.parents if switch in self.cluster.aggregator_names]

    @property
    def feeders(self) -> list[str]:
        """The common switches, relays among them."""
        return [switch for switch in self.parents if switch in self.cluster.common_names]

    @property
    def spare(self) -> list[str]:
        return [name for name in self.cluster.common_names if name not in self.parents]

    def add(self, switch: str, parents: dict[str, int], room: int) -> None:
        """Wire a switch with `room` for this number of flows that sends to `parents`, which lose the room it takes."""
        self.parents[switch] = parents
        self.layer[switch] = 1 + max(self.layer[parent] for parent in parents)
        self.free[switch], self.room[switch] = self.cluster.ports - len(parents), room
        for parent, flows in parents.items():
            if parent != SERVER:
                self.free[parent] -= 1
                self.room[parent] -= flows

    def entries(self, switch: str) -> int:
        """The number of workers that a switch can serve."""
        return min(self.free[switch], self.room[switch])

    def loss(self, switch: str, flows: int) -> int:
        """The number of workers that a switch can serve less if another one sends it this number of flows."""
        return self.entries(switch) - min(self.free[switch] - 1, self.room[switch] - flows)

    @property
    def capacity(self) -> int:
        """The number of workers that all switches together can serve."""
        return sum(map(self.entries, self.parents))

    def may_have_children(self, switch: str) -> bool:
        """Whether another switch can send to this one, given its ports, its room and the number of layers."""
        return self.entries(switch) > 0 and self.layer[switch] < self.cluster.layers


def construct(cluster: SwitchCluster, t: int) -> ClusterWiring | None:
    """The wiring with the fewest switches and at most `t` flows on every link; None if no recipe leads to one.

    Wirings with level feeding, on which ARO's plan has the same rate, come first.
    """
    for feeding in (LEVEL, MIXED):
        grown = (grow(cluster, t, recipe) for recipe in recipes(cluster, t, feeding))
        enough = [skeleton for skeleton in grown if skeleton and skeleton.capacity >= cluster.workers]
        if enough:
            return wiring_of(min(enough, key=lambda skeleton: len(skeleton.parents)))
    return None


def recipes(cluster: SwitchCluster, t: int, feeding: str) -> Iterator[WiringRecipe]:
    """The recipes with this feeding, those with few aggregators first."""
    most_sums = max(1, sums_of(min(t * (cluster.ports - 1), cluster.workers), cluster.children))
    numbers = product(range(cluster.aggregators + 1), range(1, most_sums + 1), (False, True), (False, True))
    for number, sums, server_at_common, full in numbers:
        if (cluster.common if server_at_common else number) and (number or sums == 1):
            yield WiringRecipe(number, sums, server_at_common, feeding, full)


def grow(cluster: SwitchCluster, t: int, recipe: WiringRecipe) -> Skeleton | None:
    """The skeleton of a recipe with the feeders and relays that workers need; None if its aggregators do not fit.

    An aggregator connects to the first switches with free ports for it, so as near to the PS as possible: to one, or,
    with mixed feeding, to as many as take its sums.
    """
    skeleton = Skeleton(cluster, t, recipe)
    if recipe.server_at_common:
        skeleton.add(cluster.common_names[0], {SERVER: t}, room=t)
    for name in cluster.aggregator_names[: recipe.aggregators]:
        parents = parents_for_sums(skeleton) if skeleton.parents else {SERVER: t}
        if not parents:
            return None
        skeleton.add(name, parents, room=cluster.children * sum(parents.values()))
    for step in (add_feeder, add_relay):
        while skeleton.capacity < cluster.workers and skeleton.spare and step(skeleton):
            pass
    return skeleton


def parents_for_sums(skeleton: Skeleton) -> dict[str, int]:
    """The parents of the next aggregator, and the sums that each takes; none if there is no room.

    Two switches have one link, so further sums for the same parent pass common switches.
    """
    recipe, parents = skeleton.recipe, dict[str, int]()

    def left(room: int) -> int:
        port = len(parents) < skeleton.cluster.ports - 1
        return min(skeleton.t, room, recipe.sums - sum(parents.values())) if port else 0

    for parent in filter(skeleton.may_have_children, skeleton.parents):
        if flows := left(skeleton.room[parent]):
            parents[parent] = flows
        if recipe.feeding == LEVEL:
            return parents
    while parents and skeleton.spare and left(1):
        near = [each for each in filter(skeleton.may_have_children, skeleton.parents) if each not in parents]
        near += [each for each in parents if skeleton.free[each] > 1 and skeleton.room[each] > parents[each]]
        reachable = [each for each in near if skeleton.layer[each] + 1 < skeleton.cluster.layers]
        if not reachable:
            break
        relay, parent = skeleton.spare[0], reachable[0]
        parents[relay] = left(skeleton.room[parent] - parents.get(parent, 0))
        skeleton.add(relay, {parent: parents[relay]}, parents[relay])
    return parents


def add_feeder(skeleton: Skeleton) -> bool:
    """Wire the common switch that gains most workers, under the best aggregators for it; return whether one gains."""
    willing = sorted(filter(skeleton.may_have_children, skeleton.aggregators), key=lambda name: -skeleton.free[name])
    groups = [willing]
    if skeleton.recipe.feeding == LEVEL:
        layers = sorted({skeleton.layer[name] for name in willing})
        groups = [[name for name in willing if skeleton.layer[name] == layer] for layer in layers]
    links = {name: min(skeleton.t, skeleton.room[name]) for name in willing}

    def gain(parents: list[str]) -> int:  # the additional workers of a feeder with these links
        room, entries = sum(links[name] for name in parents), skeleton.cluster.ports - len(parents)
        if skeleton.recipe.full and len(parents) > 1 and room > entries:
            return 0
        return min(room, entries) - sum(skeleton.loss(name, links[name]) for name in parents)

    choices = [group[:number] for group in groups for number in range(1, len(group) + 1)]
    parents = max(choices, key=lambda parents: (gain(parents), -len(parents)), default=[])
    if gain(parents) <= 0:
        return False
    flows = {name: links[name] for name in parents}
    skeleton.add(skeleton.spare[0], flows, sum(flows.values()))
    return True


def add_relay(skeleton: Skeleton) -> bool:
    """Wire a common switch under one whose links hold more flows than its ports receive; return whether there is one.

    It gets the room that the parent's other ports leave; unless it can have relays itself, at most the number of its
    own ports.
    """
    own = skeleton.cluster.ports - 1
    extra = {
        parent: min(skeleton.t, skeleton.room[parent] - (skeleton.free[parent] - 1))
        for parent in skeleton.feeders
        if skeleton.may_have_children(parent)
    }
    parent = max(extra, key=lambda name: extra[name], default="")
    if not parent or min(extra[parent], own) < 2:
        return False
    last = skeleton.recipe.full or skeleton.layer[parent] + 1 == skeleton.cluster.layers
    room = min(extra[parent], own) if last else extra[parent]
    skeleton.add(skeleton.spare[0], {parent: room}, room)
    return True


def wiring_of(skeleton: Skeleton) -> ClusterWiring:
    """The skeleton with its workers, at aggregators first: their sums need no additional links.

    An aggregator sends its sums to its parents, a common switch all its flows, in parts as even as they have room.
    """
    cluster = skeleton.cluster
    flows: dict[Link, int] = {}
    number = count(1)
    workers = cluster.workers
    received = dict.fromkeys(skeleton.parents, 0)
    for switch in [*skeleton.aggregators, *skeleton.feeders]:
        received[switch] = min(workers, skeleton.entries(switch))
        workers -= received[switch]
        flows |= {(f"w{next(number)}", switch): 1 for _ in range(received[switch])}
    for switch in sorted(skeleton.parents, key=lambda name: -skeleton.layer[name]):
        total = received[switch] if switch in cluster.common_names else sums_of(received[switch], cluster.children)
        for parent, part in parts(total, skeleton.parents[switch]).items():
            flows[switch, parent] = part
            if parent != SERVER:
                received[parent] += part
    used = {node for link in flows for node in link} - {SERVER}
    return ClusterWiring(flows, {switch: layer for switch, layer in skeleton.layer.items() if switch in used})


def parts(total: int, room: dict[str, int]) -> dict[str, int]:
    """The flows to each parent with any: as even as the parents' room permits, the first parents first."""
    given = dict.fromkeys(room, 0)
    for _ in range(total):
        given[min((name for name in room if given[name] < room[name]), key=given.__getitem__)] += 1
    return {name: flows for name, flows in given.items() if flows}


# -- The optimum.

COUNTING = "counting"
"""The solver's name in an outcome without a solver."""


def optimise(cluster: SwitchCluster, options: SolverOptions | None = None) -> tuple[ClusterWiring, SolverOutcome]:
    """The wiring with the highest rate, and its proof: "optimal" has a proof for every smaller t.

    The outcome's solver is "counting" if no solver was used. Raises `SolverError` when the hosts cannot be wired.
    """
    options = options or SolverOptions()
    started = time.monotonic()
    hosts = f"{cluster.workers} workers"
    unsettled: list[int] = []
    solver = COUNTING
    least = bisect_left(
        range(cluster.workers + 1), True, lo=1, key=lambda t: most_workers_bound(cluster, t) >= cluster.workers
    )  # the least t that the counting bound does not exclude
    for t in range(least, cluster.workers + 1):
        found: ClusterWiring | str | None = construct(cluster, t)
        if found is None:
            left = options.time_limit_s - (time.monotonic() - started)
            found = decide(cluster, t, replace(options, time_limit_s=left)) if left > 0 else UNKNOWN
            solver = options.solver
        if isinstance(found, ClusterWiring):
            gap = t / unsettled[0] - 1 if unsettled else 0.0
            return found, SolverOutcome(FEASIBLE if unsettled else OPTIMAL, time.monotonic() - started, gap, solver)
        if found == INFEASIBLE:
            unsettled.clear()  # none exists for fewer flows either
        else:
            unsettled.append(t)
    if unsettled:
        raise SolverError(
            f"no wiring for {hosts} found in {options.time_limit_s:g} s, no proof that there is none: "
            "raise the time limit, or add layers"
        )
    raise SolverError(
        f"{hosts} and a PS cannot be wired to {cluster.aggregators + cluster.common} switches of {cluster.ports} ports "
        f"in {cluster.layers} layers: give the switches more ports, or add switches or layers"
    )


# -- ATRO's wiring as the kit's own types: fabric, problem and plan.

WHOLE_GRADIENT = Job(1, (), (), 548_000)
"""The default job sizes; the hosts are filled in."""


def design(
    cluster: SwitchCluster, fragment: FragmentFormat, options: Options | None = None, job: Job = WHOLE_GRADIENT
) -> Design:
    """The network and the routes with the highest rate, proven where `plan.outcome` says optimal. The plan is checked.

    `job` gives the gradient's size and other properties. Raises `SolverError` for a cluster that cannot be wired.
    """
    options = options or Options()
    wiring, outcome = optimise(cluster, options.for_solver)
    check_wiring(cluster, wiring)
    fabric = fabric_of(cluster, wiring)
    problem = Problem(fabric, (replace(job, workers=cluster.worker_names, servers=(SERVER,)),), fragment)
    paths = {job.number: paths_of(cluster, wiring)}
    aggregate_at = fabric.ina_names
    plan = plan_from_paths(problem, paths, aggregate_at, method="atro", outcome=outcome, window=options.window)
    check(problem, plan)
    return Design(problem, plan)


def fabric_of(cluster: SwitchCluster, wiring: ClusterWiring) -> Fabric:
    """The fabric of a wiring, with all links optical. Unused switches are omitted.

    Layers become tiers upside down: layer 1 is the top tier, so that all routes climb, and only the last hop descends.
    """
    deepest = max(wiring.layer.values())
    used = {node for link in wiring.flows for node in link}
    tiers = {name: deepest + 1 - wiring.layer[name] for name in cluster.switch_names if name in used}
    links = sorted(wiring.flows, key=natural)
    cables = [Cable(*((v, u) if v == SERVER else (u, v)), cluster.capacity_bps) for u, v in links]  # a host comes first
    wired = wire(f"atro-{len(tiers)}", (*cluster.worker_names, SERVER), tiers, cables)
    optical = replace(wired, links=tuple(replace(link, optical=True) for link in wired.links))
    return with_ina(optical, [name for name in tiers if name in cluster.aggregator_names])


def natural(link: Link) -> tuple[bool, tuple[tuple[str, int], ...]]:
    """A sort key of links: hosts' links first, and w2 before w10."""
    ends = ((node.rstrip(digits), int(node.lstrip(ascii_lowercase) or 0)) for node in link)
    return not link[0].startswith("w"), tuple(ends)


def paths_of(cluster: SwitchCluster, wiring: ClusterWiring) -> list[Path]:
    """A path for every worker along the flows."""
    children = dict.fromkeys(cluster.aggregator_names, cluster.children)
    return list(merging_paths(cluster.worker_names, wiring.next_hops, children))


Node = TypeVar("Node", bound=Hashable)


def merging_paths(
    starts: Iterable[Node], flows: Mapping[Node, Mapping[Node, int]], children: Mapping[Node, int]
) -> Iterator[tuple[Node, ...]]:
    """A path from each start to a node that sends nothing, along the numbers of flows from node to node.

    Each flow is used once. `children` are those of the slots of nodes that sum. Flows that meet there leave as one per
    that number: a later one continues like the first of its sum (ARO's Algorithm 1).
    """
    left = {node: dict(peers) for node, peers in flows.items()}
    arrived: Counter[Node] = Counter()
    rest: dict[tuple[Node, int], tuple[Node, ...]] = {}
    for start in starts:
        path: tuple[Node, ...] = (start,)
        begun: dict[tuple[Node, int], int] = {}
        while (node := path[-1]) in left:
            if node in children:
                summed = node, arrived[node] // children[node]
                arrived[node] += 1
                if summed in rest:
                    path = path[:-1] + rest[summed]
                    break
                begun[summed] = len(path) - 1
            following = next(peer for peer, count in left[node].items() if count > 0)
            left[node][following] -= 1
            path = (*path, following)
        rest |= {summed: path[position:] for summed, position in begun.items()}
        yield path
