"""Table entries, proven by packets: a model of the P4 program walks them through the fabric."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from entries_model import GRADIENT, NOTICE, RESULT, Network, Packet, Slot
from planner_cases import COLLECTIVES, first_is_server, job, quick_plan, single
from tiers import long_unless

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.install import ina_program
from inakit.planner.install.ina_program import SLOTS_PER_PIPELINE
from inakit.planner.install.plan_entries import entries, sees_results
from inakit.planner.registry import METHODS, find_method
from inakit.planner.trees.headroom import with_policy
from inakit.switch.entries import Entries, SwitchEntries
from inakit.switch.fast.layout.layout import MAX_REPLICAS
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import addresses
from inakit.topo.fabric.generators import aro_figure1, fat_tree, goat_testbed, inart_testbed, leaf_spine, pipelines_trap
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines

FIGURE1 = single(aro_figure1(), [f"w{i}" for i in range(5)], "ps")
FOUR_JOBS = Problem(
    with_pipelines(leaf_spine(4, 2, 4), 2),
    tuple(job((f"h{i}", f"h{i + 4}", f"h{i + 8}"), "h16", "h13", number=i) for i in range(1, 5)),
    FIGURE1.fragment,
)
CROWDED = "more flows in a pipeline than a bitmap has bits"
PROBLEMS: dict[str, Problem] = {
    "figure 1": FIGURE1,
    "pipelines": single(pipelines_trap(), [f"w{i}" for i in range(1, 7)], "ps"),
    "fat-tree": first_is_server(fat_tree(4)),
    "fat-tree, 4 pipelines": first_is_server(with_pipelines(fat_tree(4), 4)),
    "fat-tree, INA on a third": first_is_server(with_ina(fat_tree(4), share=0.33, seed=5)),
    "leaf-spine, INA on a third": first_is_server(with_ina(with_pipelines(leaf_spine(8, 8, 4), 2), share=0.33, seed=1)),
    CROWDED: first_is_server(leaf_spine(1, 1, 80)),
    "one switch": first_is_server(leaf_spine(1, 1, 4)),
    "GOAT": single(goat_testbed(), [f"w{i}" for i in range(1, 9)], "ps"),
    "two servers": single(inart_testbed(), [f"w{i}" for i in range(1, 7)], "ps1", "ps2"),
    "two servers under one leaf": single(leaf_spine(4, 4, 4), [f"h{i}" for i in range(3, 17)], "h1", "h2"),
    "four jobs, two servers": FOUR_JOBS,
}
SLOW = [("four jobs, two servers", "forest"), ("four jobs, two servers", "forest-any")]
"""What takes seconds to plan, by methods whose plans of other problems are tried."""
TASKS = [  # the short form tries every method on half of the problems, in turn, and all of them on the crowded one
    long_unless((name, method) not in SLOW and (name == CROWDED or (row + column) % 2 == 0), name, method)
    for row, (name, problem) in enumerate(PROBLEMS.items())
    for column, method in enumerate(METHODS)
    if method not in COLLECTIVES
    if method != "sharp"  # its roots are switches, see `in_network_plan`
    if not method.startswith("aro") or (len(problem.jobs) == 1 and len(problem.jobs[0].servers) == 1)
    if not method.startswith(("aro", "forest")) or name != CROWDED
]


@cache
def planned(name: str, method: str) -> tuple[Problem, Plan]:
    problem = PROBLEMS[name]
    return problem, quick_plan(method, problem)


@cache
def network_of(name: str, method: str) -> Network:
    """The network with the entries of a plan; tests send packets to others like it."""
    problem, plan = planned(name, method)
    return Network(problem.fabric, entries(problem, plan))


def trees(plan: Plan) -> Iterator[tuple[int, AggregationTree]]:
    return ((each.job, each.tree) for each in plan.trees)


def gradient(number: int, tree: AggregationTree, label: int, *, retransmitted: bool = False) -> Packet:
    worker = tree.workers[label]
    return Packet(GRADIENT, number, tree.number, label, Counter([worker]), tree.root, retransmitted)


def sum_of(packets: list[Packet]) -> Counter[str]:
    return sum((packet.workers for packet in packets), Counter())


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_gradients_reach_the_root_once_and_load_links_as_predicted(name: str, method: str) -> None:
    problem, plan = planned(name, method)
    network = network_of(name, method).cleared()
    sends = [(number, tree, label) for number, tree in trees(plan) for label in tree.workers]
    random.Random(1).shuffle(sends)
    for number, tree, label in sends:
        network.send(tree.workers[label], gradient(number, tree, label))
    assert not network.dropped
    assert not network.slots
    assert network.links == flow_counts(tree for _, tree in trees(plan))
    for number, tree in trees(plan):
        arrived = [p for p in network.received[tree.root] if (p.job, p.tree) == (number, tree.number)]
        assert sum_of(arrived) == Counter(tree.workers.values())
        assert not any(packet.collision or packet.partial for packet in arrived)
    count = Counter(number for number, _ in trees(plan))
    one_each = tuple(replace(j, gradient_bytes=256 * count[j.number]) for j in problem.jobs)
    even = tuple(replace(each, share=1 / count[each.job]) for each in plan.trees)
    predicted = evaluate(replace(problem, jobs=one_each), replace(plan, trees=even))
    for switch, aggregation in predicted.switches.items():
        assert aggregation.packets_in == sum(n for (_, to), n in network.links.items() if to == switch)
        assert aggregation.packets_out == sum(n for (of, _), n in network.links.items() if of == switch)


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_results_and_notices_reach_exactly_all_workers_once(name: str, method: str) -> None:
    _, plan = planned(name, method)
    for (number, tree), kind in product(trees(plan), (RESULT, NOTICE)):
        network = network_of(name, method).cleared()
        network.send(tree.root, Packet(kind, number, tree.number, 0))
        assert not network.dropped
        assert Counter({host: len(found) for host, found in network.received.items() if found}) == Counter(
            tree.workers.values()
        )
        assert max(network.links.values()) == 1


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_what_is_addressed_to_a_worker_reaches_it_alone(name: str, method: str) -> None:
    _, plan = planned(name, method)
    network = network_of(name, method).cleared()
    for number, tree in trees(plan):
        for worker, kind in product(tree.workers.values(), (RESULT, NOTICE)):
            network.send(tree.root, Packet(kind, number, tree.number, 0, to=worker, retransmitted=True))
            assert [len(network.received[host]) for host in network.received if network.received[host]] == [1]
            assert network.received[worker].pop().to == worker
    assert not network.dropped


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_a_gradient_sent_again_passes_empty_aggregators(name: str, method: str) -> None:
    _, plan = planned(name, method)
    network = network_of(name, method).cleared()
    for number, tree in trees(plan):
        for label, worker in tree.workers.items():
            network.send(worker, gradient(number, tree, label, retransmitted=True))
            assert sum_of(network.received[tree.root]) == Counter([worker])
            assert network.received[tree.root].pop().label == label
    assert not network.dropped
    assert not network.slots


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_a_direct_gradient_passes_all_slots(name: str, method: str) -> None:
    _, plan = planned(name, method)
    network = network_of(name, method).cleared()
    for number, tree in trees(plan):
        for label, worker in tree.workers.items():
            network.send(worker, replace(gradient(number, tree, label), direct=True))
            assert network.received[tree.root].pop().label == label
    assert not network.dropped
    assert not network.slots


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_a_gradient_sent_again_flushes_whatever_holds_it(name: str, method: str) -> None:
    """All workers but one have sent. When these send again, everything that waits in slots comes to the PS."""
    _, plan = planned(name, method)
    for number, tree in trees(plan):
        silent, *others = tree.workers
        network = network_of(name, method).cleared()
        for label in others:
            network.send(tree.workers[label], gradient(number, tree, label))
        first = sum_of(network.received[tree.root])
        for label in others:
            network.send(tree.workers[label], gradient(number, tree, label, retransmitted=True))
        assert not network.slots
        assert not network.dropped
        covered = sum_of(network.received[tree.root])
        assert set(covered) == set(tree.workers.values()) - {tree.workers[silent]}
        assert set(first) <= set(covered)


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_collided_gradients_keep_their_label_to_the_root(name: str, method: str) -> None:
    _, plan = planned(name, method)
    network = network_of(name, method).cleared()
    for number, tree in trees(plan):
        for aggregator in tree.aggregators:
            index = (aggregator.switch, aggregator.pipeline, aggregator.first_slot)
            network.slots[index] = Slot((number, 65000), 1, Counter())
    for number, tree in trees(plan):
        for label, worker in tree.workers.items():
            network.send(worker, gradient(number, tree, label))
            assert network.received[tree.root].pop().label == label
    assert not network.dropped


def without(installed: Entries, switch: str, position: int) -> Entries:
    return Entries(
        tuple(
            replace(s, tables=s.tables[:position] + s.tables[position + 1 :]) if s.switch == switch else s
            for s in installed.switches
        )
    )


def all_is_well(problem: Problem, plan: Plan, installed: Entries) -> bool:
    """Whether nothing is dropped when gradients are sent, sent again and collide, and results come back."""
    healthy, network = True, Network(problem.fabric, installed)
    for number, tree in trees(plan):
        for labels in ([*tree.workers], [*tree.workers][::-1]):
            network = network.cleared()
            for label in labels:
                network.send(tree.workers[label], gradient(number, tree, label))
            healthy &= network.links == flow_counts([tree])
            healthy &= sum_of(network.received[tree.root]) == Counter(tree.workers.values())
        network = network.cleared()
        for label, worker in tree.workers.items():
            network.send(worker, gradient(number, tree, label, retransmitted=True))
            network.send(worker, replace(gradient(number, tree, label), direct=True))
            for kind in (RESULT, NOTICE):
                network.send(tree.root, Packet(kind, number, tree.number, 0, to=worker, retransmitted=True))
        network.kept.clear()
        for kind in (RESULT, NOTICE):
            network.send(tree.root, Packet(kind, number, tree.number, 0))
        healthy &= not network.dropped
        keeping = {(a.switch, a.pipeline) for a in tree.aggregators if sees_results(problem.fabric, tree, a)}
        healthy &= network.kept == Counter(keeping if tree.repairs else ())
        for aggregator in tree.aggregators:
            for label in below(tree, aggregator):
                healthy &= is_flushed(network, aggregator, gradient(number, tree, label, retransmitted=True), tree)
                partial = Packet(GRADIENT, number, tree.number, aggregator.label, Counter(), tree.root, partial=True)
                network.by_label(aggregator.switch, network.tables[aggregator.switch], partial)
                healthy &= not network.dropped
    return healthy


def below(tree: AggregationTree, aggregator: Aggregator) -> Iterator[int]:
    for child in aggregator.children:
        if child in tree.workers:
            yield child
        else:
            yield from below(tree, tree.aggregator_of[child])


def is_flushed(network: Network, aggregator: Aggregator, packet: Packet, tree: AggregationTree) -> bool:
    index = (aggregator.switch, aggregator.pipeline, aggregator.first_slot)
    network.slots[index] = Slot((packet.job, packet.tree), 1 << 63, Counter())
    network.send(tree.workers[packet.label], packet)
    return network.slots.pop(index, None) is None


@pytest.mark.parametrize("method", ["aro", "atp", "lbmm"])
def test_every_entry_is_needed_and_its_loss_is_noticed(method: str) -> None:
    problem, plan = planned("figure 1", method)
    installed = entries(problem, plan)
    assert all_is_well(problem, plan, installed)
    needless = []
    for switch in installed.switches:
        for position, entry in enumerate(switch.tables):
            if entry.table not in (ina_program.PIPELINE, ina_program.IPV4_ROUTE) and all_is_well(
                problem, plan, without(installed, switch.switch, position)
            ):
                needless.append((switch.switch, entry))
    assert not needless


@pytest.mark.parametrize(("name", "method"), TASKS)
def test_addresses_route_to_their_host_from_everywhere(name: str, method: str) -> None:
    problem, _ = planned(name, method)
    network = network_of(name, method).cleared()
    for switch, tables in network.tables.items():
        for (address,) in tables.rows.get("ipv4_route", ()):
            host = next(host for host, ipv4 in network.ipv4.items() if ipv4 == address)
            network.by_address(switch, tables, Packet(RESULT, 0, 0, 0, to=host))
        assert set(tables.rows["pipeline"]) == {(port,) for port in problem.fabric.switch_by_name[switch].ports}


def in_network_plan() -> tuple[Problem, Plan]:
    """Both racks of a two-leaf fabric are summed at its spine, which itself answers the workers."""
    problem = first_is_server(leaf_spine(2, 1, 2))
    tree = AggregationTree(
        1,
        "spine1",
        {1: "h2", 2: "h3", 3: "h4"},
        (Aggregator(4, "leaf2", 0, (2, 3), 0, 8), Aggregator(0, "spine1", 0, (1, 4), 0, 8)),
        (
            Branch(1, 0, ("h2", "leaf1", "spine1")),
            Branch(2, 4, ("h3", "leaf2")),
            Branch(3, 4, ("h4", "leaf2")),
            Branch(4, 0, ("leaf2", "spine1")),
        ),
    )
    planned = PlannedTree(1, 1.0, 1e6, tree)
    return problem, Plan("hand", problem.fabric.name, (planned,), SolverOutcome("heuristic", 0.0))


@pytest.mark.parametrize("made", [in_network_plan, lambda: planned("fat-tree", "sharp")], ids=["by hand", "sharp"])
def test_an_in_network_root_answers_all_workers(made: Callable[[], tuple[Problem, Plan]]) -> None:
    problem, plan = made()
    network = Network(problem.fabric, entries(problem, plan))
    tree = plan.trees[0].tree
    for label, worker in tree.workers.items():
        network.send(worker, gradient(1, tree, label))
    assert not network.dropped
    for worker in tree.workers.values():
        (result,) = network.received[worker]
        assert (result.kind, result.workers) == (RESULT, Counter(tree.workers.values()))
    prediction = evaluate(problem, plan)
    assert prediction.ps_ingress_bytes == 0
    assert prediction.switches[tree.root].packets_out == 0


def test_entries_go_only_where_the_plan_does() -> None:
    problem = single(leaf_spine(8, 4, 2), ["h2", "h3"], "h1")
    installed = entries(problem, METHODS["aro"].plan(problem))
    assert len(installed.switches) == 3
    assert installed.of("leaf8") == SwitchEntries("leaf8")


def test_slots_beyond_the_programs_are_refused() -> None:
    problem = replace(FIGURE1, fabric=with_aggregators(FIGURE1.fabric, slots=4 * SLOTS_PER_PIPELINE))
    entries(problem, METHODS["aro"].plan(problem))
    wide = METHODS["aro"].plan(problem, Options(window=2 * SLOTS_PER_PIPELINE))
    with pytest.raises(PlanError, match=f"{SLOTS_PER_PIPELINE} slots per pipeline; set the fabric's aggregator_slots"):
        entries(problem, wide)


def test_ports_beyond_the_programs_are_refused() -> None:
    def renumber(port: int) -> int:
        return port + 511 if port else 0

    small = leaf_spine(1, 1, 3)
    switches = tuple(replace(s, pipelines=(tuple(map(renumber, s.ports)),)) for s in small.switches)
    links = tuple(replace(link, a_port=renumber(link.a_port), b_port=renumber(link.b_port)) for link in small.links)
    problem = first_is_server(replace(small, switches=switches, links=links))
    with pytest.raises(PlanError, match="has port 515: the P4 program takes ports 0 to 511; give the switch fewer"):
        entries(problem, METHODS["lbmm"].plan(problem))


def test_targets_copy_a_packet_to_as_many_ports_as_plans_are_told() -> None:
    assert ina_program.COPIES == MAX_REPLICAS


@pytest.mark.parametrize(("k", "planner"), [(4, "panama"), (8, "soar"), (None, "panama")])
def test_every_aggregator_that_repairs_losses_can_ask_its_workers(k: int | None, planner: str) -> None:
    """Also those of later trees, where two of a tree are on one switch, of which one sees results, and off the way of
    results."""
    problem = first_is_server(with_ina(leaf_spine(4, 4, 3), share=0.2) if k is None else fat_tree(k))
    plan = with_policy(problem, find_method(planner).plan(problem), "shadow-copy")
    ipv4 = {host: address.ipv4 for host, address in addresses(problem.fabric).items()}
    tables = [(each.switch, row) for each in entries(problem, plan).switches for row in each.tables]
    routes = {(switch, row.key) for switch, row in tables if row.table == ina_program.IPV4_ROUTE}
    for tree in (planned.tree for planned in plan.trees):
        for aggregator in tree.aggregators:
            below = (tree.workers[label] for label in tree.workers_below[aggregator.label])
            assert {(aggregator.switch, (ipv4[worker],)) for worker in below} <= routes
