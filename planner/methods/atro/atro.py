"""ATRO's optimum with a proof, without solving its model: the bound, a construction, and a small model between them.

With one capacity b everywhere the rate is b / t, where t is the maximum number of flows on a link. A wiring for t flows
also serves more, so the optimum is the least t for which a wiring exists. The bound excludes smaller t, the
construction provides a wiring, and the small model decides the remaining cases.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, product
from string import ascii_lowercase, digits

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
from inakit.planner.trees.from_paths import plan_from_paths
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

    `aggregators`: the number in use. `server_at_common`: whether the PS is at a common switch. `feeding`: `MIXED` or
    `LEVEL`. `full`: every link of a feeder is full, and no relay has relays.
    """

    aggregators: int
    server_at_common: bool
    feeding: str
    full: bool


@dataclass
class Skeleton:
    """Switches and their links while a wiring grows, still without workers.

    `parents` are the switches to which a switch sends, `layer` is its layer, `free` counts its unused ports.
    """

    cluster: SwitchCluster
    t: int
    recipe: WiringRecipe
    parents: dict[str, list[str]] = field(default_factory=dict)
    layer: dict[str, int] = field(default_factory=lambda: {SERVER: 0})
    free: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    """The number of additional flows that a common switch can take. Aggregators have no entry, as they are not limited.
    """

    @property
    def aggregators(self) -> list[str]:
        return [switch for switch in self.parents if switch not in self.room]

    @property
    def spare(self) -> list[str]:
        return [name for name in self.cluster.common_names if name not in self.parents]

    def add(self, switch: str, parents: list[str], room: int | None = None) -> None:
        """Wire a switch that sends to `parents`; a common switch gets `room` for this number of flows."""
        self.parents[switch] = parents
        self.layer[switch] = 1 + max(self.layer[parent] for parent in parents)
        self.free[switch] = self.cluster.ports - len(parents)
        for parent in parents:
            if parent != SERVER:
                self.free[parent] -= 1
        if room is not None:
            self.room[switch] = room

    def entries(self, switch: str) -> int:
        """The number of workers that a switch can serve."""
        return min(self.free[switch], self.room.get(switch, self.free[switch]))

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
        grown = (grow(cluster, t, recipe) for recipe in recipes(cluster, feeding))
        enough = [skeleton for skeleton in grown if skeleton and skeleton.capacity >= cluster.workers]
        if enough:
            return wiring_of(min(enough, key=lambda skeleton: len(skeleton.parents)))
    return None


def recipes(cluster: SwitchCluster, feeding: str) -> Iterator[WiringRecipe]:
    """The recipes with this feeding, those with few aggregators first."""
    for number, server_at_common, full in product(range(cluster.aggregators + 1), (False, True), (False, True)):
        if cluster.common if server_at_common else number:
            yield WiringRecipe(number, server_at_common, feeding, full)


def grow(cluster: SwitchCluster, t: int, recipe: WiringRecipe) -> Skeleton | None:
    """The skeleton of a recipe with the feeders and relays that workers need; None if its aggregators do not fit.

    An aggregator connects to the first switch with a free port for it, so as near to the PS as possible.
    """
    skeleton = Skeleton(cluster, t, recipe)
    if recipe.server_at_common:
        skeleton.add(cluster.common_names[0], [SERVER], room=t)
    for name in cluster.aggregator_names[: recipe.aggregators]:
        parent = next(filter(skeleton.may_have_children, skeleton.parents), None) if skeleton.parents else SERVER
        if parent is None:
            return None
        skeleton.add(name, [parent])
        if parent in skeleton.room:
            skeleton.room[parent] -= 1
    for step in (add_feeder, add_relay):
        while skeleton.capacity < cluster.workers and skeleton.spare and step(skeleton):
            pass
    return skeleton


def add_feeder(skeleton: Skeleton) -> bool:
    """Wire the common switch that gains most workers, under the best aggregators for it; return whether one gains."""
    willing = sorted(filter(skeleton.may_have_children, skeleton.aggregators), key=lambda name: -skeleton.free[name])
    groups = [willing]
    if skeleton.recipe.feeding == LEVEL:
        layers = sorted({skeleton.layer[name] for name in willing})
        groups = [[name for name in willing if skeleton.layer[name] == layer] for layer in layers]

    def gain(links: int) -> int:  # the additional workers of a feeder with this number of links
        room, entries = skeleton.t * links, skeleton.cluster.ports - links
        return 0 if skeleton.recipe.full and links > 1 and room > entries else min(room, entries) - links

    choices = [group[:links] for group in groups for links in range(1, len(group) + 1)]
    parents = max(choices, key=lambda parents: (gain(len(parents)), -len(parents)), default=[])
    if gain(len(parents)) <= 0:
        return False
    skeleton.add(skeleton.spare[0], parents, skeleton.t * len(parents))
    return True


def add_relay(skeleton: Skeleton) -> bool:
    """Wire a common switch under one whose links hold more flows than its ports receive; return whether there is one.

    It gets the room that the parent's other ports leave; unless it can have relays itself, at most the number of its
    own ports.
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


def wiring_of(skeleton: Skeleton) -> ClusterWiring:
    """The skeleton with its workers, at aggregators first: their sums need no additional links.

    An aggregator sends one sum to its parent; a common switch sends all its flows to its parents in even parts.
    """
    flows: dict[Link, int] = {}
    number = count(1)
    workers = skeleton.cluster.workers
    received = dict.fromkeys(skeleton.parents, 0)
    for switch in [*skeleton.aggregators, *skeleton.room]:
        received[switch] = min(workers, skeleton.entries(switch))
        workers -= received[switch]
        flows |= {(f"w{next(number)}", switch): 1 for _ in range(received[switch])}
    for switch in sorted(skeleton.parents, key=lambda name: -skeleton.layer[name]):
        parents = skeleton.parents[switch]
        total = received[switch] if switch in skeleton.room else min(1, received[switch])
        for position, parent in enumerate(parents):
            if part := total // len(parents) + (position < total % len(parents)):
                flows[switch, parent] = part
                if parent != SERVER:
                    received[parent] += part
    used = {node for link in flows for node in link} - {SERVER}
    return ClusterWiring(flows, {switch: layer for switch, layer in skeleton.layer.items() if switch in used})


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
    """A path for every worker along the flows, each of which is used once.

    Flows that meet in an aggregator leave it as one: a later one continues like the first (ARO's Algorithm 1).
    """
    left = {node: dict(peers) for node, peers in wiring.next_hops.items()}
    rest: dict[str, Path] = {SERVER: (SERVER,)}
    found = []
    for worker in cluster.worker_names:
        path: Path = (worker,)
        while path[-1] not in rest:
            peers = left[path[-1]]
            following = next(peer for peer, flows in peers.items() if flows > 0)
            peers[following] -= 1
            path = (*path, following)
        path = path[:-1] + rest[path[-1]]
        rest |= {node: path[position:] for position, node in enumerate(path) if node in cluster.aggregator_names}
        found.append(path)
    return found
