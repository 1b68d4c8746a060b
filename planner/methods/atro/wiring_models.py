"""ATRO's programs: equations (1) to (21) as the paper prints them, and a smaller one that counts workers.

The paper's model is quadratic, because (14) multiplies y and r. With t = 1 / r it is linear: maximising r is minimising
t. What is feasible at r is so at any lower rate: the best whole rate (1), or the best of a list (QSR), is the greatest
that is not above the optimum of all, and needs no model of its own.

Where the printed text is garbled or incomplete:

- (3): y is at least 0; the scan's "> 0" would put a flow on every pair.
- (13): what enters u is y_v^u, from v, and what leaves it y_u^v'.
- (14): (y_u^v + y_v^u) r <= b_u^v. From u to v go reduction flows, y_u^v, and on the reversed routes the results
  for the y_v^u. b_u^v is that direction's capacity: were it shared with the other direction, a worker could
  send at half of its link's rate at most, and the paper reports the full one.
- No equation says that workers send, and without one y = 0 is optimal for any r. As in ARO's (5), a worker sends one
  flow; it receives none, and the PS sends none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, pairwise, permutations
from math import floor
from typing import Any

import pulp

from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.methods.atro.switch_cluster import SERVER, ClusterWiring, Link, SwitchCluster
from inakit.planner.solvers import run, solve


def optimise_printed(cluster: SwitchCluster, options: SolverOptions) -> tuple[ClusterWiring, SolverOutcome]:
    """The wiring with the highest rate. Raises `SolverError` when the cluster cannot be wired.

    Capacities are one unit, so that y r <= b is y <= t. Links with x = 1 that carry no flow are removed (III-C).
    """
    model = pulp.LpProblem("atro", pulp.LpMinimize)

    # Sets
    n_w, n_s = cluster.worker_names, cluster.switch_names  # aggregators, then common switches
    n_n = (*n_w, SERVER)
    nodes, hosts = (*n_s, *n_n), {*n_n}
    pairs = [(u, v) for u, v in permutations(nodes, 2) if not (u in hosts and v in hosts)]  # (4)
    out_of = {u: [v for w, v in pairs if w == u] for u in nodes}  # (11)
    into = {v: [u for u, w in pairs if w == v] for v in nodes}  # (12)

    # Parameters
    eta = dict.fromkeys(n_s, cluster.ports) | dict.fromkeys(n_n, 1)
    m = len(n_w)  # which no number of flows exceeds

    # Variables
    t = model.add_variable("t", lowBound=1)  # (1); a worker's link has one flow
    x = {(u, v): model.add_variable(f"x_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}  # (2)
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, m, pulp.LpInteger) for u, v in pairs}  # (3)
    a = {(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}  # (15)
    layer = {u: model.add_variable(f"l_{u}", 1, cluster.layers, pulp.LpInteger) for u in n_s}  # (18)
    sent = {u: pulp.lpSum(y[u, v] for v in out_of[u]) for u in nodes}
    received = {u: pulp.lpSum(y[v, u] for v in into[u]) for u in nodes}

    # Objective
    model += t, "inverse_throughput"  # (5)

    # Constraints
    for u, v in pairs:
        model += x[v, u] == x[u, v], f"both_ways_{u}_{v}"  # (6)
    for u in nodes:
        model += pulp.lpSum(x[u, v] for v in out_of[u]) <= eta[u], f"ports_{u}"  # (7)
    for v in n_n:
        model += pulp.lpSum(x[u, v] for u in into[v]) == 1, f"networked_{v}"  # (8)
    for u in n_w:
        model += sent[u] == 1, f"sends_{u}"
        model += received[u] == 0, f"gets_nothing_{u}"
    model += sent[SERVER] == 0, "ps_sends_nothing"
    for u in n_s:
        sum_or_forward(model, cluster, u, sent[u], received[u], m)
    for u, v in pairs:
        model += y[u, v] + y[v, u] <= t, f"capacity_{u}_{v}"  # (14)
        model += a[u, v] <= y[u, v], f"sends_not_{u}_{v}"  # (16)
        model += y[u, v] <= m * a[u, v], f"sends_{u}_{v}"  # (16)
        model += a[u, v] <= x[u, v], f"linked_{u}_{v}"  # (17)
    for u in n_s:
        model += layer[u] <= 1 + cluster.layers * (1 - a[u, SERVER]), f"first_layer_{u}"  # (19)
    for u, v in permutations(n_s, 2):  # (21)
        model += layer[v] + 1 <= layer[u] + cluster.layers * (1 - a[u, v]), f"to_a_lower_layer_{u}_{v}"  # (20)

    outcome = solve(model, options, "give the switches more ports, or add switches or layers")
    return ClusterWiring(flows_of(y), {switch: round(found.varValue) for switch, found in layer.items()}), outcome


def sum_or_forward(model: pulp.LpProblem, cluster: SwitchCluster, u: str, sent: Any, received: Any, most: int) -> None:
    """An aggregator sends at most one flow (9), exactly one if it receives any (10); a common switch sends what it gets
    (13).

    `most` is an upper bound on the flows of a switch. If a slot has fewer children, an aggregator sends a flow for each
    of its slots' sums, which the paper does not know.
    """
    if u in cluster.aggregator_names:
        if most <= cluster.children:
            model += sent <= 1, f"sum_is_one_flow_{u}"  # (9)
        else:
            model += cluster.children * (sent - 1) + 1 <= received, f"no_more_sums_than_needed_{u}"
        model += sent <= received, f"sums_what_it_gets_{u}"  # (10)
        model += received <= min(most, cluster.children) * sent, f"sends_what_it_sums_{u}"  # (10)
    else:
        model += received == sent, f"cs_forwards_{u}"  # (13)


def flows_of(y: Mapping[Link, Any]) -> dict[Link, int]:
    """The links that carry flows in a solution, and their numbers of flows."""
    return {link: flows for link, found in y.items() if (flows := round(found.varValue)) > 0}


# -- The same decision with counted instead of named workers: can the cluster be wired for t flows per link?
#
# Workers are interchangeable, so a switch needs only their number. Switches of a kind are interchangeable too, so they
# can be ordered by this number. Pairs of switches remain. This model decides the cases between the bound and the
# construction.

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Compact:
    """The model. `w[u]`: workers at u; `p[u]`: flows from u to the PS; `y[u, v]`: flows from switch u to switch v."""

    model: pulp.LpProblem
    w: dict[str, Any]
    p: dict[str, Any]
    y: dict[Link, Any]
    layer: dict[str, Any]


def decide(cluster: SwitchCluster, t: int, options: SolverOptions) -> ClusterWiring | str:
    """A wiring with at most `t` flows on any link; `INFEASIBLE` if none exists, `UNKNOWN` if this stays open."""
    compact = build(cluster, t)
    model = compact.model
    model += pulp.lpSum(compact.w.values()) == cluster.workers, "all_workers"
    status = run(model, options).status
    if status not in (OPTIMAL, FEASIBLE):
        return INFEASIBLE if status == INFEASIBLE else UNKNOWN
    number = count(1)  # workers are named in the order of their switches
    flows = flows_of(compact.y) | flows_of({(u, SERVER): p for u, p in compact.p.items()})
    flows |= {(f"w{next(number)}", u): 1 for u, w in compact.w.items() for _ in range(round(w.varValue))}
    # Layers need not be integral: they differ by at least 1, and so do their floors.
    return ClusterWiring(flows, {u: floor(layer.varValue + 1e-6) for u, layer in compact.layer.items()})


def build(cluster: SwitchCluster, t: int) -> Compact:
    """Build the constraints of a wiring with at most `t` flows on any link. The caller adds the number of workers."""
    model = pulp.LpProblem("atro_compact", pulp.LpMinimize)
    n_s, eta, layers = cluster.switch_names, cluster.ports, cluster.layers
    pairs, most = list(permutations(n_s, 2)), min(eta * t, cluster.workers)  # flows that enter a switch

    # Variables: h[u], whether the PS hangs from u; a[u, v], whether u sends to v.
    w = {u: model.add_variable(f"w_{u}", 0, min(eta, cluster.workers), pulp.LpInteger) for u in n_s}
    p = {u: model.add_variable(f"p_{u}", 0, t, pulp.LpInteger) for u in n_s}
    h = {u: model.add_variable(f"h_{u}", cat=pulp.LpBinary) for u in n_s}
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, t, pulp.LpInteger) for u, v in pairs}
    a = {(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}
    layer = {u: model.add_variable(f"l_{u}", 1, layers) for u in n_s}

    # Constraints
    model += pulp.lpSum(h.values()) == 1, "the_ps_has_a_switch"
    for u in n_s:
        others = [v for v in n_s if v != u]
        model += pulp.lpSum(a[u, v] + a[v, u] for v in others) + w[u] + h[u] <= eta, f"ports_{u}"
        model += p[u] <= t * h[u], f"to_the_ps_{u}"
        model += layer[u] <= 1 + (layers - 1) * (1 - h[u]), f"first_layer_{u}"
        sent = p[u] + pulp.lpSum(y[u, v] for v in others)
        received = w[u] + pulp.lpSum(y[v, u] for v in others)
        sum_or_forward(model, cluster, u, sent, received, most)
    for u, v in pairs:
        one = u in cluster.aggregator_names and most <= cluster.children
        model += y[u, v] <= (1 if one else t) * a[u, v], f"sends_{u}_{v}"
        model += layer[v] + 1 <= layer[u] + layers * (1 - a[u, v]), f"to_a_lower_layer_{u}_{v}"
    for kind in (cluster.aggregator_names, cluster.common_names):
        for u, v in pairwise(kind):  # the first has most workers, which removes symmetric solutions
            model += w[u] >= w[v], f"interchangeable_{u}_{v}"
    return Compact(model, w, p, y, layer)
