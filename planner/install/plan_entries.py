"""A plan as table entries of `p4/ina.p4`: packets that every switch admits, sums, forwards and multicasts.

A packet keeps its label until an aggregator sums it; packets that collide or are retransmitted may never be summed. So
the entries of a label lead from its node to the root: through its aggregator and on along that aggregator's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Plan, trees_of
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.install import ina_program
from inakit.planner.install.ina_program import (
    COPIES,
    INA,
    KIND_GRADIENT,
    KIND_NOTICE,
    KIND_RESULT,
    PORTS,
    SLOTS_PER_PIPELINE,
    DataPlaneProgram,
)
from inakit.switch.entries import Entries, MulticastGroup, SwitchEntries, TableEntry
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import QUEUE_PACKETS, DirectedLink, Fabric, Switch, addresses

# -- Queues behind ports as table entries of `p4/marks.p4`: the rate of each link, and the threshold of a long queue.

LONG_QUEUE = QUEUE_PACKETS // 4
"""The packets in a long queue: more than the bursts of paced workers, and far below the limit at which packets are
dropped.
"""
PARTS_PER_BYTE = 1 << 16
US_PER_S = 1_000_000


def mark_entries(problem: Problem, switch: str) -> Iterator[TableEntry]:
    """The congestion-mark entries of every port of a switch."""
    fabric = problem.fabric
    limit = LONG_QUEUE * problem.fragment.wire_bytes * PARTS_PER_BYTE
    for peer in fabric.neighbors[switch]:
        rate = round(fabric.capacities_bps[switch, peer] / 8 / US_PER_S * PARTS_PER_BYTE)
        yield TableEntry(ina_program.QUEUES, (fabric.port_numbers[switch, peer],), ina_program.PHANTOM, (rate, limit))


# -- The entries of trees and collectives.

Row = tuple[str, TableEntry]
"""A switch's name and an entry of it."""
Routes = dict[tuple[str, str], str]
"""`[switch, host]`: the node to which the switch sends packets with the host's address."""


@dataclass(frozen=True)
class TreeKey:
    """A tree, and the numbers by which switches identify it. `group` is its multicast group on every switch."""

    job: int
    tree: AggregationTree
    group: int

    @property
    def key(self) -> tuple[int, int]:
        """The numbers of job and tree, as keys of table entries."""
        return self.job, self.tree.number


def entries(problem: Problem, plan: Plan, program: DataPlaneProgram = INA, earlier: Sequence[Plan] = ()) -> Entries:
    """The entries of every switch that a checked plan uses. Raises `PlanError` for limits of the P4 program.

    They can be added to those of `earlier` plans with other tree numbers, whose groups and routes to hosts they leave.
    """
    check_limits(problem.fabric, plan, program.slots_per_pipeline)
    fabric, first = problem.fabric, 1 + sum(len(each.trees) for each in earlier)
    trees = [TreeKey(planned.job, planned.tree, group) for group, planned in enumerate(plan.trees, start=first)]
    alone = [TreeKey(each.job, tree, 0) for each in plan.collectives for tree in trees_of(each)]
    routes = plan_routes(fabric, *earlier, plan)
    rows = [*route_rows(fabric, routes)]
    for tree in trees:
        rows += [*gradient_rows(fabric, tree), *aggregation_rows(fabric, tree)]
        rows += [*result_rows(fabric, tree), *address_rows(fabric, tree, routes)]
    for tree in alone:
        rows += [*gradient_rows(fabric, tree), *acknowledgement_rows(fabric, tree, routes)]
    own: dict[str, dict[TableEntry, None]] = {}
    for name, entry in rows:
        own.setdefault(name, {})[entry] = None
    groups: dict[str, list[MulticastGroup]] = {}
    for name, group in (each for tree in trees for each in result_groups(fabric, tree)):
        groups.setdefault(name, []).append(group)
    if any(policy_of(planned.tree.policy).marks for planned in plan.trees):
        for name, found in own.items():
            found.update(dict.fromkeys(mark_entries(problem, name)))
    used = (switch for switch in fabric.switches if switch.name in own)
    return Entries(tuple(gather(switch, own[switch.name], groups.get(switch.name, ())) for switch in used))


def gather(switch: Switch, own: Iterable[TableEntry], groups: Sequence[MulticastGroup]) -> SwitchEntries:
    """The entries of one switch: its pipelines and its `own`, and its multicast groups."""
    pipelines = [
        TableEntry(ina_program.PIPELINE, (port,), ina_program.SET_PIPELINE, (number,))
        for number, ports in enumerate(switch.pipelines)
        for port in ports
    ]
    return SwitchEntries(switch.name, (*pipelines, *own), tuple(groups))


