"""The papers' baselines: RANDOM, AggTree and GRID in ARO's default setting, and ATP as InArt compares with it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product
from statistics import mean

import pytest
from planner_cases import FRAGMENT, job, papers_setting

from inakit.experiments.papers.inart.setting import SETTINGS, drawn_problem
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.plan import ROOT_LABEL
from inakit.planner.core.problem import Problem
from inakit.planner.methods.grid import PS, GridOptions, choose_places, choose_routes, place
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS
from inakit.planner.trees.summed_once import split_equally, ways
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacities, with_ina, with_pipelines

SEEDS, FEW = 30, 10


@cache
def mean_rate_gbps(method: str, seeds: int = FEW) -> float:
    plans = [METHODS[method].plan(papers_setting(seed), Options(seed=seed)) for seed in range(seeds)]
    return mean(plan.trees[0].rate_bps for plan in plans) / 1e9


@pytest.mark.parametrize(("method", "printed_gbps"), [("random", 7.92), ("aggtree", 8.76)])
def test_the_papers_figures(method: str, printed_gbps: float) -> None:
    assert mean_rate_gbps(method, SEEDS) == pytest.approx(printed_gbps, rel=0.1)


def test_grid_is_the_worst_and_balance_is_worth_more_than_twice() -> None:
    """The methods have the order that the paper finds, and AggTree gains by looking beyond a ToR's own links."""
    assert mean_rate_gbps("grid-aro") < 0.3 * mean_rate_gbps("random")
    assert mean_rate_gbps("grid") < 0.9 * mean_rate_gbps("random")
    assert mean_rate_gbps("aggtree-balanced") > 2 * mean_rate_gbps("aggtree")


def test_grid_sums_once_and_random_by_one_switch_above_the_tors() -> None:
    problem = papers_setting(0)
    tree = METHODS["grid"].plan(problem).trees[0].tree
    assert {tree.branch_of[a.label].parent for a in tree.aggregators} == {0}
    (planned,) = METHODS["random"].plan(problem).trees
    crossing = {node for branch in planned.tree.branches for node in branch.path if node.startswith("spine")}
    assert len(crossing) == 1
    assert problem.fabric.switch_by_name[crossing.pop()].ina


def test_grids_first_program_counts_sums_and_gradients_on_the_servers_link() -> None:
    """Two switches process 2 gradients each, so they sum 4 of 5. Others reach the PS if its link has room.

    A link for one gradient carries the sums of both switches, which have the highest rate of their gradients.
    """
    places = {f"w{number}": [PS, "spine1", "spine2"] for number in range(5)}
    one = choose_places(places, GridOptions(links_processed=2))
    unsummed = sum(one[worker, PS] for worker in places)
    sums = (max(one[worker, switch] for worker in places) for switch in ("spine1", "spine2"))
    assert unsummed + sum(sums) == pytest.approx(1)
    assert sum(one.values()) < 5
    many = choose_places(places, GridOptions(links_processed=2, links_of_servers=100))
    assert sum(many.values()) == pytest.approx(5)
    assert sum(many[worker, PS] for worker in places) >= 1 - 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_grids_second_program_has_the_routes_of_the_least_load(seed: int) -> None:
    """No other routes to the same aggregators load the busiest link less: all are tried.

    If each worker in turn takes the least loaded way, two of these draws have a higher load.
    """
    draw = random.Random(seed)
    fabric = with_ina(leaf_spine(3, 2, 3), ["leaf1", "spine1", *draw.sample(["leaf2", "leaf3"], 1)])
    fabric = with_capacities(fabric, 1e6, 4e6, seed)
    (task,) = split_equally(Problem(fabric, (job([f"h{number}" for number in range(4, 9)], "h1"),), FRAGMENT))
    known = {worker: list(ways(fabric, task, worker)) for worker in task.job.workers}
    drawn = {worker: draw.choice([place(way) for way in own]) for worker, own in known.items()}
    possible = {worker: [way for way in own if place(way) == drawn[worker]] for worker, own in known.items()}
    chosen, onward = choose_routes(fabric, task, possible, GridOptions())
    found = busiest(fabric, [way.path for way in chosen] + list(onward.values()))
    summed = [list(task.unfolded.paths(switch)) for switch in onward]
    every = product(*([way.path for way in own] for own in possible.values()), *summed)
    assert found == pytest.approx(min(busiest(fabric, paths) for paths in every))


