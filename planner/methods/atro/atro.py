"""ATRO's optimum with a proof, without solving its model: the bound, a construction, and a small model between them.

With one capacity b everywhere the rate is b / t, where t is the most flows on a link, and a wiring for t flows is one
for more: the optimum is the least t for which a wiring exists. The bound excludes those below, the construction shows
one, and the small model decides what neither settles.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, pairwise, permutations, product
from math import floor
from string import ascii_lowercase, digits
from typing import Any

import pulp

from inakit.planner.core.check import check
from inakit.planner.core.method import Design, Options
from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring, check_wiring, most_workers_bound
from inakit.planner.solvers import run
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.generators import Cable, wire
from inakit.topo.fabric.variations import with_ina

# -- The same decision with workers counted instead of named: can the cluster be wired for t flows per link?
#
# Workers are interchangeable, so a switch needs only their number. Switches of a kind are too, so they may be ordered
# by it. What remains are pairs of switches. This model settles the cases between the bound and the construction.

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Compact:
    """The model. `w[u]`: workers at u; `p[u]`: flows from u to the PS; `y[u, v]`: flows from switch u to switch v.

    `h[u]` says whether the PS hangs from u, `a[u, v]` whether u sends to v, and `layer[u]` is l_u.
    """

    model: pulp.LpProblem
    w: dict[str, Any]
    p: dict[str, Any]
    h: dict[str, Any]
    y: dict[Link, Any]
    a: dict[Link, Any]
    layer: dict[str, Any]


def decide(cluster: Cluster, t: int, options: SolverOptions) -> Wiring | str:
    """A wiring with at most `t` flows on any link; `INFEASIBLE` if none exists, `UNKNOWN` if that stays open."""
    compact = build(cluster, t)
    model = compact.model
    model += pulp.lpSum(compact.w.values()) == cluster.workers, "all_workers"
    status = run(model, options).status
    if status == INFEASIBLE:
        return INFEASIBLE
    return extract(compact) if status in (OPTIMAL, FEASIBLE) else UNKNOWN


def most_workers(cluster: Cluster, t: int, options: SolverOptions) -> int:
    """The most workers for which the cluster can be wired, at most `cluster.workers`; 0 if it cannot be wired.

    Raises `SolverError` where the time is too short to prove it.
    """
    compact = build(cluster, t)
    model, total = compact.model, pulp.lpSum(compact.w.values())
    model += total <= cluster.workers, "no_more_workers"
    model += total >= 1, "some_worker"
    model.setObjective(-total)
    outcome = run(model, options)
    if outcome.status == INFEASIBLE:
        return 0
    if outcome.status != OPTIMAL:
        raise SolverError(f"no proven most in {options.time_limit_s:g} s: raise the time limit")
    return round(float(pulp.value(total)))


def build(cluster: Cluster, t: int) -> Compact:
    """The constraints of a wiring with at most `t` flows on any link. The caller adds how many workers there are."""
    compact = add_variables(cluster, t)
    model = compact.model
    model += pulp.lpSum(compact.h.values()) == 1, "the_ps_has_a_switch"
    for u in cluster.switch_names:
        limit_switch(compact, cluster, t, u)
        conserve_flows(compact, cluster, t, u)
    for u, v in compact.y:
        limit_link(compact, cluster, t, u, v)
    order_alike(compact, cluster)
    return compact


def add_variables(cluster: Cluster, t: int) -> Compact:
    """The model's variables, without constraints yet."""
    model = pulp.LpProblem("atro_compact", pulp.LpMinimize)
    n_s = cluster.switch_names
    pairs = list(permutations(n_s, 2))
    most = min(cluster.ports, cluster.workers)
    return Compact(
        model,
        w={u: model.add_variable(f"w_{u}", 0, most, pulp.LpInteger) for u in n_s},
        p={u: model.add_variable(f"p_{u}", 0, t, pulp.LpInteger) for u in n_s},
        h={u: model.add_variable(f"h_{u}", cat=pulp.LpBinary) for u in n_s},
        y={(u, v): model.add_variable(f"y_{u}_{v}", 0, t, pulp.LpInteger) for u, v in pairs},
        a={(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs},
        layer={u: model.add_variable(f"l_{u}", 1, cluster.layers) for u in n_s},
    )


def limit_switch(compact: Compact, cluster: Cluster, t: int, u: str) -> None:
    """A switch's links and hosts take its ports; it sends to the PS only if the PS hangs from it, in layer 1."""
    model, a, h = compact.model, compact.a, compact.h[u]
    links = pulp.lpSum(a[u, v] + a[v, u] for v in cluster.switch_names if v != u)
    model += links + compact.w[u] + h <= cluster.ports, f"ports_{u}"
    model += compact.p[u] <= t * h, f"to_the_ps_{u}"
    model += compact.layer[u] <= 1 + (cluster.layers - 1) * (1 - h), f"first_layer_{u}"


def conserve_flows(compact: Compact, cluster: Cluster, t: int, u: str) -> None:
    """A common switch sends what it gets; an aggregator sends one flow if it gets any."""
    model, others = compact.model, [v for v in cluster.switch_names if v != u]
    sent = compact.p[u] + pulp.lpSum(compact.y[u, v] for v in others)
    received = compact.w[u] + pulp.lpSum(compact.y[v, u] for v in others)
    if u not in cluster.aggregator_names:
        model += received == sent, f"cs_forwards_{u}"
        return
    model += sent <= 1, f"sum_is_one_flow_{u}"
    model += sent <= received, f"sums_what_it_gets_{u}"
    model += received <= cluster.ports * t * sent, f"sends_what_it_sums_{u}"


def limit_link(compact: Compact, cluster: Cluster, t: int, u: str, v: str) -> None:
    """Switch u sends to v only over a link between them, at most t flows, and only to a lower layer."""
    model, a, layer = compact.model, compact.a[u, v], compact.layer
    model += compact.y[u, v] <= (1 if u in cluster.aggregator_names else t) * a, f"sends_{u}_{v}"
    model += layer[v] + 1 <= layer[u] + cluster.layers * (1 - a), f"to_a_lower_layer_{u}_{v}"


def order_alike(compact: Compact, cluster: Cluster) -> None:
    """Switches of a kind are interchangeable: the first has most workers, so that the solver need not try others."""
    model = compact.model
    for kind in (cluster.aggregator_names, cluster.common_names):
        for u, v in pairwise(kind):
            model += compact.w[u] >= compact.w[v], f"interchangeable_{u}_{v}"


def extract(compact: Compact) -> Wiring:
    """The wiring, with the workers named in the order of their switches."""
    number = count(1)
    flows = {link: round(y.varValue) for link, y in compact.y.items()}
    flows |= {(u, SERVER): round(p.varValue) for u, p in compact.p.items()}
    flows |= {(f"w{next(number)}", u): 1 for u, w in compact.w.items() for _ in range(round(w.varValue))}
    used = {link: found for link, found in flows.items() if found > 0}
    # Layers need not be whole: they differ by 1 at least, and so do their floors.
    return Wiring(used, {u: floor(layer.varValue + 1e-6) for u, layer in compact.layer.items()})


# -- Wirings that reach, or nearly reach, the bound: aggregators in a tree, and common switches that feed them.
#
# A feeder is a common switch that workers enter and that sends their flows over few links, of t flows each, to as
# many aggregators, each of which spends one port for t flows. Where a feeder's ports are too few to fill its links,
# other common switches send to it: relays.

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


# -- The optimum.

COUNTING = "counting"
"""The solver's name in an outcome for which no solver was asked."""


def optimise(cluster: Cluster, options: SolverOptions | None = None) -> tuple[Wiring, SolverOutcome]:
    """The wiring with the highest rate, and whether that is proven: "optimal" has a proof for every smaller t.

    The outcome's solver is "counting" where no solver was asked. Raises `SolverError` when the hosts cannot be wired.
    """
    options = options or SolverOptions()
    started = time.monotonic()
    unsettled: list[int] = []
    solver = COUNTING
    for t in range(least_flows(cluster), cluster.workers + 1):
        found: Wiring | str | None = construct(cluster, t)
        if found is None:
            left = options.time_limit_s - (time.monotonic() - started)
            found = decide(cluster, t, replace(options, time_limit_s=left)) if left > 0 else UNKNOWN
            solver = options.solver
        if isinstance(found, Wiring):
            gap = t / unsettled[0] - 1 if unsettled else 0.0
            status = "feasible" if unsettled else "optimal"
            return found, SolverOutcome(status, time.monotonic() - started, gap, solver)
        if found == INFEASIBLE:
            unsettled.clear()  # nor is there one for fewer flows
        else:
            unsettled.append(t)
    raise cannot_be_wired(cluster) if not unsettled else not_found(cluster, options)


def least_flows(cluster: Cluster) -> int:
    """The least t that counting does not exclude; one more than there are workers if it excludes all."""
    return bisect_left(
        range(cluster.workers + 1), True, lo=1, key=lambda t: most_workers_bound(cluster, t) >= cluster.workers
    )


def not_found(cluster: Cluster, options: SolverOptions) -> SolverError:
    """The error for a search that ended without a wiring and without a proof that there is none."""
    return SolverError(
        f"no wiring for {cluster.workers} workers found in {options.time_limit_s:g} s, no proof that there is none: "
        "raise the time limit, or add layers"
    )


def cannot_be_wired(cluster: Cluster) -> SolverError:
    """The error for a cluster for which no wiring exists."""
    switches = cluster.aggregators + cluster.common
    return SolverError(
        f"{cluster.workers} workers and a PS cannot be wired to {switches} switches of {cluster.ports} ports in "
        f"{cluster.layers} layers: give the switches more ports, or add switches or layers"
    )


# -- ATRO's wiring as the kit's own types: fabric, problem and plan.

WHOLE_GRADIENT = Job(1, (), (), 548_000)
"""The job's sizes where none are given; its hosts are filled in."""


def design(
    cluster: Cluster, fragment: FragmentFormat, options: Options | None = None, job: Job = WHOLE_GRADIENT
) -> Design:
    """The network and the routes with the highest rate, as far as `plan.outcome` says so. The plan is checked.

    `job` gives the gradient's size and so on. Raises `SolverError` for a cluster that cannot be wired.
    """
    options = options or Options()
    wiring, outcome = optimise(cluster, options.for_solver)
    return realise(cluster, wiring, outcome, fragment, options, job)


def realise(
    cluster: Cluster,
    wiring: Wiring,
    outcome: SolverOutcome,
    fragment: FragmentFormat,
    options: Options,
    job: Job = WHOLE_GRADIENT,
) -> Design:
    """A wiring as fabric, problem and plan, all checked."""
    check_wiring(cluster, wiring)
    fabric = fabric_of(cluster, wiring)
    placed = replace(job, workers=cluster.worker_names, servers=(SERVER,))
    problem = Problem(fabric, (placed,), fragment)
    paths = {job.number: paths_of(wiring, cluster.worker_names, set(cluster.aggregator_names))}
    aggregate_at = fabric.ina_names
    plan = plan_from_paths(problem, paths, aggregate_at, method="atro", outcome=outcome, window=options.window)
    check(problem, plan)
    return Design(problem, plan)


def fabric_of(cluster: Cluster, wiring: Wiring) -> Fabric:
    """The fabric of a wiring, with all links optical. Switches that carry nothing are left out.

    Layers become tiers upside down: layer 1 is the top tier, so that all routes climb, and only the last hop descends.
    """
    deepest = max(wiring.layer.values())
    used = {node for link in wiring.flows for node in link}
    names = [name for name in cluster.switch_names if name in used]
    tiers = {name: deepest + 1 - wiring.layer[name] for name in names}
    cables = [Cable(*upwards(link), cluster.capacity_bps) for link in sorted(wiring.flows, key=natural)]
    wired = wire(f"atro-{len(names)}", (*cluster.worker_names, SERVER), tiers, cables)
    optical = replace(wired, links=tuple(replace(link, optical=True) for link in wired.links))
    return with_ina(optical, [name for name in names if name in cluster.aggregator_names])


def upwards(link: Link) -> Link:
    """The ends of a link as other fabrics have them, with a host before its switch."""
    return (SERVER, link[0]) if link[1] == SERVER else link


def natural(link: Link) -> tuple[bool, tuple[tuple[str, int], ...]]:
    """A sort key of links: hosts' links first, and w2 before w10."""
    ends = ((node.rstrip(digits), int(node.lstrip(ascii_lowercase) or 0)) for node in link)
    return not link[0].startswith("w"), tuple(ends)


def paths_of(wiring: Wiring, workers: Iterable[str], aggregators: set[str]) -> list[Path]:
    """A path for every worker along the flows, each of which is taken once.

    Flows that meet in an aggregator leave it as one: a later one goes on as the first did (ARO's Algorithm 1).
    """
    left = {node: dict(peers) for node, peers in wiring.next_hops.items()}
    rest: dict[str, Path] = {SERVER: (SERVER,)}
    found = []
    for worker in workers:
        path: Path = (worker,)
        while path[-1] not in rest:
            peers = left[path[-1]]
            following = next(peer for peer, flows in peers.items() if flows > 0)
            peers[following] -= 1
            path = (*path, following)
        path = path[:-1] + rest[path[-1]]
        rest |= {node: path[position:] for position, node in enumerate(path) if node in aggregators}
        found.append(path)
    return found