def check_limits(fabric: Fabric, plan: Plan, slots: int = SLOTS_PER_PIPELINE) -> None:
    """Raise `PlanError` if the plan needs more ports than the P4 program has, or more than its slots per pipeline."""
    for planned in plan.trees:
        for aggregator in planned.tree.aggregators:
            if aggregator.first_slot + aggregator.slots > slots:
                raise PlanError(
                    f"job {planned.job}, tree {planned.tree.number}, switch '{aggregator.switch}': the P4 program has "
                    f"{slots} slots per pipeline; set the fabric's aggregator_slots to at most this number"
                )
    for switch in fabric.switches:
        if max(switch.ports, default=0) >= PORTS:
            raise PlanError(
                f"switch '{switch.name}' has port {max(switch.ports)}: the P4 program takes ports 0 to {PORTS - 1}; "
                "give the switch fewer hosts and links"
            )


def many_copies(fabric: Fabric, plan: Plan) -> Iterator[str]:
    """For each switch that sends a tree's results to more than `COPIES` ports, a sentence for the user."""
    for planned in plan.trees:
        for switch, group in result_groups(fabric, TreeKey(planned.job, planned.tree, 1)):
            if len(group.ports) > COPIES:
                yield (
                    f"job {planned.job}, tree {planned.tree.number}: results leave switch '{switch}' by "
                    f"{len(group.ports)} ports, and targets fast and virtual allow {COPIES}: choose --switch bmv2, "
                    "fewer workers, or a fabric with more switches between them"
                )


def gradient_rows(fabric: Fabric, tree: TreeKey) -> Iterator[Row]:
    """The entries that admit and forward every label along its whole way to the root."""
    for label in tree.tree.branch_of:
        way = tree.tree.way(label)
        for node, following in pairwise(way):
            if following in fabric.switch_by_name:
                yield admission(fabric, (node, following), (KIND_GRADIENT, *tree.key, label))
            if node in fabric.switch_by_name:
                port = fabric.port_numbers[node, following]
                yield node, TableEntry(ina_program.FORWARD, (*tree.key, label), ina_program.SEND, (port,))


def admission(fabric: Fabric, link: DirectedLink, packet: tuple[int, int, int, int]) -> Row:
    """The entry by which the switch at the end of `link` admits packets of this (kind, job, tree, label) from it."""
    peer, switch = link
    port = fabric.port_numbers[switch, peer]
    return switch, TableEntry(ina_program.ADMISSION, (port, *packet), ina_program.ADMIT)


def aggregation_rows(fabric: Fabric, tree: TreeKey) -> Iterator[Row]:
    """The entries of every aggregator: bits of each child, and of labels below that may arrive unaggregated."""
    first = {(each.switch, each.pipeline): each.label for each in reversed(tree.tree.aggregators)}
    for aggregator in tree.tree.aggregators:
        full = (1 << len(tree.tree.summands(aggregator))) - 1
        policy, seen = policy_of(tree.tree.policy), sees_results(fabric, tree.tree, aggregator)
        # Of several in one pipeline of a switch, a result comes to the slot of one.
        seen = seen and first[aggregator.switch, aggregator.pipeline] == aggregator.label
        freed = policy.until_result and seen and not tree.tree.in_network_root
        held = {
            ina_program.POLICY_ROOT: aggregator.label == ROOT_LABEL,
            ina_program.POLICY_HOLD: policy.holds,
            ina_program.POLICY_SHADOW: policy.shadows or freed,  # a slot that its result frees keeps its sum until then
            ina_program.POLICY_EVICT: policy.evicts,
            ina_program.POLICY_NOTIFY: policy.notifies,
            ina_program.POLICY_REPAIR: tree.tree.repairs,
        }
        bits_held = sum(bit for bit, holds in held.items() if holds)
        bits_held |= min(tree.tree.heights[aggregator.label], 3) << 6 if tree.tree.repairs else 0
        owned = (aggregator.first_slot, aggregator.slots, aggregator.label, tree.tree.reach, bits_held)
        bits = tree.tree.bits(aggregator) | ({ROOT_LABEL: 0} if freed or (seen and tree.tree.repairs) else {})
        for label, child in bits.items():
            key = (aggregator.pipeline, *tree.key, label)
            entry = TableEntry(ina_program.AGGREGATION, key, ina_program.AGGREGATE, (child, full, *owned))
            yield aggregator.switch, entry


def sees_results(fabric: Fabric, tree: AggregationTree, aggregator: Aggregator) -> bool:
    """Whether results arrive at a port of the aggregator's own pipeline."""
    parent = tree.result_parents.get(aggregator.switch)
    return parent is not None and fabric.ingress_pipeline(aggregator.switch, parent) == aggregator.pipeline


def result_rows(fabric: Fabric, tree: TreeKey) -> Iterator[Row]:
    """The entries for results and notices from the root, which are multicast down the tree."""
    parents = tree.tree.result_parents
    for node, parent in parents.items():
        if node in fabric.switch_by_name:
            for kind in (KIND_RESULT, KIND_NOTICE):
                yield admission(fabric, (parent, node), (kind, *tree.key, ROOT_LABEL))
    for switch in [*parents, tree.tree.root]:
        if switch in fabric.switch_by_name:
            yield switch, TableEntry(ina_program.RESULTS, tree.key, ina_program.REPLICATE, (tree.group,))


