"""Table entries of collectives: chunks take their planned paths, and acknowledgements come back."""

from __future__ import annotations

from collections import Counter

import pytest
from entries_model import GRADIENT, NOTICE, Network, Packet
from planner_cases import COLLECTIVES, first_is_server, job

from inakit.planner.core.plan import trees_of
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import fat_tree, leaf_spine

TWO_JOBS = Problem(
    leaf_spine(3, 2, 4),
    (job(("h2", "h3", "h6", "h10"), "h1"), job(("h4", "h7", "h8", "h11"), "h5", number=2)),
    first_is_server(fat_tree(4)).fragment,
)
PROBLEMS = {"fat-tree": first_is_server(fat_tree(4), 9), "two jobs": TWO_JOBS}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", COLLECTIVES)
def test_chunks_arrive_by_their_paths_and_are_acknowledged(method: str, problem: str) -> None:
    plan = METHODS[method].plan(PROBLEMS[problem])
    network = Network(PROBLEMS[problem].fabric, entries(PROBLEMS[problem], plan))
    planned: Counter[tuple[str, str]] = Counter()
    for collective in plan.collectives:
        for tree in trees_of(collective):
            for label, worker in tree.workers.items():
                chunk = Packet(GRADIENT, collective.job, tree.number, label, Counter([worker]), tree.root)
                network.send(worker, chunk)
                assert network.received[tree.root][-1].workers == Counter([worker])
        planned.update(link for connection in collective.connections for link in connection.links)
    assert network.links == planned
    for collective in plan.collectives:
        for tree in trees_of(collective):
            for worker in tree.workers.values():
                answer = Packet(NOTICE, collective.job, tree.number, 0, to=worker, retransmitted=True)
                network.send(tree.root, answer)
                assert network.received[worker][-1] == answer
    assert not network.dropped
