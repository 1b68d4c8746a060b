"""ATRO's model, equations (1) to (21), as the paper prints it: the reference for everything faster.

The paper's model is quadratic, because (14) multiplies y and r. With t = 1 / r it is linear: maximising r is minimising
t. What is feasible at r is so at any lower rate: the best whole rate (1), or the best of a list (QSR), is the greatest
that is not above the optimum of all, and needs no model of its own.

Where the printed text is garbled or incomplete:

- (3): y is at least 0; the scan's "> 0" would put a flow on every pair.
- (13): what enters u is y_v^u, from v, and what leaves it y_u^v'.
- (14): (y_u^v + y_v^u) r <= b_u^v. From u to v go reduction flows, y_u^v, and on the reversed routes what is
  disseminated to the y_v^u. b_u^v is that direction's capacity: were it shared with the other direction, a worker could
  send at half of its link's rate at most, and the paper reports the full one.
- No equation says that workers send, and without one y = 0 is optimal for any r. As in ARO's (5), a worker sends one
  flow; it receives none, and the PS sends none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pulp

from planner.core.solving import SolverOptions, SolverOutcome
from planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring
from planner.solvers.solve import solve

MORE_PORTS = "give the switches more ports, or add switches or layers"
"""What to do about a cluster that cannot be wired."""


@dataclass(frozen=True)
class Atro:
    """The model and its variables. `x[u, v]`: a link; `y`: flows; `a`: whether u sends to v; `layer`: l_u."""

    cluster: Cluster
    model: pulp.LpProblem
    t: Any
    x: dict[Link, Any]
    y: dict[Link, Any]
    a: dict[Link, Any]
    layer: dict[str, Any]


def optimise(cluster: Cluster, options: SolverOptions) -> tuple[Wiring, SolverOutcome]:
    """The wiring with the highest rate. Raises `SolverError` when the cluster cannot be wired at all."""
    atro = build(cluster)
    outcome = solve(atro.model, options, MORE_PORTS)
    return extract(atro), outcome


def build(cluster: Cluster) -> Atro:
    """The model for capacities of one unit, so that y r <= b is y <= t."""
    model = pulp.LpProblem("atro", pulp.LpMinimize)

    # Sets
    n_w, n_ps, n_agg, n_cs = cluster.worker_names, (SERVER,), cluster.aggregator_names, cluster.common_names
    n_s, n_n = (*n_agg, *n_cs), (*n_w, *n_ps)
    nodes = (*n_s, *n_n)
    pairs = [(u, v) for u, v in permutations(nodes, 2) if not (u in n_n and v in n_n)]  # (4)
    out_of = {u: [v for w, v in pairs if w == u] for u in nodes}  # (11)
    into = {v: [u for u, w in pairs if w == v] for v in nodes}  # (12)

    # Parameters
    eta = dict.fromkeys(n_s, cluster.ports) | dict.fromkeys(n_n, 1)
    most = len(n_w)  # M: every flow into an aggregator stands for workers of its own
    layers = cluster.layers  # L

    # Variables
    t = model.add_variable("t", lowBound=1)  # (1): a worker's link has one flow
    x = {(u, v): model.add_variable(f"x_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}  # (2)
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, most, pulp.LpInteger) for u, v in pairs}  # (3)
    a = {(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}  # (15)
    layer = {u: model.add_variable(f"l_{u}", 1, layers, pulp.LpInteger) for u in n_s}  # (18)

    # Objective: (5) maximises r = 1 / t
    model += t, "inverse_throughput"

    # Constraints
    for u, v in pairs:
        model += x[v, u] == x[u, v], f"both_ways_{u}_{v}"  # (6)
    for u in nodes:
        model += pulp.lpSum(x[u, v] for v in out_of[u]) <= eta[u], f"ports_{u}"  # (7)
    for v in n_n:
        model += pulp.lpSum(x[u, v] for u in into[v]) == 1, f"networked_{v}"  # (8)
    for u in n_w:
        model += pulp.lpSum(y[u, v] for v in out_of[u]) == 1, f"sends_{u}"
        model += pulp.lpSum(y[v, u] for v in into[u]) == 0, f"gets_nothing_{u}"
    model += pulp.lpSum(y[SERVER, v] for v in out_of[SERVER]) == 0, "ps_sends_nothing"
    for u in n_agg:
        sent = pulp.lpSum(y[u, v] for v in out_of[u])
        received = pulp.lpSum(y[v, u] for v in into[u])
        model += sent <= 1, f"sum_is_one_flow_{u}"  # (9)
        model += sent <= received, f"sums_what_it_gets_{u}"  # (10)
        model += received <= most * sent, f"sends_what_it_sums_{u}"  # (10)
    for u in n_cs:
        sent = pulp.lpSum(y[u, v] for v in out_of[u])
        model += pulp.lpSum(y[v, u] for v in into[u]) == sent, f"cs_forwards_{u}"  # (13)
    for u, v in pairs:
        model += y[u, v] + y[v, u] <= t, f"capacity_{u}_{v}"  # (14), divided by r
        model += a[u, v] <= y[u, v], f"sends_not_{u}_{v}"  # (16)
        model += y[u, v] <= most * a[u, v], f"sends_{u}_{v}"  # (16)
        model += a[u, v] <= x[u, v], f"linked_{u}_{v}"  # (17)
    for u in n_s:
        model += layer[u] <= 1 + layers * (1 - a[u, SERVER]), f"first_layer_{u}"  # (19)
    for u, v in permutations(n_s, 2):  # (21)
        model += layer[v] + 1 <= layer[u] + layers * (1 - a[u, v]), f"to_a_lower_layer_{u}_{v}"  # (20)
    return Atro(cluster, model, t, x, y, a, layer)


def extract(atro: Atro) -> Wiring:
    """The links that carry flows. Links with x = 1 that carry none are removed (section III-C)."""
    flows = {link: round(y.varValue) for link, y in atro.y.items()}
    return Wiring(
        {link: count for link, count in flows.items() if count > 0},
        {switch: round(layer.varValue) for switch, layer in atro.layer.items()},
    )
