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
from functools import cached_property
from itertools import permutations
from typing import Any

import pulp

from inakit.planner.core.plan import SolverOptions, SolverOutcome
from inakit.planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring
from inakit.planner.solvers import solve

Names = tuple[str, ...]


@dataclass(frozen=True)
class Sets:
    """The nodes by kind: N_w, N_ps, N_agg and N_cs."""

    n_w: Names
    n_ps: Names
    n_agg: Names
    n_cs: Names

    @property
    def n_s(self) -> Names:
        """All switches: aggregators and common ones."""
        return self.n_agg + self.n_cs

    @property
    def n_n(self) -> Names:
        """All hosts: the workers and the PS."""
        return self.n_w + self.n_ps

    @property
    def nodes(self) -> Names:
        """N: all switches, then all hosts."""
        return self.n_s + self.n_n

    @cached_property
    def pairs(self) -> list[Link]:
        """The pairs of nodes that may be linked, which are all but those of two hosts (4)."""
        hosts = set(self.n_n)
        return [(u, v) for u, v in permutations(self.nodes, 2) if not (u in hosts and v in hosts)]

    @cached_property
    def out_of(self) -> dict[str, list[str]]:
        """By node, those to which it may be linked (11)."""
        return {u: [v for w, v in self.pairs if w == u] for u in self.nodes}

    @cached_property
    def into(self) -> dict[str, list[str]]:
        """By node, those that may be linked to it (12)."""
        return {v: [u for u, w in self.pairs if w == v] for v in self.nodes}


@dataclass(frozen=True)
class Parameters:
    """`eta[u]`, the ports of each node; `most`, M, the number of workers, which no flows exceed; `layers`, L."""

    eta: dict[str, int]
    most: int
    layers: int


@dataclass(frozen=True)
class Variables:
    """`t`, 1 / r; `x[u, v]`, a link; `y[u, v]`, flows; `a[u, v]`, whether u sends to v; `layer[u]`, l_u."""

    t: Any
    x: dict[Link, Any]
    y: dict[Link, Any]
    a: dict[Link, Any]
    layer: dict[str, Any]


def optimise(cluster: Cluster, options: SolverOptions) -> tuple[Wiring, SolverOutcome]:
    """The wiring with the highest rate. Raises `SolverError` when the cluster cannot be wired at all."""
    model, variables = build(cluster)
    outcome = solve(model, options, "give the switches more ports, or add switches or layers")
    return extract(variables), outcome


def build(cluster: Cluster) -> tuple[pulp.LpProblem, Variables]:
    """The model for capacities of one unit, so that y r <= b is y <= t, and its variables."""
    model = pulp.LpProblem("atro", pulp.LpMinimize)
    sets = Sets(cluster.worker_names, (SERVER,), cluster.aggregator_names, cluster.common_names)
    eta = dict.fromkeys(sets.n_s, cluster.ports) | dict.fromkeys(sets.n_n, 1)
    parameters = Parameters(eta, most=len(sets.n_w), layers=cluster.layers)
    variables = add_variables(model, sets, parameters)
    model += variables.t, "inverse_throughput"  # (5): maximises r = 1 / t
    limit_ports(model, sets, parameters, variables)
    begin_at_workers(model, sets, variables)
    sum_at_aggregators(model, sets, parameters, variables)
    forward_at_common_switches(model, sets, variables)
    limit_links(model, sets, parameters, variables)
    keep_layers(model, sets, parameters, variables)
    return model, variables