def busiest(fabric: Fabric, paths: Sequence[Path]) -> float:
    """The flows over capacity of the busiest link, with a flow on each path."""
    flows = Counter(link for path in paths for link in pairwise(path))
    return max(count / fabric.capacities_bps[link] for link, count in flows.items())


def test_grid_knows_no_pipelines_and_each_pipelines_sum_takes_the_same_route() -> None:
    problem = papers_setting(0)
    tree = METHODS["grid"].plan(problem).trees[0].tree
    paths = {(a.switch, tree.branch_of[a.label].path) for a in tree.aggregators}
    assert len(paths) == len({switch for switch, _ in paths}) < len(tree.aggregators)


def test_aros_grid_sends_gradients_unsummed_that_no_switch_processes() -> None:
    tree = METHODS["grid-aro"].plan(papers_setting(0)).trees[0].tree
    assert sum(tree.branch_of[label].parent == ROOT_LABEL for label in tree.workers) > 20
    tree = METHODS["grid"].plan(papers_setting(0)).trees[0].tree
    assert sum(tree.branch_of[label].parent == ROOT_LABEL for label in tree.workers) < 5


@pytest.mark.parametrize("method", ["random", "aggtree", "aggtree-balanced", "grid", "grid-aro"])
def test_plans_are_the_same_for_the_same_seed_and_rates_fit_every_link(method: str) -> None:
    fabric = with_ina(with_pipelines(fat_tree(4), 2), share=0.5, seed=3)
    hosts = [host.name for host in fabric.hosts]
    problem = Problem(
        fabric,
        (job(hosts[2:9], "h1", "h16"), job(hosts[9:15], "h2", number=2)),
        papers_setting(0).fragment,
    )
    plan = METHODS[method].plan(problem, Options(seed=1))
    assert plan == METHODS[method].plan(problem, Options(seed=1))
    loads = evaluate(problem, plan).link_loads_bps
    assert max(load / fabric.capacities_bps[link] for link, load in loads.items()) == pytest.approx(1)


@pytest.mark.parametrize(("workers", "mbps"), [(10, 10.0), (30, 5.0), (50, 40 / 9)])
def test_inarts_atp_sends_sums_by_the_least_loaded_links(workers: int, mbps: float) -> None:
    """In InArt's heterogeneous network only the PSs limit it, results included: 80 Mbit/s over the workers' racks.

    With paths drawn by hash links do: 7.76, 4.24 and 4.24 Mbit/s.
    """
    problem = drawn_problem(SETTINGS["heterogeneous"], workers, 0, switch_bps=None)
    plan = with_headroom(problem, METHODS["atp-tor"].plan(problem)).plan
    assert evaluate(problem, plan).sending_rate_bps == pytest.approx(mbps * 1e6)


def test_inarts_atp_spreads_sums_evenly_over_equal_links() -> None:
    """Two pods send the sums of four racks to four PSs in two other pods: 16 sums over 8 links of each kind."""
    fabric = fat_tree(4)
    hosts = [host.name for host in fabric.hosts]
    problem = Problem(fabric, (job(hosts[:8], *hosts[8::2]),), FRAGMENT)
    loads = flow_counts(planned.tree for planned in METHODS["atp-tor"].plan(problem).trees)
    between = {link: load for link, load in loads.items() if not set(link) & fabric.host_names}
    assert len(between) == 4 * 8
    assert set(between.values()) == {2}
