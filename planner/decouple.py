"""One aggregation task's graph as ARO models it: unfolded, and every INA switch decoupled into INPs and an OP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.routes import Inp
from planner.unfold import DirectedLink, unfold, unreachable
from topo.fabric import Fabric


@dataclass(frozen=True)
class TaskGraph:
    """The links that the task may use (a = 1), and the kinds of its nodes.

    A link into an INA switch enters the INP of its ingress pipeline, a link out of one leaves its OP; the
    virtual links from INPs to their OP are left implicit, they carry x.
    """

    fabric: Fabric
    workers: tuple[str, ...]
    server: str
    links: tuple[DirectedLink, ...]

    @cached_property
    def into(self) -> dict[str, list[DirectedLink]]:
        """The links into every node, by the node's name."""
        return {node: [link for link in self.links if link[1] == node] for _, node in self.links}

    @cached_property
    def out_of(self) -> dict[str, list[DirectedLink]]:
        return {node: [link for link in self.links if link[0] == node] for node, _ in self.links}

    @cached_property
    def inps(self) -> dict[Inp, list[DirectedLink]]:
        """The INPs of the task (N_inp), and the links into each."""
        found: dict[Inp, list[DirectedLink]] = {}
        for switch in self.aggregating:
            for link in self.into[switch]:
                found.setdefault((switch, self.fabric.ingress_pipeline(switch, link[0])), []).append(link)
        return found

    @cached_property
    def aggregating(self) -> list[str]:
        """The INA switches; each has one OP (N_op)."""
        return [node for node in self.into if node != self.server and self.fabric.switch_by_name[node].ina]

    @cached_property
    def common(self) -> list[str]:
        """The common switches (N_cs): they forward and do not sum."""
        return [node for node in self.into if node != self.server and node not in self.aggregating]

    def inp(self, link: DirectedLink) -> Inp | None:
        """The INP that a link enters; None at a common switch or the PS."""
        if link[1] not in self.aggregating:
            return None
        return link[1], self.fabric.ingress_pipeline(link[1], link[0])


def task_graph(fabric: Fabric, workers: Sequence[str], server: str) -> TaskGraph:
    """The graph of the task. Raises `InputError` when a worker cannot reach the PS."""
    unfolded = unfold(fabric, server)
    for worker in workers:
        if worker not in unfolded.next_hops:
            raise unreachable(worker, server)
    return TaskGraph(fabric, tuple(workers), server, unfolded.links(workers))
