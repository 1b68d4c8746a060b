"""How results come back, in the model of a routing: one copy on each link that they take, against the task's gradients.

z[v, u] counts the copies from v to u. Results come to u only where gradients go from u to v; they go on from u only
where they come to u; and they come to every ToR with workers. Gradients and results of one task never take a link in
the same direction, for the unfolded graph has one direction on each link.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from inakit.planner.methods.aro.several.reduced import Network, Reduced
from inakit.planner.solvers.columns import LinearProgram, Term
from inakit.planner.trees.unfolding import DirectedLink, Path
from inakit.topo.fabric.fabric import Fabric

ONE = 1e-6
"""A count of copies above it is one."""


def result_columns(
    program: LinearProgram,
    net: Network,
    graph: Reduced,
    y: Mapping[DirectedLink, int],
    most: Mapping[DirectedLink, int],
) -> dict[DirectedLink, int]:
    """Add a task's z to the program; returns their columns by link.

    `y` are the columns of the task's gradients, and `most[v, u]` are the most copies that links carry.
    """
    z = {(v, u): program.variable(0, most[v, u]) for u, v in graph.links}
    for (v, u), column in z.items():
        program.at_most([(1, column), (-1, y[u, v])], 0)
    limit_copies(program, net, graph, z)
    return z | {(v, u): program.variable(1, 1) for u, v in graph.both_roles}


def limit_copies(
    program: LinearProgram, net: Network, graph: Reduced, z: Mapping[DirectedLink, int], rate: int | None = None
) -> None:
    """Results come to every ToR with workers, and go on only from nodes to which they come.

    With the column of a `rate` z is multiplied by it.
    """
    for tor in dict.fromkeys((*graph.starting, *(switch for switch, _ in graph.local))):
        came: list[Term] = [(1, z[v, tor]) for _, v in graph.out_of[tor]]
        program.at_least(came if rate is None else [*came, (-1, rate)], 1 if rate is None else 0)
    for (u, w), column in z.items():
        if u != graph.task.server:
            program.at_most([(1, column), *((-float(net.size(w)), z[v, u]) for _, v in graph.out_of[u])], 0)


def result_parents(
    fabric: Fabric, graph: Reduced, paths: Iterable[Path], copies: Collection[DirectedLink]
) -> dict[str, str]:
    """By node, workers included, the node that it gets results from: over `copies` where these follow gradients.

    `paths` are the pieces by which the task's gradients go.
    """
    onward: dict[str, list[str]] = {}
    for u, v in (link for path in paths for link in pairwise(path)):
        onward.setdefault(u, []).append(v)
    parents: dict[str, str] = {}
    for worker in graph.task.job.workers:
        node = worker
        parents[worker] = above = fabric.tor_of(worker)
        while above != graph.task.server and above not in parents:
            node, above = above, chosen(above, onward[above], copies)
            parents[node] = above
    return parents


def chosen(node: str, above: Sequence[str], copies: Collection[DirectedLink]) -> str:
    """The node that sends results to `node`: the first by which the solution has a copy, else the first."""
    return next((other for other in above if (other, node) in copies), above[0])