def add_variables(model: pulp.LpProblem, sets: Sets, parameters: Parameters) -> Variables:
    """The variables (1) to (3), (15) and (18). t is at least 1, because a worker's link has one flow."""
    pairs, most, layers = sets.pairs, parameters.most, parameters.layers
    return Variables(
        t=model.add_variable("t", lowBound=1),  # (1)
        x={(u, v): model.add_variable(f"x_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs},  # (2)
        y={(u, v): model.add_variable(f"y_{u}_{v}", 0, most, pulp.LpInteger) for u, v in pairs},  # (3)
        a={(u, v): model.add_variable(f"a_{u}_{v}", cat=pulp.LpBinary) for u, v in pairs},  # (15)
        layer={u: model.add_variable(f"l_{u}", 1, layers, pulp.LpInteger) for u in sets.n_s},  # (18)
    )


def limit_ports(model: pulp.LpProblem, sets: Sets, parameters: Parameters, variables: Variables) -> None:
    """Links go both ways (6) and take ports (7); each host has one link (8)."""
    x = variables.x
    for u, v in sets.pairs:
        model += x[v, u] == x[u, v], f"both_ways_{u}_{v}"  # (6)
    for u in sets.nodes:
        model += pulp.lpSum(x[u, v] for v in sets.out_of[u]) <= parameters.eta[u], f"ports_{u}"  # (7)
    for v in sets.n_n:
        model += pulp.lpSum(x[u, v] for u in sets.into[v]) == 1, f"networked_{v}"  # (8)


def begin_at_workers(model: pulp.LpProblem, sets: Sets, variables: Variables) -> None:
    """Each worker sends one flow and gets none, and the PS sends none; the paper has no equation for this."""
    for u in sets.n_w:
        model += sent(sets, variables, u) == 1, f"sends_{u}"
        model += received(sets, variables, u) == 0, f"gets_nothing_{u}"
    model += sent(sets, variables, SERVER) == 0, "ps_sends_nothing"


def sum_at_aggregators(model: pulp.LpProblem, sets: Sets, parameters: Parameters, variables: Variables) -> None:
    """An aggregator sends one flow at most (9), and it sends one exactly if it gets any (10)."""
    for u in sets.n_agg:
        out, into = sent(sets, variables, u), received(sets, variables, u)
        model += out <= 1, f"sum_is_one_flow_{u}"  # (9)
        model += out <= into, f"sums_what_it_gets_{u}"  # (10)
        model += into <= parameters.most * out, f"sends_what_it_sums_{u}"  # (10)


def forward_at_common_switches(model: pulp.LpProblem, sets: Sets, variables: Variables) -> None:
    """A common switch sends what it gets (13)."""
    for u in sets.n_cs:
        model += received(sets, variables, u) == sent(sets, variables, u), f"cs_forwards_{u}"  # (13)


def limit_links(model: pulp.LpProblem, sets: Sets, parameters: Parameters, variables: Variables) -> None:
    """Flows fit their link (14), divided by r, and only nodes that are linked send to each other (16), (17)."""
    t, x, y, a = variables.t, variables.x, variables.y, variables.a
    for u, v in sets.pairs:
        model += y[u, v] + y[v, u] <= t, f"capacity_{u}_{v}"  # (14)
        model += a[u, v] <= y[u, v], f"sends_not_{u}_{v}"  # (16)
        model += y[u, v] <= parameters.most * a[u, v], f"sends_{u}_{v}"  # (16)
        model += a[u, v] <= x[u, v], f"linked_{u}_{v}"  # (17)


def keep_layers(model: pulp.LpProblem, sets: Sets, parameters: Parameters, variables: Variables) -> None:
    """A switch that sends to the PS is in layer 1 (19), and one that sends to another in a higher layer (20)."""
    a, layer, layers = variables.a, variables.layer, parameters.layers
    for u in sets.n_s:
        model += layer[u] <= 1 + layers * (1 - a[u, SERVER]), f"first_layer_{u}"  # (19)
    for u, v in permutations(sets.n_s, 2):  # (21)
        model += layer[v] + 1 <= layer[u] + layers * (1 - a[u, v]), f"to_a_lower_layer_{u}_{v}"  # (20)


def sent(sets: Sets, variables: Variables, u: str) -> Any:
    """The flows that leave node u."""
    return pulp.lpSum(variables.y[u, v] for v in sets.out_of[u])


def received(sets: Sets, variables: Variables, u: str) -> Any:
    """The flows that come to node u."""
    return pulp.lpSum(variables.y[v, u] for v in sets.into[u])


def extract(variables: Variables) -> Wiring:
    """The links that carry flows. Links with x = 1 that carry none are removed (section III-C)."""
    flows = {link: round(y.varValue) for link, y in variables.y.items()}
    return Wiring(
        {link: count for link, count in flows.items() if count > 0},
        {switch: round(layer.varValue) for switch, layer in variables.layer.items()},
    )
