"""The traffic that GOAT plans is the traffic of its plan, and on small networks the least that any schedule has.

`least_traffic` knows nothing of GINA: it enumerates every set of input pipelines that sum a sub-model, with ways found
among all simple paths of the network.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise
from math import inf

import networkx as nx
import pytest
from planner_cases import single
from tiers import long_unless

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp
from inakit.planner.methods.goat.goat import GoatOptions, instance, nodes_of, sub_models
from inakit.planner.methods.goat.krgs import KrgsOptions, schedule, value
from inakit.planner.registry import METHODS
from inakit.planner.trees.summed_once import split_equally
from inakit.topo.fabric.fabric import Chip, Fabric
from inakit.topo.fabric.generators import fat_tree, goat_testbed, leaf_spine
from inakit.topo.fabric.up_down import is_up_down
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

FRAGMENTS = 12


def of_fragments(problem: Problem, fragments: int) -> Problem:
    jobs = tuple(replace(job, gradient_bytes=fragments * 4 * FRAGMENT.values) for job in problem.jobs)
    return replace(problem, jobs=jobs)


def small_problem(seed: int) -> tuple[Problem, GoatOptions]:
    """Up to six workers on a small network with several pipelines, of whose switches some sum, with unequal memory."""
    draw = random.Random(seed)
    networks = [leaf_spine(2, 2, 2), leaf_spine(3, 1, 2), leaf_spine(2, 1, 3), goat_testbed(), fat_tree(4)]
    fabric = draw.choice(networks)
    share = 0.2 if fabric.name.startswith("fat") else 0.8
    chosen = [switch.name for switch in fabric.switches if draw.random() < share]
    some = with_pipelines(with_ina(fabric, chosen), draw.choice([1, 2, 4]))
    memories = (replace(switch, aggregator_slots=draw.choice([4, 6, 8, 10, 16])) for switch in some.switches)
    unequal = replace(some, switches=tuple(memories))
    server, *hosts = draw.sample([host.name for host in fabric.hosts], min(7, len(fabric.hosts)))
    problem = single(unequal, hosts[: draw.randint(2, len(hosts))], server)
    return of_fragments(problem, FRAGMENTS), GoatOptions(sub_models=draw.choice([1, 2, 3]), seed=seed)


def believed(problem: Problem, options: GoatOptions) -> tuple[float, list[int]]:
    """Eq. (1) of the schedule behind the plan, in fragments times links; and the sizes of the sub-models."""
    (task,) = split_equally(problem)
    reached, room = nodes_of(problem.fabric, task, Counter())
    parts = sub_models(problem, task, options.sub_models, room)
    gina = instance(task, parts, reached, room)
    found, _ = schedule(gina, KrgsOptions(options.seed, options.roundings, options.objective))
    return value(gina, found), [part.fragments for part in parts]


def planned_traffic(problem: Problem, method: str = "goat", options: GoatOptions | None = None) -> float:
    plan = METHODS[method].plan(problem, options)
    return evaluate(problem, plan).overhead_bytes / problem.fragment.wire_bytes


def links_to_nodes(fabric: Fabric, worker: str, server: str) -> dict[Inp | None, int]:
    """The fewest links from a worker to every input pipeline that can sum its gradients, and, under None, to the PS."""
    graph = nx.DiGraph(list(fabric.capacities_bps))
    found: dict[Inp | None, int] = {}
    for path in map(tuple, nx.all_simple_paths(graph, worker, server, cutoff=8)):
        if is_up_down(fabric, path):
            found[None] = min(found.get(None, len(path)), len(path) - 1)
            for links, (before, switch) in enumerate(pairwise(path[:-1]), start=1):
                if fabric.switch_by_name[switch].ina:
                    inp = switch, fabric.ingress_pipeline(switch, before)
                    found[inp] = min(found.get(inp, links), links)
    return found


def least_traffic(problem: Problem, sizes: Sequence[int]) -> float:
    """The least traffic of all ways to sum sub-models of these sizes in input pipelines with enough slots."""
    fabric, job = problem.fabric, problem.jobs[0]
    links = [links_to_nodes(fabric, worker, job.servers[0]) for worker in job.workers]
    inps = sorted({inp for found in links for inp in found if inp is not None})
    onward = {
        inp: nx.shortest_path_length(nx.Graph(list(fabric.capacities_bps)), inp[0], job.servers[0]) for inp in inps
    }

    def cost(chosen: Sequence[Inp]) -> float:
        sent = sum(min(count for inp, count in found.items() if inp is None or inp in chosen) for found in links)
        return sent + sum(onward[inp] for inp in chosen)

    subsets = chain.from_iterable(combinations(inps, count) for count in range(len(inps) + 1))
    costs = {chosen: cost(chosen) for chosen in subsets}
    useful = [c for c in costs if all(costs[c] < costs[tuple(i for i in c if i != inp)] for inp in c)]
    least: dict[tuple[int, ...], float] = {tuple(fabric.switch_by_name[inp[0]].aggregator_slots for inp in inps): 0}
    for size in sizes:  # by the slots that remain
        found: dict[tuple[int, ...], float] = {}
        for room, before in least.items():
            for chosen in useful:
                left = tuple(slots - size * (inp in chosen) for slots, inp in zip(room, inps, strict=True))
                if min(left, default=0) >= 0:
                    found[left] = min(found.get(left, inf), before + size * costs[chosen])
        least = found
    return min(least.values())


@pytest.mark.parametrize("seeds", [range(60), long_unless(False, range(60, 600))], ids=["60", "540"])
def test_the_traffic_is_that_of_the_plan_and_the_least(seeds: range) -> None:
    """The local search may stop above the least: it does on one of the first 4,000 networks, 0.8 % above it."""
    for seed in seeds:
        problem, options = small_problem(seed)
        expected, sizes = believed(problem, options)
        assert planned_traffic(problem, "goat", options) == pytest.approx(expected), seed
        assert expected == pytest.approx(least_traffic(problem, sizes)), seed


def test_switches_sum_only_what_arrives_in_one_pipeline() -> None:
    """Four pipelines: the leaf of h4, h5 and h6 cannot sum their gradients, a spine can."""
    fabric = with_aggregators(with_pipelines(leaf_spine(3, 2, 3), 4), slots=100)
    problem = of_fragments(single(fabric, ("h2", "h4", "h5", "h6", "h7", "h8"), "h1"), 60)
    assert planned_traffic(problem) == 960 == least_traffic(problem, [60])
    assert planned_traffic(problem, "atp") == 1080


@pytest.mark.parametrize("seed", range(12))
def test_with_memory_for_all_no_more_traffic_than_sums_at_the_workers_tors(seed: int) -> None:
    draw = random.Random(seed)
    fabric = draw.choice([leaf_spine(4, 3, 5), leaf_spine(6, 4, 4), fat_tree(4)])
    some = with_pipelines(with_ina(fabric, share=draw.choice([0.3, 0.6, 1]), seed=seed), draw.choice([1, 2, 4]))
    server, *workers = draw.sample([host.name for host in fabric.hosts], draw.randint(5, len(fabric.hosts)))
    problem = of_fragments(single(with_aggregators(some, slots=FRAGMENTS), workers, server), FRAGMENTS)
    assert planned_traffic(problem) == pytest.approx(believed(problem, GoatOptions())[0])
    assert planned_traffic(problem) <= planned_traffic(problem, "atp-tor")


def test_an_input_pipeline_with_more_workers_than_bits_forwards_several_sums() -> None:
    fabric = with_aggregators(leaf_spine(3, 1, 5), slots=40)
    few = Chip("four-children", 64, 40, children_per_slot=4, pipelines=1, table_entries=1000, multicast_groups=100)
    limited = replace(fabric, switches=tuple(replace(switch, chip=few) for switch in fabric.switches))
    hosts = [host.name for host in fabric.hosts]
    problem = of_fragments(single(limited, hosts[1:], hosts[0]), FRAGMENTS)
    expected, _ = believed(problem, GoatOptions())
    assert planned_traffic(problem) <= expected
    assert expected < planned_traffic(problem, "geryon")
