"""The same decision with workers counted instead of named: can the cluster be wired for t flows per link?

Workers are interchangeable, so a switch needs only their number. Switches of a kind are too, so they may be ordered by
it. What remains are pairs of switches. This model settles the cases between the bound and the construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, pairwise, permutations
from math import floor
from typing import Any

import pulp

from planner.core.solving import FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions
from planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring
from planner.solvers.solve import run
from topo.errors import SolverError

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Compact:
    """The model. `w[u]`: workers at u; `p[u]`: flows from u to the PS; `y[u, v]`: flows from switch u to switch v."""

    model: pulp.LpProblem
    w: dict[str, Any]
    p: dict[str, Any]
    y: dict[Link, Any]
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
    model = pulp.LpProblem("atro_compact", pulp.LpMinimize)
    n_agg, n_cs = cluster.aggregator_names, cluster.common_names
    n_s = (*n_agg, *n_cs)
    pairs = list(permutations(n_s, 2))
    most = cluster.workers

    w = {u: model.add_variable(f"w_{u}", 0, min(cluster.ports, most), pulp.LpInteger) for u in n_s}
    p = {u: model.add_variable(f"p_{u}", 0, t, pulp.LpInteger) for u in n_s}
    h = {u: model.add_variable(f"h_{u}", cat=pulp.LpBinary) for u in n_s}
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, t, pulp.LpInteger) for u, v in pairs}
    a = {(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs}
    layer = {u: model.add_variable(f"l_{u}", 1, cluster.layers) for u in n_s}

    model += pulp.lpSum(h.values()) == 1, "the_ps_has_a_switch"
    for u in n_s:
        links = pulp.lpSum(a[u, v] + a[v, u] for v in n_s if v != u)
        model += links + w[u] + h[u] <= cluster.ports, f"ports_{u}"
        model += p[u] <= t * h[u], f"to_the_ps_{u}"
        model += layer[u] <= 1 + (cluster.layers - 1) * (1 - h[u]), f"first_layer_{u}"
        sent = p[u] + pulp.lpSum(y[u, v] for v in n_s if v != u)
        received = w[u] + pulp.lpSum(y[v, u] for v in n_s if v != u)
        if u in n_agg:
            model += sent <= 1, f"sum_is_one_flow_{u}"
            model += sent <= received, f"sums_what_it_gets_{u}"
            model += received <= cluster.ports * t * sent, f"sends_what_it_sums_{u}"
        else:
            model += received == sent, f"cs_forwards_{u}"
    for u, v in pairs:
        model += y[u, v] <= (1 if u in n_agg else t) * a[u, v], f"sends_{u}_{v}"
        model += layer[v] + 1 <= layer[u] + cluster.layers * (1 - a[u, v]), f"to_a_lower_layer_{u}_{v}"
    for kind in (n_agg, n_cs):
        for u, v in pairwise(kind):
            model += w[u] >= w[v], f"interchangeable_{u}_{v}"
    return Compact(model, w, p, y, layer)


def extract(compact: Compact) -> Wiring:
    """The wiring, with the workers named in the order of their switches."""
    number = count(1)
    flows = {link: round(y.varValue) for link, y in compact.y.items()}
    flows |= {(u, SERVER): round(p.varValue) for u, p in compact.p.items()}
    flows |= {(f"w{next(number)}", u): 1 for u, w in compact.w.items() for _ in range(round(w.varValue))}
    used = {link: found for link, found in flows.items() if found > 0}
    # Layers need not be whole: they differ by 1 at least, and so do their floors.
    return Wiring(used, {u: floor(layer.varValue + 1e-6) for u, layer in compact.layer.items()})
