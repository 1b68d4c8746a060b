"""ATRO's optimum with a proof, without solving its model: the bound, a construction, and a small model between them.

With one capacity b everywhere the rate is b / t, where t is the most flows on a link, and a wiring for t flows is one
for more: the optimum is the least t for which a wiring exists. The bound excludes those below, the construction shows
one, and `compact` decides what neither settles.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import replace

from inakit.planner.core.solving import INFEASIBLE, SolverOptions, SolverOutcome
from inakit.planner.methods.atro.bound import most_workers_bound
from inakit.planner.methods.atro.cluster import Cluster, Wiring
from inakit.planner.methods.atro.compact import UNKNOWN, decide
from inakit.planner.methods.atro.construct import construct
from inakit.topo.errors import SolverError

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
