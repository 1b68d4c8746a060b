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

from inakit.planner.core.solving import FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions
from inakit.planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring
from inakit.planner.solvers.solve import run
from inakit.topo.errors import SolverError

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