def address_rows(fabric: Fabric, tree: TreeKey, routes: Routes) -> Iterator[Row]:
    """The entries that admit packets with an address, outside the tree.

    These are answers of the root or the PS to a worker's repeated request, questions of aggregators on its way, and
    gradients that a worker sends directly to the PS.
    """
    root, server, asking = tree.tree.root, tree.tree.server, tree.tree.repairing_switches
    for label, worker in tree.tree.workers.items():
        askers = [node for node in tree.tree.way(label) if node in asking and (node, worker) in routes]
        for source in dict.fromkeys((root, server or root, *askers)):
            way = unicast_path(fabric, source, worker, routes)
            for kind in (KIND_RESULT, KIND_NOTICE):
                yield from admissions(fabric, way, (kind, *tree.key, ROOT_LABEL))
        if server is not None:
            way = unicast_path(fabric, worker, server, routes)
            yield from admissions(fabric, way, (KIND_GRADIENT, *tree.key, label))


def acknowledgement_rows(fabric: Fabric, tree: TreeKey, routes: Routes) -> Iterator[Row]:
    """The entries that admit a rank's acknowledgements, by address, to the ranks that send to it."""
    for worker in tree.tree.workers.values():
        way = unicast_path(fabric, tree.tree.root, worker, routes)
        yield from admissions(fabric, way, (KIND_NOTICE, *tree.key, ROOT_LABEL))


def admissions(fabric: Fabric, path: tuple[str, ...], packet: tuple[int, int, int, int]) -> Iterator[Row]:
    """For every switch of the path, the entry that admits these (kind, job, tree, label) from the node before it."""
    for node, following in pairwise(path):
        if following in fabric.switch_by_name:
            yield admission(fabric, (node, following), packet)


def result_groups(fabric: Fabric, tree: TreeKey) -> Iterator[tuple[str, MulticastGroup]]:
    """For each switch, the multicast group of the tree: the ports to which it sends results."""
    ports: dict[str, list[int]] = {}
    for node, parent in tree.tree.result_parents.items():
        if parent in fabric.switch_by_name:
            ports.setdefault(parent, []).append(fabric.port_numbers[parent, node])
    for switch, found in ports.items():
        yield switch, MulticastGroup(tree.group, tuple(sorted(found)))


def plan_routes(fabric: Fabric, *plans: Plan) -> Routes:
    """One next hop for each switch and host, along all trees of the plans and of their collectives."""
    trees = [planned.tree for plan in plans for planned in plan.trees]
    ranks = (tree for plan in plans for each in plan.collectives for tree in trees_of(each))
    return unicast_routes(fabric, [*trees, *ranks])


def unicast_routes(fabric: Fabric, trees: list[AggregationTree]) -> Routes:
    """One next hop for each switch and host along the trees: to workers from every root and PS, to PSs from every
    worker.

    Where trees differ, the first one decides. A later tree adds switches only up to the first one with a route to the
    host, so that routes of several trees never contradict each other and never loop.
    """
    routes: Routes = {}
    for tree in trees:
        for label, worker in tree.workers.items():
            up: tuple[str, ...] = (worker,)  # the way of results in reverse
            while up[-1] != tree.root:
                up = (*up, tree.result_parents[up[-1]])
            add_route(fabric, routes, tuple(reversed(up)))
            for way in (up, without_detours(tree.way(label))) if tree.repairing_switches else ():
                for end in range(len(way), 1, -1):
                    if way[end - 1] in tree.repairing_switches:  # it may ask the worker
                        add_route(fabric, routes, tuple(reversed(way[:end])))
            if tree.server is not None:
                up = without_detours(up + tree.fallback[1:])
                add_route(fabric, routes, tuple(reversed(up)))
                add_route(fabric, routes, up)
    return routes


def without_detours(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path without the nodes between two visits of the same node."""
    short: list[str] = []
    for node in path:
        if node in short:
            del short[short.index(node) :]
        short.append(node)
    return tuple(short)


def add_route(fabric: Fabric, routes: Routes, path: tuple[str, ...]) -> None:
    """Add the next hops along a path to its last node, up to the first node that already has a route to it."""
    for node, following in pairwise(path):
        if (node, path[-1]) in routes:
            return
        if node in fabric.switch_by_name:
            routes[node, path[-1]] = following


def unicast_path(fabric: Fabric, start: str, end: str, routes: Routes) -> tuple[str, ...]:
    """The nodes from a host or switch to a host, along the routes."""
    path = [start]
    while path[-1] != end:
        path.append(fabric.tor_of(path[-1]) if path[-1] in fabric.host_names else routes[path[-1], end])
    return tuple(path)


def route_rows(fabric: Fabric, routes: Routes) -> Iterator[Row]:
    """The entries of all routes, by the IPv4 address of the host."""
    ipv4 = {host: address.ipv4 for host, address in addresses(fabric).items()}
    for (switch, host), following in routes.items():
        port = fabric.port_numbers[switch, following]
        yield switch, TableEntry(ina_program.IPV4_ROUTE, (ipv4[host],), ina_program.SEND, (port,))
