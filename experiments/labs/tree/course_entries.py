"""The entries of a plan for lab 5's program, as the course makes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from inakit.experiments.labs.course.packets import GRADIENT, RESULT
from inakit.experiments.labs.tree.plans import Drawn
from inakit.experiments.labs.tree.tables import ADMITTED, CHILD_OF, DOWN, PIPELINE_OF, TABLES, UP
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry


def course_entries(drawn: Drawn, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
    """The entries of a switch, of the tables that are wanted, and its multicast groups."""
    rows = [row for row in dict.fromkeys(rows_of(drawn, switch)) if row[0] in wanted]
    tables = tuple(TableEntry(table, key, TABLES[table].action, params) for table, key, params in rows)
    return SwitchEntries(switch, tables, tuple(groups_of(drawn, switch)))


def rows_of(drawn: Drawn, switch: str) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Tables, keys and parameters."""
    pipelines = next(each.pipelines for each in drawn.fabric.switches if each.name == switch)
    for number, ports in enumerate(pipelines):
        yield from ((PIPELINE_OF, (port,), (number,)) for port in ports)
    for job, tree in drawn.trees.items():
        for branch in tree.branches:
            yield from branch_rows(drawn, switch, job, branch.label, branch.path)
        for parent in {above for below, above in links_of(tree) if below == switch}:
            yield ADMITTED, (drawn.port(switch, parent), RESULT, job, ROOT_LABEL), ()
        for aggregator in tree.aggregators:
            if aggregator.switch == switch:
                full = (1 << len(aggregator.children)) - 1
                owned = (full, aggregator.label, aggregator.first_slot, aggregator.slots)
                for bit, child in enumerate(aggregator.children):
                    yield CHILD_OF, (aggregator.pipeline, job, child), (1 << bit, *owned)
        if any(above == switch for _, above in links_of(tree)):
            yield DOWN, (job,), (job,)


def branch_rows(
    drawn: Drawn, switch: str, job: int, label: int, path: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Where a label comes in at a switch, and where it goes on."""
    for node, following in pairwise(path):
        if following == switch:
            yield ADMITTED, (drawn.port(switch, node), GRADIENT, job, label), ()
        if node == switch:
            yield UP, (job, label), (drawn.port(switch, following),)


def links_of(tree: AggregationTree) -> list[tuple[str, str]]:
    """The links that a tree uses upwards, each once."""
    return list(dict.fromkeys(link for branch in tree.branches for link in branch.links))


def groups_of(drawn: Drawn, switch: str) -> Iterator[MulticastGroup]:
    """For each job the ports of a switch by which its results go on."""
    for job, tree in drawn.trees.items():
        ports = sorted(drawn.port(switch, below) for below, above in links_of(tree) if above == switch)
        if ports:
            yield MulticastGroup(job, tuple(ports))
